//! What people have said to a run that answers no question, and who has taken it (E-43).

use crate::event::PersonMessage;
use std::sync::Arc;

/// All of it, in the order in which it was said.
#[derive(Clone, Debug, Default)]
pub(crate) struct PersonMessages {
    all: Vec<Kept>,
    waiting: usize,
}

#[derive(Clone, Debug)]
struct Kept {
    message: PersonMessage,
    taken: Option<Taker>,
}

/// The visit of a node that took a message: what events call the node, and which visit.
pub(crate) type Taker = (Arc<str>, u32);

impl PersonMessages {
    /// How many nobody has taken.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn push(&mut self, message: PersonMessage) {
        self.all.push(Kept { message, taken: None });
        self.waiting += 1;
    }

    /// The first that nobody has taken, of those that are meant: its number.
    pub(super) fn first_waiting(&self, meant: impl Fn(&PersonMessage) -> bool) -> Option<u32> {
        if self.waiting == 0 {
            return None;
        }
        let next = self.all.iter().position(|kept| kept.taken.is_none() && meant(&kept.message))?;
        u32::try_from(next).ok()
    }

    /// What one says that nobody had taken, and now somebody has.
    pub(super) fn take(&mut self, number: u32, by: Taker) -> Option<Arc<str>> {
        let kept = self.all.get_mut(number as usize).filter(|kept| kept.taken.is_none())?;
        kept.taken = Some(by);
        self.waiting -= 1;
        Some(Arc::clone(&kept.message.text))
    }

    /// What a visit had taken waits again.
    pub(super) fn give_back(&mut self, by: &Taker) {
        for kept in self.all.iter_mut().filter(|kept| kept.taken.as_ref() == Some(by)) {
            kept.taken = None;
            self.waiting += 1;
        }
    }

    pub(super) fn untaken(&self) -> impl Iterator<Item = &PersonMessage> {
        self.all.iter().filter(|kept| kept.taken.is_none()).map(|kept| &kept.message)
    }
}
