//! The threads of a frame: in a flow their values, in a dataflow those that they begin with.

use crate::ids::{Ix, ThreadIx, not_there};
use crate::message::Thread;

/// A row for each thread of the frame's graph. It holds nothing while there is no such thread.
#[derive(Clone, Debug)]
pub(crate) struct Threads(Box<[Option<Thread>]>);

static EMPTY: Thread = Thread::EMPTY;

/// A path that waits has some, and there may be thousands of those.
const _: () = assert!(size_of::<Option<Thread>>() <= 16);

impl Threads {
    pub(super) fn new(count: usize) -> Self {
        Self((0..count).map(|_| None).collect())
    }
    fn row_mut(&mut self, thread: ThreadIx) -> &mut Option<Thread> {
        self.0.get_mut(thread.get()).unwrap_or_else(|| not_there("a thread", thread))
    }
    /// The value, if the thread exists.
    pub(super) fn get(&self, thread: ThreadIx) -> Option<&Thread> {
        self.0.get(thread.get())?.as_ref()
    }
    /// The value, which is empty while there is no such thread.
    pub(super) fn base(&self, thread: ThreadIx) -> &Thread {
        self.get(thread).unwrap_or(&EMPTY)
    }
    /// The thread exists from here on.
    pub(super) fn open(&mut self, thread: ThreadIx) -> &mut Thread {
        self.row_mut(thread).get_or_insert_default()
    }
    /// The thread has this value; one that does not exist does so with its first message.
    pub(super) fn set(&mut self, thread: ThreadIx, value: Thread) {
        let row = self.row_mut(thread);
        *row = (row.is_some() || !value.is_empty()).then_some(value);
    }
    /// The thread is as before anybody wrote on it: it exists if somebody `has_written`, or if it began with something.
    pub(super) fn rewind(&mut self, thread: ThreadIx, has_written: bool) {
        let row = self.row_mut(thread);
        *row = row
            .take()
            .or_else(|| has_written.then(Thread::default))
            .filter(|base| has_written || !base.is_empty());
    }
}
