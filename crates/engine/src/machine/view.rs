//! What is observable of a run: threads, results, metadata, in the shapes that reports print (C-02).

use super::flow::Flow;
use super::frame::{Frame, Frames};
use super::node::{Done, NodePhase};
use super::opened::Children;
use super::phase::Publication;
use super::state::{State, Status};
use super::usage::Usage;
use crate::effect::{EffectId, Wait};
use crate::event::{End, Start};
use crate::fault::{Fault, Warning};
use crate::graph::{Graph, Node};
use crate::ids::{NodeIx, NodeRef, OrderIx, ThreadIx};
use crate::message::Thread;
use crate::messages::ThreadView;
use crate::place::names::Names;
use crate::place::{FramePathRef, FrameStep, Instance, Place};
use crate::schedule::Schedule;
use frames::Named;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

mod ahead;
mod frames;
mod joins;
mod values;
pub use frames::NodeSoFar;
pub use joins::{JoinView, PathEnd, PathView};

/// Where a run stands, for people (C-02).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// It goes on by itself.
    Running,
    /// Only a person can let it go on (E-21).
    Waiting,
    /// Every node retired.
    Completed,
    /// A fault ended it.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// One entry of the third data layer (D-03).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepResult<'s> {
    /// What reports call it: the node's id, with the frames that it is in before it where these leave it open (W-03).
    #[serde(skip)]
    pub name: Cow<'s, str>,
    /// The node's id.
    pub step_id: &'s str,
    /// Its name.
    pub step_name: &'s str,
    /// The tool that gave the result; null for a model's node.
    pub tool_id: Option<&'s str>,
    /// The result (E-25); null after a fault.
    pub output: &'s Value,
    /// Whether it succeeded.
    pub is_success: bool,
    /// Why not.
    pub error: Option<&'s Fault>,
    /// Tries of this id, from 1.
    pub attempts: u32,
}

/// One node's progress, for live views and `explain`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NodeView<'s> {
    /// The node's id.
    pub node: &'s Arc<str>,
    /// Milliseconds since the epoch; 0 if it has not started.
    pub started: i64,
    /// Milliseconds since the epoch, once it has finished.
    pub ended: Option<i64>,
    /// Whether its result is final (P-20).
    pub retired: bool,
    /// Whether it ended in a fault.
    #[serde(skip)]
    pub failed: bool,
    /// It does not run, because it may depend on a node that failed (D-16).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
}

/// What a node published, by the thread that is the key (P-18).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published<'s> {
    /// The key.
    pub thread: &'s Arc<str>,
    /// The node, by its id.
    pub node: &'s Arc<str>,
    /// What it published.
    pub publication: &'s Publication,
}

/// A value of `runtime_metadata` (D-02).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuntimeValue<'s> {
    /// What it is.
    pub value: &'s Value,
    /// The node it came from, by its name in reports (W-03), where that is known: not of a variable that a workflow sets.
    pub node: Option<Cow<'s, str>>,
    /// The iteration or path that it is a value of, as people are told of it (`each#1`), while that goes on.
    pub live: Option<Cow<'s, str>>,
}

/// The observable part of a run at one moment: a way to look at its state, which costs what is looked at and copies
/// nothing.
#[derive(Clone, Copy)]
pub struct View<'s> {
    state: &'s State,
    status: RunStatus,
    /// Nodes from here on are hidden.
    horizon: u32,
    /// What ran ahead is shown, too.
    all: bool,
}

