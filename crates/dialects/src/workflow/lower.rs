//! Lowering a workflow to a flow: each node is a node of its own, but a fork and its join are one, and so are a loop and its end
//! (docs/decisions/0027-workflows.md). Paths, iterations and inner documents are inner graphs.

mod node;

use super::before::Point;
use super::check::{self, Looked};
use super::doc::{Does, Inner, InnerBody, Sub, WorkNode, WorkflowDoc};
use super::links::{Links, Take};
use super::regions::Regions;
use super::scope::{At, Scope};
use crate::Capabilities;
use crate::ToolSource;
use crate::diagnostic::shown;
use crate::head::Head;
use crate::leaves::{self, budget_of};
use crate::{Diagnostics, Finding, Source, agent, plan, steps};
use selvedge_engine::expression::Condition;
use selvedge_engine::graph::{Control, Node as GraphNode, ThreadDef, Way, When};
use selvedge_engine::template::{JsonTemplate, Template};
use selvedge_engine::{Graph, GraphIx, Ix, NodeIx, Table, ThreadIx, ToolDef};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The thread that nodes work on that name none, and that holds the task.
const MAIN: &str = "main";

/// What all documents of one workflow are lowered with.
pub(super) struct Compiler<'c> {
    tools: &'c dyn ToolSource,
    capabilities: &'c Capabilities,
    looked: Looked,
    graphs: Table<GraphIx, Arc<Graph>>,
    defs: BTreeMap<Arc<str>, Arc<ToolDef>>,
    withheld: BTreeMap<Arc<str>, Arc<str>>,
}

/// The graph that a node runs, and its first data layer.
struct Opened {
    graph: GraphIx,
    inputs: Vec<(Arc<str>, JsonTemplate)>,
}

/// What the node that runs a workflow asks of it, in the text that the node is in, and what is wrong with that.
struct Asked<'a> {
    node: &'a WorkNode,
    sub: &'a Sub,
    source: &'a Source,
    found: Diagnostics,
}

impl<'c> Compiler<'c> {
    pub(super) fn new(tools: &'c dyn ToolSource, capabilities: &'c Capabilities) -> Self {
        Self {
            tools,
            capabilities,
            looked: Looked::default(),
            graphs: Table::new(),
            defs: BTreeMap::new(),
            withheld: BTreeMap::new(),
        }
    }

