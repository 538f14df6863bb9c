//! Graphs that this process has had lately. All tasks of an evolution have one: it is written and read once, and not for each of them.

use crate::recorded::{LoadError, recorded, unreadable};
use selvedge_engine::Graph;
use selvedge_store::{BlobHash, Store, StoreError};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many are kept, and how long they are at most, as JSON.
const KEPT: (usize, usize) = (4, 1 << 20);

static LATELY: Mutex<VecDeque<(BlobHash, Arc<Graph>)>> = Mutex::new(VecDeque::new());

fn lately() -> MutexGuard<'static, VecDeque<(BlobHash, Arc<Graph>)>> {
    LATELY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(hash: BlobHash, graph: &Arc<Graph>, bytes: usize) {
    let mut lately = lately();
    if bytes <= KEPT.1 && !lately.iter().any(|(known, _)| *known == hash) {
        lately.push_front((hash, Arc::clone(graph)));
        lately.truncate(KEPT.0);
    }
}

/// A graph that a run of this store is to begin with: its hash, and its JSON if the store may not have it.
///
/// # Errors
/// It can't be written as JSON, which is a bug, or the store can't be read.
pub fn graph_to_store(store: &Store, graph: &Arc<Graph>) -> Result<(BlobHash, Option<Vec<u8>>), LoadError> {
    let known = lately().iter().find(|(_, known)| **known == **graph).map(|(hash, _)| *hash);
    if let Some(hash) = known
        && store.has_blob(hash)?
    {
        return Ok((hash, None));
    }
    let json = serde_json::to_vec(&**graph)
        .map_err(|error| unreadable("", "a compiled graph", &error.to_string()))?;
    let hash = BlobHash::of(&json);
    keep(hash, graph, json.len());
    Ok((hash, Some(json)))
}

/// The graph that a run names by its hash.
pub(crate) fn of(store: &Store, run: &str, hash: &str) -> Result<Arc<Graph>, LoadError> {
    let hash: BlobHash = hash.parse()?;
    if let Some((_, graph)) = lately().iter().find(|(known, _)| *known == hash) {
        return Ok(Arc::clone(graph));
    }
    let bytes = store.get_blob(hash).map_err(|error| match error {
        // It belongs to a run, and so does the damage (E-44).
        StoreError::Damaged { .. } | StoreError::UnknownBlob { .. } => {
            store.damaged_run(run, &format!("its compiled graph: {}", error.what()))
        }
        error => error,
    })?;
    let graph: Arc<Graph> = Arc::new(
        recorded(&bytes).map_err(|error| unreadable(run, "its compiled graph", &error.to_string()))?,
    );
    keep(hash, &graph, bytes.len());
    Ok(graph)
}
