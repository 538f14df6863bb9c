//! Exactly one driver a run (C-12): an OS lock on `locks/<hash of the id>.lock` in the state folder.
//!
//! The lock belongs to the open file, so it ends with its process however that dies. A clean release removes the
//! file; a dead driver's file stays until the run is driven again. Between opening the file and locking it another
//! driver may have removed it, so a lock counts only if the path still leads to the locked file.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{BlobHash, StoreError};

/// Folder of the lock files in the state folder.
const LOCKS: &str = "locks";
/// How long a held lock is tried again: a test whether a run is driven holds it for an instant.
const PATIENCE: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(5);

/// Runs driven within this process, for stores in memory.
pub(crate) type Driven = Arc<Mutex<HashSet<String>>>;

/// The right to drive one run, until dropped.
#[derive(Debug)]
#[must_use = "the run is driven only as long as this value lives"]
pub struct DriverLock {
    held: Held,
}

#[derive(Debug)]
enum Held {
    File { file: File, path: PathBuf },
    Memory { run: String, driven: Driven },
}

impl DriverLock {
    /// Takes the lock of a run in the state folder `dir`.
    pub(crate) fn acquire(dir: &Path, run: &str) -> Result<Self, StoreError> {
        let path = lock_path(dir, run);
        let io = |error: &io::Error| StoreError::from_io(&path, error);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            let mut file = match open() {
                // The first lock of the folder.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir_all(dir.join(LOCKS)).and_then(|()| open())
                }
                file => file,
            }
            .map_err(|error| io(&error))?;
            match file.try_lock() {
                Ok(()) if leads_to(&path, &file) => {
                    // For messages only, so a full disk does not stop a run here.
                    let _ = file
                        .set_len(0)
                        .and_then(|()| file.write_all(format!("{}\n{run}\n", std::process::id()).as_bytes()));
                    return Ok(Self { held: Held::File { file, path } });
                }
                // The last driver has just removed the file: lock the new one.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(StoreError::Driven { run: run.to_owned(), pid: pid(&mut file) });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(io(&error)),
            }
        }
    }

    /// Takes the lock of a run of a store in memory.
    pub(crate) fn acquire_in_memory(driven: &Driven, run: &str) -> Result<Self, StoreError> {
        if !lock(driven).insert(run.to_owned()) {
            return Err(StoreError::Driven { run: run.to_owned(), pid: Some(std::process::id()) });
        }
        Ok(Self { held: Held::Memory { run: run.to_owned(), driven: Arc::clone(driven) } })
    }
}

impl Drop for DriverLock {
    fn drop(&mut self) {
        match &self.held {
            Held::File { file, path } => {
                // Nothing can be done about a failure here: the file stays, and the lock ends with the descriptor.
                if leads_to(path, file) {
                    let _ = fs::remove_file(path);
                }
                // A child process that is just being started may still share the descriptor: closing is not enough.
                let _ = file.unlock();
            }
            Held::Memory { run, driven } => {
                lock(driven).remove(run);
            }
        }
    }
}

/// True if a live process drives the run of the state folder `dir`.
pub(crate) fn is_driven(dir: &Path, run: &str) -> Result<bool, StoreError> {
    let path = lock_path(dir, run);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(StoreError::from_io(&path, &error)),
    };
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = file.unlock();
            Ok(false)
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(StoreError::from_io(&path, &error)),
    }
}

/// The process that wrote its number into a run's lock file.
pub(crate) fn driver(dir: &Path, run: &str) -> Option<u32> {
    pid(&mut File::open(lock_path(dir, run)).ok()?)
}

/// True if a run of a store in memory is driven.
pub(crate) fn is_driven_in_memory(driven: &Driven, run: &str) -> bool {
    lock(driven).contains(run)
}

fn lock(driven: &Driven) -> std::sync::MutexGuard<'_, HashSet<String>> {
    driven.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The id's hash makes a name that every file system takes, whatever the id.
fn lock_path(dir: &Path, run: &str) -> PathBuf {
    dir.join(LOCKS).join(format!("{}.lock", BlobHash::of(run.as_bytes())))
}

fn pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.lines().next()?.parse().ok()
}

/// True if `path` names the open `file`.
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
