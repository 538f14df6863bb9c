//! A frame: one running instance of a graph (E-34).
//!
//! A run is a tree of frames. What is the run's own (messages, effects under way, usage) is in [`State`]; a frame has its graph,
//! its threads, its nodes and what their placeholders see.

use super::bindings::Bindings;
use super::budgets::Meters;
use super::dataflow::Dataflow;
use super::done::Done;
use super::flow::Flow;
use super::nodes::Nodes;
use super::state::{LeafPhase, NodePhase, NodeState, State, ThreadState, Visit};
use crate::effect::{Effects, ToolDef};
use crate::fault::Fault;
use crate::graph::{Control, Graph, Leaf, Node};
use crate::ids::{FrameIx, GraphIx, Ix, LeafIx, NodeIx, NodeRef, OrderIx, ROOT, Table, ThreadIx, not_there};
use crate::message::{Entry, Thread};
use crate::place::{FramePath, FramePathRef};
use crate::schedule::Schedule;
use serde_json::Value;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// An instance of a graph.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) graph: Arc<Graph>,
    pub(crate) schedule: Arc<Schedule>,
    /// Where it is; the root's is empty (E-35).
    pub(crate) path: FramePath,
    /// The node that opened it, and as which of its frames.
    pub(crate) opened_by: Option<(NodeRef, usize)>,
    /// How many frames it is in.
    pub(crate) depth: u32,
    /// Which versions names of tools mean in it, other than what the graph says (E-41).
    pub(crate) bindings: Option<Arc<Bindings>>,
    /// The first data layer of its own, which hides names of the frames around it.
    pub(crate) inputs: Inputs,
    /// Why it could not even begin.
    pub(crate) stopped: Option<Box<Fault>>,
    /// Of a graph whose nodes follow ways: how far it has come.
    pub(crate) flow: Option<Flow>,
    /// Of one whose nodes wait for what they observe.
    pub(crate) dataflow: Option<Box<Dataflow>>,
    /// Threads of the graph that hold their first message; all of them before any node starts.
    pub(crate) seeded: usize,
    pub(crate) threads: Table<ThreadIx, ThreadState>,
    pub(crate) nodes: Nodes,
    /// What was used in it, once something was, and in the root only of nodes with a budget (E-20).
    pub(crate) meters: Option<Box<Meters>>,
}

/// What a frame is given, by name.
#[derive(Debug, Default)]
pub(crate) struct Inputs(Box<[(Arc<str>, Value)]>);

impl Inputs {
    /// The last of several values of a name counts.
    pub(crate) fn new(mut values: Vec<(Arc<str>, Value)>) -> Self {
        values.reverse();
        values.sort_by(|(a, _), (b, _)| a.cmp(b));
        values.dedup_by(|(a, _), (b, _)| a == b);
        Self(values.into_boxed_slice())
    }
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let at = self.0.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().map(|(name, _)| name)
    }
}

