//! The writer: one thread, one connection, group commit (E-04).
//!
//! Requests come over a bounded channel from any number of runs. The writer takes everything that is queued,
//! writes it in one transaction, commits (which syncs the log to the disk) and answers all of them. While it waits
//! for the disk the next requests queue up, so the more there are the larger the groups get; a single request
//! never waits for others to come.
//!
//! The log is kept small: as soon as it has [`LOG_PAGES`] pages the writer, having answered, moves them into the
//! database, and the next commit begins at the log's start again. Syncing bytes that overwrite others takes about
//! half the time of syncing a file that grows, since the file system then has no new blocks to note down.

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::hooks::Wal;
use rusqlite::{Connection, OptionalExtension};

use crate::commit::Done;
use crate::schema::{self, MAX_NUMBER, journal_key, number_of};
use crate::{BlobHash, Commit, Entry, NewRun, RunUpdate, StoreError, blobs, encode, index, library};

/// Requests that may be queued; a sender beyond that waits (E-12).
const QUEUE: usize = 4096;
/// A group ends when it has grown to this many bytes.
const GROUP_BYTES: usize = 16 * 1024 * 1024;
/// How long the writer looks out for the next request before it sleeps. What follows from an answer is asked for
/// within that time, and waking a thread costs two of them tens of microseconds.
const LINGER: Duration = Duration::from_micros(100);
/// Pages of the log (1 MiB) from which on it is moved into the database.
const LOG_PAGES: u32 = 256;

/// A request as the writer takes it: encoded and hashed by the sender, so that the writer only writes.
#[derive(Debug)]
pub(crate) struct Request {
    op: Op,
    rows: Vec<Row>,
    blobs: Vec<(BlobHash, Vec<u8>)>,
}

#[derive(Debug)]
enum Op {
    Create(NewRun),
    Append(String, Option<RunUpdate>),
    Library,
    Blobs,
}

#[derive(Debug)]
struct Row {
    n: u64,
    at_ms: i64,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Plain(String),
    Encoded(String),
}

impl Request {
    pub(crate) fn create(run: NewRun, entries: Vec<Entry>) -> Self {
        Self::new(Op::Create(run), entries)
    }

    /// The same with a content that comes with it.
    pub(crate) fn with(mut self, hash: BlobHash, bytes: Vec<u8>) -> Self {
        self.blobs.push((hash, bytes));
        self
    }

    pub(crate) fn append(run: String, entries: Vec<Entry>, update: Option<RunUpdate>) -> Self {
        Self::new(Op::Append(run, update), entries)
    }

    pub(crate) fn blob(hash: BlobHash, bytes: Vec<u8>) -> Self {
        Self { op: Op::Blobs, rows: Vec::new(), blobs: vec![(hash, bytes)] }
    }

    /// Events of the library, with the contents that they name.
    pub(crate) fn library(entries: Vec<Entry>, contents: Vec<Vec<u8>>) -> Self {
        let request = Self::new(Op::Library, entries);
        contents.into_iter().fold(request, |request, bytes| request.with(BlobHash::of(&bytes), bytes))
    }

    fn new(op: Op, entries: Vec<Entry>) -> Self {
        let mut blobs = Vec::new();
        let rows = entries
            .into_iter()
            .map(|Entry { n, at_ms, json }| match encode::encode(&json) {
                None => Row { n, at_ms, body: Body::Plain(json) },
                Some(encoded) => {
                    blobs.extend(encoded.blobs);
                    Row { n, at_ms, body: Body::Encoded(encoded.body) }
                }
            })
            .collect();
        Self { op, rows, blobs }
    }

    fn bytes(&self) -> usize {
        let rows = self.rows.iter().map(|row| match &row.body {
            Body::Plain(body) | Body::Encoded(body) => body.len(),
        });
        rows.sum::<usize>() + self.blobs.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }
}

/// Where requests go.
#[derive(Debug)]
pub(crate) struct Writer {
    way: Way,
    commits: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Way {
    /// To the writer's thread.
    Thread { queue: Option<SyncSender<(Request, Done)>>, thread: Option<JoinHandle<()>> },
    /// To a connection in memory: nothing to wait for, so nothing to group.
    Here(Arc<Mutex<Connection>>),
    /// Nowhere: the store is open for reading.
    None,
}

impl Writer {
    /// Starts the writer's thread.
    pub(crate) fn start(mut conn: Connection, db: PathBuf) -> Result<Self, StoreError> {
        let (queue, requests) = sync_channel(QUEUE);
        let path = db.clone();
        let log = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&log);
        // In place of SQLite's own checkpoints, which would run before a commit is answered.
        conn.wal_hook(Some(move |_: &mut Wal, pages: c_int| {
            seen.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))
        .map_err(|error| StoreError::from_sqlite(&path, &error))?;
        let commits = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&commits);
        let thread = std::thread::Builder::new()
            .name("selvedge-store".to_owned())
            .spawn(move || serve(&conn, &db, &requests, &log, &counted))
            .map_err(|error| StoreError::from_io(&path, &error))?;
        Ok(Self { way: Way::Thread { queue: Some(queue), thread: Some(thread) }, commits })
    }

