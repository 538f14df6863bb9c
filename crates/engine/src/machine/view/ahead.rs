//! The calls that a run may still make.

use crate::graph::{Act, Graph, Node};
use crate::ids::{Ix, LeafIx, NodeIx};
use crate::machine::State;
use crate::machine::frame::Frame;
use crate::machine::opened::Children;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tools by bound name, each with the id of a node that calls it.
type Callers = BTreeMap<Arc<str>, Arc<str>>;

impl State {
    /// Returns the tools of fixed calls that the run may still make, each with the id of a node that makes it (C-28).
    ///
    /// Calls of nodes that have finished are left out, and so are those that no way leads to any more.
    pub fn calls_ahead(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        let mut callers = Callers::new();
        self.add_calls_ahead(self.frames.root(), &mut callers);
        callers
    }

    fn add_calls_ahead(&self, frame: &Frame, callers: &mut Callers) {
        for node in frame.nodes_ahead() {
            let def = &frame.graph.nodes[node];
            let visit = frame.visit(node);
            // A leaf that the visit has left behind is not come to again.
            let is_past = |leaf: LeafIx| {
                visit.is_some_and(|visit| visit.leaf != Some(leaf) && visit.visits.of(leaf).is_some())
            };
            let leaves = frame.graph.leaves(def).enumerate();
            for (_, leaf) in leaves.filter(|(at, _)| !is_past(LeafIx::new(*at))) {
                if let Act::Call(call) = &leaf.act {
                    callers.entry(Arc::clone(&call.tool)).or_insert_with(|| Arc::clone(&def.id));
                }
            }
            match frame.children(node) {
                Some((children, act)) if all_begun(children, act) => {
                    for (_, inner) in children.known(act, &self.frames) {
                        self.add_calls_ahead(inner, callers);
                    }
                }
                _ => self.add_calls_within(&frame.graph, def, callers),
            }
        }
    }

    /// Adds all calls in the graphs that a node opens frames of.
    fn add_calls_within(&self, graph: &Graph, node: &Node, callers: &mut Callers) {
        for inner in graph.leaves(node).flat_map(|leaf| leaf.act.graphs()) {
            let Some((graph, _)) = self.frames.inner(inner) else { continue };
            for def in graph.nodes.values() {
                for leaf in graph.leaves(def) {
                    if let Act::Call(call) = &leaf.act {
                        callers.entry(Arc::clone(&call.tool)).or_insert_with(|| Arc::clone(&def.id));
                    }
                }
                self.add_calls_within(graph, def, callers);
            }
        }
    }
}

/// Whether no further frame begins beside those that are known.
fn all_begun(children: &Children, act: &Act) -> bool {
    match (children, act) {
        (Children::Fork(_), Act::Fork(paths)) => !paths.serial,
        (Children::Sub(phase), _) => phase.has_begun(),
        _ => false,
    }
}

impl Frame {
    /// The nodes that have not finished and may still run, failed ones included: a resume begins those anew.
    fn nodes_ahead(&self) -> BTreeSet<NodeIx> {
        let has_finished = |node: &NodeIx| self.done(*node).is_some_and(|done| !done.fatal && !done.skipped);
        let Some(flow) = &self.flow else {
            return self.nodes_from(NodeIx(0)).filter(|node| !has_finished(node)).collect();
        };
        if flow.has_ended() && self.failure().is_none() {
            return BTreeSet::new();
        }
        let has_finished = self.done(flow.at).is_some_and(|done| done.fault.is_none());
        let mut ahead: BTreeSet<NodeIx> = Some(flow.at).filter(|_| !has_finished).into_iter().collect();
        let mut next = vec![flow.at];
        while let Some(node) = next.pop() {
            for way in &self.graph.nodes[node].ways {
                if ahead.insert(way.to) {
                    next.push(way.to);
                }
            }
        }
        ahead
    }
}
