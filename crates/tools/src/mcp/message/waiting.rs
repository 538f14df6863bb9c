//! Which requests wait for their answers.

use super::key;
use rmcp::model::RequestId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Requests that were sent and not answered yet. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Waiting(Arc<Mutex<BTreeMap<String, RequestId>>>);

impl Waiting {
    pub(super) fn add(&self, id: &RequestId) {
        self.all_of_them().insert(key(id), id.clone());
    }

    pub(super) fn remove(&self, id: &RequestId) {
        self.all_of_them().remove(&key(id));
    }

    pub(super) fn has(&self, id: &RequestId) -> bool {
        self.all_of_them().contains_key(&key(id))
    }

    pub(super) fn all(&self) -> Vec<RequestId> {
        self.all_of_them().values().cloned().collect()
    }

    fn all_of_them(&self) -> MutexGuard<'_, BTreeMap<String, RequestId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
