//! Threads: values of conversations that share what they have in common (E-08).

use super::Slice;
use crate::ids::MessageIx;
use std::sync::Arc;

/// The value of a conversation at one moment: which messages, in which order.
///
/// It is the last message, from which the earlier ones are found: a thread of which a longer one was made costs
/// nothing but itself. Cloning and adding a message cost a constant, slicing O(log n). `cut` remembers that some slice
/// may have parted a call from its result, so that only then a request has to look for orphans (E-23).
#[derive(Clone, Default)]
pub struct Thread {
    last: Option<Arc<Link>>,
    /// How many of the messages up to the last one, counted from the first there is, are not in this thread. 0 if
    /// there is no last one.
    skipped: u32,
    cut: bool,
}

/// Two for each model's node are kept, and two more while it runs.
const _: () = assert!(size_of::<Thread>() <= 16);

/// A message and all before it.
struct Link {
    message: MessageIx,
    /// How many messages they are.
    count: u32,
    before: Option<Arc<Link>>,
    /// One further back, or the same, at distances as in skew binary numbers: from each link, each earlier one is
    /// O(log n) steps away (Myers, "An applicative random-access stack", 1983).
    far: Option<Arc<Link>>,
}

/// The messages up to a link.
fn count(link: Option<&Arc<Link>>) -> u32 {
    link.map_or(0, |link| link.count)
}

impl Link {
    fn after(before: Option<Arc<Link>>, message: MessageIx) -> Arc<Link> {
        let far = before.as_ref().and_then(|last| {
            let (near, next) = (last.far.as_ref(), last.far.as_ref().and_then(|far| far.far.as_ref()));
            let same = last.count - count(near) == count(near) - count(next);
            if same { next.cloned() } else { before.clone() }
        });
        Arc::new(Link { message, count: count(before.as_ref()) + 1, before, far })
    }
}

impl Drop for Link {
    /// One link after the other: threads are longer than stacks are deep. What is far back is held by what is before.
    fn drop(&mut self) {
        self.far = None;
        let mut next = self.before.take();
        while let Some(mut link) = next.and_then(Arc::into_inner) {
            next = link.before.take();
        }
    }
}

impl Thread {
    /// The number of messages.
    pub fn len(&self) -> usize {
        (count(self.last.as_ref()) - self.skipped) as usize
    }
    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }
    /// Whether a slice may have parted a call from its result.
    pub fn is_cut(&self) -> bool {
        self.cut
    }
    /// The messages, in order.
    pub fn iter(&self) -> impl Iterator<Item = MessageIx> + use<> {
        let mut messages = Vec::with_capacity(self.len());
        let mut at = self.last.as_ref();
        while let Some(link) = at.filter(|link| link.count > self.skipped) {
            messages.push(link.message);
            at = link.before.as_ref();
        }
        messages.into_iter().rev()
    }
    /// The last message.
    pub fn last(&self) -> Option<MessageIx> {
        self.last.as_ref().map(|link| link.message)
    }
    /// Adds a message at the end.
    pub fn push(&mut self, message: MessageIx) {
        self.last = Some(Link::after(self.last.take(), message));
    }
    /// This thread followed by `other`: a constant if it is empty, as a thread is that is opened from another (P-07);
    /// else as many steps as `other` has messages.
    pub fn extend(&mut self, other: &Thread) {
        let cut = self.cut || other.cut;
        if self.is_empty() {
            *self = other.clone();
        } else {
            other.iter().for_each(|message| self.push(message));
        }
        self.cut = cut;
    }
    /// The part that `slice` names (P-05), in O(log n).
    pub fn slice(&self, slice: Slice) -> Thread {
        let (start, end) = slice.bounds(self.len());
        let cut = self.cut || start > 0 || end < self.len();
        if start == end {
            return Thread { cut, ..Thread::default() };
        }
        // No thread has more messages than there are indices of messages.
        let place = |at: usize| self.skipped + u32::try_from(at).unwrap_or(u32::MAX);
        Thread { last: self.up_to(place(end)), skipped: place(start), cut }
    }

    /// The link of the first `wanted` messages there are.
    fn up_to(&self, wanted: u32) -> Option<Arc<Link>> {
        let mut at = self.last.as_ref()?;
        while at.count > wanted {
            let far = at.far.as_ref().filter(|far| far.count >= wanted);
            at = far.or(at.before.as_ref())?;
        }
        Some(Arc::clone(at))
    }
}

impl PartialEq for Thread {
    fn eq(&self, other: &Self) -> bool {
        self.cut == other.cut && self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl std::fmt::Debug for Thread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let messages: Vec<MessageIx> = self.iter().collect();
        f.debug_struct("Thread").field("messages", &messages).field("cut", &self.cut).finish()
    }
}

#[cfg(test)]
mod tests;
