//! What a person trusts, as it is kept: a file for each folder in the user's data folder, and nothing in the project (C-20).

use super::part::Part;
use crate::environment::Environment;
use crate::error::Error;
use crate::places;
use selvedge_runtime::{Clock, SystemClock};
use selvedge_store::BlobHash;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// One folder that is trusted, with the content of what is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The folder, for people: links followed.
    pub folder: String,
    /// When it was trusted, in milliseconds since 1970.
    pub at: i64,
    /// The hashes of its parts, by name.
    pub parts: BTreeMap<String, String>,
}

impl Record {
    /// What is recorded of a folder. What can't be read trusts nothing.
    pub fn of(environment: &Environment, folder: &Path) -> Option<Self> {
        let text = std::fs::read(file_of(environment, folder)?).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// All that is recorded, by folder.
    pub fn all(environment: &Environment) -> Vec<Self> {
        let entries = places::trust_dir(environment).and_then(|dir| std::fs::read_dir(dir).ok());
        let texts = entries.into_iter().flatten().filter_map(|entry| std::fs::read(entry.ok()?.path()).ok());
        let mut all: Vec<Self> = texts.filter_map(|text| serde_json::from_slice(&text).ok()).collect();
        all.sort_by(|a, b| a.folder.cmp(&b.folder));
        all
    }

    /// Whether this very part is trusted.
    pub fn has(&self, part: &Part) -> bool {
        self.parts.get(&part.name) == Some(&part.hash)
    }

    /// Records that a folder is trusted with these parts, and with no others.
    ///
    /// # Errors
    /// `Environment` where it can't be kept.
    pub fn write(environment: &Environment, folder: &Path, parts: &[Part]) -> Result<(), Error> {
        let file = file_of(environment, folder).ok_or_else(|| {
            let message = "there is no home folder to keep it in (HOME is not set)";
            Error::environment("C-20", "no-home", message)
                .help("--trust or SELVEDGE_TRUST=1 trusts for one command")
        })?;
        let record = Self {
            folder: real(environment, folder).display().to_string(),
            at: SystemClock.now_ms(),
            parts: parts.iter().map(|part| (part.name.clone(), part.hash.clone())).collect(),
        };
        let text = serde_json::to_vec(&record).map_err(|error| Error::internal(&error.to_string()))?;
        kept(&file, &text).map_err(|error| unkept(&file, &error))
    }

    /// Takes back what is recorded of a folder; false if nothing was.
    ///
    /// # Errors
    /// `Environment` where it can't be removed.
    pub fn remove(environment: &Environment, folder: &Path) -> Result<bool, Error> {
        let Some(file) = file_of(environment, folder) else { return Ok(false) };
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

fn unkept(file: &Path, error: &std::io::Error) -> Error {
    let message = format!("{} can't be written: {error}", file.display());
    Error::environment("C-20", "not-written", &message)
        .help("check who may write there; --trust or SELVEDGE_TRUST=1 trusts for one command")
}

/// The file of a folder: named by the folder's real path, whatever bytes it has.
fn file_of(environment: &Environment, folder: &Path) -> Option<PathBuf> {
    let hash = BlobHash::of(real(environment, folder).as_os_str().as_encoded_bytes());
    Some(places::trust_dir(environment)?.join(format!("{hash}.json")))
}

fn real(environment: &Environment, folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| environment.absolute(folder))
}
