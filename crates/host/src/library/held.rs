//! The library as this process holds it: folded once, and gone on with from its last event.

use super::event;
use crate::error::Error;
use selvedge_engine::library::Library;
use selvedge_store::{Entry, Store};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// By state folder.
static HELD: LazyLock<Mutex<HashMap<PathBuf, Arc<Mutex<Held>>>>> = LazyLock::new(Mutex::default);

/// A library as far as its journal was followed.
#[derive(Default)]
pub(super) struct Held {
    library: Library,
    /// The last event that is in it: another journal has another one there.
    last: Option<Entry>,
}

/// The library of a store as it is held; one in memory is held by nobody.
pub(super) fn of(store: &Store) -> Arc<Mutex<Held>> {
    match store.dir() {
        Some(dir) => Arc::clone(locked(&HELD).entry(dir.to_owned()).or_default()),
        None => Arc::default(),
    }
}

/// Whether a library is held already.
pub(super) fn is_held(store: &Store) -> bool {
    store.dir().is_some_and(|dir: &Path| locked(&HELD).contains_key(dir))
}

/// What is behind a lock: nothing that fails leaves it half changed.
pub(super) fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at the library of a store as it is now.
///
/// # Errors
/// `Environment` if it can't be read.
pub fn look<T>(store: &Store, see: impl FnOnce(&Library) -> T) -> Result<T, Error> {
    let held = of(store);
    let mut held = locked(&held);
    held.follow(store)?;
    Ok(see(held.library()))
}

impl Held {
    /// Takes in what came since, whoever wrote it.
    pub(super) fn follow(&mut self, store: &Store) -> Result<(), Error> {
        // Its last event is read once more.
        let mut entries = store.library(self.last())?;
        if let Some(last) = &self.last {
            let same =
                |entry: &Entry| (entry.n, entry.at_ms, &entry.json) == (last.n, last.at_ms, &last.json);
            if entries.first().is_some_and(same) {
                entries.remove(0);
            } else {
                *self = Self::default();
                entries = store.library(1)?;
            }
        }
        for entry in entries {
            self.library.apply(entry.at_ms, &event(&entry)?);
            self.last = Some(entry);
        }
        Ok(())
    }

    pub(super) fn library(&self) -> &Library {
        &self.library
    }

    /// The number of its last event.
    pub(super) fn last(&self) -> u64 {
        self.last.as_ref().map_or(0, |entry| entry.n)
    }
}
