//! How far a node has come: it waits, its body runs, or this is what it left.

use super::opened::Children;
use super::phase::{AskPhase, CallsPhase, ModelPhase, Publication};
use super::recovery::memory::RecoveryState;
use super::reuse::records::Records;
use super::since::Since;
use crate::effect::{EffectId, Effects, ModelReply};
use crate::fault::Fault;
use crate::ids::{FrameIx, LeafIx, MessageIx};
use crate::message::{Thread, ToolCall};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node of the graph.
#[derive(Clone, Debug)]
pub(crate) struct NodeState {
    pub(crate) phase: NodePhase,
    /// How often it was started, this time included.
    pub(crate) visit: u32,
    /// Tries of its earlier visits (D-25); a fork counts its own.
    pub(crate) tries: u32,
    /// The last visit that is among them: later ones were ahead of their turn.
    pub(crate) counted: u32,
    pub(crate) queued: bool,
    pub(crate) started_at: i64,
}

#[derive(Clone, Debug)]
pub(crate) enum NodePhase {
    /// So many waits are not fulfilled yet.
    Waiting(u32),
    Running(Box<Visit>),
    /// Clones of a state share it.
    Done(Arc<Done>),
}

/// The running body of a node.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    /// The live leaf; `None` at the end of the flow.
    pub(crate) leaf: Option<LeafIx>,
    pub(crate) visits: LeafVisits,
    pub(crate) phase: LeafPhase,
    /// The owned thread as this node sees it.
    pub(crate) thread: Thread,
    pub(crate) rounds: u32,
    pub(crate) last_text: Option<MessageIx>,
    /// Tries of it (D-25). Of a node whose calls count: its calls. Of others: those of its tools beyond the first.
    pub(crate) calls: u32,
    /// Something took an outcome of a visit that counts already.
    pub(crate) reused: bool,
    /// Something was asked for, or refused, or took an outcome that does not count yet.
    pub(crate) re_executed: bool,
    pub(crate) records: Records,
    /// Requests so far: their structural order in this node (E-29).
    pub(crate) requests: u32,
    /// The live leaf was reached because a limit of the node was (P-14).
    pub(crate) exhausted: bool,
    /// A person approved the fixed call of the live leaf.
    pub(crate) approved: bool,
    pub(super) extra: Option<Box<VisitExtra>>,
}

/// What visits have that call tools, loop, publish, recover, or got a reply that was not all that it should be.
#[derive(Clone, Debug, Default)]
pub(crate) struct VisitExtra {
    /// What its own work has failed of.
    pub(super) fault: Option<Box<Fault>>,
    /// What it remembers of its recovery, once there is something (D-17).
    pub(crate) recovery: Option<Box<RecoveryState>>,
    pub(crate) published: Option<Box<Publication>>,
    /// What the frames that it opened came to, or what a person said, if it did.
    pub(crate) value: Option<Box<Value>>,
    /// Of a join that was met: the faults of the paths that failed (W-09).
    pub(crate) errors: Option<Box<Value>>,
    /// How often each tool was called (P-14).
    pub(crate) calls: BTreeMap<Arc<str>, u32>,
    /// The calls of the last reply, with the ids they have on the thread.
    pub(crate) reply_calls: Vec<ToolCall>,
    /// Outputs of tools, with the tool (P-17).
    pub(crate) outputs: Vec<(Arc<str>, Arc<Value>)>,
    /// The last reply that was not whole (E-27).
    pub(crate) cut: Option<Arc<ModelReply>>,
    /// Characters of its replies of which only a part came (E-27).
    pub(crate) unmended: u32,
    /// Iterations of its loops, so that no frame has the path of another.
    pub(crate) iterations: u32,
    /// Rounds that were taken back, as the model said nothing.
    pub(crate) rolled_back: u32,
    /// What has happened since a graph last worked between its rounds, where one does.
    pub(crate) since: Option<Box<Since>>,
    /// The frames that it opened and that have come to their end.
    pub(crate) left: Option<Box<Left>>,
}

