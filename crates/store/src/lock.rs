//! Exactly one driver a run (C-12).
//!
//! Within a store a set says which runs are driven. Between stores, of this process or of others, the system's locks on files
//! in the state folder do, which end with their process however that dies: [`os`].

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::StoreError;

#[cfg(any(test, not(all(target_os = "linux", target_pointer_width = "64"))))]
mod files;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod ranges;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
use files as os;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
use ranges as os;

/// Folder of the lock files in the state folder.
const LOCKS: &str = "locks";
/// How long a lock that is held is tried again: what a process that was killed had just forked holds its files for a moment more.
const PATIENCE: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(5);

/// Ids of the runs that are driven through one store.
type Driven = Arc<Mutex<HashSet<String>>>;

/// The locks of a store.
#[derive(Debug)]
pub(crate) struct Locks {
    driven: Driven,
    /// `None` for a store in memory, which nobody else can open.
    files: Option<os::LockFiles>,
}

/// Who drives a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The number of the process, where known.
    pub(crate) pid: Option<u32>,
}

/// The right to drive one run, until dropped.
#[derive(Debug)]
#[must_use = "the run is driven only as long as this value lives"]
pub struct DriverLock {
    run: String,
    driven: Driven,
    claim: Option<os::Claim>,
}

impl Drop for DriverLock {
    fn drop(&mut self) {
        // In this order: who finds the run free in the set must find it free in the file.
        drop(self.claim.take());
        lock(&self.driven).remove(&self.run);
    }
}

impl Locks {
    /// Of the state folder `dir`, or of a store in memory.
    pub(crate) fn of(dir: Option<&Path>) -> Self {
        Self { driven: Driven::default(), files: dir.map(|dir| os::LockFiles::of(dir.join(LOCKS))) }
    }

    /// Takes the lock of a run.
    pub(crate) fn acquire(&self, run: &str) -> Result<DriverLock, StoreError> {
        let driven = || {
            let pid = self.holder(run).ok().flatten().and_then(|holder| holder.pid);
            Err(StoreError::Driven { run: run.to_owned(), pid })
        };
        if !lock(&self.driven).insert(run.to_owned()) {
            return driven();
        }
        let mut taken = DriverLock { run: run.to_owned(), driven: Arc::clone(&self.driven), claim: None };
        let Some(files) = &self.files else { return Ok(taken) };
        let deadline = Instant::now() + PATIENCE;
        loop {
            taken.claim = files.take(run)?;
            match taken.claim {
                Some(_) => return Ok(taken),
                None if Instant::now() >= deadline => return driven(),
                None => std::thread::sleep(PAUSE),
            }
        }
    }

    /// The live process that drives a run.
    pub(crate) fn holder(&self, run: &str) -> Result<Option<Holder>, StoreError> {
        match &self.files {
            Some(files) => files.holder(run),
            None => {
                let driven = lock(&self.driven).contains(run);
                Ok(driven.then(|| Holder { pid: Some(std::process::id()) }))
            }
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if `path` names the open `file`: somebody may have removed it.
#[cfg(unix)]
fn leads_to(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (fs::metadata(path), file.metadata()) {
        (Ok(named), Ok(open)) => named.dev() == open.dev() && named.ino() == open.ino(),
        _ => false,
    }
}

/// Elsewhere a file that is open cannot be removed, so the path cannot lead to another one.
#[cfg(not(unix))]
fn leads_to(path: &Path, _file: &File) -> bool {
    path.exists()
}

/// Opens a lock file, which comes into being with its first lock, as its folder does.
fn open(path: &Path) -> Result<File, StoreError> {
    let open = || fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    match open() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| open())
        }
        file => file,
    }
    .map_err(|error| StoreError::from_io(path, &error))
}

/// Opens a lock file to look at its locks; `None` if there is none.
fn open_to_look(path: &Path) -> Result<Option<File>, StoreError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::from_io(path, &error)),
    }
}
