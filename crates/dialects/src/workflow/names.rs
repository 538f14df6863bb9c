//! Names that values of a workflow have: inputs and metadata, variables, what results bring (D-01 … D-07), by region.

use super::doc::{Does, ForkOf, Rounds, WorkNode, WorkflowDoc, Worth};
use super::regions::{Kind, Regions};
use crate::ToolSource;
use crate::json::{Span, Spanned};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// The number of a path or an iteration.
const INDEX: &str = "index";

/// What is known of the names that may have a value somewhere in a region.
#[derive(Clone, Default)]
pub(super) struct Names {
    known: HashSet<String>,
    /// Results may bring any name.
    unknown: bool,
}

impl Names {
    pub(super) fn may_have(&self, name: &str) -> bool {
        self.unknown || self.known.contains(name)
    }

    /// Whether something is known to set it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.known.contains(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(String::as_str)
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    fn add(&mut self, other: &Names) {
        self.known.extend(other.known.iter().cloned());
        self.unknown |= other.unknown;
    }

    fn bring<'n>(&mut self, id: &str, names: impl Iterator<Item = &'n str>) {
        for name in names {
            self.known.insert(format!("{id}_{name}"));
            self.known.insert(name.to_owned());
        }
    }
}

/// The names of each region, without those of the regions around it. A loop shares the variables of the region around it, and
/// what a path sets stays in it.
pub(super) fn of(doc: &WorkflowDoc, regions: &Regions<'_>, tools: &dyn ToolSource) -> Vec<Names> {
    let mut all: Vec<Names> = Vec::with_capacity(regions.all.len());
    for region in &regions.all {
        let mut names = Names::default();
        for vertex in &region.vertices {
            for node in [vertex.node, vertex.end].iter().take(if vertex.node == vertex.end { 1 } else { 2 }) {
                doc.nodes.get(*node).into_iter().for_each(|node| brought(node, tools, &mut names));
            }
        }
        all.push(names);
    }
    // Inner regions come behind those that they are in.
    for (at, region) in regions.all.iter().enumerate().rev() {
        if let (Kind::Body, Some((around, _)), Some(inner)) =
            (region.kind, region.around, all.get(at).cloned())
        {
            all.get_mut(around).into_iter().for_each(|outer| outer.add(&inner));
        }
    }
    for (at, region) in regions.all.iter().enumerate() {
        let opener = region.around.and_then(|(around, vertex)| regions.all.get(around)?.vertices.get(vertex));
        let opener = opener.and_then(|vertex| doc.nodes.get(vertex.node));
        if let Some(names) = all.get_mut(at) {
            names.known.extend(opener.into_iter().flat_map(given).map(str::to_owned));
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

fn brought(node: &WorkNode, tools: &dyn ToolSource, names: &mut Names) {
    let id = &*node.id.value;
    for tool in node.tools() {
        match tools.def(&tool.value).and_then(|def| def.output_params.clone()) {
            Some(fields) => names.bring(id, fields.names().iter().map(AsRef::as_ref)),
            None => names.unknown = true,
        }
    }
    match &node.does {
        Does::Variable(name, _) => drop(names.known.insert(name.value.to_string())),
        Does::Join(join) => {
            names.known.extend(join.exports.iter().map(|(name, _)| name.value.to_string()));
            names.unknown = true;
        }
        Does::Sub(sub) => {
            names.known.extend(sub.outputs.iter().map(|(name, _)| name.value.to_string()));
            names.unknown = true;
        }
        Does::Llm(llm) => match &llm.output_schema {
            Some(schema) => names.bring(id, properties(&schema.value)),
            None => names.unknown = true,
        },
        Does::Ask(ask) => match &ask.schema {
            Some(schema) => names.bring(id, properties(&schema.value)),
            None => names.unknown = true,
        },
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
