//! What is known about versions of tool files, so that a warm start asks no interpreter.
//!
//! It lies in a few files, each with the metadata of many versions. A file is named by its content, written whole and
//! never changed: processes that write at the same time lose nothing of each other's. When there are many, they are
//! put together into one. It is only a cache: what can't be read or written is found again.

use crate::python::Metadata;
use crate::store::sha256;
use selvedge_sandbox::files::write_whole;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Changes when what is kept about a version changes its meaning.
const FORMAT: u32 = 4;
/// From so many files on, they are put together.
const FILES: usize = 8;
/// With more versions than these, only those stay that this process has asked for.
const VERSIONS: usize = 20_000;
/// How often the folder is read again, should another process put files together at that moment.
const TRIES: u32 = 3;

/// What a file of the index holds.
#[derive(Serialize, Deserialize)]
struct Part<M> {
    format: u32,
    versions: BTreeMap<String, M>,
}

/// What is known about versions.
#[derive(Debug)]
pub(crate) struct Index {
    folder: PathBuf,
    known: OnceLock<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    versions: HashMap<String, Entry>,
    /// The files that all this was read from, by name.
    files: Vec<PathBuf>,
}

#[derive(Debug)]
struct Entry {
    metadata: Arc<Metadata>,
    used: bool,
}

impl Index {
    /// The index of a cache of tools; it is read when it is first asked.
    pub(crate) fn new(cache: &Path) -> Self {
        Self { folder: cache.join("index"), known: OnceLock::new() }
    }

    /// What the file with this version says about itself, if that is known.
    pub(crate) fn get(&self, version: &str) -> Option<Arc<Metadata>> {
        let mut known = self.known();
        let entry = known.versions.get_mut(version)?;
        entry.used = true;
        Some(Arc::clone(&entry.metadata))
    }

    /// Keeps what was found out about some versions.
    pub(crate) fn add(&self, found: Vec<(String, Arc<Metadata>)>) {
        if found.is_empty() {
            return;
        }
        let mut known = self.known();
        let fresh: Vec<String> = found.iter().map(|(version, _)| version.clone()).collect();
        known
            .versions
            .extend(found.into_iter().map(|(version, metadata)| (version, Entry { metadata, used: true })));
        if known.files.len() < FILES {
            let entries = fresh.iter().filter_map(|version| known.versions.get_key_value(version));
            let Some(file) = self.write(entries) else { return };
            known.files.push(file);
            return;
        }
        if known.versions.len() > VERSIONS {
            known.versions.retain(|_, entry| entry.used);
        }
        let Some(file) = self.write(known.versions.iter()) else { return };
        for old in std::mem::replace(&mut known.files, vec![file.clone()]) {
            if old != file {
                // Another process may have been first.
                let _ = std::fs::remove_file(old);
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        let known = self.known.get_or_init(|| Mutex::new(Known::read(&self.folder)));
        known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a file, by the name of its content.
    fn write<'a>(&self, entries: impl Iterator<Item = (&'a String, &'a Entry)>) -> Option<PathBuf> {
        let versions = entries.map(|(version, entry)| (version.clone(), &*entry.metadata)).collect();
        let bytes = serde_json::to_vec(&Part { format: FORMAT, versions }).ok()?;
        let file = self.folder.join(format!("{}.json", sha256(&bytes)));
        write_whole(&file, &bytes).ok().map(|()| file)
    }
}

impl Known {
    /// All files of a folder. One that goes while they are read has become part of another one.
    fn read(folder: &Path) -> Self {
        for _ in 0..TRIES {
            if let Some(known) = Self::read_once(folder) {
                return known;
            }
        }
        Self::default()
    }

    /// `None` if a file has gone.
    fn read_once(folder: &Path) -> Option<Self> {
        let mut known = Self::default();
        let Ok(entries) = std::fs::read_dir(folder) else { return Some(known) };
        let files = entries.flatten().map(|entry| entry.path());
        for file in files.filter(|path| path.extension().is_some_and(|end| end == "json")) {
            let ours = match std::fs::read(&file) {
                Ok(bytes) => known.take(&bytes),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
                Err(_) => false,
            };
            if ours {
                known.files.push(file);
            }
        }
        Some(known)
    }

    /// Whether the file is one of this format, or was cut off by a crash.
    fn take(&mut self, bytes: &[u8]) -> bool {
        let Ok(part) = serde_json::from_slice::<Part<Arc<Metadata>>>(bytes) else {
            return serde_json::from_slice::<IgnoredAny>(bytes).is_err();
        };
        if part.format == FORMAT {
            let entries = part.versions.into_iter();
            self.versions
                .extend(entries.map(|(version, metadata)| (version, Entry { metadata, used: false })));
        }
        part.format == FORMAT
    }
}

#[cfg(test)]
mod tests;
