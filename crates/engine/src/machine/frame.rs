//! A frame: one running instance of a graph (E-34).
//!
//! A run is a tree of frames. What is the run's own (messages, effects under way, usage) is in [`super::State`]; a frame has its graph,
//! its threads, its nodes and what their placeholders see.

use super::dataflow::Dataflow;
use super::flow::Flow;
use super::inputs::{Bindings, Inputs};
use super::node::{Done, LeafPhase, Left, NodePhase, NodeState, Visit};
use super::nodes::Nodes;
use super::opened::Children;
use super::slots::MovedFrames;
use super::threads::Threads;
use super::usage::Meters;
use crate::fault::Fault;
use crate::graph::{Act, Control, Graph, ThreadDef};
use crate::ids::{FrameIx, GraphIx, Ix, NodeIx, NodeRef, OrderIx, ROOT, Table, ThreadIx, not_there};
use crate::message::{Entry, Thread};
use crate::place::{FramePath, FramePathRef};
use crate::schedule::Schedule;
use serde_json::Value;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// An instance of a graph.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) graph: Arc<Graph>,
    pub(crate) schedule: Arc<Schedule>,
    /// Where it is; the root's is empty (E-35).
    pub(crate) path: FramePath,
    /// The node that opened it, and as which of its frames.
    pub(crate) opened_by: Option<(NodeRef, u32)>,
    /// How many frames it is in.
    pub(crate) depth: u32,
    /// The first data layer of its own, which hides names of the frames around it.
    pub(crate) inputs: Option<Arc<Inputs>>,
    /// Of a graph whose nodes follow ways: how far it has come.
    pub(crate) flow: Option<Flow>,
    /// Of one whose nodes wait for what they observe.
    pub(crate) dataflow: Option<Box<Dataflow>>,
    /// Threads of the graph that hold their first message; all of them before any node starts.
    pub(crate) seeded: u32,
    pub(crate) threads: Threads,
    pub(crate) nodes: Nodes<NodeState>,
    more: Option<Box<More>>,
}

/// A path that waits is one, and there may be thousands of those.
const _: () = assert!(size_of::<Frame>() <= 152);

/// What frames have that have failed, bind tools or have used something.
#[derive(Clone, Debug, Default)]
struct More {
    /// Why it could not even begin, or how its flow has failed.
    fault: Option<Box<Fault>>,
    /// Which versions names of tools mean in it, other than what the graph says (E-41).
    bindings: Option<Arc<Bindings>>,
    /// What was used in it, in the root only of nodes with a budget (E-20).
    meters: Meters,
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
            inputs: None,
            flow: flows.then(Flow::new),
            dataflow: (!flows).then(|| Box::new(Dataflow::new(&graph, &schedule))),
            seeded: 0,
            threads: Threads::new(graph.threads.len()),
            nodes,
            more: None,
            graph,
            schedule,
        }
    }
    /// Why it could not even begin, or how its flow has failed.
    pub(crate) fn fault(&self) -> Option<&Fault> {
        self.more.as_ref()?.fault.as_deref()
    }
    pub(crate) fn set_fault(&mut self, fault: Box<Fault>) {
        self.more.get_or_insert_default().fault = Some(fault);
    }
    pub(crate) fn take_fault(&mut self) -> Option<Box<Fault>> {
        self.more.as_mut()?.fault.take()
    }
    /// Which versions names of tools mean in it, other than what the graph says (E-41).
    pub(crate) fn bindings(&self) -> Option<&Arc<Bindings>> {
        self.more.as_ref()?.bindings.as_ref()
    }
    pub(crate) fn bindings_mut(&mut self) -> &mut Bindings {
        Arc::make_mut(self.more.get_or_insert_default().bindings.get_or_insert_default())
    }
    pub(crate) fn set_bindings(&mut self, bindings: Option<Arc<Bindings>>) {
        if bindings.is_some() || self.more.is_some() {
            self.more.get_or_insert_default().bindings = bindings;
        }
    }
    /// What was used in it, once something was.
    pub(crate) fn meters(&self) -> Option<&Meters> {
        self.more.as_ref().map(|more| &more.meters)
    }
    pub(crate) fn meters_mut(&mut self) -> &mut Meters {
        &mut self.more.get_or_insert_default().meters
    }
    /// What it is given of that name.
    pub(crate) fn input(&self, name: &str) -> Option<&Value> {
        self.inputs.as_ref()?.get(name, self.opened_by.map_or(0, |(_, at)| at as usize))
    }
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.inputs.as_ref().is_some_and(|inputs| inputs.has(name))
    }
    /// Where the node of that id stands.
    pub(crate) fn by_id(&self, id: &str) -> Option<NodeIx> {
        self.schedule.by_id.get(id).copied()
    }
    /// The node that has this id itself: a loop is also known by that of its end.
    pub(crate) fn of_id(&self, id: &str) -> Option<NodeIx> {
        self.by_id(id).filter(|node| *self.graph.nodes[*node].id == *id)
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
            return flow.has_ended();
        }
        let failed = self.head_of_retirement().is_some_and(|done| done.fatal);
        failed || self.retired() as usize == self.graph.nodes.len()
    }
    /// Threads without a first message exist only once a node opens them.
    pub(crate) fn skip_unseeded(&mut self) {
        while let Some(None) = self.next_seed().map(|def| &def.first) {
            self.seeded += 1;
        }
    }
    /// The next thread that is to get its first message; none if all have theirs.
    pub(crate) fn next_seed(&self) -> Option<&ThreadDef> {
        self.graph.threads.get(ThreadIx(self.seeded))
    }
    /// The next thread gets its first message.
    pub(crate) fn seed(&mut self, thread: &str, first: Entry) {
        let Some(&ix) = self.schedule.thread_by_name.get(thread) else { return };
        self.threads.open(ix).push(first);
        self.seeded += 1;
        self.skip_unseeded();
    }
    /// The thread as a node finds it that works on it, or that takes from it.
    pub(crate) fn thread_at(&self, thread: ThreadIx, node: NodeIx) -> Thread {
        match self.flow {
            Some(_) => self.threads.base(thread).clone(),
            None => self.thread_after(thread, self.schedule.before(OrderIx(thread.0), node)),
        }
    }
    /// The thread as it is when the frame has ended.
    pub(crate) fn thread_at_end(&self, thread: ThreadIx) -> Thread {
        let written = self.dataflow.as_ref().and_then(|dataflow| dataflow.threads.get(thread));
        let last = written.and_then(|written| written.after.last());
        last.unwrap_or_else(|| self.threads.base(thread)).clone()
    }
    /// The nodes from `first` on.
    pub(crate) fn nodes_from(&self, first: NodeIx) -> impl Iterator<Item = NodeIx> + use<> {
        (first.get()..self.graph.nodes.len()).map(NodeIx::new)
    }
}

