//! What a person trusts, as it is kept: a file for each folder in the user's data folder, and nothing in the project (C-20).

use crate::config::Part;
use crate::failure::Failure;
use crate::places;
use selvedge_store::BlobHash;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// One folder that is trusted, with the content of what is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The folder, for people: links followed.
    pub(crate) folder: String,
    /// When it was trusted, in milliseconds since 1970.
    pub(crate) at: i64,
    /// The hashes of its parts, by name.
    pub(crate) parts: BTreeMap<String, String>,
}

impl Record {
    /// What is recorded of a folder. What can't be read trusts nothing.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let text = std::fs::read(file_of(folder)?).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// All that is recorded, by folder.
    pub(crate) fn all() -> Vec<Self> {
        let entries = places::trust_dir().and_then(|dir| std::fs::read_dir(dir).ok());
        let texts = entries.into_iter().flatten().filter_map(|entry| std::fs::read(entry.ok()?.path()).ok());
        let mut all: Vec<Self> = texts.filter_map(|text| serde_json::from_slice(&text).ok()).collect();
        all.sort_by(|a, b| a.folder.cmp(&b.folder));
        all
    }

    /// Whether this very part is trusted.
    pub(crate) fn has(&self, part: &Part) -> bool {
        self.parts.get(&part.name) == Some(&part.hash)
    }

    /// Records that a folder is trusted with these parts, and with no others.
    ///
    /// # Errors
    /// Exit 4 where it can't be kept.
    pub(crate) fn write(folder: &Path, parts: &[Part]) -> Result<(), Failure> {
        let file = file_of(folder).ok_or_else(|| {
            let message = "there is no home folder to keep it in (HOME is not set)";
            Failure::environment("C-20", "no-home", message)
                .help("--trust or SELVEDGE_TRUST=1 trusts for one command")
        })?;
        let record = Self {
            folder: real(folder).display().to_string(),
            at: crate::commands::run::now_ms(),
            parts: parts.iter().map(|part| (part.name.clone(), part.hash.clone())).collect(),
        };
        let text = serde_json::to_vec(&record).map_err(|error| Failure::internal(&error.to_string()))?;
        kept(&file, &text).map_err(|error| unkept(&file, &error))
    }

    /// Takes back what is recorded of a folder; false if nothing was.
    ///
    /// # Errors
    /// Exit 4 where it can't be removed.
    pub(crate) fn remove(folder: &Path) -> Result<bool, Failure> {
        let Some(file) = file_of(folder) else { return Ok(false) };
        match std::fs::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(unkept(&file, &error)),
        }
    }
}

/// The folder that holds what is trusted, for its user alone.
pub(super) fn make(dir: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// A file that is there whole or not at all, for its user alone.
fn kept(file: &Path, text: &[u8]) -> std::io::Result<()> {
    let dir = file.parent().unwrap_or(Path::new("."));
    make(dir)?;
    let mut new = tempfile::NamedTempFile::new_in(dir)?;
    new.write_all(text)?;
    new.as_file().sync_all()?;
    new.persist(file).map(drop).map_err(|error| error.error)
}

fn unkept(file: &Path, error: &std::io::Error) -> Failure {
    let message = format!("{} can't be written: {error}", file.display());
    Failure::environment("C-20", "not-written", &message)
        .help("check who may write there; --trust or SELVEDGE_TRUST=1 trusts for one command")
}

/// The file of a folder: named by the folder's real path, whatever bytes it has.
fn file_of(folder: &Path) -> Option<PathBuf> {
    let hash = BlobHash::of(real(folder).as_os_str().as_encoded_bytes());
    Some(places::trust_dir()?.join(format!("{hash}.json")))
}

fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| crate::environment::absolute(folder))
}
