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

/// Graphs by their hashes, the latest first.
struct Lately {
    kept: VecDeque<(BlobHash, Arc<Graph>)>,
    /// Long ones are not kept, but no more than one of each is read while somebody has it.
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
        if bytes <= KEPT.1 && !self.kept.iter().any(|(known, _)| *known == hash) {
            self.kept.push_front((hash, Arc::clone(graph)));
            self.kept.truncate(KEPT.0);
        }
        self.in_use.retain(|(_, graph)| graph.strong_count() > 0);
        if !self.in_use.iter().any(|(known, _)| *known == hash) {
            self.in_use.push_front((hash, Arc::downgrade(graph)));
            self.in_use.truncate(IN_USE);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is short is kept although somebody has it, also once others had taken its place; what is long only as long as somebody has it.
    #[test]
    fn graphs_are_found_again() {
        let mut lately = Lately { kept: VecDeque::new(), in_use: VecDeque::new() };
        let hash = |n: usize| BlobHash::of(&[u8::try_from(n).unwrap()]);
        let (short, long) = (Arc::<Graph>::default(), Arc::<Graph>::default());
        lately.keep(hash(0), &short, 1);
        lately.keep(hash(9), &long, KEPT.1 + 1);
        (1..=KEPT.0).for_each(|n| lately.keep(hash(n), &Arc::default(), 1));
        assert!(Arc::ptr_eq(&lately.find(hash(0)).unwrap(), &short) && lately.kept.len() == KEPT.0);
        lately.keep(hash(0), &short, 1);
        drop(short);
        assert!(lately.find(hash(0)).is_some());
        assert!(Arc::ptr_eq(&lately.find(hash(9)).unwrap(), &long));
        drop(long);
        assert!(lately.find(hash(9)).is_none());
    }
}
