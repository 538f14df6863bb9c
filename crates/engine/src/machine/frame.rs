//! A frame: one running instance of a graph (E-34).
//!
//! A run is a tree of frames. What is the run's own (messages, effects under way, usage) is in [`State`]; a frame has its graph,
//! its threads, its nodes and what their placeholders see.

use super::done::Done;
use super::skip::Broken;
use super::state::{NodePhase, NodeState, OrderState, State, ThreadState, Visit};
use crate::effect::{Effects, ToolDef};
use crate::graph::{Graph, Leaf, Node};
use crate::ids::{FrameIx, Ix, LeafIx, NodeIx, NodeRef, OrderIx, ROOT, Table, ThreadIx};
use crate::message::Entry;
use crate::schedule::Schedule;
use std::collections::{BTreeMap, HashMap};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// An instance of a graph.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) graph: Arc<Graph>,
    pub(crate) schedule: Arc<Schedule>,
    /// Threads of the graph that hold their first message; all of them before any node starts.
    pub(crate) seeded: usize,
    pub(crate) threads: Table<ThreadIx, ThreadState>,
    pub(crate) nodes: Table<NodeIx, NodeState>,
    pub(crate) orders: Table<OrderIx, OrderState>,
    /// How many nodes have retired (P-20).
    pub(crate) retired: u32,
    /// Who goes on at which number of retired nodes.
    pub(crate) on_retired: BTreeMap<u32, Vec<NodeIx>>,
    /// Nodes without a result that the run goes on without (D-16).
    pub(crate) broken: Broken,
    /// Replans that were decided on, by node, and those of nodes that are no more (D-19).
    pub(crate) replans: BTreeMap<NodeIx, u32>,
    pub(crate) replanned: u32,
    /// Visits, tries and the last visit counted, of ids whose nodes are no more (D-25).
    pub(crate) former: BTreeMap<Arc<str>, (u32, u32, u32)>,
    /// `runtime_metadata`: for each name, the nodes that set it and the field it came from (D-02, D-05).
    pub(crate) runtime: HashMap<Arc<str>, BTreeMap<NodeIx, Arc<str>>>,
    /// Top-level keys of results that did not sync, for D-07's last look-up.
    pub(crate) fields: HashMap<Arc<str>, BTreeMap<NodeIx, ()>>,
}

impl Frame {
    /// An instance that has not begun.
    pub(crate) fn new(graph: Arc<Graph>, schedule: Arc<Schedule>) -> Self {
        Self {
            seeded: 0,
            threads: graph.threads.values().map(|_| ThreadState::default()).collect(),
            nodes: graph.nodes.values().map(|_| NodeState::new(0)).collect(),
            orders: schedule.orders.values().map(|_| OrderState::default()).collect(),
            retired: 0,
            on_retired: BTreeMap::new(),
            broken: Broken::default(),
            replans: BTreeMap::new(),
            replanned: 0,
            former: BTreeMap::new(),
            runtime: HashMap::new(),
            fields: HashMap::new(),
            graph,
            schedule,
        }
    }
    /// Where the node of that id stands.
    pub(crate) fn by_id(&self, id: &str) -> Option<NodeIx> {
        self.schedule.by_id.get(id).copied()
    }
    pub(crate) fn done(&self, node: NodeIx) -> Option<&Done> {
        match &self.nodes[node].phase {
            NodePhase::Done(done) => Some(done),
            _ => None,
        }
    }
    /// The node that is the next to retire, if it has ended.
    pub(crate) fn head_of_retirement(&self) -> Option<&Done> {
        (self.retired as usize).lt(&self.graph.nodes.len()).then_some(())?;
        self.done(NodeIx(self.retired))
    }
    /// Whether all nodes have retired, or one has failed that ends the frame.
    pub(crate) fn is_over(&self) -> bool {
        let failed = self.head_of_retirement().is_some_and(|done| done.fatal);
        failed || self.retired as usize == self.graph.nodes.len()
    }
    /// Orders its nodes anew, as its graph is now.
    pub(crate) fn reschedule(&mut self, sequential: bool) {
        self.schedule = Arc::new(Schedule::derive(&self.graph, sequential));
    }
    /// Threads without a first message exist only once a node opens them.
    pub(crate) fn skip_unseeded(&mut self) {
        let rest = self.graph.threads.values().skip(self.seeded);
        self.seeded += rest.take_while(|def| def.first.is_none()).count();
    }
    /// The next thread gets its first message.
    pub(crate) fn seed(&mut self, thread: &str, first: Entry) {
        let Some(&ix) = self.schedule.thread_by_name.get(thread) else { return };
        self.threads[ix].base.push(first);
        self.threads[ix].exists = true;
        self.seeded += 1;
        self.skip_unseeded();
    }
    /// Replans that count against the limit (D-19).
    pub(crate) fn replans_so_far(&self) -> u32 {
        self.replanned + self.replans.values().sum::<u32>()
    }
    /// The nodes from `first` on.
    pub(crate) fn nodes_from(&self, first: NodeIx) -> impl Iterator<Item = NodeIx> + use<> {
        (first.get()..self.graph.nodes.len()).map(NodeIx::new)
    }
}

