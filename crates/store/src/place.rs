//! Whether the database is still where it was opened (E-44). A file that was deleted or moved away can be written for as
//! long as it is open, and nobody would ever find what is in it.

use std::fs;
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

    /// Fails unless the database and its log are what they were. The log may have come into being since.
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
        Ok(())
    }
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