    /// The graph of the document that is run.
    pub(super) fn whole(
        mut self,
        doc: &WorkflowDoc,
        source: &Source,
        initial: &Map<String, Value>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Graph> {
        let names = doc.head.names(initial).into_iter().map(str::to_owned).collect();
        let graph = self.workflow(doc, source, names, (None, None), diagnostics)?;
        let names = super::tools(doc);
        self.defs.extend(names.iter().filter_map(|name| Some((name.clone(), self.tools.def(name)?))));
        Some(Graph { tools: self.defs, withheld: self.withheld, graphs: self.graphs, ..graph })
    }

    fn workflow(
        &mut self,
        doc: &WorkflowDoc,
        source: &Source,
        initial: std::collections::HashSet<String>,
        (around, asked): (Option<(&Scope<'_>, At)>, Option<&mut Asked<'_>>),
        diagnostics: &mut Diagnostics,
    ) -> Option<Graph> {
        if !doc.complete {
            return None;
        }
        let before = diagnostics.errors();
        let links = Links::of(doc, &self.capabilities.limits, diagnostics)?;
        let regions = Regions::of(doc, source, &links, diagnostics)?;
        let scope = Scope::new(doc, (&links, &regions), initial, self.tools, around);
        check::check(&scope, source, self.capabilities.limits.schema_steps, &mut self.looked, diagnostics);
        if let Some(Asked { sub, source, found, .. }) = asked {
            check::outputs(&scope, sub.outputs.iter().map(|(_, value)| value), source, found);
        }
        let opened = self.inner_documents(&scope, source, diagnostics);
        if diagnostics.errors() > before {
            return None;
        }
        Flows { compiler: self, doc, regions: &regions, opened, threads: threads_of(doc) }.region(0)
    }

    /// The documents that nodes of this one run, checked as they are put together (W-15).
    fn inner_documents(
        &mut self,
        scope: &Scope<'_>,
        source: &Source,
        diagnostics: &mut Diagnostics,
    ) -> HashMap<usize, Opened> {
        let mut opened = HashMap::new();
        for (region, walked) in scope.regions.all.iter().enumerate() {
            for (number, vertex) in walked.vertices.iter().enumerate() {
                let Some(node) = scope.doc.nodes.get(vertex.node) else { continue };
                let Does::Sub(sub) = &node.does else { continue };
                let at = At { region, point: Point::Begun(number) };
                let mut own = Diagnostics::new();
                let mut asked = Asked { node, sub, source, found: Diagnostics::new() };
                let inner = match &sub.inner.source {
                    None => self.inner_document(&mut asked, source, (scope, at), diagnostics),
                    Some(file) => {
                        let found = self.inner_document(&mut asked, file, (scope, at), &mut own);
                        diagnostics.elsewhere(own, file);
                        found
                    }
                };
                asked.found.findings().iter().for_each(|finding| diagnostics.push(finding.clone()));
                opened.extend(inner.map(|inner| (vertex.node, inner)));
            }
        }
        opened
    }

    /// One of them; `own` takes what is wrong in it, and `asked` what is wrong with how it is called.
    fn inner_document(
        &mut self,
        asked: &mut Asked<'_>,
        source: &Source,
        around: (&Scope<'_>, At),
        own: &mut Diagnostics,
    ) -> Option<Opened> {
        let sub = asked.sub;
        let first = self.graphs.len();
        let head = head_of(&sub.inner);
        let given = |name: &str| sub.inputs.iter().any(|(known, _)| *known.value == *name);
        for input in &head.inputs {
            let name = &*input.name.value;
            if input.default.is_none() && !head.metadata.contains_key(name) && !given(name) {
                let message = format!("the input {} has no value", shown(name));
                let finding = Finding::error("P-23", "missing-input", sub.inner.span, message);
                let help = format!("give it in `inputs` of the node: {{{}: …}}", shown(name));
                asked.found.push(finding.help(help));
            }
        }
        asked.sub.inputs.iter().for_each(|(name, value)| head.check_given(name, value, &mut asked.found));
        let mut names: std::collections::HashSet<String> =
            head.names(&Map::new()).into_iter().map(str::to_owned).collect();
        names.extend(sub.inputs.iter().map(|(name, _)| name.value.to_string()));
        let graph = match &*sub.inner.body {
            InnerBody::Workflow(doc) => {
                self.workflow(doc, source, names, (Some(around), Some(asked)), own)?
            }
            InnerBody::Plan(plan) if plan.complete => {
                let ids: Vec<&str> = plan.nodes.iter().map(|node| &*node.id.value).collect();
                let seen = seen_from(names, around, |name| ids.contains(&name));
                plan::compile(plan, source, self.tools, &seen, &self.capabilities.limits, own)?
            }
            InnerBody::Plan(_) => return None,
            InnerBody::Agent(agent) => {
                let seen = seen_from(names, around, |_| false);
                let may = (self.capabilities, budget_of(&agent.head.budget), &mut self.graphs);
                agent::within(agent, source, self.tools, &seen, may, own)?
            }
            InnerBody::Steps(task) => {
                let steps = task.steps.as_deref().unwrap_or_default();
                let seen = seen_from(names, around, |name| steps.iter().any(|step| *step.id.value == *name));
                steps::compile(task, source, self.tools, &seen, self.capabilities, own)?
            }
        };
        let mut graph = self.without_tools(graph);
        if let Some(retry) = &asked.node.retry {
            let retry = leaves::retry(Some(retry));
            for at in first..self.graphs.len() {
                if let Some(graph) = self.graphs.get_mut(GraphIx::new(at)) {
                    leaves::inherit_retry(Arc::make_mut(graph), retry);
                }
            }
            leaves::inherit_retry(&mut graph, retry);
        }
        let mut inputs = defaults(head)?;
        for (name, value) in &sub.inputs {
            inputs.push((name.value.clone(), JsonTemplate::from_value(value.to_value()).ok()?));
        }
        Some(Opened { graph: self.graphs.push(Arc::new(graph)), inputs })
    }

    /// Inner graphs have the tools of the run's own.
    fn without_tools(&mut self, mut graph: Graph) -> Graph {
        self.defs.append(&mut graph.tools);
        self.withheld.append(&mut graph.withheld);
        graph
    }
}

fn head_of(inner: &Inner) -> &Head {
    match &*inner.body {
        InnerBody::Workflow(doc) => &doc.head,
        InnerBody::Plan(plan) => &plan.head,
        InnerBody::Steps(task) => &task.head,
        InnerBody::Agent(agent) => &agent.head,
    }
}

/// The names that a plan or a step task sees: its own, and those around it that it has no node of.
fn seen_from(
    own: std::collections::HashSet<String>,
    (scope, at): (&Scope<'_>, At),
    is_own: impl Fn(&str) -> bool,
) -> Map<String, Value> {
    let around = scope.visible(at).into_iter().map(String::from).filter(|name| !is_own(name));
    own.into_iter().chain(around).map(|name| (name, Value::Null)).collect()
}

/// What a document's own head gives it: defaults of inputs, and metadata over them (P-23). They are values, never templates.
fn defaults(head: &Head) -> Option<Vec<(Arc<str>, JsonTemplate)>> {
    let inputs = head.inputs.iter().filter_map(|input| {
        let default = input.default.as_ref()?;
        Some((input.name.value.clone(), &default.value))
    });
    let metadata = head.metadata.iter().map(|(name, value)| (Arc::from(name.as_str()), value));
    inputs
        .chain(metadata)
        .map(|(name, value)| Some((name, JsonTemplate::from_value(exactly(value)).ok()?)))
        .collect()
}

/// A value whose strings and keys are templates that say exactly these.
fn exactly(value: &Value) -> Value {
    let text = |text: &str| Template::exactly(text).source().to_owned();
    match value {
        Value::String(string) => Value::String(text(string)),
        Value::Array(items) => Value::Array(items.iter().map(exactly).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(key, value)| (text(key), exactly(value))).collect())
        }
        other => other.clone(),
    }
}

/// Every thread of a document, `main` first (W-02): each of its flows has them all, so that what is on the way passes them on.
fn threads_of(doc: &WorkflowDoc) -> Vec<Arc<str>> {
    let mut threads: Vec<Arc<str>> = vec![MAIN.into()];
    let mut known: std::collections::HashSet<&str> = std::collections::HashSet::from([MAIN]);
    for thread in doc.nodes.iter().filter_map(|node| node.thread()) {
        if known.insert(&thread.value) {
            threads.push(thread.value.clone());
        }
    }
    threads
}

/// The flows of one document.
struct Flows<'a, 'c> {
    compiler: &'a mut Compiler<'c>,
    doc: &'a WorkflowDoc,
    regions: &'a Regions<'a>,
    opened: HashMap<usize, Opened>,
    threads: Vec<Arc<str>>,
}

impl Flows<'_, '_> {
    /// The graph of a region; `None` if something does not parse, which the checker has said.
    fn region(&mut self, at: usize) -> Option<Graph> {
        let region = self.regions.all.get(at)?;
        let mut graph = Graph { control: Control::Flow, ..Graph::default() };
        let task = &self.doc.head.task.value;
        for name in &self.threads {
            let first = (at == 0 && **name == *MAIN && !task.is_empty()).then(|| Template::parse(task).ok());
            let first = match first {
                Some(first) => Some(first?),
                None => None,
            };
            graph.threads.push(ThreadDef { name: name.clone(), first });
        }
        if at == 0 {
            graph.name = self.doc.head.name.as_ref().map(|name| name.value.clone());
        }
        let exit = NodeIx::new(region.vertices.len());
        let mut exits = region.vertices.is_empty();
        for vertex in &region.vertices {
            let mut node = self.vertex(vertex)?;
            // The end of a region needs no node where nothing is asked before it.
            let plain =
                matches!(vertex.ways.as_slice(), [way] if way.to.is_none() && matches!(way.when, Take::Done));
            for way in vertex.ways.iter().filter(|_| !plain) {
                exits |= way.to.is_none();
                let when = match way.when {
                    Take::Done => When::Done,
                    Take::Error => When::Fault,
                    Take::If(formula) => When::Holds(Condition::Expression(formula.expression.clone())),
                };
                node.ways.push(Way { when, to: way.to.map_or(exit, NodeIx::new) });
            }
            graph.nodes.push(node);
        }
        if let Some(stop) = region.stop.and_then(|stop| self.doc.nodes.get(stop)).filter(|_| exits) {
            let (id, name) = (stop.id.value.clone(), stop.name.clone());
            graph.nodes.push(GraphNode { id, name, passes: true, ..GraphNode::default() });
        }
        Some(graph)
    }

    /// The inner graph of a region.
    fn inner(&mut self, at: usize) -> Option<GraphIx> {
        let graph = self.region(at)?;
        Some(self.compiler.graphs.push(Arc::new(graph)))
    }

    fn thread(&self, name: &str) -> Option<ThreadIx> {
        self.threads.iter().position(|known| **known == *name).map(ThreadIx::new)
    }
}
