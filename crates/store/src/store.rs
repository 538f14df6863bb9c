//! The store: one state folder, opened.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use crate::inbox::InboxWatches;
use crate::lock::Locks;
use crate::writer::{Adopted, Request, Writer};
use crate::{
    BlobHash, Commit, DB_FILE, DriverLock, Entry, Journal, NewRun, PageOfRuns, RunFilter, RunInfo, RunStatus,
    RunUpdate, Runs, RunsPage, Settled, StoreError, blobs, chain, index, open, schema,
};

/// Connections for reading that are kept open between requests.
const READERS: usize = 4;

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// To read and write; folder and database are created if needed, an older format is brought up to date.
    ReadWrite,
    /// To read what is there. Nothing is created or changed.
    ReadOnly,
}

/// An open state folder. Clones share it; it closes with the last clone (and the last [`Journal`]), after
/// everything that was handed in is written. Closing blocks for as long as that takes.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

/// What the clones of a store share.
#[derive(Debug)]
pub(crate) struct Inner {
    // Dropped in this order: the writer's connection is closed last, which moves the log into the database.
    inbox_watches: InboxWatches,
    readers: Readers,
    writer: Writer,
    locks: Locks,
    /// The state folder; `None` for a store in memory.
    dir: Option<PathBuf>,
    db: PathBuf,
    /// The sources of runs, as far as they were asked for: they stay what they are.
    parents: Mutex<HashMap<i64, Option<(i64, u64)>>>,
}

#[derive(Debug)]
enum Readers {
    Pool(Mutex<Vec<Connection>>),
    Shared(Arc<Mutex<Connection>>),
}

impl Store {
    /// Opens the state folder `dir` (C-14).
    ///
    /// Fails with [`StoreError::Newer`] or [`StoreError::Damaged`] on a database that this version must not touch,
    /// [`StoreError::Missing`] if there is none to read, [`StoreError::ReadOnly`], [`StoreError::Full`],
    /// [`StoreError::Locked`] or [`StoreError::Io`] if the folder cannot be used.
    pub fn open(dir: &Path, mode: Mode) -> Result<Self, StoreError> {
        let db = dir.join(DB_FILE);
        let (writer, readers) = match mode {
            Mode::ReadWrite => {
                (Writer::start(open::write(dir, schema::MIGRATIONS)?, db.clone())?, Vec::new())
            }
            // The first reader is kept: it has found out how the folder can be read.
            Mode::ReadOnly => (Writer::none(), vec![open::read(dir)?]),
        };
        let readers = Readers::Pool(Mutex::new(readers));
        // Who only reads drives nothing.
        let inbox_watches = InboxWatches::of((mode == Mode::ReadWrite).then(|| dir.to_owned()));
        Ok(Self {
            inner: Arc::new(Inner {
                inbox_watches,
                readers,
                writer,
                locks: Locks::of(Some(dir)),
                dir: Some(dir.to_owned()),
                db,
                parents: Mutex::default(),
            }),
        })
    }

    /// A store in memory, gone with its last clone: for tests, simulations and measurements without a disk.
    pub fn memory() -> Result<Self, StoreError> {
        let conn = Arc::new(Mutex::new(open::memory()?));
        Ok(Self {
            inner: Arc::new(Inner {
                inbox_watches: InboxWatches::of(None),
                readers: Readers::Shared(Arc::clone(&conn)),
                writer: Writer::here(conn),
                locks: Locks::of(None),
                dir: None,
                db: PathBuf::from(":memory:"),
                parents: Mutex::default(),
            }),
        })
    }

    /// The state folder, `None` for a store in memory.
    pub fn dir(&self) -> Option<&Path> {
        self.inner.dir.as_deref()
    }

