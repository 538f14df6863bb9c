//! What a run is at one moment: a fold of its journal and nothing else (E-03).

use super::children::Children;
use super::done::Done;
use super::frame::Frames;
use crate::effect::{EffectId, Effects, Failure, ModelReply, Tokens, Wait};
use crate::event::{End, Start};
use crate::fault::{Fault, Warning};
use crate::graph::{AskKind, Graph};
use crate::ids::{FrameIx, LeafIx, MessageIx, NodeRef, ThreadIx};
use crate::message::{Entry, Thread, ToolCall};
use crate::messages::Log;
use crate::schema::Checks;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

/// The state of a run. [`State::apply`] is the only mutation (E-02).
#[derive(Debug)]
pub struct State {
    /// The frames; the first is the run's own graph (E-34).
    pub(crate) frames: Frames,
    /// Frames whose threads have not got their first messages yet.
    pub(crate) seeding: Vec<FrameIx>,
    pub(crate) checks: Arc<Checks>,
    pub(crate) sizes: super::size::Sizes,
    /// Time of the latest input.
    pub(crate) now: i64,
    /// Events applied.
    pub(crate) events: u64,
    pub(crate) start: Start,
    pub(crate) status: Status,
    pub(crate) messages: Log,
    /// Ids of calls in any of them.
    pub(crate) call_ids: HashSet<Arc<str>>,
    /// Nodes with something to derive; each at most once.
    pub(crate) agenda: VecDeque<NodeRef>,
    /// Effects requested and not completed.
    pub(crate) pending: BTreeMap<EffectId, PendingEffect>,
    /// How many of them ask a model: counted against the budget before they are answered (E-20).
    pub(crate) pending_models: u64,
    pub(crate) asks: BTreeMap<Arc<str>, Asking>,
    /// What is waited for no longer than until then (E-37); ids are places.
    pub(crate) timers: BTreeMap<Arc<str>, Wait>,
    /// Writes in doubt that are not to run again, by the ask (E-05).
    pub(crate) declined: BTreeMap<Arc<str>, super::doubt::Declined>,
    pub(crate) usage: Usage,
    /// How often it began to count from nothing.
    pub(crate) resets: u32,
    pub(crate) warnings: Vec<Warning>,
    /// Why models could not be asked by nodes that went on without them (D-18), since the run last began anew.
    pub(crate) unasked: Vec<Fault>,
    /// Recorded successes that new requests may take (E-29).
    pub(crate) reuse: super::reuse::ReuseCache,
    /// What stands for the frames that it has something of.
    pub(crate) keys: super::reuse::Keys,
    /// How often nodes of frames were started in the run that this one was forked from.
    pub(crate) prior_visits: BTreeMap<super::reuse::Spot, u32>,
    /// What nodes recorded that can't be taken any more, if somebody wants to know ([`State::recording`]).
    pub(crate) recorder: Option<Box<super::reuse::Recording>>,
}

/// Where a run stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Status {
    /// No event yet.
    #[default]
    New,
    Running,
    /// To end as soon as the next event can be derived.
    Ending(End, Option<Box<Fault>>),
    Ended(End, Option<Box<Fault>>),
}

/// What a run has used (C-02).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Model requests that were answered.
    pub model_calls: u64,
    /// Tools that really ran.
    pub tool_calls: u64,
    /// Tokens and money.
    pub tokens: Tokens,
}

/// An effect that was requested and has not completed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PendingEffect {
    /// How many events the journal had when it was requested: the order of requests.
    pub(crate) event: u64,
    /// The node it belongs to.
    pub node: NodeRef,
    /// Which call of the node's current leaf; 0 for a model.
    pub(crate) slot: usize,
    /// How long it waits before it is dispatched (E-14).
    pub wait: Wait,
    /// What it does to the world; a model call counts as `idempotent` (E-05).
    pub effects: Effects,
    /// Whether it asks a model.
    pub model: bool,
}

