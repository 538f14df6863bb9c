//! What a store has of a run, decoded: its graph, its first event, any event.

use selvedge_engine::{EDITION, Event, Graph, Start};
use selvedge_store::{Entry, RunInfo, Store, StoreError};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Why a run could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An event or graph that this binary can't read.
    #[error("run {run}: {what} can't be read: {cause}; a newer Selvedge may have written it")]
    Unreadable {
        /// The run.
        run: String,
        /// Which part.
        what: String,
        /// Why.
        cause: String,
    },
    /// A run whose events mean something that this binary does not know (E-42).
    #[error(
        "run {run} was recorded by a newer version: its events are of edition {edition}, and this version knows those up to {EDITION}"
    )]
    Newer {
        /// The run.
        run: String,
        /// Its edition.
        edition: u32,
    },
}

/// The compiled graph that a run names by hash (E-05): the one it was started with, a fork's own if it has one.
///
/// # Errors
/// If the store has no readable graph for it.
pub fn graph_of(store: &Store, info: &RunInfo) -> Result<Arc<Graph>, LoadError> {
    let hash = info.graph.ok_or_else(|| unreadable(&info.id, "its compiled graph", "the run names none"))?;
    crate::graphs::of(store, &info.id, &hash.to_string())
}

/// Reads JSON that a run has written: as deep as values and graphs are, with what is around them. How deep values are
/// was limited when they came (`json_nesting`, E-28).
///
/// # Errors
/// If it is not what was expected.
pub fn recorded<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

pub(crate) fn unreadable(run: &str, what: &str, cause: &str) -> LoadError {
    LoadError::Unreadable { run: run.into(), what: what.into(), cause: cause.into() }
}

/// What a run began with; `None` while its journal is empty, and if a bug ended it before it began (E-17).
///
/// # Errors
/// If it can't be read, or means what this binary does not know (E-42).
pub fn beginning(store: &Store, run: &str) -> Result<Option<Box<Start>>, LoadError> {
    let Some(first) = store.journal(run, 1)?.next().transpose()? else { return Ok(None) };
    match parsed(run, &first)? {
        Event::Started(start) if start.edition > EDITION => {
            Err(LoadError::Newer { run: run.to_owned(), edition: start.edition })
        }
        Event::Started(start) => Ok(Some(start)),
        _ => Ok(None),
    }
}

pub(crate) fn parsed(run: &str, entry: &Entry) -> Result<Event, LoadError> {
    recorded(entry.json.as_bytes())
        .map_err(|error| unreadable(run, &format!("event {}", entry.n), &error.to_string()))
}
