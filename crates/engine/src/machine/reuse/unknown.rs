//! Writes of unknown outcome, and the calls that may not follow them without a person's word (E-55).

use super::any_version;
use super::outcome::is_unknown;
use super::said::Key;
use crate::effect::{Effects, Outcome};
use crate::graph::{Act, is_operation};
use crate::ids::{LeafIx, NodeRef};
use crate::machine::calls::shown;
use crate::machine::state::State;
use crate::message::ToolCall;
use std::sync::Arc;

/// A write of which nobody knows whether it happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnknownWrite {
    /// The call, whatever the tool's version.
    pub(crate) key: Key,
    pub(crate) tool: Arc<str>,
    /// The arguments, as a question shows them.
    pub(crate) arguments: Arc<str>,
}

impl UnknownWrite {
    pub(crate) fn of(call: &ToolCall) -> Self {
        Self {
            key: any_version(&call.name, &call.arguments),
            tool: Arc::clone(&call.name),
            arguments: shown(&call.arguments).into(),
        }
    }
}

impl State {
    /// The write of unknown outcome that a call of a node might make a second time: one of the same call, or else one of the same tool.
    /// The recovery of a step does the step's work, so any other tool that writes counts there as well.
    pub(crate) fn repeated_write(
        &self,
        node: NodeRef,
        tool: &str,
        call: Key,
        effects: Effects,
    ) -> Option<&UnknownWrite> {
        let known = || self.reuse.unknown_writes(self.spot(node));
        if let Some((write, _)) = known().find(|(write, own)| *own && write.key == call) {
            return Some(write);
        }
        // Runs of earlier editions ask about equal calls only (E-42).
        if self.start.edition < 7 || effects != Effects::Write || is_operation(tool) {
            return None;
        }
        let leaf = self.visit(node).and_then(|visit| visit.leaf);
        let recovers = leaf.is_some_and(|leaf| matches!(self.leaf(node, leaf).act, Act::Retry));
        let concerns = |(write, own): &(&UnknownWrite, bool)| *write.tool == *tool || *own && recovers;
        known().find(concerns).map(|(write, _)| write)
    }

    /// Whether a call leaves a write of unknown outcome: something was sent, and no answer came back. With a `retry` above 0 its node
    /// says that it may be made again.
    pub(crate) fn is_left_unknown(
        &self,
        node: NodeRef,
        leaf: LeafIx,
        slot: usize,
        outcome: &Outcome,
    ) -> bool {
        let (Outcome::Failed(failure), true) = (outcome, self.start.edition >= 7) else { return false };
        let Some(slot) = self.calls(node).and_then(|phase| phase.slots.get(slot)) else { return false };
        if slot.effects != Effects::Write || is_operation(&slot.call.name) {
            return false;
        }
        let repeatable = || self.retry(node, leaf, false).max.unwrap_or(0) > 0;
        is_unknown(outcome) || failure.transient && !failure.unsent && !repeatable()
    }

    /// Remembers that nobody knows what became of a write, until a person decides about a second call.
    pub(crate) fn note_unknown_write(&mut self, node: NodeRef, slot: usize) {
        let slot = self.calls(node).and_then(|phase| phase.slots.get(slot));
        let Some(write) = slot.map(|slot| UnknownWrite::of(&slot.call)) else { return };
        let spot = self.spot_for(node);
        self.reuse.add_unknown(spot, write.clone());
        self.keep_unknown_writes(node, [write]);
    }
}