/// A path that waits has one, and there may be thousands of those.
const _: () = assert!(size_of::<Visit>() <= 120);

#[derive(Clone, Debug)]
pub(crate) enum LeafPhase {
    Enter,
    Model(ModelPhase),
    Calls(Box<CallsPhase>),
    /// Asks a person.
    Ask(AskPhase),
    /// Waits for frames that it has opened.
    Frames(Box<Children>),
}

impl Default for NodeState {
    fn default() -> Self {
        Self::new(0)
    }
}

impl NodeState {
    pub(crate) fn new(visit: u32) -> Self {
        let phase = NodePhase::Waiting(0);
        Self { phase, visit, tries: 0, counted: 0, queued: false, started_at: 0 }
    }
    /// What was recorded is known from elsewhere.
    pub(crate) fn forget_records(&mut self) {
        drop(self.take_records());
    }

    /// What it has recorded, which it has no longer.
    pub(crate) fn take_records(&mut self) -> Records {
        match &mut self.phase {
            NodePhase::Running(visit) => std::mem::take(&mut visit.records),
            NodePhase::Done(done) if !done.records.is_empty() => {
                std::mem::take(&mut Arc::make_mut(done).records)
            }
            NodePhase::Done(_) | NodePhase::Waiting(_) => Records::default(),
        }
    }
}

impl Visit {
    pub(crate) fn extra_mut(&mut self) -> &mut VisitExtra {
        self.extra.get_or_insert_default()
    }
    pub(crate) fn rolled_back(&self) -> u32 {
        self.extra.as_ref().map_or(0, |extra| extra.rolled_back)
    }
    /// The frames that it opened and that have come to their end.
    pub(crate) fn take_left(&mut self) -> Option<Box<Left>> {
        self.extra.as_mut()?.left.take()
    }
    /// The faults of the paths of a join that was met.
    pub(crate) fn take_errors(&mut self) -> Option<Box<Value>> {
        self.extra.as_mut()?.errors.take()
    }
    pub(crate) fn left(&self) -> Option<&Left> {
        self.extra.as_ref()?.left.as_deref()
    }
    /// Iterations of its loops so far.
    pub(crate) fn iterations(&self) -> u32 {
        self.extra.as_ref().map_or(0, |extra| extra.iterations)
    }
    /// How often it has called a tool.
    pub(crate) fn calls_of(&self, tool: &str) -> u32 {
        self.extra.as_ref().and_then(|extra| extra.calls.get(tool).copied()).unwrap_or(0)
    }
    pub(crate) fn count_call(&mut self, tool: Arc<str>) {
        *self.extra_mut().calls.entry(tool).or_insert(0) += 1;
    }
    /// Whether its last reply calls tools.
    pub(crate) fn has_reply_calls(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| !extra.reply_calls.is_empty())
    }
    pub(crate) fn take_reply_calls(&mut self) -> Vec<ToolCall> {
        self.extra.as_mut().map(|extra| std::mem::take(&mut extra.reply_calls)).unwrap_or_default()
    }
    pub(crate) fn outputs(&self) -> &[(Arc<str>, Arc<Value>)] {
        self.extra.as_ref().map_or(&[], |extra| &extra.outputs)
    }
    /// The last reply that was not whole (E-27).
    pub(crate) fn cut(&self) -> Option<&Arc<ModelReply>> {
        self.extra.as_ref()?.cut.as_ref()
    }
    /// Characters of its replies of which only a part came (E-27).
    pub(crate) fn unmended(&self) -> u32 {
        self.extra.as_ref().map_or(0, |extra| extra.unmended)
    }
    /// A reply is on the thread, with these calls.
    pub(crate) fn note_reply(&mut self, reply: Arc<ModelReply>, calls: Vec<ToolCall>) {
        if self.extra.is_none() && calls.is_empty() && reply.unmended == 0 && reply.cut.is_none() {
            return;
        }
        let extra = self.extra_mut();
        extra.reply_calls = calls;
        extra.unmended = extra.unmended.saturating_add(reply.unmended);
        if reply.cut.is_some() {
            extra.cut = Some(reply);
        }
    }
    /// What its own work has failed of.
    pub(crate) fn fault(&self) -> Option<&Fault> {
        self.extra.as_ref()?.fault.as_deref()
    }
    pub(crate) fn set_fault(&mut self, fault: Option<Box<Fault>>) {
        if fault.is_some() || self.extra.is_some() {
            self.extra_mut().fault = fault;
        }
    }
    pub(crate) fn recovery(&self) -> Option<&RecoveryState> {
        self.extra.as_ref()?.recovery.as_deref()
    }
    pub(crate) fn published(&self) -> Option<&Publication> {
        self.extra.as_ref()?.published.as_deref()
    }
    pub(crate) fn take_published(&mut self) -> Option<Box<Publication>> {
        self.extra.as_mut()?.published.take()
    }
    /// What the frames that it opened came to, or what a person said, if it did.
    pub(crate) fn value(&self) -> Option<&Value> {
        self.extra.as_ref()?.value.as_deref()
    }
    /// Whether nothing is left to do, and all went well.
    pub(crate) fn has_succeeded(&self) -> bool {
        self.leaf.is_none() && self.fault().is_none() && self.recovery_fault().is_none()
    }
    pub(crate) fn new(entry: Option<LeafIx>, thread: Thread) -> Self {
        Self {
            leaf: entry,
            visits: LeafVisits::from(entry),
            phase: LeafPhase::Enter,
            thread,
            rounds: 0,
            last_text: None,
            calls: 0,
            reused: false,
            re_executed: false,
            records: Records::default(),
            requests: 0,
            exhausted: false,
            approved: false,
            extra: None,
        }
    }
}

