//! What a node reads and writes, as far as the graph tells.

use crate::effect::Effects;
use crate::graph::{Act, AskKind, Flow, Graph, Guard, Leaf, Node, is_operation};
use crate::ids::{LeafIx, Table};
use crate::template::{JsonTemplate, Path, normalized};
use std::sync::Arc;

/// What a node's result can bring to `runtime_metadata` (D-05).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Supply {
    /// Names that are declared.
    pub names: Vec<Arc<str>>,
    /// Whether other names may come.
    pub unknown: bool,
}

/// Every placeholder of a node's flow, in the order it is resolved.
pub(crate) fn paths<'g>(graph: &'g Graph, node: &'g Node) -> Vec<&'g Path> {
    let mut paths = Vec::new();
    for leaf in graph.leaves(node) {
        match &leaf.act {
            Act::AppendText(text) | Act::Publish { description: text, .. } => {
                paths.extend(text.placeholders().map(|p| &p.path));
            }
            Act::Ask(_, text, expects) => {
                paths.extend(text.placeholders().map(|p| &p.path));
                let value = expects.iter().filter_map(|expects| expects.value.as_ref());
                paths.extend(value.flat_map(|value| value.placeholders()).map(|(_, p)| &p.path));
            }
            Act::Call(call) => paths.extend(call.args.placeholders().map(|(_, p)| &p.path)),
            Act::Infer(infer) => {
                paths.extend(infer.system.iter().flat_map(|t| t.placeholders()).map(|p| &p.path));
            }
            Act::AppendFacts { text, .. } => paths.extend(text.placeholders().map(|p| &p.path)),
            Act::Edit(edit) => paths
                .extend(edit.value().into_iter().flat_map(JsonTemplate::placeholders).map(|(_, p)| &p.path)),
            Act::Warn(_, text) => paths.extend(text.placeholders().map(|p| &p.path)),
            Act::Set(_, value) | Act::Bind(value) | Act::Give(value) => {
                paths.extend(value.placeholders().map(|(_, p)| &p.path))
            }
            Act::Compute(_, expression) => paths.extend(expression.paths()),
            // A node that opens frames has its turn when all before it have retired.
            Act::Fork(_) | Act::Loop(_) | Act::Sub(_) => {}
            Act::Open { .. }
            | Act::Answer { .. }
            | Act::AwaitRetirement
            | Act::Recall(_)
            | Act::Decide
            | Act::Retry
            | Act::Compile { .. }
            | Act::TakeMessages
            | Act::Splice => {}
        }
    }
    paths
}

/// Every placeholder that a node may resolve: those of its flow, and of its alternatives (D-14).
pub fn reads<'g>(graph: &'g Graph, node: &'g Node) -> Vec<&'g Path> {
    let mut all = paths(graph, node);
    let alternatives = node.recovery.iter().flat_map(|recovery| &recovery.alternatives);
    let args = alternatives.filter_map(|alternative| alternative.args.as_ref());
    all.extend(args.flat_map(|args| args.placeholders()).map(|(_, p)| &p.path));
    all
}

/// The tools of a node's fixed calls: its own, and those that may do its work instead (D-18).
fn fixed_tools<'g>(graph: &'g Graph, node: &'g Node) -> impl Iterator<Item = &'g Arc<str>> {
    let own = graph.leaves(node).filter_map(|leaf| match &leaf.act {
        Act::Call(call) => Some(&call.tool),
        _ => None,
    });
    let others = node.recovery.iter().flat_map(|recovery| &recovery.alternatives);
    own.chain(others.map(|alternative| &alternative.tool))
}

