//! Names that values of a workflow have: inputs and metadata, variables, what results bring (D-01 … D-07), by region.

use super::doc::{Does, ForkOf, Rounds, WorkNode, WorkflowDoc, Worth};
use super::regions::{Kind, Regions};
use crate::ToolSource;
use crate::json::{Span, Spanned};
use selvedge_engine::template::normalized;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The number of a path or an iteration.
const INDEX: &str = "index";

/// What the vertices of a region bring, by name.
#[derive(Default)]
pub(super) struct Names {
    /// What an iteration or a path is given.
    given: HashSet<String>,
    /// Names of `runtime_metadata`, each with the vertices that may set it.
    variables: HashMap<String, Vec<usize>>,
    /// Fields of results, each with the vertices whose result may have it (D-07's last look-up).
    fields: HashMap<String, Vec<usize>>,
    /// Vertices that may set any variable.
    any_variable: Vec<usize>,
    /// Vertices whose result may have any field.
    any_field: Vec<usize>,
}

/// Where a name may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Supply {
    /// Nothing can bring it.
    Nothing,
    /// A result may bring any name.
    Unknown,
    /// Something is known to bring it.
    Known,
}

/// When what a vertex brings is there.
pub(super) trait Ran {
    /// Whether a vertex may have set a variable by then.
    fn set(&self, vertex: usize) -> bool;
    /// Whether a vertex may have a result by then.
    fn has_result(&self, vertex: usize) -> bool;
}

impl Names {
    /// Where the name may come from; `fields`: results are looked at, too.
    pub(super) fn supply(&self, name: &str, ran: &impl Ran, fields: bool) -> Supply {
        let set = |vertex: &usize| ran.set(*vertex);
        let has_result = |vertex: &usize| fields && ran.has_result(*vertex);
        let known = self.given.contains(name)
            || self.variables.get(name).is_some_and(|by| by.iter().any(set))
            || self.fields.get(name).is_some_and(|by| by.iter().any(has_result));
        if known {
            Supply::Known
        } else if self.any_variable.iter().any(set) || self.any_field.iter().any(has_result) {
            Supply::Unknown
        } else {
            Supply::Nothing
        }
    }

    /// Whether something in the region sets it, at whatever time.
    pub(super) fn has(&self, name: &str) -> bool {
        self.given.contains(name) || self.variables.contains_key(name)
    }

    /// The names that may be there by then.
    pub(super) fn at<'n>(&'n self, ran: &impl Ran) -> impl Iterator<Item = &'n str> {
        let variables = self.variables.iter().filter(|(_, by)| by.iter().any(|vertex| ran.set(*vertex)));
        let fields = self.fields.iter().filter(|(_, by)| by.iter().any(|vertex| ran.has_result(*vertex)));
        self.given.iter().chain(variables.chain(fields).map(|(name, _)| name)).map(String::as_str)
    }

    pub(super) fn len(&self) -> usize {
        self.given.len() + self.variables.len() + self.fields.len()
    }

    fn add(&mut self, vertex: usize, brought: &Brought) {
        for (names, more) in [(&mut self.variables, &brought.variables), (&mut self.fields, &brought.fields)]
        {
            more.iter().for_each(|name| names.entry(name.clone()).or_default().push(vertex));
        }
        self.any_variable.extend(brought.any_variable.then_some(vertex));
        self.any_field.extend(brought.any_field.then_some(vertex));
    }
}

/// What one vertex brings.
#[derive(Clone, Default)]
struct Brought {
    variables: HashSet<String>,
    fields: HashSet<String>,
    any_variable: bool,
    any_field: bool,
}

impl Brought {
    fn extend(&mut self, other: &Brought) {
        self.variables.extend(other.variables.iter().cloned());
        self.fields.extend(other.fields.iter().cloned());
        self.any_variable |= other.any_variable;
        self.any_field |= other.any_field;
    }

    /// Fields that the node declares (D-05).
    fn declared<'n>(&mut self, id: &str, names: impl Iterator<Item = &'n str>) {
        for name in names.map(normalized) {
            self.variables.insert(format!("{id}_{name}"));
            self.variables.insert(name.to_string());
            self.fields.insert(name.into_owned());
        }
    }
}