    /// A writer to a connection in memory.
    pub(crate) fn here(conn: Arc<Mutex<Connection>>) -> Self {
        Self { way: Way::Here(conn), commits: Arc::default() }
    }

    /// The writer of a store that is open for reading.
    pub(crate) fn none() -> Self {
        Self { way: Way::None, commits: Arc::default() }
    }

    /// Whether nothing can be written.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.way, Way::None)
    }

    /// Transactions committed so far.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Hands a request in.
    pub(crate) fn send(&self, request: Request, db: &Path) -> Commit {
        match &self.way {
            Way::Thread { queue, .. } => {
                let (done, commit) = Commit::channel();
                let sent = queue.as_ref().is_some_and(|queue| queue.send((request, done)).is_ok());
                if sent { commit } else { Commit::ready(Err(StoreError::Closed)) }
            }
            Way::Here(conn) => {
                let conn = conn.lock().unwrap_or_else(PoisonError::into_inner);
                let result = commit(&conn, db, [&request].into_iter()).map(|mut answers| answers.pop());
                self.commits.fetch_add(1, Ordering::Relaxed);
                Commit::ready(result.and_then(|answer| answer.unwrap_or(Ok(()))))
            }
            Way::None => {
                let why = "it was opened for reading only".to_owned();
                Commit::ready(Err(StoreError::ReadOnly { path: db.to_owned(), why }))
            }
        }
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
    conn: &Connection,
    db: &Path,
    requests: &Receiver<(Request, Done)>,
    log: &AtomicU32,
    commits: &AtomicU64,
) {
    let (mut limit, mut before) = (LOG_PAGES, 0);
    let mut next = requests.recv().ok();
    while let Some(first) = next {
        let mut bytes = first.0.bytes();
        let mut group = vec![first];
        while bytes < GROUP_BYTES && group.len() < QUEUE {
            let Ok(next) = requests.try_recv() else { break };
            bytes += next.0.bytes();
            group.push(next);
        }
        match commit(conn, db, group.iter().map(|(request, _)| request)) {
            // A receiver that is gone did not want to know.
            Ok(answers) => {
                commits.fetch_add(1, Ordering::Relaxed);
                group.into_iter().zip(answers).for_each(|((_, done), answer)| {
                    let _ = done.send(answer);
                });
            }
            Err(error) => group.into_iter().for_each(|(_, done)| {
                let _ = done.send(Err(error.clone()));
            }),
        }
        let pages = log.load(Ordering::Relaxed);
        if pages < before {
            // It was begun anew.
            limit = LOG_PAGES;
        }
        if pages >= limit {
            checkpoint(conn);
            // As long as somebody reads the log it can't begin anew and grows on.
            limit = pages + LOG_PAGES;
        }
        before = pages;
        next = linger(requests);
    }
}

/// The next request; `None` when all senders are gone. Others who have work go first.
fn linger(requests: &Receiver<(Request, Done)>) -> Option<(Request, Done)> {
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

/// Moves the log into the database as far as nobody reads it. A failure (a full disk) changes nothing: the log still
/// holds what was committed.
fn checkpoint(conn: &Connection) {
    let _ = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
}

/// Writes a group in one transaction. `Ok` has one answer a request: a request that is wrong by itself is refused
/// alone. `Err` means that nothing of the group was kept.
fn commit<'a>(
    conn: &Connection,
    db: &Path,
    group: impl Iterator<Item = &'a Request>,
) -> Result<Vec<Result<(), StoreError>>, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let result =
        conn.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([])).map_err(sql).and_then(
            |_| {
                schema::still_newest(conn, db)?;
                let answers = group
                    .map(|request| match apply(conn, db, request) {
                        Err(error) if !error.is_refusal() => Err(error),
                        answer => Ok(answer),
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                conn.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])).map_err(sql)?;
                Ok(answers)
            },
        );
    if result.is_err() && !conn.is_autocommit() {
        // SQLite has rolled back by itself after most errors. If this fails too, so will the next BEGIN, which
        // comes here again.
        let _ = conn.execute_batch("ROLLBACK");
    }
    result
}

