//! Why calls of a node were made afresh in a fork, or after a resume, and not taken from what was recorded (E-29).

use super::page::LINES;
use crate::afresh;
use crate::inspect::page::{DIM, Page};
use selvedge_host::explain::{At, Explained};
use selvedge_host::report;

/// Adds why, call by call.
pub(super) fn show(page: &mut Page, explained: &Explained<'_>, node: At) {
    const ROWS: usize = 20;
    let name = |node: &str| explained.state.told_name(node).into_owned();
    for (at, request) in explained.afresh(node).iter().take(ROWS).enumerate() {
        if at == 0 {
            page.gap();
            page.line(&page.paint(DIM, "RAN AFRESH"));
        }
        let why = afresh::why(&request.why, explained.name(node), name);
        let of = report::call_of(&request.kind);
        page.labelled("", "", 0, &format!("{of}: {why}"), LINES);
    }
}
