//! The messages of a run, and lists of them that cost nothing until somebody looks.

use crate::ids::{Ix, MessageIx, not_there};
use crate::message::{Message, Slice, Thread};
use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::{Deref, Index};
use std::sync::{Arc, OnceLock};

/// Messages in the first chunk; every chunk is twice as long as the one before.
const FIRST: usize = 8;
/// Enough chunks for every [`MessageIx`].
const CHUNKS: usize = 30;
/// Messages in a block, of which chunks are made; those of the first chunks are shorter.
const BLOCK: usize = 256;

/// All messages of a run, in journal order: only ever added to, and shared with requests under way. A clone is another log, which
/// begins with the same messages: blocks that are full are shared.
#[derive(Debug)]
pub(crate) struct Log {
    rows: Rows,
    len: usize,
}

/// What a log has, for who looks things up in it. Clones are handles of the same.
#[derive(Clone, Debug)]
struct Rows(Arc<[OnceLock<Chunk>; CHUNKS]>);

type Chunk = Box<[OnceLock<Block>]>;
type Block = Arc<[OnceLock<Said>]>;

/// A message, and who said it.
#[derive(Clone, Debug)]
struct Said {
    message: Arc<Message>,
    by: Option<Arc<str>>,
}

impl Rows {
    fn get(&self, ix: MessageIx) -> Option<&Said> {
        #[cfg(test)]
        crate::work::step();
        let place = Place::of(ix.get());
        self.0.get(place.chunk)?.get()?.get(place.block)?.get()?.get(place.at)?.get()
    }

    /// The place of a block, which may hold nothing yet.
    fn block(&self, place: &Place) -> Option<&OnceLock<Block>> {
        let blocks = (FIRST << place.chunk).div_ceil(place.rows);
        let new = || (0..blocks).map(|_| OnceLock::new()).collect();
        self.0.get(place.chunk)?.get_or_init(new).get(place.block)
    }
}

impl Clone for Log {
    fn clone(&self) -> Self {
        let mut log = Self::new();
        while log.len < self.len {
            let place = Place::of(log.len);
            let full = self.rows.block(&place).and_then(OnceLock::get);
            let full = full.filter(|_| place.at == 0 && log.len + place.rows <= self.len);
            match (full, log.rows.block(&place)) {
                // Nobody adds to it any more.
                (Some(full), Some(empty)) => {
                    let _ = empty.set(Arc::clone(full));
                    log.len += place.rows;
                }
                _ => drop(log.add(self.rows[MessageIx::new(log.len)].clone())),
            }
        }
        log
    }
}

impl Log {
    pub(crate) fn new() -> Self {
        Self { rows: Rows(Arc::new([const { OnceLock::new() }; CHUNKS])), len: 0 }
    }

    /// Adds a message, with who said it. Only the state does that, so that nobody adds to another handle of the same log.
    pub(crate) fn push(&mut self, message: Arc<Message>, by: Option<Arc<str>>) -> MessageIx {
        self.add(Said { message, by })
    }

    fn add(&mut self, said: Said) -> MessageIx {
        let place = Place::of(self.len);
        let new = || (0..place.rows).map(|_| OnceLock::new()).collect();
        let row = self.rows.block(&place).and_then(|block| block.get_or_init(new).get(place.at));
        if let Some(row) = row {
            // It is empty: rows are filled in order, once.
            let _ = row.set(said);
        }
        self.len += 1;
        MessageIx::new(self.len - 1)
    }

    /// Who said a message; nobody the document's own.
    pub(crate) fn by(&self, ix: MessageIx) -> Option<&Arc<str>> {
        self.rows.get(ix)?.by.as_ref()
    }
}

/// Where a message is.
struct Place {
    chunk: usize,
    /// Which block of it, and how many rows one has.
    block: usize,
    rows: usize,
    at: usize,
}

impl Place {
    /// That of message `n`.
    fn of(n: usize) -> Self {
        let chunk = (n / FIRST + 1).ilog2() as usize;
        let (at, rows) = (n - FIRST * ((1 << chunk) - 1), BLOCK.min(FIRST << chunk));
        Self { chunk, block: at / rows, rows, at: at % rows }
    }
}

