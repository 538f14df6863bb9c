//! Whether the database is still where it was opened (E-44). A file that was deleted or moved away can be written for as
//! long as it is open, and nobody would ever find what is in it.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::StoreError;

/// What tells a file from all others of the machine.
type Id = (u64, u64);

/// The place of an open database.
#[derive(Debug)]
pub(crate) struct Place {
    /// The database and its log, each as it was found first.
    files: [(PathBuf, Option<Id>); 2],
}

impl Place {
    /// The place of a database that has just been opened.
    pub(crate) fn of(db: &Path) -> Self {
        let mut log = db.as_os_str().to_owned();
        log.push("-wal");
        let log = PathBuf::from(log);
        let known = |path: PathBuf| {
            let id = id(&path);
            (path, id)
        };
        Self { files: [known(db.to_owned()), known(log)] }
    }

    /// Fails unless the database and its log are what they were, and begin with what such files begin with. The log may
    /// have come into being since.
    pub(crate) fn check(&mut self) -> Result<(), StoreError> {
        for (path, known) in &mut self.files {
            let now = id(path);
            match known {
                Some(known) if now != Some(*known) => {
                    return Err(StoreError::Vanished { path: path.clone(), now: whereabouts(*known, path) });
                }
                Some(_) => {}
                None => *known = now,
            }
        }
        let [(db, _), (log, _)] = &self.files;
        // A database always has a first page; a log is empty, or has been overwritten from its beginning.
        let emptied = fs::metadata(db).is_ok_and(|meta| meta.len() == 0);
        if emptied || begins_with_nothing(log) {
            let path = if emptied { db } else { log };
            return Err(StoreError::Emptied { path: path.clone() });
        }
        Ok(())
    }
}

/// Whether a log that was cut off has been written behind the hole: what it has then is never found again. Opening and closing
/// the log drops no lock, as SQLite has them on other files.
fn begins_with_nothing(log: &Path) -> bool {
    let mut first = [1; 4];
    let read = fs::File::open(log).and_then(|mut log| log.read_exact(&mut first));
    read.is_ok() && first == [0; 4]
}

#[cfg(unix)]
fn id(path: &Path) -> Option<Id> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Elsewhere a file that is open can be neither deleted nor moved.
#[cfg(not(unix))]
fn id(path: &Path) -> Option<Id> {
    path.exists().then_some((0, 0))
}

/// The name that an open file has now, where the system tells.
fn whereabouts(known: Id, was: &Path) -> Option<PathBuf> {
    let open = fs::read_dir("/proc/self/fd").ok()?;
    let names = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    // The name of a deleted file leads to none, or to another one.
    names.into_iter().find(|name| name != was && id(name) == Some(known))
}
