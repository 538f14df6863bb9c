//! The inbox: commands of a process to a run that another one drives (E-43).
//!
//! An entry is a row. The driver takes it in the very transaction that makes durable what it led to, or that says why it was
//! refused: so it is taken once, whoever dies when. Drivers watch the inbox: one thread polls, while runs are driven here,
//! whether anybody has written to the database, which costs microseconds, and notifies those whose runs have entries. There
//! is nothing else to find, wake or clean up; why it is so is in `docs/decisions/0025-inputs-while-driven.md`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_channel::mpsc;
use futures_util::StreamExt;
use rusqlite::{Connection, OptionalExtension};

use crate::writer::Request;
use crate::{Commit, Store, StoreError, index, open};

/// How often the database is polled for entries: less than a person notices.
const POLL: Duration = Duration::from_millis(20);
/// How long the reply to an entry is kept for its sender, who asks at once unless he has died. In milliseconds.
const KEPT_MS: i64 = 3_600_000;
/// How long the poll pauses after one that failed.
const RETRY: Duration = Duration::from_secs(1);

/// A command to a run, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxEntry {
    /// Its id, which its sender chose: an entry of an id that is there already is the same entry.
    pub id: String,
    /// The run it is for.
    pub run: String,
    /// When it was written, in milliseconds since 1970 (UTC).
    pub at_ms: i64,
    /// What it says. Anybody who may write the database may have written anything.
    pub body: String,
}

/// An entry that its driver has taken or refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The entry's id.
    pub id: String,
    /// What its sender is told.
    pub reply: String,
}

impl Store {
    /// Puts an entry into the inbox. Fails with [`StoreError::UnknownRun`] if there is no such run.
    pub fn put_inbox_entry(&self, entry: InboxEntry) -> Commit {
        self.send(Request::put_inbox_entry(entry))
    }

    /// Takes an entry out of the inbox, whatever became of it.
    pub fn remove_inbox_entry(&self, id: &str) -> Commit {
        self.send(Request::remove_inbox_entry(id.to_owned()))
    }

    /// The reply to an entry: `None` while no driver has settled it, and of one that is not there.
    pub fn inbox_reply(&self, id: &str) -> Result<Option<String>, StoreError> {
        self.inner().read(|conn| {
            conn.prepare_cached("SELECT reply FROM inbox WHERE id = ?1")
                .and_then(|mut query| query.query_row([id], |row| row.get(0)).optional())
                .map(Option::flatten)
                .map_err(|error| self.inner().sql(&error))
        })
    }

    /// The entries of a run that no driver has settled yet, the oldest first, at most so many.
    pub fn inbox_entries(&self, run: &str, most: u32) -> Result<Vec<InboxEntry>, StoreError> {
        self.inner().read(|conn| {
            let (key, _) = index::known_key(conn, self.inner().db(), run)?;
            let sql = |error| self.inner().sql(&error);
            let mut query = conn
                .prepare_cached(
                    "SELECT id, at_ms, CAST(body AS BLOB) FROM inbox WHERE run = ?1 AND reply IS NULL ORDER BY at_ms, id LIMIT ?2",
                )
                .map_err(sql)?;
            let entry = |row: &rusqlite::Row<'_>| {
                let body: Vec<u8> = row.get(2)?;
                let body = String::from_utf8_lossy(&body).into_owned();
                Ok(InboxEntry { id: row.get(0)?, run: run.to_owned(), at_ms: row.get(1)?, body })
            };
            query.query_map((key, most), entry).and_then(Iterator::collect).map_err(sql)
        })
    }

    /// Watches for entries of a run, until it is dropped: also notified of those that are there already, and perhaps
    /// once more than need be.
    pub fn watch_inbox(&self, run: &str) -> InboxWatch {
        self.inner().inbox_watches().register(run)
    }
}

/// Adds an entry; one that is there stays as it is.
pub(crate) fn insert(conn: &Connection, db: &Path, entry: &InboxEntry) -> Result<(), StoreError> {
    let (key, _) = index::known_key(conn, db, &entry.run)?;
    conn.prepare_cached("DELETE FROM inbox WHERE reply IS NOT NULL AND at_ms < ?1")
        .and_then(|mut delete| delete.execute([entry.at_ms.saturating_sub(KEPT_MS)]))
        .map_err(|error| StoreError::from_sqlite(db, &error))?;
    conn.prepare_cached("INSERT OR IGNORE INTO inbox (id, run, at_ms, body) VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut insert| insert.execute((&entry.id, key, entry.at_ms, &entry.body)))
        .map(drop)
        .map_err(|error| StoreError::from_sqlite(db, &error))
}

/// Removes an entry.
pub(crate) fn delete(conn: &Connection, id: &str) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM inbox WHERE id = ?1")?.execute([id]).map(drop)
}

/// Notes the replies to entries. One that its sender has taken back is gone.
pub(crate) fn settle(conn: &Connection, settled: &[Settled]) -> rusqlite::Result<()> {
    for Settled { id, reply } in settled {
        conn.prepare_cached("UPDATE inbox SET reply = ?2 WHERE id = ?1 AND reply IS NULL")?
            .execute((id, reply))?;
    }
    Ok(())
}

