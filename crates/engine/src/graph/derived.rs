//! What follows from a graph alone, kept with it.

use std::any::Any;
use std::sync::{Arc, OnceLock};

/// What has been derived from a graph, so that all its runs share it. A clone, which may be changed, has nothing yet; a graph that
/// a run has had is not changed any more.
#[derive(Default)]
pub struct Derived(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Derived {
    /// What `derive` gives, once. All that ask a graph ask it for the same.
    pub(crate) fn once<T: Send + Sync + 'static>(&self, derive: impl Fn() -> T) -> Arc<T> {
        let kept = self.0.get_or_init(|| Arc::new(derive()));
        Arc::clone(kept).downcast().unwrap_or_else(|_| Arc::new(derive()))
    }
}

impl Clone for Derived {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// It says nothing that the graph does not say.
impl PartialEq for Derived {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Debug for Derived {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Derived")
    }
}