/// How often each leaf was come to. Most are come to once and are among the first, which takes a bit.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeafVisits {
    /// Leaves by number that were come to.
    pub(super) visited: u64,
    /// Those that were come to more than once, or have no bit.
    #[allow(clippy::box_collection, reason = "the box is a pointer where the map is three")]
    pub(super) more: Option<Box<BTreeMap<LeafIx, u32>>>,
}

impl LeafVisits {
    fn from(entry: Option<LeafIx>) -> Self {
        let mut visits = Self::default();
        entry.into_iter().for_each(|leaf| visits.count(leaf));
        visits
    }
    pub(crate) fn of(&self, leaf: LeafIx) -> Option<u32> {
        let counted = self.more.as_ref().and_then(|more| more.get(&leaf).copied());
        counted.or_else(|| (self.visited & bit(leaf) != 0).then_some(1))
    }
    pub(crate) fn count(&mut self, leaf: LeafIx) {
        match self.of(leaf) {
            None if bit(leaf) != 0 => self.visited |= bit(leaf),
            before => drop(self.more.get_or_insert_default().insert(leaf, before.unwrap_or(0) + 1)),
        }
    }
    /// Whether none was come to again.
    pub(crate) fn are_first(&self) -> bool {
        self.more.as_ref().is_none_or(|more| more.values().all(|visits| *visits == 1))
    }
}

/// The bit that stands for a leaf, if there is one.
fn bit(leaf: LeafIx) -> u64 {
    1_u64.checked_shl(leaf.0).unwrap_or(0)
}

