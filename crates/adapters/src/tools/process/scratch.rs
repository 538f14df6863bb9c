//! Folders that belong to one call.

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
