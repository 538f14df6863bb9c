//! How large the definitions of tools are in a request.

use crate::effect::ToolDef;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What the definitions of tools are in a request, each counted once. A cache only: nothing of a run's state is in it.
#[derive(Default)]
pub(crate) struct Sizes(Mutex<HashMap<usize, (Arc<ToolDef>, u64)>>);

impl Sizes {
    /// The definition is kept, so that its address stays its own.
    pub(super) fn of(&self, tool: &Arc<ToolDef>) -> u64 {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = || {
            let words = tool.name.len() + tool.description.len();
            (Arc::clone(tool), words as u64 + crate::json::bytes(&tool.input_schema))
        };
        known.entry(Arc::as_ptr(tool).addr()).or_insert_with(count).1
    }
}

impl Clone for Sizes {
    /// What was counted is counted again where it is asked for.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sizes")
    }
}