/// The frames of a run that have not ended, by number.
#[derive(Debug)]
pub(crate) struct Frames {
    rows: Table<FrameIx, Frame>,
}

impl Frames {
    /// The frame that a run begins with, and no other.
    pub(crate) fn new(root: Frame) -> Self {
        Self { rows: [root].into_iter().collect() }
    }
    pub(crate) fn root(&self) -> &Frame {
        &self.rows[ROOT]
    }
    pub(crate) fn root_mut(&mut self) -> &mut Frame {
        &mut self.rows[ROOT]
    }
}

impl Index<FrameIx> for Frames {
    type Output = Frame;
    fn index(&self, ix: FrameIx) -> &Frame {
        &self.rows[ix]
    }
}

impl IndexMut<FrameIx> for Frames {
    fn index_mut(&mut self, ix: FrameIx) -> &mut Frame {
        &mut self.rows[ix]
    }
}

impl Index<NodeRef> for Frames {
    type Output = NodeState;
    fn index(&self, at: NodeRef) -> &NodeState {
        &self.rows[at.frame].nodes[at.node]
    }
}

impl IndexMut<NodeRef> for Frames {
    fn index_mut(&mut self, at: NodeRef) -> &mut NodeState {
        &mut self.rows[at.frame].nodes[at.node]
    }
}

/// What a node of a frame is: by its graph, and how far it has come.
impl State {
    /// The frame of a node.
    pub(crate) fn of(&self, node: NodeRef) -> &Frame {
        &self.frames[node.frame]
    }
    pub(crate) fn def(&self, node: NodeRef) -> &Node {
        &self.of(node).graph.nodes[node.node]
    }
    pub(crate) fn leaf(&self, node: NodeRef, leaf: LeafIx) -> &Leaf {
        self.of(node).graph.leaf(node.node, leaf)
    }
    pub(crate) fn leaves(&self, node: NodeRef) -> impl Iterator<Item = &Leaf> {
        self.of(node).graph.leaves(self.def(node))
    }
    pub(crate) fn thread_name(&self, node: NodeRef, thread: ThreadIx) -> Arc<str> {
        self.of(node).graph.threads[thread].name.clone()
    }
    /// The name of the thread that a node works on; none for a scratch thread.
    pub(crate) fn own_thread(&self, node: NodeRef) -> Arc<str> {
        self.def(node).body.thread.map_or_else(|| Arc::from(""), |thread| self.thread_name(node, thread))
    }
    /// The tool of that name, as a node may call it.
    pub(crate) fn tool(&self, node: NodeRef, name: &str) -> Option<&Arc<ToolDef>> {
        self.of(node).graph.tools.get(name)
    }
    /// The effects that a call of `tool` has at a node (E-22).
    pub(crate) fn effects(&self, node: NodeRef, tool: &str) -> Effects {
        self.of(node).graph.effects(self.def(node), tool)
    }
    /// The running body of a node.
    pub(crate) fn visit(&self, node: NodeRef) -> Option<&Visit> {
        match &self.frames[node].phase {
            NodePhase::Running(visit) => Some(visit),
            _ => None,
        }
    }
    pub(crate) fn visit_mut(&mut self, node: NodeRef) -> Option<&mut Visit> {
        match &mut self.frames[node].phase {
            NodePhase::Running(visit) => Some(visit),
            _ => None,
        }
    }
    pub(crate) fn done(&self, node: NodeRef) -> Option<&Done> {
        self.of(node).done(node.node)
    }
}
