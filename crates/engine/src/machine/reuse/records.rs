//! What a visit recorded (E-29).

use crate::effect::{EffectId, Outcome};
use crate::ids::LeafIx;
use crate::message::{Thread, ToolCall};
use std::sync::Arc;

/// One outcome, with what is needed to tell what was asked for it.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(super) effect: EffectId,
    /// Its place among the requests of its node.
    pub(super) order: u32,
    pub(super) content: Content,
    pub(super) outcome: Outcome,
    pub(super) attempt: u32,
    /// How long its last attempt was under way, in milliseconds.
    pub(super) worked_ms: u32,
    pub(super) second: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    /// The request, built when it is needed: at most once, when a run begins anew. With the model that answered.
    Model(LeafIx, Thread, Option<Arc<str>>),
    /// With the tool's version.
    Tool(Box<(ToolCall, Arc<str>)>),
}

/// Each call of a model or a tool leaves one until its node retires, and a state of [`State::recording`] keeps them all.
const _: () = assert!(size_of::<Recorded>() <= 88);

/// What a visit recorded, in order. Most visits record one outcome or none: that takes a pointer, and no list. States that are clones share it, as
/// forks of a run begin with one for each node that has not retired.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records(Option<Arc<(Recorded, Vec<Recorded>)>>);

impl Records {
    /// Keeps what a request came to (E-29).
    pub(super) fn push(&mut self, recorded: Recorded) {
        match &mut self.0 {
            Some(kept) => Arc::make_mut(kept).1.push(recorded),
            None => self.0 = Some(Arc::new((recorded, Vec::new()))),
        }
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Recorded> {
        self.0.iter().flat_map(|kept| std::iter::once(&kept.0).chain(&kept.1))
    }
    pub(super) fn remove(&mut self, effect: &EffectId) {
        let kept = std::mem::take(self).into_iter().filter(|recorded| recorded.effect != *effect);
        kept.for_each(|recorded| self.push(recorded));
    }
    pub(super) fn into_iter(self) -> impl Iterator<Item = Recorded> {
        self.0
            .into_iter()
            .map(Arc::unwrap_or_clone)
            .flat_map(|(first, more)| std::iter::once(first).chain(more))
    }
}