/// Writes one request. Everything that could refuse it is checked before the first row is written.
fn apply(conn: &Connection, db: &Path, request: &Request) -> Result<(), StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let key = match &request.op {
        Op::Blobs => None,
        Op::Library => {
            let next = library::last(conn).map_err(sql)? + 1;
            for (expected, row) in (next..).zip(&request.rows) {
                if row.n != expected || i64::try_from(row.n).is_err() {
                    return Err(StoreError::LibraryChanged { expected, got: row.n });
                }
            }
            None
        }
        Op::Append(id, update) => {
            let (key, shared) = index::key(conn, id)
                .map_err(sql)?
                .ok_or_else(|| StoreError::UnknownRun { run: id.clone() })?;
            if !request.rows.is_empty() {
                in_order(id, last(conn, key, shared).map_err(sql)? + 1, &request.rows)?;
            }
            if let Some(update) = update {
                known(conn, db, update.graph)?;
                index::update(conn, key, update).map_err(sql)?;
            }
            Some(key)
        }
        Op::Create(run) => Some(create(conn, db, run, request)?),
    };
    for (hash, bytes) in &request.blobs {
        blobs::insert(conn, *hash, bytes).map_err(sql)?;
    }
    if matches!(request.op, Op::Library) {
        return insert_library(conn, &request.rows).map_err(sql);
    }
    let Some(key) = key else { return Ok(()) };
    let mut insert =
        conn.prepare_cached("INSERT INTO journal (key, at_ms, body) VALUES (?1, ?2, ?3)").map_err(sql)?;
    for row in &request.rows {
        // Without the check SQLite would choose a key by itself.
        let key = journal_key(key, row.n).ok_or_else(|| too_many(db))?;
        match &row.body {
            Body::Plain(json) => insert.execute((key, row.at_ms, json)),
            Body::Encoded(body) => insert.execute((key, row.at_ms, body.as_bytes())),
        }
        .map_err(sql)?;
    }
    Ok(())
}

/// Writes rows of the library's journal, whose numbers were checked.
fn insert_library(conn: &Connection, rows: &[Row]) -> rusqlite::Result<()> {
    let mut insert = conn.prepare_cached("INSERT INTO library (n, at_ms, body) VALUES (?1, ?2, ?3)")?;
    for row in rows {
        let n = row.n.cast_signed();
        match &row.body {
            Body::Plain(json) => insert.execute((n, row.at_ms, json))?,
            Body::Encoded(body) => insert.execute((n, row.at_ms, body.as_bytes()))?,
        };
    }
    Ok(())
}

fn create(conn: &Connection, db: &Path, run: &NewRun, request: &Request) -> Result<i64, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    // C-12: an id names one run for ever.
    if index::key(conn, &run.id).map_err(sql)?.is_some() {
        return Err(StoreError::AlreadyExists { run: run.id.clone() });
    }
    let mut shared = 0;
    let mut parent = None;
    if let Some(fork) = &run.fork {
        let (key, inherited) = index::key(conn, &fork.run)
            .map_err(sql)?
            .ok_or_else(|| StoreError::UnknownRun { run: fork.run.clone() })?;
        let last = last(conn, key, inherited).map_err(sql)?;
        if fork.events > last {
            let run = fork.run.clone();
            return Err(StoreError::OutOfOrder { run, expected: last, got: fork.events });
        }
        shared = fork.events;
        parent = Some(key);
    }
    in_order(&run.id, shared + 1, &request.rows)?;
    if !request.blobs.iter().any(|(hash, _)| Some(*hash) == run.graph) {
        known(conn, db, run.graph)?;
    }
    index::insert(conn, run, parent).map_err(sql)
}

/// Number of a run's last event, `shared` if it has none of its own.
pub(crate) fn last(conn: &Connection, run: i64, shared: u64) -> rusqlite::Result<u64> {
    let key: Option<i64> = conn
        .prepare_cached("SELECT key FROM journal WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1")?
        .query_row((journal_key(run, 0), journal_key(run, MAX_NUMBER)), |row| row.get(0))
        .optional()?;
    Ok(key.map_or(shared, number_of))
}

fn too_many(db: &Path) -> StoreError {
    let why = "it has more runs than its format can number".to_owned();
    StoreError::Full { path: db.to_owned(), why }
}

/// Refuses entries that do not follow each other from `expected` on.
fn in_order(run: &str, expected: u64, rows: &[Row]) -> Result<(), StoreError> {
    for (expected, row) in (expected..).zip(rows) {
        if row.n != expected || row.n > MAX_NUMBER {
            return Err(StoreError::OutOfOrder { run: run.to_owned(), expected, got: row.n });
        }
    }
    Ok(())
}

/// Refuses a graph that is not stored (E-05).
fn known(conn: &Connection, db: &Path, graph: Option<BlobHash>) -> Result<(), StoreError> {
    match graph {
        Some(hash) if !blobs::exists(conn, hash).map_err(|error| StoreError::from_sqlite(db, &error))? => {
            Err(StoreError::UnknownBlob { hash: hash.to_string() })
        }
        _ => Ok(()),
    }
}
