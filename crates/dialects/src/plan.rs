//! Plans: nodes on threads (rules `P`).
//!
//! [`read`] makes a typed [`PlanDoc`] of a document's JSON and checks every rule that can be checked without
//! looking from one node to another, unique ids apart. What needs the whole graph (threads, placeholders) is
//! checked later, on the `PlanDoc`, with the places that it keeps.

mod check;
mod doc;
mod lower;
mod read;
mod read_node;
mod slice;
mod unused;

pub use crate::settings::ModelSettings;
pub use doc::{Given, NodeKind, OnError, Origin, PlanDoc, PlanNode};
pub use lower::{models, tools};
pub use read::read;
pub use slice::Slice;

use crate::{Diagnostics, DocumentLimits, Source, ToolSource, checks};
use selvedge_engine::Graph;
use serde_json::{Map, Value};

/// Checks a plan as a whole and lowers it; `None` if anything is an error.
pub fn compile(
    plan: &PlanDoc,
    source: &Source,
    tools: &dyn ToolSource,
    initial: &Map<String, Value>,
    limits: &DocumentLimits,
    diagnostics: &mut Diagnostics,
) -> Option<Graph> {
    check::check(plan, source, tools, initial, limits.schema_steps, diagnostics);
    if diagnostics.has_errors() {
        return None;
    }
    let graph = lower::lower(plan, tools)?;
    checks::proved(graph, plan.head.span, diagnostics)
}

/// The kinds of objects in a plan, by their names in its JSON Schema.
#[cfg(test)]
pub(crate) fn shapes() -> [(&'static str, crate::fields::Shape); 5] {
    [
        ("plan", read::PLAN),
        ("node", read_node::NODE),
        ("input", crate::inputs::INPUT),
        ("budget", crate::settings::BUDGET),
        ("retry", crate::settings::RETRY),
    ]
}

#[cfg(test)]
mod tests;
