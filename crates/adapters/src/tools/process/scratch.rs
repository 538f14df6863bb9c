//! Folders that belong to one call.

use super::Policy;
use std::io;
use std::path::{Path, PathBuf};

/// A fresh folder of one call, removed when dropped.
#[derive(Debug)]
pub struct Scratch(Option<tempfile::TempDir>, PathBuf);

impl Scratch {
    /// Makes a scratch folder, readable by its owner only, under `root` or the system's folder for such.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub async fn new(root: Option<PathBuf>) -> io::Result<Self> {
        let made = tokio::task::spawn_blocking(move || {
            let root = root.unwrap_or_else(std::env::temp_dir);
            tempfile::Builder::new().prefix("selvedge-").tempdir_in(root)
        });
        let dir = made.await.map_err(io::Error::other)??;
        let path = dir.path().to_owned();
        Ok(Self(Some(dir), path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.1
    }
}

/// Where scratch folders of a policy are made: the folder asked for, or the system's for such, unless it lies in what
/// the policy grants, where calls would see each other's.
pub(crate) fn scratch_root(asked_for: Option<PathBuf>, policy: &Policy) -> PathBuf {
    let usual = std::env::temp_dir;
    if let Some(root) = asked_for {
        return root;
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let granted: Vec<PathBuf> = policy.read.iter().chain(&policy.write).map(|path| real(path)).collect();
    let apart = |root: &PathBuf| {
        let root = real(root);
        root.is_dir() && !granted.iter().any(|path| root.starts_with(path))
    };
    [usual(), "/var/tmp".into()].into_iter().find(apart).unwrap_or_else(usual)
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
