//! Who said the messages of a run, also across frames: paths, iterations and subgraphs hand threads on without a copy.

use super::state::State;
use crate::effect::EffectId;
use crate::ids::MessageIx;
use crate::message::Thread;
use std::sync::Arc;

impl State {
    /// The node that said a message, by what events call it; nobody for the document's own.
    pub(crate) fn author(&self, message: MessageIx) -> Option<&Arc<str>> {
        self.messages.by(message)
    }

    /// The nodes that said the messages of a thread from the `from`th on, in order and by what events call them, each as often as it
    /// speaks; nobody for the document's own.
    pub fn speakers<'s>(
        &'s self,
        thread: &Thread,
        from: usize,
    ) -> impl Iterator<Item = Option<&'s Arc<str>>> + use<'s> {
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        thread.slice(crate::message::Slice(Some(from), None)).iter().map(|message| self.author(message))
    }

    /// The same of a thread that is looked at.
    pub fn speakers_in<'s>(
        &'s self,
        thread: &crate::ThreadView<'s>,
    ) -> impl Iterator<Item = Option<&'s Arc<str>>> + use<'s> {
        self.speakers(thread.thread(), 0)
    }

    /// What the node of an effect has said and heard so far, while the effect is the last that it asked for.
    pub fn thread_behind(&self, effect: &EffectId) -> Option<&Thread> {
        Some(&self.visit(self.node_of(effect)?)?.thread)
    }
}
