//! What is observable of a run: threads, results, metadata, in the shapes that reports print (C-02).

use super::done::Done;
use super::flow::Flow;
use super::frame::Frame;
use super::state::{NodePhase, Publication, State, Status, Usage};
use crate::effect::{EffectId, Wait};
use crate::event::{End, Start};
use crate::fault::{Fault, Warning};
use crate::graph::Graph;
use crate::ids::{NodeIx, NodeRef, OrderIx, ThreadIx};
use crate::message::{Message, Thread};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

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
pub struct StepResult {
    /// The node's id.
    pub step_id: Arc<str>,
    /// Its name.
    pub step_name: Arc<str>,
    /// The tool that gave the result; null for a model's node.
    pub tool_id: Option<Arc<str>>,
    /// The result (E-25); null after a fault.
    pub output: Value,
    /// Whether it succeeded.
    pub is_success: bool,
    /// Why not.
    pub error: Option<Fault>,
    /// Tries of this id, from 1.
    pub attempts: u32,
}

/// One node's progress, for live views and `explain`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeView {
    /// The node's id.
    pub node: Arc<str>,
    /// Milliseconds since the epoch; 0 if it has not started.
    pub started: i64,
    /// Milliseconds since the epoch, once it has finished.
    pub ended: Option<i64>,
    /// Whether its result is final (P-20).
    pub retired: bool,
    /// It does not run, because it may depend on a node that failed (D-16).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
}

/// The observable part of a run at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// Where it stands.
    pub status: RunStatus,
    /// The last node's result, once completed.
    pub output: Value,
    /// Why it did not complete.
    pub fault: Option<Fault>,
    /// Every thread that exists, in the order of the document.
    pub threads: Vec<(Arc<str>, Vec<Arc<Message>>)>,
    /// What nodes published, by the key thread, last write wins (P-18).
    pub data_out: Vec<(Arc<str>, Arc<str>, Publication)>,
    /// Results by node, in list order.
    pub results: Vec<StepResult>,
    /// `runtime_metadata`: value and the node it came from.
    pub runtime: BTreeMap<Arc<str>, (Value, Arc<str>)>,
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
    pub fn view(&self) -> View {
        let status = self.status();
        self.view_to(status, self.horizon(status))
    }

    /// Everything that is known, also what ran ahead and is not final yet: for watchers.
    pub fn live_view(&self) -> View {
        self.view_to(self.status(), u32::MAX)
    }

    fn view_to(&self, status: RunStatus, horizon: u32) -> View {
        let root = self.frames.root();
        let visible = root.graph.nodes.indices().filter(|node| node.0 < horizon);
        let finished: Vec<(NodeIx, &Done)> = visible
            .filter_map(|node| root.done(node).filter(|done| !done.skipped).map(|done| (node, done)))
            .collect();
        let last = finished.last().filter(|_| status == RunStatus::Completed);
        View {
            status,
            output: last.map(|_| root.output()).unwrap_or_default(),
            fault: self.ended().and_then(|(_, fault)| fault.cloned()),
            threads: self.visible_threads(horizon),
            data_out: self.published_values(&finished),
            results: finished.iter().map(|(node, done)| self.step_result(*node, done)).collect(),
            runtime: root.runtime_values(NodeIx(horizon)),
        }
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

    fn visible_threads(&self, horizon: u32) -> Vec<(Arc<str>, Vec<Arc<Message>>)> {
        let threads = self.frames.root().graph.threads.iter().filter_map(|(ix, def)| {
            let thread = self.frames.root().visible_thread(ix, horizon)?;
            let messages = thread.iter().map(|message| Arc::clone(&self.messages[message])).collect();
            Some((def.name.clone(), messages))
        });
        threads.collect()
    }

    fn published_values(&self, finished: &[(NodeIx, &Done)]) -> Vec<(Arc<str>, Arc<str>, Publication)> {
        let mut values: Vec<(Arc<str>, Arc<str>, Publication)> = Vec::new();
        let mut at: BTreeMap<ThreadIx, usize> = BTreeMap::new();
        for (node, done) in finished {
            let Some(publication) = done.publication() else { continue };
            let graph = &self.frames.root().graph;
            let key = graph.threads[publication.key].name.clone();
            let row = (key, graph.nodes[*node].id.clone(), publication.clone());
            let place = *at.entry(publication.key).or_insert(values.len());
            match values.get_mut(place) {
                Some(old) => *old = row,
                None => values.push(row),
            }
        }
        values
    }

    fn step_result(&self, node: NodeIx, done: &Done) -> StepResult {
        let def = &self.frames.root().graph.nodes[node];
        StepResult {
            step_id: def.id.clone(),
            step_name: def.name.clone(),
            tool_id: done.tool().or(def.tool.as_ref()).cloned(),
            output: done.output.clone(),
            is_success: done.fault.is_none(),
            error: done.fault.as_deref().cloned(),
            attempts: done.attempts,
        }
    }

    /// The first data layer (D-01).
    pub fn initial(&self) -> &Map<String, Value> {
        &self.start.initial
    }

    /// Every node's progress, in list order.
    pub fn node_views(&self) -> Vec<NodeView> {
        let root = self.frames.root();
        let rows = root.graph.nodes.iter().map(|(ix, def)| {
            let row = root.nodes.get(ix);
            NodeView {
                node: def.id.clone(),
                started: row.map_or(0, |row| row.started_at),
                ended: root.done(ix).map(|done| done.finished_at),
                retired: if root.flow.is_some() { root.done(ix).is_some() } else { ix.0 < root.retired() },
                skipped: root.done(ix).is_some_and(|done| done.skipped),
            }
        });
        rows.collect()
    }

    /// A node's live conversation, for watchers.
    pub fn thread_of(&self, node: &str) -> Option<Vec<Arc<Message>>> {
        let node = self.frames.root().by_id(node)?;
        let visit = self.visit(NodeRef::root(node))?;
        Some(visit.thread.iter().map(|ix| Arc::clone(&self.messages[ix])).collect())
    }
}

