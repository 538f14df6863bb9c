//! What of a run's own dataflow stands where a fork leaves it (E-19).

use crate::ids::NodeIx;
use std::collections::BTreeSet;

/// The nodes that a fork does not begin anew. By itself: none.
#[derive(Clone, Debug)]
pub(crate) struct Stands {
    /// All before this one: they have retired.
    pub(super) first: NodeIx,
    /// Those behind it that had finished ahead of their turn.
    pub(super) ahead: BTreeSet<NodeIx>,
}

impl Default for Stands {
    fn default() -> Self {
        Self { first: NodeIx(0), ahead: BTreeSet::new() }
    }
}

impl Stands {
    pub(crate) fn has(&self, node: NodeIx) -> bool {
        node < self.first || self.is_ahead(node)
    }
    /// Whether it stands ahead of its turn.
    pub(crate) fn is_ahead(&self, node: NodeIx) -> bool {
        self.ahead.contains(&node)
    }
    /// Whether any does.
    pub(crate) fn any_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }
}