impl State {
    /// The graph, with tools as they are pinned now.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.frames.root().graph
    }
    /// The id of a node, as its document has it.
    pub fn node_id(&self, node: NodeRef) -> &Arc<str> {
        &self.def(node).id
    }
    /// What events call a node.
    pub fn event_name(&self, node: NodeRef) -> Arc<str> {
        self.name(node)
    }
    /// What reports call a node (W-03): what its result is called, or will be.
    pub fn called(&self, node: NodeRef) -> Cow<'_, str> {
        let (frame, def) = (self.of(node), self.def(node));
        match self.frames.names(frame.path.frames()) {
            Some((_, _, names)) if !frame.path.is_root() => names.node(def.shown_id()).into_owned().into(),
            _ => Cow::Borrowed(def.shown_id()),
        }
    }
    /// What reports call the node, or the frame, that the name in an event or in a fault stands for (W-03): ids of the document.
    /// A fork is called as its join is, and a loop as its end.
    pub fn report_name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        let found = self.placed(name, |names, id, graph, schedule| {
            let node = schedule.by_id.get(id).and_then(|node| graph.nodes.get(*node));
            names.node(node.map_or(id, |node| node.shown_id())).into_owned()
        });
        found.unwrap_or(Cow::Borrowed(name))
    }
    /// The same for people, who also want to know which iteration of a loop it is; each node by its own id.
    pub fn told_name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        self.placed(name, |names, id, _, _| names.told(id).into_owned()).unwrap_or(Cow::Borrowed(name))
    }
    /// The node that an event or a fault calls so, as its graph defines it.
    pub fn node_definition(&self, name: &str) -> Option<&Node> {
        let place = Place::parse(name)?;
        let (graph, schedule, _) = self.frames.names(place.frames)?;
        graph.nodes.get(*schedule.by_id.get(&*place.node)?)
    }
    /// How many iterations there are of the loop that an event calls so, where that is known before its end.
    pub fn iterations(&self, name: &str) -> Option<u32> {
        let place = Place::parse(name)?;
        let frame = &self.frames[self.frames.at(place.frames)?];
        frame.children(frame.by_id(&place.node)?)?.0.iterations()
    }
    fn placed<'a>(
        &self,
        name: &'a str,
        called: impl FnOnce(&Names, &str, &Graph, &Schedule) -> String,
    ) -> Option<Cow<'a, str>> {
        if self.frames.are_flat() {
            return None;
        }
        let frame = name.strip_suffix('/');
        let path = FramePathRef::parse(frame.unwrap_or(name)).and_then(|path| Some((path, path.parent()?.1)));
        // Without the stroke, that of a subgraph can't be told from a later visit of its node, and is called as that is.
        if let Some((path, FrameStep { instance, .. })) = path
            && (frame.is_some() || instance != Instance::Sub)
        {
            return Some(self.frames.names(path)?.2.frame(&instance).to_owned().into());
        }
        let place = Place::parse(name)?;
        let (graph, schedule, names) = self.frames.names(place.frames)?;
        Some(called(&names, &place.node, graph, schedule).into())
    }
    /// The node of the run's own graph within which a node is.
    pub fn outermost(&self, node: NodeRef) -> NodeIx {
        let mut at = node;
        while let Some((around, _)) = self.of(at).opened_by {
            at = around;
        }
        at.node
    }
    /// What the run began with.
    pub fn start(&self) -> &Start {
        &self.start
    }
    /// What the run has used.
    pub fn usage(&self) -> Usage {
        self.usage
    }
    /// Warnings so far, in journal order.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
    /// Why models could not be asked what to do about a fault, so that the ladder decided (D-18), since the run began
    /// or was resumed; each with its node.
    pub fn unasked(&self) -> &[Fault] {
        &self.unasked
    }
    /// The number of events applied.
    pub fn events(&self) -> u64 {
        self.events
    }
    /// Effects that were requested and have not completed, by id.
    pub fn pending(&self) -> &BTreeMap<EffectId, super::PendingEffect> {
        &self.pending
    }

    /// The pending effects in the order of their requests: who dispatches them again asks as it was asked before (E-05).
    pub fn pending_in_order(&self) -> Vec<(&EffectId, &super::PendingEffect)> {
        let mut pending: Vec<_> = self.pending.iter().collect();
        pending.sort_by_key(|(_, row)| row.event);
        pending
    }
    /// Timers that have not fired, by id: how long each is in all, and when it is due (E-37).
    pub fn timers(&self) -> &BTreeMap<Arc<str>, Wait> {
        &self.timers
    }
    /// Open asks, by id (E-21).
    pub fn asks(&self) -> &BTreeMap<Arc<str>, super::Asking> {
        &self.asks
    }
    /// How the run ended, if it did, and why.
    pub fn ended(&self) -> Option<(End, Option<&Fault>)> {
        match &self.status {
            Status::Ended(status, fault) => Some((*status, fault.as_deref())),
            _ => None,
        }
    }
    /// The number of retired nodes and of all nodes.
    pub fn progress(&self) -> (usize, usize) {
        let root = self.frames.root();
        let retired = match root.flow {
            Some(_) => root.nodes.iter().filter(|(node, _)| root.done(*node).is_some()).count(),
            None => root.retired() as usize,
        };
        (retired, root.graph.nodes.len())
    }

    /// Where the run stands.
    pub fn status(&self) -> RunStatus {
        match &self.status {
            Status::Ended(End::Completed, _) => RunStatus::Completed,
            Status::Ended(End::Failed, _) => RunStatus::Failed,
            Status::Ended(End::Cancelled, _) => RunStatus::Cancelled,
            _ if self.pending.is_empty() && !self.asks.is_empty() && self.step().is_none() => {
                RunStatus::Waiting
            }
            _ => RunStatus::Running,
        }
    }

    /// What may be seen: everything of a run that goes on, and of an ended one what a sequential run would
    /// have left (P-20's precise faults).
    pub fn view(&self) -> View<'_> {
        let status = self.status();
        View { state: self, status, horizon: self.horizon(status), all: false }
    }

    /// Everything that is known, also what ran ahead and is not final yet: for watchers.
    pub fn live_view(&self) -> View<'_> {
        View { state: self, status: self.status(), horizon: u32::MAX, all: true }
    }

    /// Nodes from here on are hidden: a run that stands still shows what a sequential one would, which is all
    /// that has retired, and the node after that if it failed or waits (P-20).
    fn horizon(&self, status: RunStatus) -> u32 {
        let root = self.frames.root();
        // In a flow nothing runs ahead.
        if root.flow.is_some() {
            return u32::MAX;
        }
        let failed = || root.head_of_retirement().is_some_and(|done| done.fatal);
        match status {
            RunStatus::Running | RunStatus::Completed => u32::MAX,
            RunStatus::Waiting => root.retired() + 1,
            RunStatus::Failed | RunStatus::Cancelled => root.retired() + u32::from(failed()),
        }
    }

    /// The first data layer (D-01).
    pub fn initial(&self) -> &Map<String, Value> {
        &self.start.initial
    }

    /// Every node's progress, in list order.
    pub fn node_views(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.frames.root().graph.nodes.indices().filter_map(|node| self.node_view(node))
    }

    /// The progress of one node.
    pub fn node_view(&self, ix: NodeIx) -> Option<NodeView<'_>> {
        let root = self.frames.root();
        let (row, done) = (root.nodes.get(ix), root.done(ix));
        Some(NodeView {
            node: &root.graph.nodes.get(ix)?.id,
            started: row.map_or(0, |row| row.started_at),
            ended: done.map(|done| done.finished_at),
            retired: if root.flow.is_some() { done.is_some() } else { ix.0 < root.retired() },
            failed: done.is_some_and(|done| done.fault.is_some()),
            skipped: done.is_some_and(|done| done.skipped),
        })
    }

    /// A node's live conversation, for watchers.
    pub fn thread_of(&self, node: &str) -> Option<ThreadView<'_>> {
        let node = self.frames.root().by_id(node)?;
        let visit = self.visit(NodeRef::root(node))?;
        Some(ThreadView::new(&self.messages, visit.thread.clone()))
    }
}

