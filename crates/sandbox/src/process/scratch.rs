//! Folders that belong to one call.

#[cfg(target_os = "linux")]
mod remove;

use crate::policy::Policy;
#[cfg(target_os = "linux")]
use remove::remove;
use rustix::fs::{CWD, Mode, OFlags};
#[cfg(not(target_os = "linux"))]
use std::fs::remove_dir_all as remove;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What the names of our folders begin with; [`RANDOM`] letters and digits follow.
const CALL: &str = "selvedge-call-";
const WARM: &str = "selvedge-warm-";
const RANDOM: usize = 6;
/// How often another name is tried.
const TRIES: usize = 10;

/// A folder in a place that others use too, removed when dropped. It is locked as long as its process lives, however that
/// ends: what a killed process left behind is removed by the next one that makes a folder there.
#[derive(Debug)]
pub(crate) struct Own {
    dir: tempfile::TempDir,
    /// Open until the folder is gone. `None` within a folder that has one, and where folders can't be locked: there they
    /// are not removed for others either.
    _lock: Option<File>,
}

impl Own {
    /// A folder for the calls of a warm interpreter.
    pub(crate) fn warm(root: &Path) -> io::Result<Self> {
        Self::new(root, WARM)
    }

    fn new(root: &Path, prefix: &str) -> io::Result<Self> {
        let mut tries = 0;
        loop {
            let dir = tempfile::Builder::new().prefix(prefix).rand_bytes(RANDOM).tempdir_in(root)?;
            tries += 1;
            match locked(dir.path()) {
                Ok(lock) => return Ok(Self { dir, _lock: Some(lock) }),
                // Between being made and being locked it looked like one that was left behind.
                Err(e) if is_taken(&e) && tries < TRIES => {}
                Err(e) if is_taken(&e) => return Err(e),
                Err(_) => return Ok(Self { dir, _lock: None }),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // What can't be removed stays, and is tried again by the next process.
        let _ = remove(self.dir.path());
        self.dir.disable_cleanup(true);
    }
}

pub(super) fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotFound)
}

/// The lock of a folder, if nobody has it and the folder is still there.
pub(super) fn locked(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = File::from(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
    folder.try_lock().map_err(|e| match e {
        TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
        TryLockError::Error(e) => e,
    })?;
    let (there, ours) = (std::fs::symlink_metadata(path)?, folder.metadata()?);
    match (there.ino(), there.dev()) == (ours.ino(), ours.dev()) {
        true => Ok(folder),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Removes what killed processes left in `root`, once a process: files of calls can be large.
pub(crate) fn sweep(root: &Path) {
    static SWEPT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    {
        let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.iter().any(|other| other == root) {
            return;
        }
        swept.push(root.to_owned());
    }
    remove_left(root);
}

fn remove_left(root: &Path) {
    let ours = |name: &str| {
        let random = [CALL, WARM].iter().find_map(|prefix| name.strip_prefix(prefix));
        random.is_some_and(|end| end.len() == RANDOM && end.bytes().all(|b| b.is_ascii_alphanumeric()))
    };
    for entry in std::fs::read_dir(root).into_iter().flatten().filter_map(Result::ok) {
        if !entry.file_name().to_str().is_some_and(ours) {
            continue;
        }
        // Of another user, of a living process, or gone by now.
        let Ok(_lock) = locked(&entry.path()) else { continue };
        // What can't be removed stays, as if nobody had looked.
        let _ = remove(&entry.path());
    }
}

/// A fresh folder of one call, removed when dropped.
#[derive(Debug)]
pub struct Scratch(Option<Own>, PathBuf);

impl Scratch {
    /// Makes a scratch folder, readable by its owner only, under `root`.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub async fn new(root: PathBuf) -> io::Result<Self> {
        // Nobody waits for it.
        let at = root.clone();
        drop(tokio::task::spawn_blocking(move || sweep(&at)));
        let made = tokio::task::spawn_blocking(move || Own::new(&root, CALL));
        let own = made.await.map_err(io::Error::other)??;
        let path = own.path().to_owned();
        Ok(Self(Some(own), path))
    }

    /// The same in a folder of ours, such as that of a warm interpreter.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub(crate) async fn within(folder: PathBuf) -> io::Result<Self> {
        let make = move || tempfile::Builder::new().prefix("call-").tempdir_in(folder);
        let dir = tokio::task::spawn_blocking(make).await.map_err(io::Error::other)??;
        let path = dir.path().to_owned();
        Ok(Self(Some(Own { dir, _lock: None }), path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.1
    }
}

/// Where scratch folders of a policy are made: the folder asked for, or the `usual` one for such, unless it lies in what
/// the policy grants, where calls would see each other's.
pub fn scratch_root(asked_for: Option<PathBuf>, usual: PathBuf, policy: &Policy) -> PathBuf {
    if let Some(root) = asked_for {
        return root;
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let granted: Vec<&PathBuf> = policy.read.iter().chain(&policy.write).map(|grant| &grant.real).collect();
    let apart = |root: &PathBuf| {
        let root = real(root);
        root.is_dir() && !granted.iter().any(|path| root.starts_with(path))
    };
    [usual.clone(), "/var/tmp".into()].into_iter().find(apart).unwrap_or(usual)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(dir) = self.0.take() {
            match tokio::runtime::Handle::try_current() {
                // Removing many files takes time; a closure that never runs still drops the folder.
                Ok(handle) => drop(handle.spawn_blocking(move || drop(dir))),
                Err(_) => drop(dir),
            }
        }
    }
}

#[cfg(test)]
mod tests;