/// What a node's result can bring to `runtime_metadata` (D-05). Of what a model may choose in a recovery nothing is
/// said: when that brings more, what ran ahead of it runs again.
pub fn supply(graph: &Graph, node: &Node) -> Supply {
    let mut supply = Supply::default();
    let mut tool = |name: &str| match graph.tools.get(name).and_then(|t| t.output_params.as_ref()) {
        Some(outputs) => supply.names.extend(outputs.names().iter().map(|name| Arc::from(normalized(name)))),
        None => supply.unknown = true,
    };
    let mut schema_names = Vec::new();
    fixed_tools(graph, node).for_each(|name| tool(name));
    for leaf in graph.leaves(node) {
        match &leaf.act {
            // The texts of a scratch thread are no result.
            Act::Infer(infer) if node.body.thread.is_some() => {
                if infer.offer_tools {
                    node.body.tools.iter().for_each(|name| tool(name));
                }
                if let Some(schema) = &infer.schema {
                    schema_names.extend(schema_properties(&schema.schema));
                }
            }
            Act::Ask(..) => schema_names.extend(leaf.act.schema().into_iter().flat_map(schema_properties)),
            _ => {}
        }
    }
    supply.unknown |= node.body.offers_bound;
    supply.names.extend(schema_names);
    supply.names.sort();
    supply.names.dedup();
    supply
}

/// The property names of a JSON Schema of an object.
pub(crate) fn schema_properties(schema: &serde_json::Value) -> Vec<Arc<str>> {
    let properties = schema.get("properties").and_then(|p| p.as_object());
    properties.map(|p| p.keys().map(|k| Arc::from(normalized(k))).collect()).unwrap_or_default()
}

/// Whether a node opens frames: it then waits for all before it, as what its frames observe is not told from here.
pub(super) fn opens_frames(graph: &Graph, node: &Node) -> bool {
    graph.leaves(node).any(|leaf| matches!(leaf.act, Act::Fork(_) | Act::Loop(_) | Act::Sub(_)))
}

/// The strongest effects that a node's calls may have.
pub(super) fn world(graph: &Graph, node: &Node) -> Option<Effects> {
    let offers = graph.leaves(node).any(|l| matches!(&l.act, Act::Infer(i) if i.offer_tools));
    // Nobody looks into frames here.
    if opens_frames(graph, node) || (offers && node.body.offers_bound) {
        return Some(Effects::Write);
    }
    let offered = node.body.tools.iter().filter(|_| offers);
    fixed_tools(graph, node).chain(offered).map(|tool| graph.effects(node, tool)).max()
}

/// Whether a node takes messages away from its thread: what stands at a place there is then told by all writers.
pub(super) fn edits(graph: &Graph, node: &Node) -> bool {
    graph.leaves(node).any(|leaf| matches!(leaf.act, Act::Edit(_)))
}

/// How many messages a flow appends to its own thread at least, when it succeeds.
pub(super) fn least_appended(graph: &Graph, flow: &Flow) -> usize {
    let weight = |leaf: &Leaf| match leaf.act {
        Act::AppendText(_) | Act::Infer(_) | Act::AppendFacts { .. } => 1,
        Act::Ask(kind, ..) if kind != AskKind::Approve => 1,
        Act::Call(ref call) if flow.thread.is_some() && !is_operation(&call.tool) => 2,
        _ => 0,
    };
    let leaves = flow.leaves.len() + graph.tail(flow).map_or(0, |tail| tail.leaves.len());
    let mut best: Table<LeafIx, Option<usize>> = (0..leaves).map(|_| None).collect();
    let mut least = usize::MAX;
    let mut todo: Vec<(LeafIx, usize)> = flow.leaves.indices().take(1).map(|entry| (entry, 0)).collect();
    while let Some((leaf, before)) = todo.pop() {
        let (Some(row), Some(best)) = (graph.leaf_of(flow, leaf), best.get_mut(leaf)) else { continue };
        let total = before + weight(row);
        if best.is_some_and(|known| known <= total) {
            continue;
        }
        *best = Some(total);
        let next = &row.next;
        todo.extend(next.iter().filter_map(|edge| Some((Graph::target(flow, leaf, edge)?, total))));
        let always = next.iter().any(|edge| edge.when == Guard::Always);
        if !always || next.iter().any(|edge| edge.to.is_none()) {
            least = least.min(total);
        }
    }
    if least == usize::MAX { 0 } else { least }
}