impl<'s> View<'s> {
    /// Where the run stands.
    pub fn status(self) -> RunStatus {
        self.status
    }

    /// The run's result, once completed; null before, and without one.
    pub fn output(self) -> &'s Value {
        match self.status {
            RunStatus::Completed => self.root().output(),
            _ => &Value::Null,
        }
    }

    /// Why it did not complete.
    pub fn fault(self) -> Option<&'s Fault> {
        self.state.ended().and_then(|(_, fault)| fault)
    }

    /// Every thread that exists, by name, in the order of the document; those of frames behind those around them (W-03).
    pub fn threads(self) -> impl Iterator<Item = (Cow<'s, str>, ThreadView<'s>)> {
        self.frames().flat_map(move |frame| self.threads_of(frame))
    }

    /// The thread of that name, if it exists.
    pub fn thread(self, name: &str) -> Option<ThreadView<'s>> {
        self.thread_called(name)
    }

    /// Results by node, in list order; those in frames that a node opened before its own (W-03).
    pub fn results(self) -> impl Iterator<Item = StepResult<'s>> {
        self.finished().map(|(frame, node, done)| step_result(&frame, node, done))
    }

    /// The result of the node of that name.
    pub fn result(self, node: &str) -> Option<StepResult<'s>> {
        let (frame, node) = self.node_called(node)?;
        Some(step_result(&frame, node, frame.finished(node)?))
    }

    /// What nodes published, by the key thread, last write wins (P-18); in the order of the first writes.
    pub fn data_out(self) -> Vec<Published<'s>> {
        let mut rows: Vec<Published<'s>> = Vec::new();
        let mut at: BTreeMap<ThreadIx, usize> = BTreeMap::new();
        let (graph, top) = (&self.root().graph, self.top());
        for node in graph.nodes.indices() {
            let Some(done) = top.finished(node) else { continue };
            let Some(publication) = done.publication() else { continue };
            let thread = &graph.threads[publication.key].name;
            let row = Published { thread, node: &graph.nodes[node].id, publication };
            let place = *at.entry(publication.key).or_insert(rows.len());
            match rows.get_mut(place) {
                Some(old) => *old = row,
                None => rows.push(row),
            }
        }
        rows
    }

    /// What the result of a node has brought to `runtime_metadata`, by the names of its fields (D-05).
    pub fn synced(self, node: &str) -> impl Iterator<Item = (&'s str, &'s Value)> {
        let at = self.root().by_id(node).and_then(|node| self.finished_as(node));
        let fields = at.and_then(|(_, done)| done.output.as_object()).into_iter().flatten();
        let prefix = format!("{node}_");
        fields.filter_map(move |(name, _)| {
            let (by, value) = self.root().runtime_at(&format!("{prefix}{name}"), NodeIx(self.horizon))?;
            at.is_some_and(|(node, _)| node == by).then_some((name.as_str(), value))
        })
    }

    fn root(self) -> &'s Frame {
        self.state.frames.root()
    }

    fn finished_as(self, node: NodeIx) -> Option<(NodeIx, &'s Done)> {
        Some((node, self.top().finished(node)?))
    }
}

