//! What of a run's own dataflow stands where a fork leaves it (E-19).

use crate::ids::{Ix, NodeIx};
use std::sync::Arc;

/// The nodes that a fork does not begin anew. By itself: none.
#[derive(Clone, Debug)]
pub(crate) struct Stands {
    /// All before this one: they have retired.
    first: NodeIx,
    /// Of those from there on, whether each had finished ahead of its turn; empty if none had.
    ahead: Arc<[bool]>,
}

impl Default for Stands {
    fn default() -> Self {
        Self::retired(NodeIx(0))
    }
}

impl Stands {
    /// All before `first`, and no other.
    pub(super) fn retired(first: NodeIx) -> Self {
        Self { first, ahead: Arc::default() }
    }
    /// All before `first`, and those from there on that have `finished`.
    pub(super) fn with(first: NodeIx, finished: impl Iterator<Item = bool>) -> Self {
        let ahead: Arc<[bool]> = finished.collect();
        if ahead.contains(&true) { Self { first, ahead } } else { Self::retired(first) }
    }
    pub(crate) fn has(&self, node: NodeIx) -> bool {
        node < self.first || self.is_ahead(node)
    }
    /// Whether it stands ahead of its turn.
    pub(crate) fn is_ahead(&self, node: NodeIx) -> bool {
        let at = node.get().checked_sub(self.first.get());
        at.and_then(|at| self.ahead.get(at)).is_some_and(|ahead| *ahead)
    }
    /// Whether any does.
    pub(crate) fn any_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }
    /// Those that do.
    pub(crate) fn ahead(&self) -> impl Iterator<Item = NodeIx> {
        let ahead = self.ahead.iter().enumerate().filter(|(_, ahead)| **ahead);
        ahead.map(|(at, _)| NodeIx::new(self.first.get() + at))
    }
}