    /// Creates a run with its first entries, all or nothing.
    ///
    /// Fails with [`StoreError::AlreadyExists`] for an id that was used before (C-12), [`StoreError::UnknownBlob`]
    /// if its graph is not stored, [`StoreError::UnknownRun`] or [`StoreError::OutOfOrder`] if it is a fork of a
    /// run or at an event that does not exist.
    pub fn create_run(&self, run: NewRun, entries: Vec<Entry>) -> Commit {
        self.send(Request::create(run, entries))
    }

    /// Creates a run together with its compiled graph, whose hash `run.graph` must be: one commit. Fails like
    /// [`Store::create_run`].
    pub fn create_run_with_graph(&self, run: NewRun, graph: Vec<u8>, entries: Vec<Entry>) -> Commit {
        let hash = BlobHash::of(&graph);
        self.send(Request::create(run, entries).with(hash, graph))
    }

    /// Waits, as a future, until the writer takes a request at once. Async code that appends awaits this first: with thousands of
    /// commits under way handing one in may block a thread otherwise (E-12).
    pub async fn room(&self) {
        self.inner.writer.room().await;
    }

    /// Appends entries to a run's journal (E-04).
    ///
    /// Fails with [`StoreError::OutOfOrder`] unless they continue it, [`StoreError::UnknownRun`] if there is none.
    pub fn append(&self, run: &str, entries: Vec<Entry>) -> Commit {
        self.send(Request::append(run.to_owned(), entries, None))
    }

    /// Appends entries and changes the run's row in the same transaction. Fails like [`Store::append`].
    pub fn append_and_update(&self, run: &str, entries: Vec<Entry>, update: RunUpdate) -> Commit {
        self.send(Request::append(run.to_owned(), entries, Some(update)))
    }

    /// Appends entries, changes the run's row if that is given, and settles entries of the inbox (E-43), all in the same
    /// transaction: there may be no entries. Fails like [`Store::append`].
    pub fn append_and_settle(
        &self,
        run: &str,
        entries: Vec<Entry>,
        update: Option<RunUpdate>,
        settled: Vec<Settled>,
    ) -> Commit {
        self.send(Request::append(run.to_owned(), entries, update).settling(settled))
    }

    /// Changes a run's row alone.
    pub fn update_run(&self, run: &str, update: RunUpdate) -> Commit {
        self.send(Request::append(run.to_owned(), Vec::new(), Some(update)))
    }

    /// Stores a content under its hash; one that is there already costs nothing but the look. The hash can be used
    /// in requests that follow without waiting for the commit.
    pub fn put_blob(&self, bytes: Vec<u8>) -> (BlobHash, Commit) {
        let hash = BlobHash::of(&bytes);
        (hash, self.send(Request::blob(hash, bytes)))
    }

    /// Takes over all contents of another store, and runs of it as they are there: the events from a number on of those that are here
    /// already, whose earlier events are the same, and `new` ones, the source of a fork before it. All of that or nothing, in one transaction
    /// that needs little memory however long their journals are. Who drives a run that is here has its lock.
    ///
    /// Fails with [`StoreError::AlreadyExists`] if an id of a new one is used here, with [`StoreError::OutOfOrder`] if one has moved on, and like
    /// [`Store::create_run`] and [`Store::journal`].
    pub fn adopt(&self, from: &Self, further: Vec<(String, u64)>, new: Vec<String>) -> Commit {
        self.send(Request::adopt(from.clone(), Adopted { further, new }))
    }

