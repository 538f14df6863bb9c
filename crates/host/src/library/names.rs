//! What the library's names mean, known without folding all of its journal: the fold is kept in `cache/library.json` of
//! the state folder, and continued by what came since. A cache: what does not fit the journal is folded anew.

use super::event;
use crate::error::Error;
use selvedge_engine::library::Names;
use selvedge_store::{BlobHash, Entry, Store};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// Changes when what is kept changes its meaning.
const FORMAT: u32 = 3;
/// From so many events on that were not in it, it is written anew.
const MANY: u64 = 500;

/// The largest file that is read.
const BYTES: u64 = 1 << 30;

/// What is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    format: u32,
    /// The mark of the last event that is in it: another journal has another one there.
    last: String,
    names: Names,
    /// The mark of all of this: what somebody has edited has another one.
    own: String,
}

impl Kept {
    fn of(last: String, names: Names) -> Self {
        let mut kept = Self { format: FORMAT, last, names, own: String::new() };
        kept.own = kept.mark();
        kept
    }

    fn mark(&self) -> String {
        // What can't be written is none of ours.
        let names = serde_json::to_string(&self.names).unwrap_or_default();
        BlobHash::of(format!("selvedge names {} {} {names}", self.format, self.last).as_bytes()).to_string()
    }

    fn is_ours(&self) -> bool {
        self.format == FORMAT && self.names.events() > 0 && self.own == self.mark()
    }
}

/// What names mean in the library of a store, whose state folder this is.
///
/// # Errors
/// `Environment` if the journal can't be read.
pub(super) fn names(store: &Store, state: &Path) -> Result<Names, Error> {
    let file = state.join("cache").join("library.json");
    let kept = kept(&file).filter(Kept::is_ours);
    let mut names = Names::default();
    let mut entries = Vec::new();
    if let Some(Kept { last, names: known, .. }) = kept {
        // Its last event is read once more.
        entries = store.library(known.events())?;
        if entries.first().is_some_and(|entry| mark(entry) == last) {
            names = known;
            entries.remove(0);
        } else {
            entries.clear();
        }
    }
    if names.events() == 0 {
        entries = store.library(1)?;
    }
    for entry in &entries {
        names.apply(&event(entry)?);
    }
    if let Some(last) = entries.last().filter(|_| entries.len() as u64 >= MANY) {
        let kept = Kept::of(mark(last), names);
        // Where it can't be written, it is folded anew the next time.
        let _ = keep(&file, &kept);
        return Ok(kept.names);
    }
    Ok(names)
}

fn kept(file: &Path) -> Option<Kept> {
    serde_json::from_slice(&super::regular::read(file, BYTES).ok()??).ok()
}

/// Written whole or not at all: several processes may use one state folder.
fn keep(file: &Path, kept: &Kept) -> std::io::Result<()> {
    let folder = file.parent().ok_or_else(|| std::io::Error::other("a file needs a folder"))?;
    std::fs::create_dir_all(folder)?;
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    fresh.write_all(&serde_json::to_vec(kept)?)?;
    fresh.persist(file).map(drop).map_err(|error| error.error)
}

/// What tells an event of one journal from those of any other.
fn mark(entry: &Entry) -> String {
    BlobHash::of(format!("{} {} {}", entry.n, entry.at_ms, entry.json).as_bytes()).to_string()
}

#[cfg(test)]
mod tests;
