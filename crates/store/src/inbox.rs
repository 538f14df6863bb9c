//! The inbox: what a process wants to say to a run that another one drives (E-43).
//!
//! A letter is a row. The driver takes it in the very transaction that makes durable what it led to, or that says why it was
//! refused: so it is taken once, whoever dies when. The bell rings for runs that have letters: one thread looks, while runs
//! are driven here, whether anybody has written to the database, which costs microseconds. There is nothing else to
//! find, wake or clean up; why it is so is in `docs/decisions/0025-inputs-while-driven.md`.

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

/// How often the bell looks for letters: less than a person notices.
const LOOK: Duration = Duration::from_millis(20);
/// How long what became of a letter is kept for its sender, who asks at once unless he has died. In milliseconds.
const KEPT_MS: i64 = 3_600_000;
/// How long it waits after a look that failed.
const TROUBLE: Duration = Duration::from_secs(1);

/// What somebody wants to say to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Its id, which its sender chose: a letter of an id that is there already is the same letter.
    pub id: String,
    /// The run it is for.
    pub run: String,
    /// When it was written, in milliseconds since 1970 (UTC).
    pub at_ms: i64,
    /// What it says. Anybody who may write the database may have written anything.
    pub body: String,
}

/// What became of a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The letter's id.
    pub id: String,
    /// What its sender is told.
    pub reply: String,
}

impl Store {
    /// Puts a letter into the inbox. Fails with [`StoreError::UnknownRun`] if there is no such run.
    pub fn post(&self, letter: Letter) -> Commit {
        self.send(Request::post(letter))
    }

    /// Takes a letter out of the inbox, whatever became of it.
    pub fn discard(&self, id: &str) -> Commit {
        self.send(Request::discard(id.to_owned()))
    }

    /// What became of a letter: `None` while nobody has taken it, and of one that is not there.
    pub fn settled(&self, id: &str) -> Result<Option<String>, StoreError> {
        self.inner().read(|conn| {
            conn.prepare_cached("SELECT reply FROM inbox WHERE id = ?1")
                .and_then(|mut query| query.query_row([id], |row| row.get(0)).optional())
                .map(Option::flatten)
                .map_err(|error| self.inner().sql(&error))
        })
    }

    /// The letters to a run that nobody has taken yet, the oldest first, at most so many.
    pub fn letters(&self, run: &str, most: u32) -> Result<Vec<Letter>, StoreError> {
        self.inner().read(|conn| {
            let (key, _) = index::known_key(conn, self.inner().db(), run)?;
            let sql = |error| self.inner().sql(&error);
            let mut query = conn
                .prepare_cached(
                    "SELECT id, at_ms, CAST(body AS BLOB) FROM inbox WHERE run = ?1 AND reply IS NULL ORDER BY at_ms, id LIMIT ?2",
                )
                .map_err(sql)?;
            let letter = |row: &rusqlite::Row<'_>| {
                let body: Vec<u8> = row.get(2)?;
                let body = String::from_utf8_lossy(&body).into_owned();
                Ok(Letter { id: row.get(0)?, run: run.to_owned(), at_ms: row.get(1)?, body })
            };
            query.query_map((key, most), letter).and_then(Iterator::collect).map_err(sql)
        })
    }

    /// Rings when there are letters for a run, until it is dropped: also for those that are there already, and perhaps
    /// once more than need be.
    pub fn bell(&self, run: &str) -> Bell {
        self.inner().bells().hang(run)
    }
}

/// Adds a letter; one that is there stays as it is.
pub(crate) fn insert(conn: &Connection, db: &Path, letter: &Letter) -> Result<(), StoreError> {
    let (key, _) = index::known_key(conn, db, &letter.run)?;
    conn.prepare_cached("DELETE FROM inbox WHERE reply IS NOT NULL AND at_ms < ?1")
        .and_then(|mut delete| delete.execute([letter.at_ms.saturating_sub(KEPT_MS)]))
        .map_err(|error| StoreError::from_sqlite(db, &error))?;
    conn.prepare_cached("INSERT OR IGNORE INTO inbox (id, run, at_ms, body) VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut insert| insert.execute((&letter.id, key, letter.at_ms, &letter.body)))
        .map(drop)
        .map_err(|error| StoreError::from_sqlite(db, &error))
}

/// Removes a letter.
pub(crate) fn delete(conn: &Connection, id: &str) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM inbox WHERE id = ?1")?.execute([id]).map(drop)
}

/// Notes what became of letters. One that its sender has taken back is gone.
pub(crate) fn settle(conn: &Connection, settled: &[Settled]) -> rusqlite::Result<()> {
    for Settled { id, reply } in settled {
        conn.prepare_cached("UPDATE inbox SET reply = ?2 WHERE id = ?1 AND reply IS NULL")?
            .execute((id, reply))?;
    }
    Ok(())
}