impl Frame {
    /// A thread as the live node has it, or as the last one left it.
    fn thread_in_flow(&self, ix: ThreadIx, flow: &Flow) -> Option<Thread> {
        let state = &self.threads[ix];
        let live = self.nodes.iter().find_map(|(node, _)| {
            self.visit(node).filter(|_| self.graph.nodes[node].body.thread == Some(ix))
        });
        let live = live.map(|visit| &visit.thread);
        // Who failed shows what it had said.
        let failed = flow
            .at
            .filter(|_| flow.ended.is_some())
            .filter(|node| self.graph.nodes[*node].body.thread == Some(ix));
        let partial = failed.and_then(|node| self.done(node)?.partial());
        let thread = live.or(partial).unwrap_or(&state.base);
        (state.exists || !thread.is_empty()).then(|| thread.clone())
    }

    /// A thread's value below the horizon, or `None` if it does not exist there.
    fn visible_thread(&self, ix: ThreadIx, horizon: u32) -> Option<Thread> {
        if let Some(flow) = &self.flow {
            return self.thread_in_flow(ix, flow);
        }
        let (order, state) = (OrderIx(ix.0), &self.threads[ix]);
        let reached = self.dataflow.as_ref()?.orders[order].prefix;
        let prefix = reached.min(self.schedule.before(order, NodeIx(horizon)));
        let next = self.schedule.orders[order].writers.get(prefix as usize);
        let live = next.filter(|node| node.0 < horizon && self.graph.nodes[**node].body.thread == Some(ix));
        let own = live.and_then(|node| match &self.nodes[*node].phase {
            NodePhase::Running(visit) => Some(visit.thread.clone()),
            NodePhase::Done(done) => done.partial().cloned(),
            NodePhase::Waiting(_) => None,
        });
        let exists = prefix > 0 || !state.base.is_empty() || (state.exists && own.is_some());
        exists.then(|| own.unwrap_or_else(|| self.thread_after(ix, prefix)))
    }
}
