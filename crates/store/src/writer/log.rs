//! SQLite's write-ahead log: kept short, and made longer before it is written to.
//!
//! Syncing bytes that overwrite others takes about half the time of syncing a file that grows, since the file system then has
//! no new blocks to note down. So the log is moved into the database when it has [`PAGES`] pages, behind which the next commit
//! begins at its start again; and on its way there it does not grow by a commit, but by as much as it has, of zeros. They
//! are no part of it until SQLite has overwritten them: it takes a log to end before the first page without the log's salt.

use std::ffi::c_int;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

/// Pages of the log (under 2 MiB) from which on it is moved into the database. A commit writes one at least, the journal's
/// last page.
const PAGES: u32 = 480;
/// Bytes of a page in the log.
const PAGE: u64 = 4096 + 24;
/// By how many pages it is made longer, at least and at most.
const MORE: (u32, u32) = (8, 128);
/// Pages that there is to be room for: most commits write fewer.
const ROOM: u32 = 8;

/// The log of the writer's connection.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// Pages that it has, as SQLite says with each commit.
    pages: Arc<AtomicU32>,
    /// Those it had at the commit before.
    before: u32,
    /// From how many on it is moved.
    limit: u32,
    /// Pages that the file has room for.
    room: u32,
}

impl Log {
    /// Takes the place of SQLite's own checkpoints, which would run before a commit is answered.
    pub(super) fn of(conn: &mut Connection, db: &Path) -> rusqlite::Result<Self> {
        let mut path = db.as_os_str().to_owned();
        path.push("-wal");
        let pages = Arc::new(AtomicU32::new(0));
        let now = Arc::clone(&pages);
        conn.wal_hook(Some(move |_: &mut Wal, pages: c_int| {
            now.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { path: path.into(), pages, before: 0, limit: PAGES, room: 0 })
    }

    /// To be called behind each commit, once it is answered.
    pub(super) fn tend(&mut self, conn: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.before {
            // It was begun anew.
            self.limit = PAGES;
        }
        if pages >= self.limit {
            checkpoint(conn);
            // As long as somebody reads the log it can't begin anew and grows on.
            self.limit = pages + PAGES;
        } else if self.before > 0 && pages + ROOM > self.room {
            // Not behind a process's first commit: its second one would sync all of that before a run's first request goes out.
            self.room = pages + pages.clamp(MORE.0, MORE.1);
            // Whoever writes next makes it longer then, or finds out why that can't be.
            let _ = lengthen(&self.path, u64::from(self.room) * PAGE);
        }
        self.before = pages;
    }
}

/// Moves the log into the database as far as nobody reads it. A failure (a full disk) changes nothing: the log still
/// holds what was committed.
fn checkpoint(conn: &Connection) {
    let _ = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
}

/// Appends zeros until a file that is not empty has so many bytes. Other processes may write to it at the same moment: what is
/// appended begins behind all that they have written, and they overwrite it.
fn lengthen(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    match file.metadata()?.len() {
        // Somebody has emptied it, which is found, and not to be hidden (E-44).
        0 => Ok(()),
        length => file.write_all(&vec![0; usize::try_from(bytes.saturating_sub(length)).unwrap_or(0)]),
    }
}
