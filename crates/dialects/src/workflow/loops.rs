//! What loops and forks over lists give to their iterations and paths, and what may hide it (W-16, W-17).

use super::doc::{Does, Formula, Repeat, Rounds, WorkNode};
use super::names::{given, sets};
use super::regions::Vertex;
use super::scope::Scope;
use crate::diagnostic::shown;
use crate::{Diagnostics, Finding};

/// The `until` of a vertex, if it is a loop that has one.
pub(super) fn until<'s>(scope: &'s Scope<'_>, vertex: &Vertex<'_>) -> Option<&'s Formula> {
    match &scope.doc.nodes.get(vertex.node)?.does {
        Does::LoopStart(repeat) => repeat.until.as_ref(),
        _ => None,
    }
}

/// A loop that is to go round more often than it may, whatever the data are.
pub(super) fn limit(node: &WorkNode, repeat: &Repeat, diagnostics: &mut Diagnostics) {
    let (Rounds::Over(value) | Rounds::Count(value)) = &repeat.times else { return };
    let count = match value.as_array() {
        Some(elements) => elements.len() as u64,
        None => value.to_value().as_u64().unwrap_or(0),
    };
    let limit = repeat.limit.value;
    if count > u64::from(limit) {
        let message = format!(
            "the loop {} goes round {count} times, over its `limit` of {limit}",
            shown(&node.id.value)
        );
        let finding = Finding::error("W-16", "over-limit", repeat.limit.span, message);
        diagnostics.push(finding.help(format!("raise it: \"limit\": {count}")));
    }
}

/// A node that sets the name of an element or `index` where that is given (W-17).
pub(super) fn hidden_names(
    scope: &Scope<'_>,
    vertex: &Vertex<'_>,
    region: usize,
    diagnostics: &mut Diagnostics,
) {
    let node = |at: usize| scope.doc.nodes.get(at);
    // A join sets what it exports.
    let Some(setter) = node(vertex.end) else { return };
    for (name, span) in sets(setter) {
        let mut at = region;
        while let Some((around, opener)) = scope.regions.all.get(at).and_then(|region| region.around) {
            let opened = scope.regions.all.get(around).and_then(|region| region.vertices.get(opener));
            let opener = opened.and_then(|vertex| node(vertex.node));
            if let Some(opener) = opener.filter(|opener| given(opener).contains(&name)) {
                let (what, each) = match (&opener.does, name) {
                    (Does::Fork(_), "index") => ("the number of a path", "path"),
                    (Does::Fork(_), _) => ("the element of a path", "path"),
                    (_, "index") => ("the number of an iteration", "iteration"),
                    _ => ("the element of an iteration", "iteration"),
                };
                let message = format!(
                    "{} sets {}, which is {what} of {}: the {each} sees the new value from here to its end",
                    shown(&setter.id.value),
                    shown(name),
                    shown(&opener.id.value)
                );
                let finding = Finding::warning("W-17", "hides-element", span, message);
                diagnostics.push(finding.help(match name {
                    "index" => "set another name",
                    _ => "set another name, or give the element another one with `as`",
                }));
                break;
            }
            at = around;
        }
    }
}
