//! Edges that lead into or out of the middle of a path or loop, or across their ends (W-14): each spoils what is found behind it, so that
//! only those are told that come first.

use super::links::Out;
use crate::diagnostic::shown;
use crate::{Diagnostics, Finding, Source};

/// What is wrong with an edge, the clearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stray {
    /// It leads to a node that lies in another flow by an edge before it.
    Between,
    /// It leads to the end of what does not begin there.
    Across,
    /// It leads from a path or a loop to the end of the workflow.
    Away,
}

/// All that were found.
#[derive(Default)]
pub(super) struct Strays(Vec<(Stray, Finding)>);

impl Strays {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Two edges lead to one node, in two flows.
    pub(super) fn between(
        &mut self,
        id: &str,
        edge: Out<'_>,
        (here, first, there): (&str, Out<'_>, &str),
        source: &Source,
    ) {
        let line = source.place(first.span.start as usize).line;
        let id = shown(id);
        let message =
            format!("this edge leads to {id} in {here}, and the edge at line {line} leads to it in {there}");
        let help = "keep one of the two: a path begins at its fork and ends at its join, a loop at its start and end, and no other \
                    edge leads in or out";
        self.0.push((
            Stray::Between,
            Finding::error("W-14", "REGION_NOT_NESTED", edge.span, message).help(help),
        ));
    }

    /// An edge leads to what ends something that does not begin in its flow.
    pub(super) fn across(&mut self, id: &str, edge: Out<'_>, here: &str, what: &str) {
        let message = format!("this edge leads from {here} to {}, {what}", shown(id));
        let help = "forks and loops begin and end within each other";
        self.0.push((
            Stray::Across,
            Finding::error("W-14", "REGION_NOT_NESTED", edge.span, message).help(help),
        ));
    }

    /// A path or a loop leads to the END node `id`.
    pub(super) fn away(&mut self, id: &str, edge: Out<'_>, (here, is_loop): (&str, bool)) {
        let (code, to) = if is_loop {
            ("REGION_NOT_NESTED", "its LOOP_END")
        } else {
            ("FORK_JOIN_NOT_REACHABLE", "its join")
        };
        let message = format!("{here} can leave it to the END node {}", shown(id));
        let help = format!("let it lead to {to}, and go on from there");
        self.0.push((Stray::Away, Finding::error("W-14", code, edge.span, message).help(help)));
    }

    /// Tells the clearest of them.
    pub(super) fn tell(self, diagnostics: &mut Diagnostics) {
        let Some(clearest) = self.0.iter().map(|(stray, _)| *stray).min() else { return };
        let told = self.0.into_iter().filter(|(stray, _)| *stray == clearest).map(|(_, finding)| finding);
        // An end in the wrong place is missed wherever it should be.
        let most = if clearest == Stray::Across { 1 } else { usize::MAX };
        told.take(most).for_each(|finding| diagnostics.push(finding));
    }
}
