//! The self-evolving agent (A): a manager that decides which tools are needed, coders that write them, an executor that works with them
//! and has failing ones mended, a judge, and an integrator. All of it is a graph of flow frames.

pub(crate) mod build;
mod check;
pub(crate) mod coding;
mod doc;
mod enhance;
mod lower;
pub mod operations;
pub mod prompts;
pub mod schemas;
pub(crate) mod settings;

pub use doc::AgentDoc;
pub use settings::{Coder, Settings};

use crate::Capabilities;
use crate::head::each_once;
use crate::json::Node;
use crate::leaves::budget_of;
use crate::{Diagnostics, Source, ToolSource, checks};
pub(crate) use lower::Lowering;
use selvedge_engine::graph::{Between, OnEmpty};
use selvedge_engine::{Budget, Graph, GraphIx, Table};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The threads of judges.
const JUDGING: &str = "question";

/// Rounds, steps in each, and after how many of these tools are looked at, where a document says nothing.
const MAX_TASK_EXECUTIONS: u32 = 5;
pub(crate) const MAX_STEPS: u32 = 10;
const TOOL_ENHANCE_INTERVAL: u16 = 2;

/// Reads an agent; `None` if it is no object.
pub fn read(root: &Node<'_>, source: &Source, diagnostics: &mut Diagnostics) -> Option<AgentDoc> {
    doc::read(root, source, diagnostics)
}

/// Every tool that it names, each once.
pub fn tools(agent: &AgentDoc) -> Vec<Arc<str>> {
    each_once(agent.tools.iter().map(|tool| &tool.value))
}

/// The model roles that it can't do without.
pub fn models(agent: &AgentDoc) -> Vec<Arc<str>> {
    let asked = |role: &Arc<str>| agent.coder != Some(Coder::Codex) || **role != *"coder";
    std::iter::once("basic".into()).chain(roles_between().filter(asked)).collect()
}

/// What an empty reply of an executor means.
pub(crate) const ON_EMPTY: OnEmpty = OnEmpty::RollBack(ROLL_BACKS);
/// Empty replies that take a round back.
const ROLL_BACKS: u32 = 10;

/// The roles that look at an executor's tools between its rounds.
pub(crate) fn roles_between() -> impl Iterator<Item = Arc<str>> {
    ["tool_analyze", "judge", "summarize", "coder"].into_iter().map(Arc::from)
}

/// What works on a thread between the rounds of an executor that is a node of its own, whose task is this template.
pub(crate) fn between(
    settings: &Settings,
    graphs: &mut Table<GraphIx, Arc<Graph>>,
    (thread, query): (&str, &str),
) -> Option<Between> {
    Lowering::by(settings).between(graphs, thread, 1, Some(query))
}

/// An agent as the inner graph of another document: its graphs go to those of that one. Of the calls of `budget` one is kept for its answer.
pub(crate) fn within(
    agent: &AgentDoc,
    source: &Source,
    tools: &dyn ToolSource,
    seen: &Map<String, Value>,
    (capabilities, budget, graphs): (&Capabilities, Budget, &mut Table<GraphIx, Arc<Graph>>),
    diagnostics: &mut Diagnostics,
) -> Option<Graph> {
    check::check(agent, source, tools, seen, diagnostics);
    if diagnostics.has_errors() {
        return None;
    }
    let mut graph = Lowering::by(&capabilities.agent).of(agent).agent(agent, budget, graphs)?;
    graph.tools.extend(operations::all().into_iter().map(|tool| (tool.name.clone(), tool)));
    let named = self::tools(agent).into_iter();
    graph.tools.extend(named.filter_map(|name| Some((name.clone(), tools.def(&name)?))));
    Some(graph)
}

/// Checks an agent and lowers it; `None` if anything is an error.
pub fn compile(
    agent: &AgentDoc,
    source: &Source,
    tools: &dyn ToolSource,
    initial: &Map<String, Value>,
    capabilities: &Capabilities,
    diagnostics: &mut Diagnostics,
) -> Option<Graph> {
    let mut graphs = Table::new();
    let calls = capabilities.calls.or(budget_of(&agent.head.budget).calls);
    let budget = Budget { calls, ..Budget::default() };
    let mut graph = within(agent, source, tools, initial, (capabilities, budget, &mut graphs), diagnostics)?;
    graph.graphs = graphs;
    checks::proved(graph, agent.head.span, diagnostics)
}

/// The objects of agents, each under its name in the JSON Schema.
#[cfg(test)]
pub(crate) fn shapes() -> [(&'static str, crate::fields::Shape); 3] {
    [("agent", doc::AGENT), ("input", crate::inputs::INPUT), ("budget", crate::settings::BUDGET)]
}
