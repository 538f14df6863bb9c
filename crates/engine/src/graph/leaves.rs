//! The leaves of a flow: its own, and behind them those of a tail that it shares with other flows.
//!
//! How a node recovers is the same for all nodes of a document, so it is stated once, as a [`Tail`], and holds nothing
//! of one node: what is particular, such as the call that is made again, is looked up in the node.

use super::{Act, Edge, Flow, Graph, Leaf, Node};
use crate::ids::{Ix, LeafIx, NodeIx, Table, TailIx, ThreadIx};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Leaves that flows share. Its edges count its own leaves only, from 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// The leaves.
    pub leaves: Table<LeafIx, Leaf>,
}

impl Graph {
    /// All leaves that a node's flow can come to: its own, then its tail's.
    pub fn leaves<'g>(&'g self, node: &'g Node) -> impl Iterator<Item = &'g Leaf> {
        let tail = self.tail(&node.body).into_iter().flat_map(|tail| tail.leaves.values());
        node.body.leaves.values().chain(tail)
    }

    /// The leaves that a flow shares, if it has a tail.
    pub fn tail(&self, flow: &Flow) -> Option<&Tail> {
        flow.tail.and_then(|tail| self.tails.get(tail)).map(|tail| &**tail)
    }

    /// A leaf of a flow, its own or its tail's, if there is one of that number.
    pub fn leaf_of<'g>(&'g self, flow: &'g Flow, leaf: LeafIx) -> Option<&'g Leaf> {
        match leaf.get().checked_sub(flow.leaves.len()) {
            None => flow.leaves.get(leaf),
            Some(at) => self.tail(flow)?.leaves.get(LeafIx::new(at)),
        }
    }

    /// The live leaf of a node. As with [`Table`], one that is not there is a bug, which poisons the run (E-17).
    pub(crate) fn leaf(&self, node: NodeIx, leaf: LeafIx) -> &Leaf {
        let flow = &self.nodes[node].body;
        match (leaf.get().checked_sub(flow.leaves.len()), flow.tail) {
            (Some(at), Some(tail)) => &self.tails[tail].leaves[LeafIx::new(at)],
            _ => &flow.leaves[leaf],
        }
    }

    /// Where an edge of a flow's leaf leads.
    pub fn target(flow: &Flow, from: LeafIx, edge: &Edge) -> Option<LeafIx> {
        let own = flow.leaves.len();
        let before = if from.get() < own { 0 } else { own };
        edge.to.map(|to| LeafIx::new(before + to.get()))
    }

    /// The place of a tail: of an equal one if there is one, so that replans add nothing, else of a new one.
    pub fn share(&mut self, tail: Arc<Tail>) -> TailIx {
        let known = self.tails.iter().find(|(_, known)| **known == tail).map(|(ix, _)| ix);
        known.unwrap_or_else(|| self.tails.push(tail))
    }
}

impl Node {
    /// Whether all threads and leaves that it refers to are there.
    pub(crate) fn is_whole(&self, graph: &Graph) -> bool {
        let flow = &self.body;
        let thread = |thread: ThreadIx| graph.threads.get(thread).is_some();
        let shares = flow.tail.is_none_or(|tail| graph.tails.get(tail).is_some());
        shares
            && flow.thread.is_none_or(thread)
            && graph.leaves(self).enumerate().all(|(from, leaf)| {
                let to = |edge| Graph::target(flow, LeafIx::new(from), edge);
                let reaches =
                    leaf.next.iter().all(|edge| to(edge).is_none_or(|to| graph.leaf_of(flow, to).is_some()));
                reaches
                    && match leaf.act {
                        // Between the thread of the flow and this one.
                        Act::Open { from: place, .. } | Act::Publish { to: place, .. } => {
                            flow.thread.is_some() && thread(place)
                        }
                        Act::TakeMessages => flow.thread.is_some(),
                        _ => true,
                    }
            })
    }

    /// Whether a way through its flow may go on for ever without an event: leaves that can be passed without one lead to
    /// each other (E-12).
    pub(crate) fn spins(&self, graph: &Graph) -> bool {
        let passes =
            |leaf: &Leaf| matches!(leaf.act, Act::AwaitRetirement | Act::Answer { .. } | Act::TakeMessages);
        let flow = &self.body;
        graph.leaves(self).enumerate().any(|(from, leaf)| {
            let next = || leaf.next.iter().filter_map(|edge| Graph::target(flow, LeafIx::new(from), edge));
            passes(leaf) && next().any(|to| graph.leaf_of(flow, to).is_some_and(passes))
        })
    }
}
