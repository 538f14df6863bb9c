//! How often a node was tried (D-25): what really happened, and not what was taken from an earlier visit.

use super::state::{Frame, LeafPhase, State};
use crate::graph::Act;
use crate::ids::{LeafIx, NodeIx};

impl State {
    /// Whether the tries of a node are its calls: one that works on no thread and makes a call of its own. Others are
    /// tried once a visit, and once more for each time that a tool of theirs is.
    fn counts_calls(&self, node: NodeIx) -> bool {
        self.graph.nodes[node].body.thread.is_none() && self.own_call(node).is_some()
    }

    /// Tries of a visit.
    pub(crate) fn tries_of(&self, node: NodeIx, frame: &Frame) -> u32 {
        let tries = frame.tries;
        // Nothing but outcomes of a visit that counts already is no try.
        let visit = !self.counts_calls(node) && (tries.afresh || !tries.reused);
        tries.calls + u32::from(visit)
    }

    /// The live leaf asked for something, was refused it, or took an outcome that so many tries had brought.
    pub(crate) fn count_try(&mut self, node: NodeIx, leaf: LeafIx, tries: u32) {
        let calls = matches!(self.graph.leaf(node, leaf).act, Act::Call(_) | Act::Try);
        let of_calls = self.counts_calls(node);
        let Some(frame) = self.frame_mut(node) else { return };
        frame.tries.afresh |= tries > 0;
        frame.tries.reused |= tries == 0;
        if !of_calls {
            frame.tries.calls += tries.saturating_sub(1);
        } else if calls {
            frame.tries.calls += tries;
        }
    }

    /// A call that could not even be made, for its arguments did not resolve, was a try as well.
    pub(crate) fn count_unsent(&mut self, node: NodeIx) {
        let Some(Frame { leaf: Some(leaf), phase: LeafPhase::Enter, .. }) = self.frame(node) else { return };
        let leaf = *leaf;
        if matches!(self.graph.leaf(node, leaf).act, Act::Call(_) | Act::Try) {
            self.count_try(node, leaf, 1);
        }
    }
}