/// A person is being asked (E-21).
#[derive(Clone, Debug, PartialEq)]
pub struct Asking {
    /// The node that waits.
    pub node: NodeRef,
    /// What is asked for.
    pub kind: AskKind,
    /// The question.
    pub prompt: String,
    /// What is shown with it, or is to be edited.
    pub value: Option<Arc<Value>>,
    /// When nobody is asked any more, in milliseconds since 1970 (E-37).
    pub due: Option<i64>,
    pub(crate) slot: Option<usize>,
}

/// A thread: in a flow its value, in a dataflow the one that it begins with.
#[derive(Debug, Default)]
pub(crate) struct ThreadState {
    pub(crate) base: Thread,
    pub(crate) exists: bool,
}

/// A node of the graph.
#[derive(Debug)]
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

#[derive(Debug)]
pub(crate) enum NodePhase {
    /// So many waits are not fulfilled yet.
    Waiting(u32),
    Running(Box<Visit>),
    Done(Box<Done>),
}

/// The running body of a node.
#[derive(Debug)]
pub(crate) struct Visit {
    /// What events call the node.
    pub(crate) name: Arc<str>,
    /// The live leaf; `None` at the end of the flow.
    pub(crate) leaf: Option<LeafIx>,
    pub(crate) visits: LeafVisits,
    pub(crate) phase: LeafPhase,
    /// The owned thread as this node sees it.
    pub(crate) thread: Thread,
    pub(crate) rounds: u32,
    pub(crate) last_text: Option<MessageIx>,
    pub(crate) fault: Option<Box<Fault>>,
    pub(crate) published: Option<Box<Publication>>,
    pub(crate) tries: Tries,
    pub(crate) records: Vec<super::reuse::Recorded>,
    /// Requests so far: their structural order in this node (E-29).
    pub(crate) requests: u32,
    /// The live leaf was reached because a limit of the node was (P-14).
    pub(crate) exhausted: bool,
    /// A person approved the fixed call of the live leaf.
    pub(crate) approved: bool,
    /// What it remembers of its recovery, once there is something (D-17).
    pub(crate) recovery: Option<Box<super::recovery::RecoveryState>>,
    /// What the frames that it opened came to, or what a person said, if it did.
    pub(crate) value: Option<Box<Value>>,
    extra: Option<Box<VisitExtra>>,
}

/// What visits have that call tools, loop, or got a reply that was not all that it should be.
#[derive(Debug, Default)]
pub(crate) struct VisitExtra {
    /// How often each tool was called (P-14).
    pub(crate) calls: BTreeMap<Arc<str>, u32>,
    /// The calls of the last reply, with the ids they have on the thread.
    pub(crate) reply_calls: Vec<ToolCall>,
    /// Those of them that came to a fault.
    pub(crate) failed_calls: Vec<Arc<str>>,
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
    /// The frames that it opened and that have come to their end.
    pub(crate) left: Option<Box<super::done::Left>>,
}

/// A path that waits has one, and there may be thousands of those.
const _: () = assert!(size_of::<Visit>() <= 208);

/// How often each leaf was come to. Most are come to once and are among the first, which takes a bit.
#[derive(Debug, Default)]
pub(crate) struct LeafVisits {
    /// Leaves by number that were come to.
    visited: u64,
    /// Those that were come to more than once, or have no bit.
    #[allow(clippy::box_collection, reason = "the box is a pointer where the map is three")]
    more: Option<Box<BTreeMap<LeafIx, u32>>>,
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

/// Tries of one visit (D-25).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tries {
    /// Of a node whose calls count: its calls. Of others: those of its tools beyond the first.
    pub(crate) calls: u32,
    /// Something took an outcome of a visit that counts already.
    pub(crate) reused: bool,
    /// Something was asked for, or refused, or took an outcome that does not count yet.
    pub(crate) re_executed: bool,
}

