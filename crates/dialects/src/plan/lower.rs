//! Lowering a checked plan to the engine's graph (P-02 … P-19). It adds nothing that the document does not say.

use super::doc::{NodeKind, OnError, PlanDoc, PlanNode};
use crate::ToolSource;
use crate::head::each_once;
use crate::leaves::{self, MAX_ROUNDS, Talk};
use selvedge_engine::graph::{
    Act, Call, Draft, Flow, Infer, Node as GraphNode, OnError as GraphOnError, Retry, ThreadDef, Told,
};
use selvedge_engine::template::{JsonTemplate, OnMissing, Template};
use selvedge_engine::{AskKind, Graph, ReplySchema, Slice, ThreadIx};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// The thread that exists from the start (P-02).
pub(super) const MAIN: &str = "main";

/// Every tool the plan names, each once.
pub fn tools(plan: &PlanDoc) -> Vec<Arc<str>> {
    let named = plan.nodes.iter().flat_map(|node| {
        let first = match &node.kind {
            NodeKind::ToolFirst { tool, .. } => Some(&tool.value),
            NodeKind::LlmFirst => None,
        };
        first.into_iter().chain(node.tools.iter().map(|tool| &tool.value))
    });
    each_once(named)
}

/// The model roles or names that model calls use, each once.
pub fn models(plan: &PlanDoc) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = Vec::new();
    for node in plan.nodes.iter().filter(|node| node.task_prompt.is_some()) {
        let name = node.model.as_ref().map_or_else(|| Arc::from("basic"), |model| model.value.clone());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The graph of a plan without errors; `None` if a template does not parse, which the checker has said.
pub(super) fn lower(plan: &PlanDoc, tools: &dyn ToolSource) -> Option<Graph> {
    let mut graph =
        Graph { name: plan.head.name.as_ref().map(|name| name.value.clone()), ..Graph::default() };
    let mut threads: HashMap<Arc<str>, ThreadIx> = HashMap::new();
    let main: Arc<str> = MAIN.into();
    let task = &plan.head.task.value;
    let first = if task.is_empty() { None } else { Some(Template::parse(task).ok()?) };
    threads.insert(main.clone(), graph.threads.push(ThreadDef { name: main, first }));
    for node in &plan.nodes {
        let name = &node.thread.value;
        let opens = !threads.contains_key(name);
        if opens {
            let ix = graph.threads.push(ThreadDef { name: name.clone(), first: None });
            threads.insert(name.clone(), ix);
        }
        let lowered = NodeLowering { node, threads: &threads, opens }.lower()?;
        graph.nodes.push(lowered);
    }
    graph.tools =
        super::tools(plan).into_iter().filter_map(|name| Some((name.clone(), tools.def(&name)?))).collect();
    Some(graph)
}

struct NodeLowering<'p> {
    node: &'p PlanNode,
    threads: &'p HashMap<Arc<str>, ThreadIx>,
    opens: bool,
}

impl NodeLowering<'_> {
    fn lower(&self) -> Option<GraphNode> {
        let node = self.node;
        let mut drafts: Vec<Draft> = Vec::new();
        if self.opens {
            let from = *self.threads.get(&node.data_in_thread.value)?;
            let slice = Slice(node.data_in_slice.value.start, node.data_in_slice.value.end);
            drafts.push(("open", Act::Open { from, slice }, Vec::new()));
        }
        let acts = node.task_prompt.is_some() || matches!(node.kind, NodeKind::ToolFirst { .. });
        if node.require_approval && acts {
            let question = format!("Run node `{}` ({})?", node.id.value, node.name.value);
            drafts.push((
                "approve",
                Act::Ask(AskKind::Approve, Template::exactly(&question), None),
                Vec::new(),
            ));
        }
        if let NodeKind::ToolFirst { tool, args } = &node.kind {
            let args = args.as_ref().map_or_else(|| Value::Object(Map::new()), |args| args.to_value());
            let args = JsonTemplate::parse(&args).ok()?;
            let (retry, timeout_s) = (self.retry(), self.timeout());
            drafts.push((
                "call",
                Act::Call(Call { tool: tool.value.clone(), args, retry, timeout_s, told: Told::Nothing }),
                Vec::new(),
            ));
        }
        if let Some(prompt) = &node.task_prompt {
            drafts.extend(self.talk(Template::parse(&prompt.value).ok()?));
        }
        if node.data_out {
            drafts.push(("publish", self.publish()?, Vec::new()));
        }
        let effects = node.effects.as_ref().map(|effects| leaves::effects_of(effects.value));
        Some(GraphNode {
            id: node.id.value.clone(),
            name: node.name.value.clone(),
            body: self.flow(drafts)?,
            on_error: match node.on_error {
                OnError::Fail => GraphOnError::Fail,
                OnError::Continue => GraphOnError::Continue,
            },
            effects,
            on_missing: OnMissing::Fault,
            tool: match &node.kind {
                NodeKind::ToolFirst { tool, .. } => Some(tool.value.clone()),
                NodeKind::LlmFirst => None,
            },
            ..GraphNode::default()
        })
    }

    /// The prompt, the model and the answers to its calls: once, or in a loop (P-10, P-11, P-14, E-30).
    fn talk(&self, prompt: Template) -> Vec<Draft> {
        let (retry, timeout_s, model) = (self.retry(), self.timeout(), self.infer());
        Talk { prompt, model, in_rounds: self.node.enable_tool_loop, retry, timeout_s, between: None }
            .leaves()
    }

    fn infer(&self) -> Infer {
        let node = self.node;
        let schema = node.output_schema.as_ref();
        Infer {
            model: node.model.as_ref().map(|model| model.value.clone()),
            offer_tools: !node.tools.is_empty(),
            schema: schema.map(|schema| ReplySchema {
                name: node.id.value.clone(),
                schema: Value::clone(&schema.value),
            }),
            settings: node.settings.lowered(),
            timeout_s: self.timeout(),
            ..Infer::default()
        }
    }

    fn publish(&self) -> Option<Act> {
        let node = self.node;
        let description = node.data_out_description.as_ref().map_or("", |text| text.value.as_ref());
        let label = match node.kind {
            NodeKind::LlmFirst => "llm-first",
            NodeKind::ToolFirst { .. } => "tool-first",
        };
        Some(Act::Publish {
            to: *self.threads.get(&node.data_out_thread.value)?,
            description: Template::parse(description).ok()?,
            label: label.into(),
        })
    }

    fn retry(&self) -> Retry {
        leaves::retry(self.node.retry.as_ref())
    }

    fn timeout(&self) -> Option<f64> {
        leaves::seconds(self.node.timeout.as_ref())
    }

    fn flow(&self, drafts: Vec<Draft>) -> Option<Flow> {
        let limits = self.node.tools_limit.iter().chain(&self.node.plan_limit);
        Some(Flow {
            thread: Some(*self.threads.get(&self.node.thread.value)?),
            leaves: leaves::table(drafts, "publish"),
            tools: self.node.tools.iter().map(|tool| tool.value.clone()).collect(),
            offers_bound: false,
            call_limits: leaves::call_limits(limits),
            max_rounds: self.node.max_rounds.as_ref().map_or(MAX_ROUNDS, |rounds| rounds.value),
            tail: None,
            compiler: None,
        })
    }
}