impl Frame {
    /// An instance that has not begun.
    pub(crate) fn new(graph: Arc<Graph>, schedule: Arc<Schedule>) -> Self {
        let flows = graph.control == Control::Flow;
        let nodes = match flows {
            true => Nodes::Visited(Vec::new()),
            false => Nodes::All(graph.nodes.values().map(|_| NodeState::new(0)).collect()),
        };
        Self {
            path: FramePath::default(),
            opened_by: None,
            depth: 0,
            bindings: None,
            inputs: Inputs::default(),
            stopped: None,
            flow: flows.then(Flow::default),
            dataflow: (!flows).then(|| Box::new(Dataflow::new(&graph, &schedule))),
            seeded: 0,
            threads: graph.threads.values().map(|_| ThreadState::default()).collect(),
            nodes,
            meters: None,
            graph,
            schedule,
        }
    }
    /// Where the node of that id stands.
    pub(crate) fn by_id(&self, id: &str) -> Option<NodeIx> {
        self.schedule.by_id.get(id).copied()
    }
    pub(crate) fn done(&self, node: NodeIx) -> Option<&Done> {
        match &self.nodes.get(node)?.phase {
            NodePhase::Done(done) => Some(done),
            _ => None,
        }
    }
    pub(crate) fn visit(&self, node: NodeIx) -> Option<&Visit> {
        match &self.nodes.get(node)?.phase {
            NodePhase::Running(visit) => Some(visit),
            _ => None,
        }
    }
    /// The node that is the next to retire, if it has ended.
    pub(crate) fn head_of_retirement(&self) -> Option<&Done> {
        (self.retired() as usize).lt(&self.graph.nodes.len()).then_some(())?;
        self.done(NodeIx(self.retired()))
    }
    /// How many nodes of a dataflow have retired (P-20).
    pub(crate) fn retired(&self) -> u32 {
        self.dataflow.as_ref().map_or(0, |dataflow| dataflow.retired)
    }
    /// Whether all before a node have retired; in a flow, they have.
    pub(crate) fn is_turn(&self, node: NodeIx) -> bool {
        self.flow.is_some() || self.retired() >= node.0
    }
    /// Whether nothing is left to do: all nodes have retired, or one has failed that ends the frame.
    pub(crate) fn is_over(&self) -> bool {
        if let Some(flow) = &self.flow {
            return flow.ended.is_some();
        }
        let failed = self.head_of_retirement().is_some_and(|done| done.fatal);
        failed || self.retired() as usize == self.graph.nodes.len()
    }
    /// Orders its nodes anew, as its graph is now.
    fn reschedule(&mut self, sequential: bool) {
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
    /// The thread as a node finds it that works on it, or that takes from it.
    pub(crate) fn thread_at(&self, thread: ThreadIx, node: NodeIx) -> Thread {
        match self.flow {
            Some(_) => self.threads[thread].base.clone(),
            None => self.thread_after(thread, self.schedule.before(OrderIx(thread.0), node)),
        }
    }
    /// The thread as it is when the frame has ended.
    pub(crate) fn thread_at_end(&self, thread: ThreadIx) -> Thread {
        let written = self.dataflow.as_ref().and_then(|dataflow| dataflow.threads.get(thread));
        let last = written.and_then(|written| written.after.last());
        last.unwrap_or(&self.threads[thread].base).clone()
    }
    /// The nodes from `first` on.
    pub(crate) fn nodes_from(&self, first: NodeIx) -> impl Iterator<Item = NodeIx> + use<> {
        (first.get()..self.graph.nodes.len()).map(NodeIx::new)
    }
}

/// The frames of a run that have not ended, and the graphs that they are instances of.
#[derive(Debug)]
pub(crate) struct Frames {
    rows: Vec<Option<Box<Frame>>>,
    /// Numbers of frames that have ended.
    free: Vec<FrameIx>,
    /// The graphs that nodes open frames of, each with its schedule, derived once.
    graphs: Table<GraphIx, (Arc<Graph>, Arc<Schedule>)>,
}

impl Frames {
    /// The frame that a run of `graph` begins with, and no other.
    pub(crate) fn new(graph: Arc<Graph>) -> Self {
        let schedule = Arc::new(Schedule::derive(&graph, false));
        let mut frames = Self { rows: Vec::new(), free: Vec::new(), graphs: Table::new() };
        frames.rows.push(Some(Box::new(Frame::new(graph, schedule))));
        frames.link(false);
        frames
    }
    /// The same of another run of the graph, with the orders that were derived for this one.
    pub(crate) fn another(&self) -> Self {
        let Frame { graph, schedule, .. } = self.root();
        let root = Frame::new(Arc::clone(graph), Arc::clone(schedule));
        Self { rows: vec![Some(Box::new(root))], free: Vec::new(), graphs: self.graphs.clone() }
    }
    /// Orders the nodes of all graphs anew, as the run's own graph is now.
    pub(crate) fn reschedule(&mut self, sequential: bool) {
        self.root_mut().reschedule(sequential);
        self.link(sequential);
    }
    /// Inner graphs know the run's tools.
    fn link(&mut self, sequential: bool) {
        let root = Arc::clone(&self.root().graph);
        let inner = root.graphs.values().map(|graph| {
            let graph = Arc::new(Graph {
                tools: root.tools.clone(),
                withheld: root.withheld.clone(),
                ..Graph::clone(graph)
            });
            let schedule = Arc::new(Schedule::derive(&graph, sequential));
            (graph, schedule)
        });
        self.graphs = inner.collect();
    }
    /// Those that there are, in no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Frame> {
        self.rows.iter().flatten().map(|frame| &**frame)
    }
    /// The same with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (FrameIx, &Frame)> {
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(at, frame)| Some((FrameIx::new(at), frame.as_deref()?)))
    }
    /// A graph that nodes open frames of.
    pub(crate) fn inner(&self, graph: GraphIx) -> Option<(&Graph, &Schedule)> {
        self.graphs.get(graph).map(|(graph, schedule)| (&**graph, &**schedule))
    }
    pub(crate) fn root(&self) -> &Frame {
        &self[ROOT]
    }
    pub(crate) fn root_mut(&mut self) -> &mut Frame {
        &mut self[ROOT]
    }
    /// Whether there can be no frame but the root.
    pub(crate) fn are_flat(&self) -> bool {
        self.graphs.is_empty()
    }
    /// The open frame of that path, from the root on. Most events are about the node that is live first, and don't ask.
    pub(crate) fn at(&self, path: FramePathRef<'_>) -> Option<FrameIx> {
        path.steps().try_fold(ROOT, |ix, step| {
            let frame = &self[ix];
            let node = frame.by_id(&step.node)?;
            let visit = frame.visit(node).filter(|_| frame.nodes[node].visit == step.visit)?;
            let LeafPhase::Frames(children) = &visit.phase else { return None };
            children.find(&step.instance, &frame.graph.leaf(node, visit.leaf?).act)
        })
    }
    /// An instance of an inner graph, with the path that it is to have.
    pub(crate) fn open(&mut self, graph: GraphIx, path: FramePath, opened_by: (NodeRef, usize)) -> FrameIx {
        let (graph, schedule) = &self.graphs[graph];
        let mut frame = Frame::new(Arc::clone(graph), Arc::clone(schedule));
        frame.depth = self[opened_by.0.frame].depth + 1;
        (frame.path, frame.opened_by) = (path, Some(opened_by));
        self.enter(Box::new(frame))
    }
    /// A frame that was taken out is there again.
    pub(crate) fn reopen(&mut self, mut frame: Box<Frame>, opened_by: (NodeRef, usize)) -> FrameIx {
        frame.opened_by = Some(opened_by);
        self.enter(frame)
    }
    fn enter(&mut self, frame: Box<Frame>) -> FrameIx {
        let frame = Some(frame);
        match self.free.pop() {
            Some(ix) => {
                if let Some(row) = self.rows.get_mut(ix.get()) {
                    *row = frame;
                }
                ix
            }
            None => {
                self.rows.push(frame);
                FrameIx::new(self.rows.len() - 1)
            }
        }
    }
    /// Takes out a frame that has ended.
    pub(crate) fn close(&mut self, ix: FrameIx) -> Option<Box<Frame>> {
        let frame = self.rows.get_mut(ix.get())?.take()?;
        self.free.push(ix);
        Some(frame)
    }
}

