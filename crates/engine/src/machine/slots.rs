//! Frames of paths and iterations over a list that are known by the number of another: their slots (E-29).

use crate::place::FramePath;
use std::collections::HashMap;
use std::sync::Arc;

/// The slots of a list's elements, in the order of the list; `None`: the number of each.
pub(super) type Slots = Option<Arc<[u32]>>;

/// Frames that are known by the path of another, without visits, in both directions.
#[derive(Clone, Debug, Default)]
pub(super) struct MovedFrames {
    recorded: HashMap<FramePath, FramePath>,
    own: HashMap<FramePath, FramePath>,
}

impl MovedFrames {
    pub(super) fn is_empty(&self) -> bool {
        self.recorded.is_empty()
    }

    /// The path under which a frame records; both are without visits.
    pub(super) fn recorded(&self, path: FramePath) -> FramePath {
        self.recorded.get(&path).cloned().unwrap_or(path)
    }

    /// The frame that records under a path, if there can be one.
    pub(super) fn own(&self, recorded: &FramePath) -> Option<FramePath> {
        let same = || (!self.recorded.contains_key(recorded)).then(|| recorded.clone());
        self.own.get(recorded).cloned().or_else(same)
    }

    /// A frame records under a path from now on; both are without visits.
    pub(super) fn note(&mut self, path: FramePath, recorded: FramePath) {
        if let Some(before) = self.recorded.remove(&path)
            && self.own.get(&before) == Some(&path)
        {
            self.own.remove(&before);
        }
        if path != recorded {
            self.own.insert(recorded.clone(), path.clone());
            self.recorded.insert(path, recorded);
        }
    }
}
