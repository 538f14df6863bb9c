//! How far the nodes of a frame have come.

use crate::ids::{NodeIx, Table, not_there};
use std::ops::{Index, IndexMut};

/// Rows of nodes. A dataflow has all of them from the beginning; a flow may have many nodes and go through few, again and
/// again in other frames, so it has those that it has come to.
#[derive(Clone, Debug)]
pub(crate) enum Nodes<R> {
    All(Table<NodeIx, R>),
    /// Sorted by number.
    Visited(Vec<(NodeIx, R)>),
}

impl<R: Default> Nodes<R> {
    pub(crate) fn get(&self, node: NodeIx) -> Option<&R> {
        match self {
            Self::All(rows) => rows.get(node),
            Self::Visited(rows) => {
                let at = rows.binary_search_by_key(&node, |(ix, _)| *ix).ok()?;
                rows.get(at).map(|(_, row)| row)
            }
        }
    }
    pub(crate) fn get_mut(&mut self, node: NodeIx) -> Option<&mut R> {
        match self {
            Self::All(rows) => rows.get_mut(node),
            Self::Visited(rows) => {
                let at = rows.binary_search_by_key(&node, |(ix, _)| *ix).ok()?;
                rows.get_mut(at).map(|(_, row)| row)
            }
        }
    }
    /// The row of a node that the frame has come to.
    pub(crate) fn come_to(&mut self, node: NodeIx) {
        if let Self::Visited(rows) = self
            && let Err(at) = rows.binary_search_by_key(&node, |(ix, _)| *ix)
        {
            if rows.is_empty() {
                rows.reserve_exact(1);
            }
            rows.insert(at, (node, R::default()));
        }
    }
    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = (NodeIx, &R)> + '_> {
        match self {
            Self::All(rows) => Box::new(rows.iter()),
            Self::Visited(rows) => Box::new(rows.iter().map(|(ix, row)| (*ix, row))),
        }
    }
}

impl<R: Default> Index<NodeIx> for Nodes<R> {
    type Output = R;
    fn index(&self, node: NodeIx) -> &R {
        match self.get(node) {
            Some(row) => row,
            None => not_there("a node that a frame has not come to", node),
        }
    }
}

impl<R: Default> IndexMut<NodeIx> for Nodes<R> {
    fn index_mut(&mut self, node: NodeIx) -> &mut R {
        match self.get_mut(node) {
            Some(row) => row,
            None => not_there("a node that a frame has not come to", node),
        }
    }
}
