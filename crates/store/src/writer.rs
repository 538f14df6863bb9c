//! The writer: one thread, one connection, group commit (E-04).
//!
//! Requests come over a bounded channel from any number of runs. The writer takes everything that is queued,
//! writes it in one transaction, commits (which syncs the log to the disk) and answers all of them. While it waits
//! for the disk the next requests queue up, so the more there are the larger the groups get; a single request
//! never waits for others to come.
//!
//! Having answered, it tends the log that SQLite writes to (see [`log`]).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::commit::Done;
use crate::place::Place;
use crate::{Commit, StoreError};

mod adopt;
mod ends;
mod log;
mod request;

use ends::Ends;
use log::Log;
use request::commit;
pub(crate) use request::{Adopted, Request};

/// Requests that may be queued; a sender beyond that waits (E-12).
const QUEUE: usize = 4096;
/// With so many queued, who can wait without holding up a thread does ([`Room`]). What is left of the queue is for those who
/// found room at the same time.
const ROOM: usize = QUEUE / 2;
/// A group ends when it has grown to this many bytes.
const GROUP_BYTES: usize = 16 * 1024 * 1024;
/// How long the writer looks out for the next request before it sleeps. What follows from an answer is asked for
/// within that time, and waking a thread costs two of them tens of microseconds.
const LINGER: Duration = Duration::from_micros(100);
/// How often it is looked whether the database is still where it was; where a run comes to a stop, always.
const LOOK: Duration = Duration::from_millis(250);

/// A request in the queue. It is boxed there: the queue has its memory from the beginning, and most processes hand in a few.
type Queued = (Request, Done);

/// Where requests go.
#[derive(Debug)]
pub(crate) struct Writer {
    way: Way,
    commits: Arc<AtomicU64>,
    room: Arc<Room>,
}

#[derive(Debug)]
enum Way {
    /// To the writer's thread.
    Thread { queue: Option<SyncSender<Box<Queued>>>, thread: Option<JoinHandle<()>> },
    /// To a connection in memory: nothing to wait for, so nothing to group.
    Here(Arc<Mutex<Connection>>, Mutex<Ends>),
    /// Nowhere: the store is open for reading.
    None,
}

impl Writer {
    /// Starts the writer's thread.
    pub(crate) fn start(mut conn: Connection, db: PathBuf) -> Result<Self, StoreError> {
        let (queue, requests) = sync_channel(QUEUE);
        let path = db.clone();
        let log = Log::of(&mut conn, &db).map_err(|error| StoreError::from_sqlite(&path, &error))?;
        let commits = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&commits);
        let room = Arc::new(Room::default());
        let left = Arc::clone(&room);
        let place = Place::of(&db);
        let thread = std::thread::Builder::new()
            .name("selvedge-store".to_owned())
            .spawn(move || serve((&conn, &db), (place, log), &(requests, Open(left)), &counted))
            .map_err(|error| StoreError::from_io(&path, &error))?;
        Ok(Self { way: Way::Thread { queue: Some(queue), thread: Some(thread) }, commits, room })
    }

    /// A writer to a connection in memory.
    pub(crate) fn here(conn: Arc<Mutex<Connection>>) -> Self {
        Self { way: Way::Here(conn, Mutex::default()), commits: Arc::default(), room: Arc::default() }
    }

    /// The writer of a store that is open for reading.
    pub(crate) fn none() -> Self {
        Self { way: Way::None, commits: Arc::default(), room: Arc::default() }
    }

    /// Whether nothing can be written.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.way, Way::None)
    }

    /// Transactions committed so far.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Waits, as a future, until a request can be handed in without waiting.
    pub(crate) async fn room(&self) {
        std::future::poll_fn(|context| self.room.poll(context)).await;
    }

    /// Hands a request in. With a full queue it waits on its thread: async code asks for [`Writer::room`] first.
    pub(crate) fn send(&self, request: Request, db: &Path) -> Commit {
        match &self.way {
            Way::Thread { queue, .. } => {
                let (done, commit) = Commit::channel();
                self.room.taken();
                let sent = queue.as_ref().is_some_and(|queue| queue.send(Box::new((request, done))).is_ok());
                if sent { commit } else { Commit::ready(Err(StoreError::Closed)) }
            }
            Way::Here(conn, ends) => {
                let conn = conn.lock().unwrap_or_else(PoisonError::into_inner);
                let mut ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
                let result =
                    commit(&conn, db, &mut ends, [&request].into_iter()).map(|mut answers| answers.pop());
                self.commits.fetch_add(1, Ordering::Relaxed);
                Commit::ready(result.and_then(|answer| answer.unwrap_or(Ok(()))))
            }
            Way::None => Commit::ready(Err(StoreError::only_read(db))),
        }
    }
}