impl Visit {
    /// Effects that are under way.
    pub(super) fn effects(&self) -> Vec<EffectId> {
        match &self.phase {
            LeafPhase::Model(phase) => vec![phase.effect.clone()],
            LeafPhase::Calls(phase) => {
                phase.slots.iter().filter(|slot| slot.is_running()).map(|slot| slot.effect.clone()).collect()
            }
            _ => Vec::new(),
        }
    }
    /// Of them, those that change the world each time.
    pub(super) fn writes(&self) -> Vec<(Arc<str>, EffectId)> {
        let LeafPhase::Calls(phase) = &self.phase else { return Vec::new() };
        let writes = phase.slots.iter().filter(|slot| slot.is_running() && slot.effects == Effects::Write);
        writes.map(|slot| (slot.call.name.clone(), slot.effect.clone())).collect()
    }
    /// The frames that it waits for, and the leaf that opened them.
    pub(super) fn children(&self) -> Option<(&Children, LeafIx)> {
        match &self.phase {
            LeafPhase::Frames(children) => Some((children, self.leaf?)),
            _ => None,
        }
    }
    pub(super) fn open_children(&self) -> Vec<FrameIx> {
        match &self.phase {
            LeafPhase::Frames(children) => children.open(),
            _ => Vec::new(),
        }
    }
    /// Whether a person may be asked.
    pub(super) fn asks(&self) -> bool {
        matches!(self.phase, LeafPhase::Ask(AskPhase::Open) | LeafPhase::Calls(_))
    }
}

/// What a finished node left.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    pub(crate) output: Value,
    pub(crate) fault: Option<Box<Fault>>,
    /// Whether the fault ends the run.
    pub(crate) fatal: bool,
    /// It did not run (D-16).
    pub(crate) skipped: bool,
    pub(crate) attempts: u32,
    /// Dropped when the node retires.
    pub(crate) records: Records,
    pub(crate) finished_at: i64,
    /// What most nodes do not leave.
    pub(crate) more: Option<Box<More>>,
}

/// What some finished nodes left.
#[derive(Clone, Debug, Default)]
pub(crate) struct More {
    pub(crate) publication: Option<Box<Publication>>,
    /// For a fatal fault: its own messages.
    pub(crate) partial: Option<Thread>,
    /// The tool that gave its result, or failed last, where it need not be the node's own.
    pub(crate) tool: Option<Arc<str>>,
    /// Of one that failed while it waited for frames: all of it, to go on in place (E-36).
    pub(crate) interrupted: Option<Box<Visit>>,
    /// The frames that it opened, as they ended, and its leaf that did: for who looks at the run (W-03).
    pub(crate) left: Option<Box<Left>>,
    /// Of a join that was met: the faults of the paths that failed (W-09).
    pub(crate) errors: Option<Box<Value>>,
}

/// The frames of a leaf that has left them.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub(crate) leaf: LeafIx,
    pub(crate) children: Children,
}

/// Each node leaves one, for as long as its run is known.
const _: () = assert!(size_of::<Done>() <= 112);

impl More {
    /// `None` if there is nothing.
    pub(crate) fn kept(self) -> Option<Box<Self>> {
        let any = self.publication.is_some() || self.partial.is_some();
        let any = any || self.tool.is_some() || self.interrupted.is_some() || self.left.is_some();
        let any = any || self.errors.is_some();
        any.then(|| Box::new(self))
    }
}

impl Done {
    pub(crate) fn publication(&self) -> Option<&Publication> {
        self.more.as_ref()?.publication.as_deref()
    }
    pub(crate) fn partial(&self) -> Option<&Thread> {
        self.more.as_ref()?.partial.as_ref()
    }
    /// Whether it failed while it waited for frames, with which it can go on.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.more.as_ref().is_some_and(|more| more.interrupted.is_some())
    }
    pub(crate) fn take_interrupted(&mut self) -> Option<Box<Visit>> {
        self.more.as_mut()?.interrupted.take()
    }
    pub(crate) fn tool(&self) -> Option<&Arc<str>> {
        self.more.as_ref()?.tool.as_ref()
    }
    /// Of a join that was met: the faults of the paths that failed (W-09).
    pub(crate) fn errors(&self) -> Option<&Value> {
        self.more.as_ref()?.errors.as_deref()
    }
}

impl Left {
    pub(super) fn parts(&self) -> (&Children, LeafIx) {
        (&self.children, self.leaf)
    }
}