impl Index<FrameIx> for Frames {
    type Output = Frame;
    fn index(&self, ix: FrameIx) -> &Frame {
        match self.rows.get(ix.get()) {
            Some(Some(frame)) => frame,
            _ => not_there("a frame", ix),
        }
    }
}

impl IndexMut<FrameIx> for Frames {
    fn index_mut(&mut self, ix: FrameIx) -> &mut Frame {
        match self.rows.get_mut(ix.get()) {
            Some(Some(frame)) => frame,
            _ => not_there("a frame", ix),
        }
    }
}

impl Index<NodeRef> for Frames {
    type Output = NodeState;
    fn index(&self, at: NodeRef) -> &NodeState {
        &self[at.frame].nodes[at.node]
    }
}

impl IndexMut<NodeRef> for Frames {
    fn index_mut(&mut self, at: NodeRef) -> &mut NodeState {
        &mut self[at.frame].nodes[at.node]
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
        self.bound(node, name).or_else(|| self.pins(node, name).tools.get(name))
    }
    /// The effects that a call of `tool` has at a node (E-22).
    pub(crate) fn effects(&self, node: NodeRef, tool: &str) -> Effects {
        self.def(node).effects_of(tool, self.tool(node, tool).map(|def| &**def))
    }
    /// The graph that says which version a tool's name means: the run's own, whose tools may change (P-21), or else that of the
    /// frame, to which a replan may have brought some.
    fn pins(&self, node: NodeRef, tool: &str) -> &Graph {
        let root = &self.frames.root().graph;
        if root.tools.contains_key(tool) { root } else { &self.of(node).graph }
    }
    /// The running body of a node.
    pub(crate) fn visit(&self, node: NodeRef) -> Option<&Visit> {
        self.of(node).visit(node.node)
    }
    pub(crate) fn visit_mut(&mut self, node: NodeRef) -> Option<&mut Visit> {
        match &mut self.frames[node.frame].nodes.get_mut(node.node)?.phase {
            NodePhase::Running(visit) => Some(visit),
            _ => None,
        }
    }
    /// Whether a node is `first`, behind it in its frame, or in a frame that such a node opened.
    pub(crate) fn is_within(&self, mut node: NodeRef, first: NodeRef) -> bool {
        while node.frame != first.frame {
            let Some((around, _)) = self.of(node).opened_by else { return false };
            node = around;
        }
        node >= first
    }
    pub(crate) fn done(&self, node: NodeRef) -> Option<&Done> {
        self.of(node).done(node.node)
    }
}