/// What a node published (P-18).
#[derive(Clone, Debug, PartialEq)]
pub struct Publication {
    /// Where the message went, when it was not the node's own thread.
    pub(crate) to: Option<(ThreadIx, Entry)>,
    /// The node's own thread, which is the key.
    pub key: ThreadIx,
    /// The label of the publishing node.
    pub label: Arc<str>,
    /// What stands before the result in the message.
    pub description: Arc<str>,
    /// The result.
    pub content: Arc<str>,
}

#[derive(Debug)]
pub(crate) enum LeafPhase {
    Enter,
    Model(ModelPhase),
    Calls(Box<CallsPhase>),
    /// Asks a person.
    Ask(AskPhase),
    /// Waits for frames that it has opened.
    Frames(Box<Children>),
}

#[derive(Debug)]
pub(crate) enum AskPhase {
    Open,
    /// The answer that is to be taken; of an approval a no.
    Said(Box<Value>),
    /// Nobody answered in time (E-37).
    Expired,
}

#[derive(Debug)]
pub(crate) struct ModelPhase {
    pub(crate) effect: EffectId,
    pub(crate) attempt: u32,
    pub(crate) got: Option<Got>,
    /// What came of its earlier attempts, if there were some.
    pub(crate) earlier: Option<Box<EarlierAttempts>>,
}

/// What came of the attempts before the one that is under way.
#[derive(Debug, Default)]
pub(crate) struct EarlierAttempts {
    /// Transport faults of the current question.
    pub(crate) faults: u32,
    /// Waits between them so far, in milliseconds (E-14).
    pub(crate) waited_ms: u64,
    /// Empty replies so far (E-27).
    pub(crate) empties: u32,
    /// The reply that did not fit the schema, and why (E-33).
    pub(crate) refused: Option<(Arc<ModelReply>, String)>,
}

impl ModelPhase {
    /// A question that is asked for the first time.
    pub(crate) fn first(effect: EffectId) -> Self {
        Self { effect, attempt: 1, got: None, earlier: None }
    }
    pub(crate) fn faults(&self) -> u32 {
        self.earlier.as_ref().map_or(0, |earlier| earlier.faults)
    }
    pub(crate) fn waited_ms(&self) -> u64 {
        self.earlier.as_ref().map_or(0, |earlier| earlier.waited_ms)
    }
    pub(crate) fn empties(&self) -> u32 {
        self.earlier.as_ref().map_or(0, |earlier| earlier.empties)
    }
    pub(crate) fn refused(&self) -> Option<&(Arc<ModelReply>, String)> {
        self.earlier.as_ref()?.refused.as_ref()
    }
    pub(crate) fn earlier_mut(&mut self) -> &mut EarlierAttempts {
        self.earlier.get_or_insert_default()
    }
}

#[derive(Debug)]
pub(crate) enum Got {
    Reply(Arc<ModelReply>),
    Failed(Box<Failure>, u32),
}

/// The calls of one leaf. They begin in order; their results are appended in order.
#[derive(Debug, Default)]
pub(crate) struct CallsPhase {
    pub(crate) slots: Vec<Slot>,
    /// The first slot that has not begun.
    pub(crate) next: usize,
    /// Slots not done; of them, those that look at the world, and those that change it.
    pub(crate) open: usize,
    pub(crate) open_impure: usize,
    pub(crate) open_writes: usize,
    /// Slots with something to settle.
    pub(crate) unsettled: VecDeque<usize>,
    pub(crate) appended: usize,
    /// For a fixed call: whether its assistant message is on the thread.
    pub(crate) call_appended: bool,
}

#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) call: ToolCall,
    pub(crate) effect: EffectId,
    pub(crate) attempt: u32,
    /// Waits between its attempts so far, in milliseconds (P-24).
    pub(crate) waited_ms: u64,
    pub(crate) effects: Effects,
    pub(crate) approved: bool,
    /// A person does not want it to run again: what it came to before stands (E-29).
    pub(crate) declined: bool,
    /// Its place among the requests of its node.
    pub(crate) order: u32,
    pub(crate) state: SlotState,
}