fn step_result<'s>(frame: &Named<'s>, node: NodeIx, done: &'s Done) -> StepResult<'s> {
    let def = &frame.frame.graph.nodes[node];
    StepResult {
        name: frame.names.node(def.shown_id()),
        step_id: def.shown_id(),
        step_name: def.shown_name(),
        tool_id: done.tool().or(def.tool.as_ref()).map(|tool| &**tool),
        output: if done.fault.is_none() { &done.output } else { &Value::Null },
        is_success: done.fault.is_none(),
        error: done.fault.as_deref(),
        attempts: done.attempts,
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("status", &self.status)
            .field("output", self.output())
            .field("fault", &self.fault())
            .field("threads", &self.threads().collect::<Vec<_>>())
            .field("data_out", &self.data_out())
            .field("results", &self.results().collect::<Vec<_>>())
            .field("joins", &self.joins().collect::<Vec<_>>())
            .field("runtime", &self.runtime())
            .finish()
    }
}

impl Frames {
    /// The graph of frames of that path, and what reports put before the names in them.
    fn names(&self, path: FramePathRef<'_>) -> Option<(&Graph, &Schedule, Names)> {
        let root = self.root();
        let mut at = (&*root.graph, &*root.schedule, Names::default());
        for step in path.steps() {
            let (graph, schedule, names) = at;
            let node = graph.nodes.get(*schedule.by_id.get(&*step.node)?)?;
            let mut acts = graph.leaves(node).map(|leaf| &leaf.act);
            let (act, inner) = acts.find_map(|act| Some((act, act.opens(&step.instance)?)))?;
            let (inner, schedule) = self.inner(inner)?;
            at = (inner, schedule, names.within(&node.id, act, &step.instance));
        }
        Some(at)
    }
}

impl State {
    /// A thread's value below the horizon, or `None` if it does not exist there.
    fn visible_thread(&self, frame: &Frame, ix: ThreadIx, horizon: u32) -> Option<Thread> {
        match &frame.flow {
            Some(flow) => self.thread_in_flow(frame, ix, flow),
            None => frame.thread_in_dataflow(ix, horizon),
        }
    }

    /// A thread as the live node has it, or as the last one left it.
    fn thread_in_flow(&self, frame: &Frame, ix: ThreadIx, flow: &Flow) -> Option<Thread> {
        // What is said in a loop is said around it, too, also before the iteration has ended.
        if let Some((Children::Loop(phase), _)) = frame.children(flow.at)
            && let Some(inner) = phase.unfinished(&self.frames)
            && let Some(own) = inner.schedule.thread_by_name.get(&frame.graph.threads[ix].name)
        {
            return self.visible_thread(inner, *own, u32::MAX);
        }
        let works_on = |node: &NodeIx| frame.graph.nodes[*node].body.thread == Some(ix);
        let at = Some(flow.at).filter(works_on);
        let live = at.and_then(|node| frame.visit(node)).map(|visit| &visit.thread);
        // Who failed shows what it had said.
        let failed = at.filter(|_| flow.has_ended());
        let partial = failed.and_then(|node| frame.done(node)?.partial());
        let base = frame.threads.get(ix);
        let said = live.or(partial).filter(|thread| base.is_some() || !thread.is_empty());
        said.or(base).cloned()
    }
}

impl Frame {
    /// A thread's value below the horizon, or `None` if it does not exist there.
    fn thread_in_dataflow(&self, ix: ThreadIx, horizon: u32) -> Option<Thread> {
        let (order, base) = (OrderIx(ix.0), self.threads.get(ix));
        let reached = self.dataflow.as_ref()?.orders[order].prefix;
        let prefix = reached.min(self.schedule.before(order, NodeIx(horizon)));
        let next = self.schedule.orders[order].writers.get(prefix as usize);
        let live = next.filter(|node| node.0 < horizon && self.graph.nodes[**node].body.thread == Some(ix));
        let own = live.and_then(|node| match &self.nodes[*node].phase {
            NodePhase::Running(visit) => Some(visit.thread.clone()),
            NodePhase::Done(done) => done.partial().cloned(),
            NodePhase::Waiting(_) => None,
        });
        let exists = prefix > 0 || base.is_some_and(|base| !base.is_empty() || own.is_some());
        exists.then(|| own.unwrap_or_else(|| self.thread_after(ix, prefix)))
    }
}

#[cfg(test)]
mod tests;
