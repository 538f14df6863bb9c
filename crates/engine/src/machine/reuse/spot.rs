//! Where outcomes are recorded: nodes of frames, whatever their visits.

use crate::ids::NodeIx;
use crate::place::FramePath;
use std::collections::HashMap;
use std::sync::Arc;

/// A node of a frame, whatever its visit and those of the nodes around it: where a recorded outcome may be taken (E-29).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Spot {
    /// The frame's number among the [`Keys`].
    pub(crate) frame: u32,
    pub(crate) node: NodeIx,
}

impl Spot {
    /// A frame of which nothing was ever recorded.
    pub(super) const NOWHERE: u32 = u32::MAX;

    /// Another node of the same frame.
    pub(crate) const fn sibling(self, node: NodeIx) -> Self {
        Self { frame: self.frame, node }
    }
}

/// Numbers of frames, by their paths without visits. The root is 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    /// Those of the frames that a fork's source has recorded, which come first.
    source: Arc<HashMap<FramePath, u32>>,
    own: HashMap<FramePath, u32>,
}

impl Keys {
    /// Numbers that begin with those of a fork's source.
    pub(super) fn behind(source: Arc<HashMap<FramePath, u32>>) -> Self {
        Self { source, own: HashMap::new() }
    }
    /// Its number, if it has one.
    pub(crate) fn get(&self, path: &FramePath) -> u32 {
        match path.is_root() {
            true => 0,
            false if self.own.is_empty() && self.source.is_empty() => Spot::NOWHERE,
            false => {
                let path = path.without_visits();
                self.source.get(&path).or_else(|| self.own.get(&path)).copied().unwrap_or(Spot::NOWHERE)
            }
        }
    }
    /// Its number, given now if it had none.
    pub(crate) fn give(&mut self, path: &FramePath) -> u32 {
        if path.is_root() {
            return 0;
        }
        let path = path.without_visits();
        if let Some(number) = self.source.get(&path) {
            return *number;
        }
        let next = u32::try_from(self.source.len() + self.own.len() + 1).unwrap_or(Spot::NOWHERE);
        *self.own.entry(path).or_insert(next)
    }
    /// The paths of all numbers.
    pub(super) fn paths(&self) -> HashMap<u32, &FramePath> {
        self.source.iter().chain(&self.own).map(|(path, number)| (*number, path)).collect()
    }
}