/// Rings for one run.
#[derive(Debug)]
pub struct Bell {
    rung: mpsc::Receiver<()>,
    run: String,
    bells: Option<Arc<Hung>>,
}

impl Bell {
    /// Waits until there may be letters. May be dropped and called again at any time.
    pub async fn rung(&mut self) {
        // A bell of a store in memory, or whose thread is gone, never rings.
        if self.rung.next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        if let Some(bells) = &self.bells {
            bells.lock().remove(&self.run);
        }
    }
}

/// The bells that hang, by run: a run has one driver, and so one bell.
#[derive(Debug, Default)]
struct Hung {
    bells: Mutex<HashMap<String, mpsc::Sender<()>>>,
    /// One was hung since the last look: its run may have letters that were there before.
    new: AtomicBool,
}

impl Hung {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, mpsc::Sender<()>>> {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hangs a bell, and says whether it is the only one.
    fn hang(&self, run: &str, ring: mpsc::Sender<()>) -> bool {
        let mut bells = self.lock();
        bells.insert(run.to_owned(), ring);
        // Behind it: a look in between has not looked for it.
        self.new.store(true, Ordering::SeqCst);
        bells.len() == 1
    }
}

/// The bells of a store.
#[derive(Debug)]
pub(crate) struct Bells {
    /// The state folder; `None` for a store that nobody else can write to.
    dir: Option<PathBuf>,
    hung: Arc<Hung>,
    thread: Mutex<Option<Looking>>,
}

#[derive(Debug)]
struct Looking {
    /// A bell was hung; the thread ends when this is dropped.
    wake: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Bells {
    pub(crate) fn of(dir: Option<PathBuf>) -> Self {
        Self { dir, hung: Arc::default(), thread: Mutex::default() }
    }

    fn hang(&self, run: &str) -> Bell {
        let (ring, rung) = mpsc::channel(0);
        let Some(dir) = &self.dir else { return Bell { rung, run: run.to_owned(), bells: None } };
        let only = self.hung.hang(run, ring);
        let mut looking = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if looking.is_none() {
            *looking = start(dir.clone(), Arc::clone(&self.hung));
        }
        // Where others hang it looks anyway.
        if let Some(Looking { wake, .. }) = looking.as_ref().filter(|_| only) {
            // Full: it will look at once.
            let _ = wake.try_send(());
        }
        Bell { rung, run: run.to_owned(), bells: Some(Arc::clone(&self.hung)) }
    }
}

impl Drop for Bells {
    fn drop(&mut self) {
        let looking = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Looking { wake, thread }) = looking {
            drop(wake);
            // The panic hook has told of a panic there.
            let _ = thread.join();
        }
    }
}

/// Without the thread (a process that may have no more of them) a run takes its letters when it is driven next.
fn start(dir: PathBuf, hung: Arc<Hung>) -> Option<Looking> {
    let (wake, woken) = sync_channel(1);
    let look = move || look(&dir, &hung, &woken);
    let thread = std::thread::Builder::new().name("selvedge-inbox".to_owned()).spawn(look).ok()?;
    Some(Looking { wake, thread })
}

/// The thread's loop: while bells hang it looks, else it sleeps until one is hung.
fn look(dir: &Path, hung: &Hung, woken: &Receiver<()>) {
    let mut conn = None;
    let mut seen = None;
    let mut pause = LOOK;
    loop {
        let idle = hung.lock().is_empty();
        let waited = match idle {
            true => woken.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => woken.recv_timeout(pause),
        };
        if waited == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        if hung.new.swap(false, Ordering::SeqCst) {
            seen = None;
        }
        if conn.is_none() {
            conn = open::read(dir).ok();
        }
        let rung = conn.as_ref().map(|conn| ring(conn, hung, &mut seen));
        pause = match rung {
            Some(Ok(())) => LOOK,
            // A database that is gone or damaged is told of by who writes to it.
            Some(Err(_)) | None => {
                conn = None;
                TROUBLE
            }
        };
    }
}

/// Rings for the runs that have letters, if anything was written since `seen`.
fn ring(conn: &Connection, hung: &Hung, seen: &mut Option<i64>) -> rusqlite::Result<()> {
    let version: i64 = conn.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
    if seen.replace(version) == Some(version) {
        return Ok(());
    }
    let mut query = conn.prepare_cached(
        "SELECT DISTINCT r.id FROM inbox i JOIN runs r ON r.key = i.run WHERE i.reply IS NULL",
    )?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(ring) = hung.lock().get_mut(row.get_ref(0)?.as_str()?) {
            // Full: it has not listened yet, and will find all of them.
            let _ = ring.try_send(());
        }
    }
    Ok(())
}