impl Index<MessageIx> for Log {
    type Output = Arc<Message>;

    fn index(&self, ix: MessageIx) -> &Arc<Message> {
        &self.rows[ix].message
    }
}

impl Index<MessageIx> for Rows {
    type Output = Said;

    /// Like [`crate::ids::Table`]: an index that is not there is a bug, and the run is poisoned (E-17).
    fn index(&self, ix: MessageIx) -> &Said {
        match self.get(ix) {
            Some(said) => said,
            None => not_there("a message", ix),
        }
    }
}

/// The messages of a request: a slice, put together when it is first looked at. Until then it costs the same
/// whatever its length, as a thread does (E-08).
#[derive(Clone, Debug, Default)]
pub struct Messages {
    parts: Option<Box<Parts>>,
    list: OnceLock<Vec<Arc<Message>>>,
}

#[derive(Clone, Debug)]
struct Parts {
    log: Rows,
    before: Option<Arc<Message>>,
    thread: Thread,
    after: Vec<Arc<Message>>,
}

impl Messages {
    /// The messages of a thread between others.
    pub(crate) fn of(
        log: &Log,
        before: Option<Arc<Message>>,
        thread: &Thread,
        after: Vec<Arc<Message>>,
    ) -> Self {
        let parts = Parts { log: log.rows.clone(), before, thread: thread.clone(), after };
        Self { parts: Some(Box::new(parts)), list: OnceLock::new() }
    }

    /// What stands before the thread that they are of.
    pub(crate) fn before(&self) -> Option<&Message> {
        self.parts.as_ref()?.before.as_deref()
    }

    /// Their number.
    pub fn len(&self) -> usize {
        match &self.parts {
            Some(parts) => usize::from(parts.before.is_some()) + parts.thread.len() + parts.after.len(),
            None => self.as_slice().len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The messages, in order.
    pub fn as_slice(&self) -> &[Arc<Message>] {
        self.list.get_or_init(|| self.parts.as_ref().map_or_else(Vec::new, |parts| parts.list()))
    }
}

impl Parts {
    fn list(&self) -> Vec<Arc<Message>> {
        let thread = self.thread.iter().map(|ix| &self.log[ix].message);
        self.before.iter().chain(thread).chain(&self.after).cloned().collect()
    }
}

impl Deref for Messages {
    type Target = [Arc<Message>];

    fn deref(&self) -> &[Arc<Message>] {
        self.as_slice()
    }
}

impl From<Vec<Arc<Message>>> for Messages {
    fn from(list: Vec<Arc<Message>>) -> Self {
        Self { parts: None, list: OnceLock::from(list) }
    }
}

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Arc<Message>;
    type IntoIter = std::slice::Iter<'a, Arc<Message>>;

    fn into_iter(self) -> Self::IntoIter {
        self.as_slice().iter()
    }
}

/// The messages of a thread at one moment. A part of it costs what the part holds, however long the thread and the run
/// are.
#[derive(Clone)]
pub struct ThreadView<'s> {
    log: &'s Log,
    thread: Thread,
}

impl<'s> ThreadView<'s> {
    pub(crate) fn new(log: &'s Log, thread: Thread) -> Self {
        Self { log, thread }
    }

    /// Its messages by their places in the run.
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// The numbers of its messages in the run, which are their own wherever they are read.
    pub fn numbers(&self) -> impl Iterator<Item = MessageIx> + use<> {
        self.thread.iter()
    }

    /// How many messages it has.
    pub fn len(&self) -> usize {
        self.thread.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.thread.is_empty()
    }

    /// The part that `slice` names (P-05).
    #[must_use]
    pub fn slice(&self, slice: Slice) -> Self {
        Self { log: self.log, thread: self.thread.slice(slice) }
    }

    /// At most so many messages from its end.
    #[must_use]
    pub fn last(&self, most: usize) -> Self {
        let first = self.len().saturating_sub(most);
        self.slice(Slice(Some(i64::try_from(first).unwrap_or(i64::MAX)), None))
    }

    /// The messages, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'s Arc<Message>> + use<'s> {
        let log = self.log;
        self.thread.iter().map(move |ix| &log[ix])
    }
}

impl Serialize for ThreadView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl fmt::Debug for ThreadView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
