//! Why calls of a node were made afresh in a fork, or after a resume, and not taken from what was recorded (E-29).

use super::Explained;
use super::page::LINES;
use super::story::At;
use crate::afresh;
use crate::inspect::page::{DIM, Page};
use selvedge_engine::Origin;
use selvedge_host::report;
use selvedge_host::reused::Request;
use selvedge_host::timeline::Visit;

/// The calls of a node's last visit that were made afresh.
pub(super) fn of(explained: &Explained<'_>, node: At) -> Vec<Request> {
    let attempts = explained.story.visit(node).into_iter().flat_map(Visit::attempts);
    let afresh = attempts.filter_map(|(call, attempt)| match explained.state.origin(&attempt.effect)? {
        Origin::Afresh(why) => {
            Some(Request { effect: attempt.effect.clone(), kind: call.kind.clone(), why: why.clone() })
        }
        Origin::Kept(_) | Origin::Reused(_) | Origin::Edited(_) => None,
    });
    afresh.collect()
}

/// Whether a call of a node's last visit took an outcome to which the fork gave another text (E-19).
pub(super) fn edited(explained: &Explained<'_>, node: At) -> bool {
    let mut attempts = explained.story.visit(node).into_iter().flat_map(Visit::attempts);
    attempts.any(|(_, attempt)| matches!(explained.state.origin(&attempt.effect), Some(Origin::Edited(_))))
}

/// Adds why, call by call.
pub(super) fn show(page: &mut Page, explained: &Explained<'_>, node: At) {
    const ROWS: usize = 20;
    let name = |node: &str| explained.state.told_name(node).into_owned();
    for (at, request) in of(explained, node).iter().take(ROWS).enumerate() {
        if at == 0 {
            page.gap();
            page.line(&page.paint(DIM, "RAN AFRESH"));
        }
        let why = afresh::why(&request.why, explained.name(node), name);
        let of = report::call_of(&request.kind);
        page.labelled("", "", 0, &format!("{of}: {why}"), LINES);
    }
}