    /// Shows all contents to `see`.
    pub(crate) fn each_blob(
        &self,
        see: impl FnMut(BlobHash, &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.inner.read(|conn| blobs::each(conn, &self.inner.db, see))
    }

    /// Loads a content. Fails with [`StoreError::UnknownBlob`] if it is not stored.
    pub fn get_blob(&self, hash: BlobHash) -> Result<Vec<u8>, StoreError> {
        self.inner.read(|conn| blobs::load(conn, &self.inner.db, hash))
    }

    /// A run's entries from number `from` (1 is the first) on, read as the iterator goes. A forked run's journal
    /// begins with what it shares with its source.
    pub fn journal(&self, run: &str, from: u64) -> Result<Journal, StoreError> {
        Journal::open(Arc::clone(&self.inner), run, from)
    }

    /// Number of a run's last event; 0 if it has none.
    pub fn last_event(&self, run: &str) -> Result<u64, StoreError> {
        self.inner.read(|conn| {
            let (key, _) = index::known_key(conn, &self.inner.db, run)?;
            let sql = |error| self.inner.sql(&error);
            let noted = chain::noted(conn, key).map_err(sql)?;
            let noted = noted.ok_or_else(|| self.inner.broken(run, None, "its end is unknown"))?;
            Ok(chain::end(conn, key, noted).map_err(sql)?.n)
        })
    }

    /// One run by its exact id. Fails with [`StoreError::UnknownRun`].
    pub fn run(&self, id: &str) -> Result<RunInfo, StoreError> {
        self.inner.read(|conn| index::get(conn, &self.inner.db, id))
    }

    /// Whether the index of ids leads to a run of exactly this id: a look at that and at no other run, so that whoever begins many runs does not
    /// look through all there are for each. [`run`](Self::run) also says whether the index can be believed where there is none.
    pub fn has_run(&self, id: &str) -> Result<bool, StoreError> {
        self.inner.read(|conn| {
            let key = index::key(conn, id).map_err(|error| self.inner.sql(&error))?;
            Ok(key.is_some())
        })
    }

    /// The id a person means by `text`: the run of exactly that id, else the latest one (`@`, `@last`) or one before
    /// it (`@-1` is the last but one), else the only one whose id begins with it (C-12).
    /// Fails with [`StoreError::UnknownRun`] or [`StoreError::AmbiguousRun`].
    pub fn find_run(&self, text: &str) -> Result<String, StoreError> {
        self.inner.read(|conn| index::find(conn, &self.inner.db, text))
    }

    /// The runs, latest first (C-15), and what is wrong with those that are damaged (E-44).
    pub fn runs(&self, filter: &RunFilter) -> Result<Runs, StoreError> {
        self.inner.read(|conn| index::list(conn, &self.inner.db, filter))
    }

    /// The runs whose ids are this and one word more, without `-`, and where they stand. Those that they have begun cost a look at the index of ids.
    pub fn runs_named(&self, beginning: &str) -> Result<Vec<(String, RunStatus)>, StoreError> {
        self.inner.read(|conn| index::named(conn, &self.inner.db, beginning))
    }

    /// The runs that a run began (E-39), in the order of their ids.
    pub fn children(&self, parent: &str) -> Result<Vec<RunInfo>, StoreError> {
        self.inner.read(|conn| index::children(conn, &self.inner.db, parent))
    }

    /// A page of the runs, latest recorded first, which costs what is on it (S-05).
    pub fn page_of_runs(&self, page: &RunsPage) -> Result<PageOfRuns, StoreError> {
        self.inner.read(|conn| index::page(conn, &self.inner.db, page))
    }

    /// The ids of waiting runs of which a timer was due by `now_ms` (E-37), each with that time, the earliest first. Runs that other
    /// runs began are left out.
    pub fn due_runs(&self, now_ms: i64) -> Result<Vec<(String, i64)>, StoreError> {
        self.inner.read(|conn| index::due(conn, &self.inner.db, now_ms))
    }

    /// How many runs there are of each status, as their rows say.
    pub fn counts_of_runs(&self) -> Result<Vec<(RunStatus, u64)>, StoreError> {
        self.inner.read(|conn| index::counts(conn, &self.inner.db))
    }

    /// Takes the right to drive a run, which need not exist yet. Fails with [`StoreError::Driven`] if somebody has
    /// it (C-12).
    pub fn drive(&self, run: &str) -> Result<DriverLock, StoreError> {
        if self.inner.writer.is_none() {
            return Err(StoreError::only_read(&self.inner.db));
        }
        self.inner.locks.acquire(run)
    }

    /// The process that drives a run, where that is another one and known.
    pub fn other_driver(&self, run: &str) -> Option<u32> {
        let pid = self.inner.locks.holder(run).ok().flatten()?.pid;
        pid.filter(|pid| *pid != std::process::id())
    }

    /// True if a live process, this one included, drives the run. A run that is `running` and not driven has lost
    /// its driver (C-12, warning `not_driven`).
    pub fn is_driven(&self, run: &str) -> Result<bool, StoreError> {
        Ok(self.inner.locks.holder(run)?.is_some())
    }

    /// The error of a run that is damaged elsewhere than in its events.
    pub fn damaged_run(&self, run: &str, why: &str) -> StoreError {
        self.inner.broken(run, None, why)
    }

    /// Reads the whole database and fails with [`StoreError::Damaged`] or [`StoreError::DamagedRun`] if anything in it is
    /// not what was written (E-44). Takes time in proportion to its size.
    pub fn check(&self) -> Result<(), StoreError> {
        self.inner.read(|conn| {
            let found: String = conn
                .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
                .map_err(|error| self.inner.sql(&error))?;
            if found != "ok" {
                return Err(self.inner.damaged(found));
            }
            blobs::each(conn, &self.inner.db, |_, _| Ok(()))
        })?;
        let runs = self.runs(&RunFilter { children: true, ..RunFilter::default() })?;
        if let Some(damaged) = runs.damaged.into_iter().next() {
            return Err(damaged);
        }
        for run in runs.sound {
            // What a fork shares is looked at with its source.
            let own = run.fork.map_or(1, |fork| fork.events + 1);
            self.journal(&run.id, own)?.try_for_each(|entry| entry.map(drop))?;
        }
        self.library(1).map(drop)
    }

    /// How many transactions this store has committed, and so synced, since it was opened. What is handed in while
    /// one is under way shares the next.
    pub fn commits(&self) -> u64 {
        self.inner.writer.commits()
    }

    /// What the clones share.
    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(crate) fn send(&self, request: Request) -> Commit {
        self.inner.writer.send(request, &self.inner.db)
    }
}

impl Inner {
    /// Runs `query` on a connection for reading.
    pub(crate) fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (pool, dir) = match (&self.readers, &self.dir) {
            (Readers::Shared(conn), _) => {
                return query(&conn.lock().unwrap_or_else(PoisonError::into_inner));
            }
            (Readers::Pool(pool), Some(dir)) => (pool, dir),
            (Readers::Pool(_), None) => return Err(StoreError::Closed),
        };
        let idle = pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let conn = match idle {
            Some(conn) => conn,
            None => open::read(dir)?,
        };
        let result = query(&conn);
        let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < READERS {
            pool.push(conn);
        }
        result
    }

    /// The source of a run, by their keys, and how many events they share. A chain of forks is as long as it is, and each look at a journal
    /// begins at one.
    pub(crate) fn parent(&self, conn: &Connection, run: i64) -> rusqlite::Result<Option<(i64, u64)>> {
        let mut parents = self.parents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = parents.get(&run) {
            return Ok(*known);
        }
        let found = index::parent(conn, run)?;
        parents.insert(run, found);
        Ok(found)
    }

    pub(crate) fn inbox_watches(&self) -> &InboxWatches {
        &self.inbox_watches
    }

    /// The database file.
    pub(crate) fn db(&self) -> &Path {
        &self.db
    }

    pub(crate) fn sql(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(&self.db, error)
    }

    /// What was stored of a run is not what was written: an event, or what the index has of it.
    pub(crate) fn broken(&self, run: &str, event: Option<u64>, why: &str) -> StoreError {
        StoreError::broken(&self.db, run, event, why)
    }

    pub(crate) fn damaged(&self, why: String) -> StoreError {
        StoreError::Damaged { path: self.db.clone(), why }
    }
}
