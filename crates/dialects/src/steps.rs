//! Step tasks: a list of tool calls that refer to each other's outputs, and what happens when one fails (rules `D`).
//!
//! [`read`] makes a typed [`StepsDoc`] of a document's JSON; [`compile`] checks it as a whole and lowers it.
//! [`compile_more`] does the same with steps that a model wrote while the task ran.

mod check;
pub(crate) mod doc;
mod lower;
mod prompts;
mod read;
mod read_step;
mod replan;

pub use doc::{Alternative, Parameters, Recovery, Siblings, Step, StepsDoc};
pub use read::read;
pub use replan::{compile_more, compiler};

use crate::ToolSource;
use crate::tool_source::BUILT_IN;
use crate::{Capabilities, Diagnostics, Source, checks};
use check::Scope;
use lower::{Lowering, PLANNER};
use replan::Context;
use selvedge_engine::Graph;
use serde_json::{Map, Value};
use std::sync::Arc;

/// How many tools a graph names that no model is offered: who has more has it explained for these.
const WITHHELD: usize = 500;

/// The model roles that a task can't do without: that of the planner, if it has no steps (C-08, D-21).
pub fn models(document: &StepsDoc) -> Vec<Arc<str>> {
    if document.steps.is_some() { Vec::new() } else { vec![PLANNER.into()] }
}

/// The model roles that a task uses if a model is there (D-17).
pub fn optional_models(document: &StepsDoc, capabilities: &Capabilities) -> Vec<Arc<str>> {
    match may_ask(document, &Capabilities { model: true, ..capabilities.clone() }) {
        true => vec![lower::REFLECTION.into(), PLANNER.into()],
        false => Vec::new(),
    }
}

/// Whether a model decides what happens after a fault (D-17).
fn may_ask(document: &StepsDoc, capabilities: &Capabilities) -> bool {
    capabilities.model && document.recovery_with(capabilities).model != Some(false)
}

/// Checks a step task as a whole and lowers it; `None` if anything is an error.
///
/// With a model, all of `tools` go into the graph: it may choose among them (D-17, D-21).
pub fn compile(
    document: &StepsDoc,
    source: &Source,
    tools: &dyn ToolSource,
    initial: &Map<String, Value>,
    capabilities: &Capabilities,
    diagnostics: &mut Diagnostics,
) -> Option<Graph> {
    let names = document.head.names(initial);
    let context = Context::of(document, &names, capabilities);
    let schema_steps = Some(capabilities.limits.schema_steps);
    let scope = Scope { names: Some(names), complete: document.complete, schema_steps, ..Scope::default() };
    let steps = document.steps.as_deref().unwrap_or_default();
    check::check(Some(&document.head.task), steps, scope, source, tools, diagnostics);
    if diagnostics.has_errors() || !document.complete {
        return None;
    }
    let planned = document.steps.is_none();
    let model = planned || may_ask(document, capabilities);
    let mut graph =
        Graph { name: document.head.name.as_ref().map(|name| name.value.clone()), ..Graph::default() };
    let mut chosen = document.tools();
    if model {
        chosen.extend(tools.available().into_iter().map(Arc::from));
        let withheld = tools.withheld().into_iter().take(WITHHELD);
        graph.withheld = withheld.map(|(name, why)| (name.into(), why.into())).collect();
    }
    graph.tools = chosen.into_iter().filter_map(|name| Some((name.clone(), tools.def(&name)?))).collect();
    let recovery = document.recovery_with(capabilities);
    let model = model && recovery.model != Some(false);
    let lowering = Lowering { task: &document.head.task.value, recovery, model, context: &context };
    match planned {
        true => {
            let given = graph.tools.values().filter(|tool| &*tool.source != BUILT_IN);
            graph.nodes.push(lowering.planned(given.count())?);
        }
        false => {
            let tail = lowering.tail(steps).map(|tail| graph.share(tail));
            for step in steps {
                graph.nodes.push(lowering.step(step, tail)?);
            }
        }
    }
    if graph.nodes.values().any(|node| node.body.compiler.is_some()) {
        graph.tools.insert(compiler().name.clone(), compiler());
    }
    checks::proved(graph, document.head.span, diagnostics)
}

/// The kinds of objects in a step task, by their names in its JSON Schema.
#[cfg(test)]
pub(crate) fn shapes() -> [(&'static str, crate::fields::Shape); 7] {
    [
        ("task", read::TASK),
        ("step", read_step::STEP),
        ("alternative", read_step::ALTERNATIVE),
        ("recovery", read::RECOVERY),
        ("input", crate::inputs::INPUT),
        ("budget", crate::settings::BUDGET),
        ("retry", crate::settings::RETRY),
    ]
}

#[cfg(test)]
mod tests;
