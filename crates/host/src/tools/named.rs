//! Which tools a document or a recorded graph names.

use selvedge_dialects::compile::Document;
use selvedge_dialects::{Capabilities, Dialect};
use selvedge_engine::graph::Act;
use selvedge_engine::{Graph, Warning};
use selvedge_tools::mcp::Wanted;
use selvedge_tools::{Catalogue, ToolError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The tools that a document can call: all of a run but MCP tools, which are those that are wanted.
pub fn wanted(document: &Document, capabilities: &Capabilities) -> Wanted {
    let steps = document.dialect() == Dialect::Steps;
    // D-17: where a model plans or decides about recovery, it may choose any tool.
    let any = capabilities.model || (steps && !document.models().is_empty());
    Wanted { names: document.tools(), any }
}

/// The same of a recorded graph, which has all tools that its run can call.
pub fn wanted_by(graph: &Graph) -> Wanted {
    let named = named(graph);
    let remote = graph.tools.iter().filter(|(_, tool)| tool.source.starts_with("mcp:"));
    let (names, others): (Vec<_>, Vec<_>) =
        remote.map(|(name, _)| name).partition(|name| named.contains(name));
    Wanted { names: names.into_iter().cloned().collect(), any: !others.is_empty() }
}

/// The tools that fixed calls of a graph name.
fn fixed(graph: &Graph) -> BTreeSet<&Arc<str>> {
    let leaves = graph.all_nodes().flat_map(|node| node.body.leaves.values());
    leaves.filter_map(|leaf| if let Act::Call(call) = &leaf.act { Some(&call.tool) } else { None }).collect()
}

/// The tools that a graph calls itself, or that stand in for these (D-18): what they are given stands in the document.
pub fn called(graph: &Graph) -> Vec<Arc<str>> {
    let recoveries = graph.all_nodes().filter_map(|node| node.recovery.as_ref());
    let alternatives = recoveries.flat_map(|recovery| &recovery.alternatives).map(|other| &other.tool);
    fixed(graph).into_iter().chain(alternatives).cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

/// The tools that a graph's nodes name: for fixed calls, for those that stand in for them (D-18), and for models of plans.
/// Of the others in it, a model may choose some when a step fails, or none.
pub fn named(graph: &Graph) -> BTreeSet<&Arc<str>> {
    let given = graph.all_nodes().flat_map(|node| &node.body.tools);
    let recoveries = graph.all_nodes().filter_map(|node| node.recovery.as_ref());
    let alternatives = recoveries.flat_map(|recovery| &recovery.alternatives).map(|other| &other.tool);
    fixed(graph).into_iter().chain(given).chain(alternatives).collect()
}

/// Whether a name means a built-in tool, which declares nothing: its calls are allowed or denied one by one.
pub fn is_builtin(catalogue: &Catalogue, name: &str) -> bool {
    catalogue.def(name).is_some_and(|def| &*def.source == "built-in")
}

/// The tools that fixed calls of a graph name and that can only deny them: known before anything runs.
pub fn denied_calls(graph: &Graph, catalogue: &Catalogue) -> Vec<(Arc<str>, ToolError)> {
    let offered: BTreeSet<&Arc<str>> = graph.all_nodes().flat_map(|node| &node.body.tools).collect();
    let fixed = fixed(graph);
    let refusal = |tool: &&Arc<str>| Some((Arc::clone(tool), catalogue.refusal(tool)?));
    fixed.difference(&offered).filter_map(refusal).collect()
}

/// The warning about a tool that changed; it names both versions (P-21), hashes by their first digits.
pub fn tool_changed(name: &str, old: &str, new: &str) -> Warning {
    const DIGITS: usize = 12;
    let short = |version: &str| -> String {
        let hash = version.len() > 2 * DIGITS && version.chars().all(|c| c.is_ascii_hexdigit());
        version.chars().take(if hash { DIGITS } else { usize::MAX }).collect()
    };
    let (old, new) = (short(old), short(new));
    let message = format!("the tool `{name}` has changed: from version {old} to version {new}");
    Warning { code: "tool-changed".into(), message, node: None }
}
