//! Threads: values of conversations that share what they have in common (E-08).

use super::Slice;
use crate::ids::{Ix, MessageIx};
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

/// A message that is added to a thread, with what the thread remembers of it, so that nobody has to walk over it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) message: MessageIx,
    pub(crate) bytes: u64,
    pub(crate) kind: Kind,
}

/// What a message of a thread is to a model that is sent the thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A reply: some model was sent what stands before.
    Reply,
    /// A very large output of a tool.
    Large,
    /// Anything else.
    Other,
}

/// A message and all before it.
struct Link {
    message: MessageIx,
    /// How many messages they are.
    count: u32,
    /// Their bytes.
    bytes: u64,
    /// What stands for which they are, and in which order.
    mark: u64,
    /// Which of them is the last reply, and which the last large output, counted from 1; 0: none.
    reply: u32,
    large: u32,
    before: Option<Arc<Link>>,
    /// One further back, or the same, at distances as in skew binary numbers: from each link, each earlier one is
    /// O(log n) steps away (Myers, "An applicative random-access stack", 1983).
    far: Option<Arc<Link>>,
}

/// One number of two, in which a bit of either changes about half of all (the end of splitmix64).
fn mixed(mark: u64, next: u64) -> u64 {
    let mixed = (mark.rotate_left(23) ^ next).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// The messages up to a link.
fn count(link: Option<&Arc<Link>>) -> u32 {
    link.map_or(0, |link| link.count)
}

impl Link {
    fn after(before: Option<Arc<Link>>, entry: Entry) -> Arc<Link> {
        let far = before.as_ref().and_then(|last| {
            let (near, next) = (last.far.as_ref(), last.far.as_ref().and_then(|far| far.far.as_ref()));
            let same = last.count - count(near) == count(near) - count(next);
            if same { next.cloned() } else { before.clone() }
        });
        let count = count(before.as_ref()) + 1;
        let (bytes, mark, reply, large) =
            before.as_ref().map_or((0, 0, 0, 0), |last| (last.bytes, last.mark, last.reply, last.large));
        Arc::new(Link {
            message: entry.message,
            count,
            bytes: bytes.saturating_add(entry.bytes),
            mark: mixed(mark, entry.message.get() as u64),
            reply: if entry.kind == Kind::Reply { count } else { reply },
            large: if entry.kind == Kind::Large { count } else { large },
            before,
            far,
        })
    }

    /// What was added with it.
    fn entry(&self) -> Entry {
        let before = self.before.as_ref().map_or(0, |before| before.bytes);
        let kind = match self.count {
            count if count == self.reply => Kind::Reply,
            count if count == self.large => Kind::Large,
            _ => Kind::Other,
        };
        Entry { message: self.message, bytes: self.bytes - before, kind }
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
    /// One without messages.
    pub(crate) const EMPTY: Self = Self { last: None, skipped: 0, cut: false };

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
        self.each(|link| link.message)
    }
    /// The messages from the last one back, each with what it and all before it are known by, as long as somebody has them.
    pub(crate) fn backwards(&self) -> Backwards<'_> {
        Backwards { at: self.last.as_ref(), skipped: self.skipped }
    }
    /// How many messages up to its last one are not in it.
    pub(crate) fn skipped(&self) -> u32 {
        self.skipped
    }
    /// Something of all links, in order.
    fn each<T>(&self, of: fn(&Link) -> T) -> impl Iterator<Item = T> + use<T> {
        let mut all = Vec::with_capacity(self.len());
        let mut at = self.last.as_ref();
        while let Some(link) = at.filter(|link| link.count > self.skipped) {
            all.push(of(link));
            at = link.before.as_ref();
        }
        all.into_iter().rev()
    }
    /// The messages behind those of `earlier`, of which this thread was made by adding to it, in as many steps as they are; `None` of
    /// another thread, or of one that was edited.
    pub fn behind(&self, earlier: &Thread) -> Option<Vec<MessageIx>> {
        let before = earlier.last.as_ref()?;
        let (mut new, mut at) = (Vec::new(), self.last.as_ref()?);
        while at.count > before.count {
            new.push(at.message);
            at = at.before.as_ref()?;
        }
        new.reverse();
        (Arc::ptr_eq(at, before) && self.skipped == earlier.skipped).then_some(new)
    }
    /// How many messages are behind those of `earlier`, and their bytes, in O(log n); `None` as above.
    pub(crate) fn beyond(&self, earlier: &Thread) -> Option<(u64, u64)> {
        let (before, last) = (earlier.last.as_ref()?, self.last.as_ref()?);
        let same = Arc::ptr_eq(&self.up_to(before.count)?, before) && self.skipped == earlier.skipped;
        same.then(|| (u64::from(last.count - before.count), last.bytes - before.bytes))
    }
    /// The bytes of its messages, in O(log n).
    pub(crate) fn bytes(&self) -> u64 {
        let all = self.last.as_ref().map_or(0, |link| link.bytes);
        let skipped = (self.skipped > 0).then(|| self.up_to(self.skipped)).flatten();
        all - skipped.map_or(0, |link| link.bytes)
    }
    /// What stands for which messages it has, and in which order: where that is another, so is the thread. That of its beginning is the one
    /// of the slice. 0 if it is empty.
    pub fn mark(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| mixed(last.mark, u64::from(self.skipped)))
    }
    /// Large outputs behind the last reply, which no model of this thread has answered to: O(log n) for each.
    pub(crate) fn unanswered(&self) -> Vec<MessageIx> {
        let Some(last) = &self.last else { return Vec::new() };
        let (first, mut at) = (last.reply.max(self.skipped), last.large);
        let mut found = Vec::new();
        while at > first
            && let Some(link) = self.up_to(at)
        {
            found.push(link.message);
            at = link.before.as_ref().map_or(0, |before| before.large);
        }
        found.reverse();
        found
    }
    /// The last message.
    pub fn last(&self) -> Option<MessageIx> {
        self.last.as_ref().map(|link| link.message)
    }
    /// Adds a message at the end.
    pub(crate) fn push(&mut self, entry: Entry) {
        self.last = Some(Link::after(self.last.take(), entry));
    }
    /// This thread followed by `other`: a constant if it is empty, as a thread is that is opened from another (P-07);
    /// else as many steps as `other` has messages.
    pub fn extend(&mut self, other: &Thread) {
        let cut = self.cut || other.cut;
        if self.is_empty() {
            *self = other.clone();
        } else {
            other.each(Link::entry).for_each(|entry| self.push(entry));
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

    /// The message at a place, in O(log n).
    pub fn at(&self, at: usize) -> Option<MessageIx> {
        let wanted = u32::try_from(at).ok().filter(|_| at < self.len())? + 1;
        self.up_to(self.skipped + wanted).map(|link| link.message)
    }
    /// The thread with one message, or none, in place of each of these parts, which are in order: what is before the first of them
    /// is shared, what is behind it is linked anew. Whoever edits sees to it that no call is parted from its result.
    pub(crate) fn with(&self, parts: &[(usize, usize, Option<Entry>)]) -> Thread {
        let Some(&(first, ..)) = parts.first() else { return self.clone() };
        let slice = |start: usize, end: usize| {
            let place = |at: usize| i64::try_from(at).ok();
            self.slice(Slice(place(start), place(end)))
        };
        let mut edited = slice(0, first);
        for (n, &(_, end, by)) in parts.iter().enumerate() {
            by.into_iter().for_each(|entry| edited.push(entry));
            let next = parts.get(n + 1).map_or(self.len(), |(start, ..)| *start);
            edited.extend(&slice(end, next));
        }
        edited.cut = self.cut;
        edited
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

/// A thread from its last message back.
#[derive(Clone)]
pub(crate) struct Backwards<'t> {
    at: Option<&'t Arc<Link>>,
    skipped: u32,
}

impl Iterator for Backwards<'_> {
    type Item = (usize, MessageIx);

    fn next(&mut self) -> Option<Self::Item> {
        let link = self.at.filter(|link| link.count > self.skipped)?;
        self.at = link.before.as_ref();
        Some((Arc::as_ptr(link).addr(), link.message))
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