impl Frame {
    /// The frames that a node of this one has opened, and the act that did: those that are under way, and those that it left.
    pub(super) fn children(&self, node: NodeIx) -> Option<(&Children, &Act)> {
        let (children, leaf) = match &self.nodes.get(node)?.phase {
            NodePhase::Running(visit) => visit.children().or_else(|| visit.left().map(Left::parts))?,
            NodePhase::Done(done) => {
                let more = done.more.as_ref()?;
                let interrupted = more.interrupted.as_ref().and_then(|visit| visit.children());
                interrupted.or_else(|| more.left.as_deref().map(Left::parts))?
            }
            NodePhase::Waiting(_) => return None,
        };
        Some((children, &self.graph.leaf(node, leaf).act))
    }
    /// Why the frame has failed, if it has.
    pub(super) fn failure(&self) -> Option<Box<Fault>> {
        self.ending().1.map(Box::new)
    }
}

/// The frames of a run that have not ended, and the graphs that they are instances of.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    rows: Vec<Option<Box<Frame>>>,
    /// Numbers of frames that have ended.
    free: Vec<FrameIx>,
    /// The graphs that nodes open frames of, each with its schedule.
    graphs: Arc<Inner>,
    /// Frames whose source recorded what they are known by under another path.
    pub(super) moved: MovedFrames,
}

/// The graphs that nodes of a run open frames of, each with its schedule.
type Inner = Table<GraphIx, (Arc<Graph>, Arc<Schedule>)>;

/// The orders of a run's nodes: those of its own graph, and those of the graphs that it has.
struct Orders {
    own: Arc<Schedule>,
    inner: Arc<Inner>,
}

impl Orders {
    /// Of a run's own graph; derived once, but where each node waits for all before it.
    fn of(graph: &Graph, sequential: bool) -> Arc<Self> {
        match sequential {
            true => Arc::new(Self::derive(graph, true)),
            false => graph.derived.once(|| Self::derive(graph, false)),
        }
    }
    fn derive(root: &Graph, sequential: bool) -> Self {
        // Inner graphs know the run's tools.
        let inner = root.graphs.values().map(|graph| {
            let graph = Arc::new(Graph {
                tools: root.tools.clone(),
                withheld: root.withheld.clone(),
                ..Graph::clone(graph)
            });
            let schedule = Arc::new(Schedule::derive(&graph, sequential));
            (graph, schedule)
        });
        let own = Arc::new(Schedule::derive(root, sequential));
        Self { own, inner: Arc::new(inner.collect()) }
    }
}

impl Frames {
    /// The frame that a run of `graph` begins with, and no other.
    pub(crate) fn new(graph: Arc<Graph>) -> Self {
        let orders = Orders::of(&graph, false);
        let root = Frame::new(graph, Arc::clone(&orders.own));
        let rows = vec![Some(Box::new(root))];
        Self { rows, free: Vec::new(), graphs: Arc::clone(&orders.inner), moved: MovedFrames::default() }
    }
    /// Which of the graphs that nodes open frames of a frame is one of.
    pub(crate) fn graph_of(&self, ix: FrameIx) -> Option<GraphIx> {
        let own = &self[ix].graph;
        self.graphs.iter().find(|(_, (graph, _))| Arc::ptr_eq(graph, own)).map(|(ix, _)| ix)
    }
    /// Orders the nodes of all graphs anew, as the run's own graph is now.
    pub(crate) fn reschedule(&mut self, sequential: bool) {
        let root = self.root_mut();
        let orders = Orders::of(&root.graph, sequential);
        root.schedule = Arc::clone(&orders.own);
        self.graphs = Arc::clone(&orders.inner);
    }
    /// Those that there are with their numbers, in no order that means anything.
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
    pub(crate) fn open(&mut self, graph: GraphIx, path: FramePath, opened_by: (NodeRef, u32)) -> FrameIx {
        let (graph, schedule) = &self.graphs[graph];
        let mut frame = Frame::new(Arc::clone(graph), Arc::clone(schedule));
        frame.depth = self[opened_by.0.frame].depth + 1;
        (frame.path, frame.opened_by) = (path, Some(opened_by));
        self.enter(Box::new(frame))
    }
    /// A frame that was taken out is there again.
    pub(crate) fn reopen(&mut self, mut frame: Box<Frame>, opened_by: (NodeRef, u32)) -> FrameIx {
        frame.opened_by = Some(opened_by);
        self.enter(frame)
    }
    /// Room for so many frames more.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.rows.reserve_exact(more.saturating_sub(self.free.len()));
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
