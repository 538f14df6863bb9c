//! How often a node was tried (D-25): what really happened, and not what was taken from an earlier visit.

use super::node::{LeafPhase, Visit};
use super::state::State;
use crate::graph::Act;
use crate::ids::{LeafIx, NodeRef};

impl State {
    /// Whether the tries of a node are its calls: one that works on no thread and makes a call of its own. Others are
    /// tried once a visit, and once more for each time that a tool of theirs is.
    fn counts_calls(&self, node: NodeRef) -> bool {
        self.def(node).body.thread.is_none() && self.own_call(node).is_some()
    }

    /// Tries of a visit.
    pub(crate) fn tries_of(&self, node: NodeRef, visit: &Visit) -> u32 {
        // Nothing but outcomes of a visit that counts already is no try.
        let counts = !self.counts_calls(node) && (visit.re_executed || !visit.reused);
        visit.calls + u32::from(counts)
    }

    /// The live leaf asked for something, was refused it, or took an outcome that so many tries had brought.
    pub(crate) fn count_try(&mut self, node: NodeRef, leaf: LeafIx, tries: u32) {
        let calls = matches!(self.leaf(node, leaf).act, Act::Call(_) | Act::Retry);
        let of_calls = self.counts_calls(node);
        let Some(visit) = self.visit_mut(node) else { return };
        visit.re_executed |= tries > 0;
        visit.reused |= tries == 0;
        if !of_calls {
            visit.calls += tries.saturating_sub(1);
        } else if calls {
            visit.calls += tries;
        }
    }

    /// A call that could not even be made, for its arguments did not resolve, was a try as well.
    pub(crate) fn count_unsent(&mut self, node: NodeRef) {
        let Some(Visit { leaf: Some(leaf), phase: LeafPhase::Enter, .. }) = self.visit(node) else { return };
        let leaf = *leaf;
        if matches!(self.leaf(node, leaf).act, Act::Call(_) | Act::Retry) {
            self.count_try(node, leaf, 1);
        }
    }
}
