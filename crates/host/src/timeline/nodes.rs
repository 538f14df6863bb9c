//! The nodes of a run's graph by id, followed from one graph to the next.

use selvedge_engine::graph::Node;
use selvedge_engine::{Graph, NodeIx, State};
use std::collections::HashMap;
use std::sync::Arc;

/// The nodes of the graph that a run has at the moment.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    graph: Arc<Graph>,
    by_id: HashMap<Arc<str>, NodeIx>,
    /// Whether a node works on no thread, as steps do.
    threadless: bool,
}

impl Nodes {
    /// Takes over the graph of a run, if it is another one than before: a fork, a replan or other tools bring one.
    pub fn follow(&mut self, state: &State) {
        if !Arc::ptr_eq(&self.graph, state.graph()) {
            *self = Self::of(state.graph());
        }
    }

    /// The nodes of a graph.
    pub fn of(graph: &Arc<Graph>) -> Self {
        let by_id = graph.nodes.iter().map(|(ix, node)| (node.id.clone(), ix)).collect();
        let threadless = graph.nodes.values().any(|node| node.body.thread.is_none());
        Self { graph: Arc::clone(graph), by_id, threadless }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Whether a node works on no thread, as steps do.
    pub fn threadless(&self) -> bool {
        self.threadless
    }

    /// Where a node stands in it.
    pub fn position(&self, id: &str) -> Option<NodeIx> {
        self.by_id.get(id).copied()
    }

    /// A node.
    pub fn get(&self, id: &str) -> Option<&Node> {
        self.graph.nodes.get(self.position(id)?)
    }
}
