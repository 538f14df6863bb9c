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
    source: Arc<Numbers>,
    own: Numbers,
}

/// Paths in the order of their numbers, and where each is among them.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    at: HashMap<FramePath, usize>,
    paths: Vec<FramePath>,
}

impl Numbers {
    /// Where a path is, added now if it was not there.
    pub(super) fn give(&mut self, path: &FramePath) -> usize {
        if let Some(at) = self.at.get(path) {
            return *at;
        }
        self.at.insert(path.clone(), self.paths.len());
        self.paths.push(path.clone());
        self.paths.len() - 1
    }
}

/// The number of the frame that is the n-th, from 0, beside the root.
pub(super) fn number(at: usize) -> u32 {
    u32::try_from(at + 1).unwrap_or(Spot::NOWHERE)
}

impl Keys {
    /// Numbers that begin with those of a fork's source.
    pub(super) fn behind(source: Arc<Numbers>) -> Self {
        Self { source, own: Numbers::default() }
    }
    /// Its number, if it has one.
    pub(crate) fn get(&self, path: &FramePath) -> u32 {
        let before = self.source.paths.len();
        match path.is_root() {
            true => 0,
            false if before + self.own.paths.len() == 0 => Spot::NOWHERE,
            false => {
                let path = path.without_visits();
                let own = || self.own.at.get(&path).map(|at| before + at);
                self.source.at.get(&path).copied().or_else(own).map_or(Spot::NOWHERE, number)
            }
        }
    }
    /// Its number, given now if it had none.
    pub(crate) fn give(&mut self, path: &FramePath) -> u32 {
        if path.is_root() {
            return 0;
        }
        let path = path.without_visits();
        let source = self.source.at.get(&path).copied();
        number(source.unwrap_or_else(|| self.source.paths.len() + self.own.give(&path)))
    }
    /// The path of a frame by its number.
    pub(super) fn path(&self, number: u32) -> Option<&FramePath> {
        let at = (number as usize).checked_sub(1)?;
        let own = || self.own.paths.get(at - self.source.paths.len());
        self.source.paths.get(at).or_else(own)
    }
}
