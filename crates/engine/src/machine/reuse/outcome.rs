//! One recorded outcome, with what was asked for it.

use super::lineage::{Face, Saved};
use super::said::Key;
use super::unknown::UnknownWrite;
use crate::effect::{EffectId, Outcome};
use std::cmp::Reverse;
use std::sync::Arc;

/// Whose turn it is among equal requests of a node: those of the latest visit first, in the order of its requests.
pub(crate) type Turn = (Reverse<u32>, u32);

/// One outcome, with what was asked for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordedOutcome {
    pub(super) effect: EffectId,
    pub(super) key: Key,
    /// Its parts.
    pub(super) face: Face,
    /// Of a write: the call whatever the tool's version.
    pub(super) write: Option<Key>,
    pub(super) turn: Turn,
    pub(super) outcome: Outcome,
    /// How many attempts it took (D-25).
    pub(super) attempt: u32,
    /// How long its last attempt was under way, in milliseconds.
    pub(super) worked_ms: u32,
    /// A call that is not `pure` and stands before this one ran afresh since.
    pub(super) outdated: bool,
    /// A write of a node that finished with success behind a failed one: it did not depend on that, and is done
    /// (D-16). So it is with such a node's writes that failed.
    pub(super) beside: bool,
    /// A fork gave it another text (E-19).
    pub(super) edited: bool,
    /// The tool that was called.
    pub(super) tool: Option<Arc<str>>,
    /// A write of unknown outcome, in runs that began with an edition before 7: others note it as it comes (E-55).
    pub(super) unknown: Option<UnknownWrite>,
    /// A reply that came after others that its schema refused: it answers the question in a fork, where all is as
    /// it was. A node that failed is asked anew, with both its tries (E-33).
    pub(super) second: bool,
}

impl RecordedOutcome {
    /// A write of which a person said what came back; `keys`: of the call, and of it whatever its tool's version.
    pub(crate) fn written(
        effect: EffectId,
        (key, write): (Key, Key),
        turn: Turn,
        outcome: Outcome,
        tool: Arc<str>,
    ) -> Self {
        let (write, tool) = (Some(write), Some(tool));
        Self {
            effect,
            key,
            face: Face::default(),
            write,
            turn,
            outcome,
            attempt: 1,
            worked_ms: 0,
            outdated: false,
            beside: false,
            edited: false,
            tool,
            unknown: None,
            second: false,
        }
    }
    pub(crate) fn effect(&self) -> &EffectId {
        &self.effect
    }
    /// What it came to, and the tool that was called, if it was one.
    pub(crate) fn into_parts(self) -> (Outcome, Option<Arc<str>>) {
        (self.outcome, self.tool)
    }
    /// Whether a new visit in its place may take it, or has to ask about it first.
    pub(crate) fn concerns_next_visit(&self) -> bool {
        self.is_success() && !self.second || self.unknown().is_some()
    }
    /// What who takes it need not ask for again, and whether that has another text now.
    pub(crate) fn saved(&self) -> (Saved, bool) {
        (Saved::of(&self.outcome, self.worked_ms), self.edited)
    }
    /// A write that succeeded, whatever its tool's version.
    pub(super) fn written_with_success(&self) -> Option<Key> {
        self.write.filter(|_| self.is_success())
    }
    /// Whether it ended as it should.
    pub(crate) fn is_success(&self) -> bool {
        !matches!(self.outcome, Outcome::Failed(_))
    }
    /// A write of unknown outcome that is known from nowhere else.
    pub(crate) fn unknown(&self) -> Option<&UnknownWrite> {
        self.unknown.as_ref()
    }
}
