//! The nodes of a run's graph by id, followed from one graph to the next, and how many of them have come how far.

use selvedge_engine::graph::Node;
use selvedge_engine::{Graph, NodeIx, NodeView, State};
use std::collections::HashMap;
use std::sync::Arc;

/// The nodes of the graph that a run has at the moment.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    graph: Arc<Graph>,
    by_id: HashMap<Arc<str>, NodeIx>,
    /// Whether a node works on no thread, as steps do.
    threadless: bool,
}

impl Nodes {
    /// Takes over the graph of a run, if it is another one than before: a fork, a replan or other tools bring one.
    pub(crate) fn follow(&mut self, state: &State) {
        if !Arc::ptr_eq(&self.graph, state.graph()) {
            *self = Self::of(state.graph());
        }
    }

    /// The nodes of a graph.
    pub(crate) fn of(graph: &Arc<Graph>) -> Self {
        let by_id = graph.nodes.iter().map(|(ix, node)| (node.id.clone(), ix)).collect();
        let threadless = graph.nodes.values().any(|node| node.body.thread.is_none());
        Self { graph: Arc::clone(graph), by_id, threadless }
    }

    /// The graph.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Whether a node works on no thread, as steps do.
    pub(crate) fn threadless(&self) -> bool {
        self.threadless
    }

    /// Where a node stands in it.
    pub(crate) fn position(&self, id: &str) -> Option<NodeIx> {
        self.by_id.get(id).copied()
    }

    /// A node.
    pub(crate) fn get(&self, id: &str) -> Option<&Node> {
        self.graph.nodes.get(self.position(id)?)
    }
}

/// How many nodes of a run have come how far: whoever says it says the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// Those that ended well.
    pub(crate) done: usize,
    pub(crate) failed: usize,
    /// Those that do not run, because of one that failed.
    pub(crate) skipped: usize,
    /// Those that have neither started nor been skipped, if that is to be told.
    pub(crate) not_started: usize,
    /// All of them.
    pub(crate) of: usize,
}

impl Tally {
    /// Also of what ran ahead, and is kept for a resume.
    pub(crate) fn of(state: &State) -> Self {
        let mut tally = Self::default();
        for view in state.node_views() {
            tally.of += 1;
            match view {
                NodeView { skipped: true, .. } => tally.skipped += 1,
                NodeView { failed: true, .. } => tally.failed += 1,
                NodeView { ended: Some(_), .. } => tally.done += 1,
                NodeView { started: 0, .. } => tally.not_started += 1,
                _ => {}
            }
        }
        tally
    }

    /// `2 of 5 nodes done, 1 failed, 1 skipped, 1 not started`; where `nodes` is said already, without the word.
    pub(crate) fn told(&self, nodes: &str) -> String {
        let mut text = format!("{} of {}{nodes} done", self.done, self.of);
        for (count, what) in
            [(self.failed, "failed"), (self.skipped, "skipped"), (self.not_started, "not started")]
        {
            if count > 0 {
                text.push_str(&format!(", {count} {what}"));
            }
        }
        text
    }
}
