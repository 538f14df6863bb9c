//! Graphs that this process has had lately. All tasks of an evolution have one: it is written and read once, and not for each of them.

use crate::recorded::{LoadError, recorded, unreadable};
use selvedge_engine::Graph;
use selvedge_store::{BlobHash, Store, StoreError};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How many are kept, and how long they are at most, as JSON.
const KEPT: (usize, usize) = (4, 1 << 20);
/// How many are found again for as long as somebody has them, however long they are.
const IN_USE: usize = 16;

#[derive(Default)]
struct Lately {
    kept: VecDeque<(BlobHash, Arc<Graph>)>,
    in_use: VecDeque<(BlobHash, Weak<Graph>)>,
}

static LATELY: Mutex<Lately> = Mutex::new(Lately { kept: VecDeque::new(), in_use: VecDeque::new() });

fn lately() -> MutexGuard<'static, Lately> {
    LATELY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lately {
    fn find(&self, hash: BlobHash) -> Option<Arc<Graph>> {
        let kept = self.kept.iter().find(|(known, _)| *known == hash).map(|(_, graph)| Arc::clone(graph));
        kept.or_else(|| self.in_use.iter().find(|(known, _)| *known == hash)?.1.upgrade())
    }

    fn keep(&mut self, hash: BlobHash, graph: &Arc<Graph>, bytes: usize) {
        if self.find(hash).is_some() {
            return;
        }
        if bytes <= KEPT.1 {
            self.kept.push_front((hash, Arc::clone(graph)));
            self.kept.truncate(KEPT.0);
        }
        self.in_use.retain(|(_, graph)| graph.strong_count() > 0);
        self.in_use.push_front((hash, Arc::downgrade(graph)));
        self.in_use.truncate(IN_USE);
    }
}

/// A graph that a run of this store is to begin with: its hash, and its JSON if the store may not have it.
///
/// # Errors
/// It can't be written as JSON, which is a bug, or the store can't be read.
pub fn graph_to_store(store: &Store, graph: &Arc<Graph>) -> Result<(BlobHash, Option<Vec<u8>>), LoadError> {
    let known = lately().kept.iter().find(|(_, known)| **known == **graph).map(|(hash, _)| *hash);
    if let Some(hash) = known
        && store.has_blob(hash)?
    {
        return Ok((hash, None));
    }
    let json = serde_json::to_vec(&**graph)
        .map_err(|error| unreadable("", "a compiled graph", &error.to_string()))?;
    let hash = BlobHash::of(&json);
    lately().keep(hash, graph, json.len());
    Ok((hash, Some(json)))
}

/// The graph that a run names by its hash.
pub(crate) fn of(store: &Store, run: &str, hash: &str) -> Result<Arc<Graph>, LoadError> {
    let hash: BlobHash = hash.parse()?;
    if let Some(graph) = lately().find(hash) {
        return Ok(graph);
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
    lately().keep(hash, &graph, bytes.len());
    Ok(graph)
}