/// The names of each region, without those of the regions around it. A loop shares the variables of the region around it, and
/// what a path sets stays in it.
pub(super) fn of(doc: &WorkflowDoc, regions: &Regions<'_>, tools: &dyn ToolSource) -> Vec<Names> {
    let mut all: Vec<Names> = regions.all.iter().map(|_| Names::default()).collect();
    let mut bodies: HashMap<(usize, usize), Brought> = HashMap::new();
    // Inner regions come behind those that they are in.
    for (at, region) in regions.all.iter().enumerate().rev() {
        let mut whole = Brought::default();
        for (number, vertex) in region.vertices.iter().enumerate() {
            let mut names = bodies.remove(&(at, number)).unwrap_or_default();
            let opener = doc.nodes.get(vertex.node);
            for node in [vertex.node, vertex.end].iter().take(if vertex.node == vertex.end { 1 } else { 2 }) {
                let node = doc.nodes.get(*node);
                node.into_iter().for_each(|node| brought(node, opener, tools, &mut names));
            }
            if region.kind == Kind::Body {
                whole.extend(&names);
            }
            all.get_mut(at).into_iter().for_each(|all| all.add(number, &names));
        }
        if let (Kind::Body, Some(around)) = (region.kind, region.around) {
            bodies.insert(around, whole);
        }
    }
    for (at, region) in regions.all.iter().enumerate() {
        let opener = region.around.and_then(|(around, vertex)| regions.all.get(around)?.vertices.get(vertex));
        let opener = opener.and_then(|vertex| doc.nodes.get(vertex.node));
        if let Some(names) = all.get_mut(at) {
            names.given.extend(opener.into_iter().flat_map(given).map(str::to_owned));
        }
    }
    all
}

/// The names that a node gives to each path or iteration that it opens (W-13, W-16).
pub(super) fn given(opener: &WorkNode) -> Vec<&str> {
    match &opener.does {
        Does::Fork(fork) => match &fork.of {
            ForkOf::Each { item, .. } => vec![&**item, INDEX],
            ForkOf::Listed(_) => Vec::new(),
        },
        Does::LoopStart(repeat) => match &repeat.times {
            Rounds::Over(_) => vec![&*repeat.item, INDEX],
            _ => vec![INDEX],
        },
        _ => Vec::new(),
    }
}

/// The names that a node sets by what its document says, with where that is written if it is one word.
pub(super) fn sets(node: &WorkNode) -> Vec<(&str, Span)> {
    match &node.does {
        Does::Variable(name, _) => vec![(&*name.value, name.span)],
        Does::Join(join) => join.exports.iter().map(|(name, _)| (&*name.value, name.span)).collect(),
        Does::Sub(sub) => sub.outputs.iter().map(|(name, _)| (&*name.value, name.span)).collect(),
        Does::Llm(llm) => of_properties(llm.output_schema.as_ref()),
        Does::Ask(ask) => of_properties(ask.schema.as_ref()),
        _ => Vec::new(),
    }
}

fn of_properties(schema: Option<&Spanned<Arc<Value>>>) -> Vec<(&str, Span)> {
    let schema = schema.into_iter();
    schema.flat_map(|schema| properties(&schema.value).map(|name| (name, schema.span))).collect()
}

fn properties(schema: &Value) -> impl Iterator<Item = &str> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str))
}

/// What a node brings; `opener`: the fork, if it is a join.
fn brought(node: &WorkNode, opener: Option<&WorkNode>, tools: &dyn ToolSource, names: &mut Brought) {
    let id = &*node.id.value;
    for tool in node.tools() {
        match tools.def(&tool.value).and_then(|def| def.output_params.clone()) {
            Some(fields) => names.declared(id, fields.names().iter().map(AsRef::as_ref)),
            None => (names.any_variable, names.any_field) = (true, true),
        }
    }
    match &node.does {
        Does::Variable(name, _) => drop(names.variables.insert(name.value.to_string())),
        Does::Join(join) => {
            names.variables.extend(join.exports.iter().map(|(name, _)| name.value.to_string()));
            if let Some(Does::Fork(fork)) = opener.map(|node| &node.does)
                && let ForkOf::Listed(paths) = &fork.of
            {
                names.fields.extend(paths.iter().map(|(path, _)| path.value.to_string()));
            }
        }
        Does::Sub(sub) => {
            names.variables.extend(sub.outputs.iter().map(|(name, _)| name.value.to_string()));
            names.any_field = true;
        }
        Does::Llm(llm) => {
            // An agent may call tools that it makes.
            names.any_variable |= llm.agent.is_some();
            match &llm.output_schema {
                Some(schema) => names.declared(id, properties(&schema.value)),
                None => names.any_field = true,
            }
        }
        Does::Ask(ask) => match &ask.schema {
            Some(schema) => names.declared(id, properties(&schema.value)),
            None => names.any_field = true,
        },
        Does::End(Some(_)) => names.any_field = true,
        _ => {}
    }
}

/// Whether a variable is set to what stands there.
pub(super) fn is_literal(worth: &Worth) -> bool {
    let Worth::Value(value) = worth else { return false };
    let mut open = false;
    value.each_string(&mut |text, _| open |= text.contains("{{") || text.contains("${"));
    !open
}