#[derive(Debug)]
pub(crate) enum SlotState {
    Todo,
    Asked,
    Running,
    /// To be tried again or given up.
    Failed(Box<Failure>, u32),
    /// Nobody knows whether it happened (E-05); `true` once a person is asked.
    Lost(bool),
    Done(Result<Arc<Value>, Box<Fault>>),
}

impl State {
    /// The state before the first event of a run of `graph`.
    pub fn new(graph: Arc<Graph>) -> State {
        State::over(Frames::new(graph))
    }

    /// The state before the first event of another run of the graph that this one has now. What follows from the graph alone, as
    /// the orders of its nodes and its compiled schemas, both share: who runs one graph often derives it once.
    #[must_use]
    pub fn another(&self) -> State {
        State { checks: Arc::clone(&self.checks), ..State::over(self.frames.another()) }
    }

    fn over(frames: Frames) -> State {
        State {
            frames,
            seeding: Vec::new(),
            checks: Arc::default(),
            sizes: super::size::Sizes::default(),
            now: 0,
            events: 0,
            start: Start::default(),
            status: Status::New,
            messages: Log::new(),
            call_ids: HashSet::new(),
            agenda: VecDeque::new(),
            pending: BTreeMap::new(),
            pending_models: 0,
            asks: BTreeMap::new(),
            timers: BTreeMap::new(),
            declined: BTreeMap::new(),
            usage: Usage::default(),
            resets: 0,
            warnings: Vec::new(),
            unasked: Vec::new(),
            reuse: super::reuse::ReuseCache::default(),
            keys: super::reuse::Keys::default(),
            prior_visits: BTreeMap::new(),
            recorder: None,
        }
    }
}

impl NodeState {
    pub(crate) fn new(visit: u32) -> Self {
        let phase = NodePhase::Waiting(0);
        Self { phase, visit, tries: 0, counted: 0, queued: false, started_at: 0 }
    }
    /// What was recorded is known from elsewhere.
    pub(crate) fn forget_records(&mut self) {
        match &mut self.phase {
            NodePhase::Running(visit) => visit.records = Vec::new(),
            NodePhase::Done(done) => done.records = Box::default(),
            NodePhase::Waiting(_) => {}
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
    pub(crate) fn take_left(&mut self) -> Option<Box<super::done::Left>> {
        self.extra.as_mut()?.left.take()
    }
    pub(crate) fn left(&self) -> Option<&super::done::Left> {
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
    pub(crate) fn failed_calls(&self) -> &[Arc<str>] {
        self.extra.as_ref().map_or(&[], |extra| &extra.failed_calls)
    }
    pub(crate) fn forget_failed_calls(&mut self) {
        if let Some(extra) = &mut self.extra {
            extra.failed_calls = Vec::new();
        }
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
        extra.failed_calls = Vec::new();
        extra.unmended = extra.unmended.saturating_add(reply.unmended);
        if reply.cut.is_some() {
            extra.cut = Some(reply);
        }
    }
    /// Keeps what a request came to (E-29). Most nodes make one: a list that grows by itself begins with room for
    /// four.
    pub(crate) fn keep(&mut self, recorded: super::reuse::Recorded) {
        if self.records.is_empty() {
            self.records.reserve_exact(1);
        }
        self.records.push(recorded);
    }
    /// Whether nothing is left to do, and all went well.
    pub(crate) fn has_succeeded(&self) -> bool {
        self.leaf.is_none() && self.fault.is_none() && self.recovery_fault().is_none()
    }
    pub(crate) fn new(name: Arc<str>, entry: Option<LeafIx>, thread: Thread) -> Self {
        Self {
            name,
            leaf: entry,
            visits: LeafVisits::from(entry),
            phase: LeafPhase::Enter,
            thread,
            rounds: 0,
            last_text: None,
            fault: None,
            published: None,
            tries: Tries::default(),
            records: Vec::new(),
            requests: 0,
            exhausted: false,
            approved: false,
            recovery: None,
            value: None,
            extra: None,
        }
    }
}
