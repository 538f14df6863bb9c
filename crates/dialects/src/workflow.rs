//! Workflows: nodes that lead to each other, forks, joins and loops (rules `W`).
//!
//! [`read`] makes a typed [`WorkflowDoc`] of a document's JSON and of the files that it names. [`compile`] follows its edges
//! (`links`), finds how it nests (`regions`), what has run before what (`before`), checks all that is said in it
//! (`check`), and lowers it to a flow, of which paths, loops and inner documents are inner graphs (`lower`).

mod before;
mod check;
mod doc;
mod ends;
mod joins;
mod links;
mod loops;
mod lower;
mod names;
pub(crate) mod older;
mod placeholders;
mod read;
mod read_fork;
mod read_node;
mod regions;
mod result;
mod scope;
mod strays;

pub use doc::{InnerBody, WorkNode, WorkflowDoc};

use crate::Capabilities;
use crate::ToolSource;
use crate::agent;
use crate::files::Includes;
use crate::head::each_once;
use crate::json::Node;
use crate::{Diagnostics, DocumentLimits, Source, checks, plan, steps};
use doc::Does;
use lower::Compiler;
use selvedge_engine::Graph;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Reads a workflow, and the files that it names, which are returned with it. Everything that could be read is returned, with every finding in `diagnostics`;
/// `None` only if it is no object at all. Go on to run it only if `diagnostics` has no errors.
pub fn read(
    root: &Node<'_>,
    source: &Source,
    limits: &DocumentLimits,
    diagnostics: &mut Diagnostics,
) -> Option<(WorkflowDoc, Vec<Source>)> {
    let mut includes = Includes::new(source.files(), limits);
    let reader = &mut read::Reader { source, limits, includes: &mut includes, diagnostics, depth: 0 };
    let doc = read::read(root, reader)?;
    Some((doc, includes.into_sources()))
}

/// Checks a workflow as a whole and lowers it; `None` if anything is an error.
pub fn compile(
    workflow: &WorkflowDoc,
    source: &Source,
    tools: &dyn ToolSource,
    initial: &Map<String, Value>,
    capabilities: &Capabilities,
    diagnostics: &mut Diagnostics,
) -> Option<Graph> {
    let graph = Compiler::new(tools, capabilities).whole(workflow, source, initial, diagnostics)?;
    if diagnostics.has_errors() {
        return None;
    }
    checks::proved(graph, workflow.head.span, diagnostics)
}

/// All nodes, those of inner workflows included, and the other inner documents.
fn walk<'w>(workflow: &'w WorkflowDoc, visit: &mut dyn FnMut(Part<'w>)) {
    for node in &workflow.nodes {
        visit(Part::Node(node));
        if let Does::Sub(sub) = &node.does {
            match &*sub.inner.body {
                InnerBody::Workflow(inner) => walk(inner, visit),
                other => visit(Part::Inner(other)),
            }
        }
    }
}

enum Part<'w> {
    Node(&'w WorkNode),
    Inner(&'w InnerBody),
}

/// Every tool it names, each once.
pub fn tools(workflow: &WorkflowDoc) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = Vec::new();
    walk(workflow, &mut |part| match part {
        Part::Node(node) => names.extend(node.tools().map(|tool| tool.value.clone())),
        Part::Inner(InnerBody::Plan(plan)) => names.extend(plan::tools(plan)),
        Part::Inner(InnerBody::Steps(task)) => names.extend(task.tools()),
        Part::Inner(InnerBody::Agent(agent)) => names.extend(agent::tools(agent)),
        Part::Inner(InnerBody::Workflow(_)) => {}
    });
    each_once(names.iter())
}

/// The model roles or names that it can't do without, each once.
pub fn models(workflow: &WorkflowDoc) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = Vec::new();
    walk(workflow, &mut |part| match part {
        Part::Node(node) if node.asks_model() => {
            names.push(node.model.as_ref().map_or_else(|| "basic".into(), |model| model.value.clone()));
            if node.kind() == "AGENT" {
                names.extend(agent::roles_between());
            }
        }
        Part::Node(_) | Part::Inner(InnerBody::Workflow(_)) => {}
        Part::Inner(InnerBody::Plan(plan)) => names.extend(plan::models(plan)),
        Part::Inner(InnerBody::Steps(task)) => names.extend(steps::models(task)),
        Part::Inner(InnerBody::Agent(agent)) => names.extend(agent::models(agent)),
    });
    each_once(names.iter())
}

/// The model roles that its step tasks use where a model plays them.
pub fn optional_models(workflow: &WorkflowDoc, capabilities: &Capabilities) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = Vec::new();
    walk(workflow, &mut |part| {
        if let Part::Inner(InnerBody::Steps(task)) = part {
            names.extend(steps::optional_models(task, capabilities));
        }
    });
    each_once(names.iter())
}

/// The kinds of objects in a workflow, by their names in its JSON Schema.
#[cfg(test)]
pub(crate) fn shapes() -> Vec<(&'static str, crate::fields::Shape)> {
    let mut shapes = vec![
        ("workflow", read::WORKFLOW),
        ("edge", read::EDGE),
        ("node", read_node::NODE),
        ("input", crate::inputs::INPUT),
        ("budget", crate::settings::BUDGET),
        ("retry", crate::settings::RETRY),
    ];
    shapes.extend(read_node::CONFIGS);
    shapes
}

#[cfg(test)]
mod tests;