/// Notified of the entries of one run.
#[derive(Debug)]
pub struct InboxWatch {
    notified: mpsc::Receiver<()>,
    run: String,
    watched: Option<Arc<WatchedRuns>>,
}

impl InboxWatch {
    /// Waits until there may be entries. May be dropped and called again at any time.
    pub async fn changed(&mut self) {
        // Of a store in memory, or whose thread is gone, nobody is ever notified.
        if self.notified.next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for InboxWatch {
    fn drop(&mut self) {
        self.notified.close();
        if let Some(watched) = &self.watched {
            let mut runs = watched.lock();
            // The next driver of the run may have registered already.
            if runs.get(&self.run).is_some_and(mpsc::Sender::is_closed) {
                runs.remove(&self.run);
            }
        }
    }
}

/// Who is notified, by run: a run has one driver, and so one watch.
#[derive(Debug, Default)]
struct WatchedRuns {
    runs: Mutex<HashMap<String, mpsc::Sender<()>>>,
    /// One was registered since the last poll: its run may have entries that were there before.
    new: AtomicBool,
}

impl WatchedRuns {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, mpsc::Sender<()>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a run, and says whether it is the only one.
    fn register(&self, run: &str, notify: mpsc::Sender<()>) -> bool {
        let mut runs = self.lock();
        runs.insert(run.to_owned(), notify);
        // Behind it: a poll in between has not looked for it.
        self.new.store(true, Ordering::SeqCst);
        runs.len() == 1
    }
}

/// The watches of a store, and the thread that notifies them.
#[derive(Debug)]
pub(crate) struct InboxWatches {
    /// The state folder; `None` for a store that nobody else can write to.
    dir: Option<PathBuf>,
    watched: Arc<WatchedRuns>,
    poller: Mutex<Option<Poller>>,
}

#[derive(Debug)]
struct Poller {
    /// A run was registered; the thread ends when this is dropped.
    wake: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl InboxWatches {
    pub(crate) fn of(dir: Option<PathBuf>) -> Self {
        Self { dir, watched: Arc::default(), poller: Mutex::default() }
    }

    fn register(&self, run: &str) -> InboxWatch {
        let (notify, notified) = mpsc::channel(0);
        let Some(dir) = &self.dir else {
            return InboxWatch { notified, run: run.to_owned(), watched: None };
        };
        let only = self.watched.register(run, notify);
        let mut poller = self.poller.lock().unwrap_or_else(PoisonError::into_inner);
        if poller.is_none() {
            *poller = start(dir.clone(), Arc::clone(&self.watched));
        }
        // Where others are registered it polls anyway.
        if let Some(Poller { wake, .. }) = poller.as_ref().filter(|_| only) {
            // Full: it will poll at once.
            let _ = wake.try_send(());
        }
        InboxWatch { notified, run: run.to_owned(), watched: Some(Arc::clone(&self.watched)) }
    }
}

impl Drop for InboxWatches {
    fn drop(&mut self) {
        let poller = self.poller.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Poller { wake, thread }) = poller {
            drop(wake);
            // The panic hook has told of a panic there.
            let _ = thread.join();
        }
    }
}

/// Without the thread (a process that may have no more of them) a run takes its entries when it is driven next.
fn start(dir: PathBuf, watched: Arc<WatchedRuns>) -> Option<Poller> {
    let (wake, woken) = sync_channel(1);
    let run = move || poll(&dir, &watched, &woken);
    let thread = std::thread::Builder::new().name("selvedge-inbox".to_owned()).spawn(run).ok()?;
    Some(Poller { wake, thread })
}

/// The thread's loop: while runs are registered it polls, else it sleeps until one is.
fn poll(dir: &Path, watched: &WatchedRuns, woken: &Receiver<()>) {
    let mut conn = None;
    let mut seen = None;
    let mut pause = POLL;
    loop {
        let idle = watched.lock().is_empty();
        let mut waited = match idle {
            true => woken.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => woken.recv_timeout(pause),
        };
        if waited == Ok(()) {
            // A run that begins has more to do at once than to look for commands.
            waited = woken.recv_timeout(POLL);
        }
        if waited == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        if watched.new.swap(false, Ordering::SeqCst) {
            seen = None;
        }
        if conn.is_none() {
            // Versions are those of a connection.
            (conn, seen) = (open::read(dir).ok(), None);
        }
        pause = match conn.as_ref().map(|conn| notify(conn, watched, &mut seen)) {
            Some(Ok(())) => POLL,
            // A database that is gone or damaged is told of by who writes to it.
            Some(Err(_)) | None => {
                conn = None;
                RETRY
            }
        };
    }
}

/// Notifies the runs that have entries, if anything was written since `seen`.
fn notify(conn: &Connection, watched: &WatchedRuns, seen: &mut Option<i64>) -> rusqlite::Result<()> {
    let version: i64 = conn.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
    if seen.replace(version) == Some(version) {
        return Ok(());
    }
    let mut query = conn.prepare_cached(
        "SELECT DISTINCT r.id FROM inbox i JOIN runs r ON r.key = i.run WHERE i.reply IS NULL",
    )?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(notify) = watched.lock().get_mut(row.get_ref(0)?.as_str()?) {
            // Full: its driver has not looked yet, and will find all of them.
            let _ = notify.try_send(());
        }
    }
    Ok(())
}