/// How many requests are queued, and who waits for there to be fewer.
#[derive(Debug, Default)]
struct Room {
    queued: AtomicUsize,
    waiting: Mutex<Vec<Waker>>,
    /// The writer is gone: nobody is to wait for it.
    closed: AtomicBool,
}

/// Held by the writer's thread: however that ends, nobody waits for room any more.
struct Open(Arc<Room>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::SeqCst);
        self.0.left(0);
    }
}

impl Room {
    fn taken(&self) {
        self.queued.fetch_add(1, Ordering::SeqCst);
    }

    fn left(&self, requests: usize) {
        self.queued.fetch_sub(requests, Ordering::SeqCst);
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.has_some() {
            return Poll::Ready(());
        }
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(context.waker().clone());
        // It may have been emptied just before.
        if self.has_some() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn has_some(&self) -> bool {
        self.queued.load(Ordering::SeqCst) < ROOM || self.closed.load(Ordering::SeqCst)
    }
}

impl Drop for Writer {
    /// Everything that was handed in is written before the store is gone.
    fn drop(&mut self) {
        if let Way::Thread { queue, thread } = &mut self.way {
            drop(queue.take());
            if let Some(thread) = thread.take() {
                // A panic there has been reported by the panic hook; there is nobody left to tell.
                let _ = thread.join();
            }
        }
    }
}

/// The writer thread's loop: ends when all senders are gone and the queue is empty.
fn serve(
    (conn, db): (&Connection, &Path),
    (mut place, mut log): (Place, Log),
    (requests, Open(room)): &(Receiver<Box<Queued>>, Open),
    commits: &AtomicU64,
) {
    let mut ends = Ends::default();
    let mut looked = Instant::now();
    let mut next = requests.recv().ok();
    while let Some(first) = next {
        let mut bytes = first.0.bytes();
        let mut group = vec![first];
        while bytes < GROUP_BYTES && group.len() < QUEUE {
            let Ok(next) = requests.try_recv() else { break };
            bytes += next.0.bytes();
            group.push(next);
        }
        room.left(group.len());
        let done = commit(conn, db, &mut ends, group.iter().map(|queued| &queued.0)).and_then(|answers| {
            if looked.elapsed() >= LOOK || group.iter().any(|queued| queued.0.is_an_end()) {
                // What was written to a file that is gone is not durable, whatever the system says (E-04).
                place.check()?;
                looked = Instant::now();
            }
            Ok(answers)
        });
        match done {
            // A receiver that is gone did not want to know.
            Ok(answers) => {
                commits.fetch_add(1, Ordering::Relaxed);
                group.into_iter().zip(answers).for_each(|(queued, answer)| {
                    let _ = queued.1.send(answer);
                });
            }
            Err(error) => group.into_iter().for_each(|queued| {
                let _ = queued.1.send(Err(error.clone()));
            }),
        }
        log.tend(conn);
        next = linger(requests);
    }
}

/// The next request; `None` when all senders are gone. Others who have work go first.
fn linger(requests: &Receiver<Box<Queued>>) -> Option<Box<Queued>> {
    let start = Instant::now();
    while start.elapsed() < LINGER {
        match requests.try_recv() {
            Ok(request) => return Some(request),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => std::thread::yield_now(),
        }
    }
    requests.recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::task::Wake;

    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// E-12: a full queue holds up who hands something in, and no thread.
    #[test]
    fn who_waits_for_room_is_woken() {
        let (room, count) = (Room::default(), Arc::new(Count(AtomicU32::new(0))));
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        for _ in 0..ROOM {
            assert_eq!(room.poll(&mut context), Poll::Ready(()));
            room.taken();
        }
        assert_eq!(room.poll(&mut context), Poll::Pending);
        room.left(1);
        assert_eq!((count.0.load(Ordering::SeqCst), room.poll(&mut context)), (1, Poll::Ready(())));
        room.taken();
        assert_eq!(room.poll(&mut context), Poll::Pending);
        let room = Arc::new(room);
        drop(Open(Arc::clone(&room)));
        assert_eq!((count.0.load(Ordering::SeqCst), room.poll(&mut context)), (2, Poll::Ready(())));
    }
}
