//! A lock file for each run that is driven, `locks/<hash of the id>.lock`, where there are no locks of ranges that belong to an open file.
//!
//! A clean release removes the file; a dead driver's file stays until the run is driven again. Between opening the file
//! and locking it another driver may have removed it, so a lock counts only if the path still leads to the locked file.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::PathBuf;

use super::{Holder, leads_to, open, open_to_look};
use crate::{BlobHash, StoreError};

/// The lock files of a state folder.
#[derive(Debug)]
pub(super) struct LockFiles {
    dir: PathBuf,
}

/// A lock that is held, until dropped.
#[derive(Debug)]
pub(super) struct Claim {
    file: File,
    path: PathBuf,
}

impl LockFiles {
    pub(super) fn of(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Takes the lock of a run; `None` if another driver has it, or somebody looks at it.
    pub(super) fn take(&self, run: &str) -> Result<Option<Claim>, StoreError> {
        let path = self.path(run);
        let mut file = open(&path)?;
        match file.try_lock() {
            Ok(()) if leads_to(&path, &file) => {
                // For messages only, so a full disk does not stop a run here.
                let _ =
                    file.set_len(0).and_then(|()| file.write_all(std::process::id().to_string().as_bytes()));
                Ok(Some(Claim { file, path }))
            }
            // The last driver has just removed the file.
            Ok(()) | Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(StoreError::from_io(&path, &error)),
        }
    }

    /// Who has the lock of a run.
    pub(super) fn holder(&self, run: &str) -> Result<Option<Holder>, StoreError> {
        let path = self.path(run);
        let Some(mut file) = open_to_look(&path)? else { return Ok(None) };
        match file.try_lock_shared() {
            Ok(()) => {
                let _ = file.unlock();
                Ok(None)
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                Ok(Some(Holder { pid: file.read_to_string(&mut text).ok().and_then(|_| text.parse().ok()) }))
            }
            Err(TryLockError::Error(error)) => Err(StoreError::from_io(&path, &error)),
        }
    }

    /// The id's hash makes a name that every file system takes, whatever the id.
    fn path(&self, run: &str) -> PathBuf {
        self.dir.join(format!("{}.lock", BlobHash::of(run.as_bytes())))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Nothing can be done about a failure here: the file stays, and the lock ends with the descriptor.
        if leads_to(&self.path, &self.file) {
            let _ = fs::remove_file(&self.path);
        }
        // A child process that is just being started may still share the descriptor: closing is not enough.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_one_driver_and_a_clean_release_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let (files, others) =
            (LockFiles::of(dir.path().join("locks")), LockFiles::of(dir.path().join("locks")));
        assert_eq!(files.holder("r").unwrap(), None);
        let claim = files.take("r").unwrap().unwrap();
        assert!(others.take("r").unwrap().is_none());
        assert_eq!(others.holder("r").unwrap(), Some(Holder { pid: Some(std::process::id()) }));
        let unrelated = others.take("../q\0").unwrap().unwrap();
        drop(claim);
        assert_eq!(others.holder("r").unwrap(), None);
        drop((others.take("r").unwrap().unwrap(), unrelated));
        assert_eq!(fs::read_dir(dir.path().join("locks")).unwrap().count(), 0);
    }
}
