//! Locks of ranges of bytes in a few files that stay, `locks/00` to `locks/63`, of which nothing is ever written (Linux).
//!
//! A run has a stretch of one of the files, by the hash of its id. Its driver locks as many bytes of the stretch, from its
//! beginning, as its process's number says: whoever asks the system for the lock is told that number with it. The locks belong
//! to the open file (`F_OFD_SETLK`), of which each store has its own. So two stores of a process keep each other out, and
//! closing a file that somebody only looked at frees nothing.
//!
//! The ids of 10,000 runs have two of one stretch in one case of a million; the second of the two would be told that it is driven.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use super::{Holder, leads_to, lock, open, open_to_look};
use crate::{BlobHash, StoreError};

/// The system looks through all locks of a file to take one: so there are several files.
const FILES: u64 = 64;
/// Numbers of processes are below 2²² (`PID_MAX_LIMIT`), and no stretch touches the lock before it: those would be made one.
const STRETCH: i64 = 1 << 22;
/// Offsets are below 2⁶³.
const STRETCHES: u64 = 1 << 41;

/// The lock files of a state folder, as one store has them open.
#[derive(Debug)]
pub(super) struct LockFiles {
    dir: PathBuf,
    open: Mutex<HashMap<u64, Arc<File>>>,
}

/// A lock that is held, until dropped.
#[derive(Debug)]
pub(super) struct Claim {
    file: Arc<File>,
    start: i64,
    bytes: i64,
}

/// Where a run's lock is.
struct Stretch {
    number: u64,
    path: PathBuf,
    start: i64,
}

impl Stretch {
    fn of(dir: &Path, run: &str) -> Self {
        let hash = BlobHash::of(run.as_bytes());
        let hash = hash.as_bytes().iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte));
        let number = hash % FILES;
        let start = (hash / FILES % STRETCHES).cast_signed() * STRETCH;
        Self { number, path: dir.join(format!("{number:02}")), start }
    }
}

impl LockFiles {
    pub(super) fn of(dir: PathBuf) -> Self {
        Self { dir, open: Mutex::default() }
    }

    /// Takes the lock of a run; `None` if another open file has it.
    pub(super) fn take(&self, run: &str) -> Result<Option<Claim>, StoreError> {
        let Stretch { number, path, start } = Stretch::of(&self.dir, run);
        loop {
            let file = self.file(number, &path)?;
            let bytes = i64::from(std::process::id()).clamp(1, STRETCH - 1);
            let locked = fcntl(&file, FcntlArg::F_OFD_SETLK(&flock(libc::F_WRLCK, start, bytes)));
            let claim = locked.map(|_| Claim { file: Arc::clone(&file), start, bytes });
            // What leads nowhere keeps nobody out: somebody has removed the file.
            if !leads_to(&path, &file) {
                lock(&self.open).remove(&number);
                continue;
            }
            return match claim {
                Ok(claim) => Ok(Some(claim)),
                Err(Errno::EAGAIN | Errno::EACCES) => Ok(None),
                Err(error) => Err(StoreError::from_io(&path, &error.into())),
            };
        }
    }

    /// Who has the lock of a run. Nothing is taken for that, not for a moment, and nothing is written.
    pub(super) fn holder(&self, run: &str) -> Result<Option<Holder>, StoreError> {
        let Stretch { path, start, .. } = Stretch::of(&self.dir, run);
        let Some(file) = open_to_look(&path)? else { return Ok(None) };
        let mut found = flock(libc::F_WRLCK, start, STRETCH);
        fcntl(&file, FcntlArg::F_OFD_GETLK(&mut found))
            .map_err(|error| StoreError::from_io(&path, &io::Error::from(error)))?;
        let held = i32::from(found.l_type) != libc::F_UNLCK;
        Ok(held.then(|| Holder { pid: u32::try_from(found.l_len).ok() }))
    }

    fn file(&self, number: u64, path: &Path) -> Result<Arc<File>, StoreError> {
        let mut files = lock(&self.open);
        if let Some(file) = files.get(&number) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(open(path)?);
        files.insert(number, Arc::clone(&file));
        Ok(file)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // A failure leaves the lock to the end of the store, or of the process: there is nothing to be done about it here.
        let _ = fcntl(&self.file, FcntlArg::F_OFD_SETLK(&flock(libc::F_UNLCK, self.start, self.bytes)));
    }
}

/// A range of bytes. `F_WRLCK`, `F_UNLCK` and `SEEK_SET` are 0 to 2.
fn flock(kind: i32, start: i64, bytes: i64) -> libc::flock {
    libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: start,
        l_len: bytes,
        l_pid: 0,
    }
}
