//! How many nodes of a run stand where.

use super::Timeline;
use super::history::NodeTimeline;
use super::status::NodeStatus;
use std::collections::BTreeMap;

/// How many nodes of a run stand where (C-31). A node that only holds others (a loop, a fork, a subgraph) is not counted beside what it holds,
/// unless it failed by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<NodeStatus, usize>);

impl Tally {
    /// How many nodes stand there.
    pub fn count(&self, status: NodeStatus) -> usize {
        self.0.get(&status).copied().unwrap_or_default()
    }
}

impl Timeline {
    /// Counts the nodes at the time `now`: those that something happened to, and those of the document's own graph that did not begin.
    pub fn tally(&self, now: i64, driven: bool) -> Tally {
        let mut tally = Tally::default();
        // What others have taken the place of before it began is no node any more (D-20).
        let is_there = |node: &&NodeTimeline| node.current().is_some() || self.def(node).is_some();
        let begun = self.nodes.iter().filter(is_there).filter(|node| !self.holds_all(node)).map(Some);
        let others =
            self.graph.graph().nodes.values().filter(|def| self.root(&def.id).is_none()).map(|_| None);
        for node in begun.chain(others) {
            *tally.0.entry(self.standing(node, now, driven)).or_default() += 1;
        }
        tally
    }

    /// Whether all that there is of a node is what it holds.
    fn holds_all(&self, node: &NodeTimeline) -> bool {
        let Some(visit) = node.current().filter(|visit| !visit.frames.is_empty()) else { return false };
        visit.fault.is_none() || !visit.frames.failed.is_empty()
    }
}
