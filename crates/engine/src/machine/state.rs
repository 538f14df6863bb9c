//! What a run is at one moment: a fold of its journal and nothing else (E-03).

use super::frame::{Frame, Frames};
use super::node::{Done, NodePhase, Visit};
use super::person_messages::PersonMessages;
use super::reuse::cache::ReuseCache;
use super::reuse::lineage::Lineage;
use super::reuse::outcome::Turn;
use super::reuse::recording::Recording;
use super::reuse::said::Said;
use super::reuse::spot::{Keys, Spot};
use super::sizes::Sizes;
use super::usage::Usage;
use crate::effect::{EffectId, Effects, ToolDef, Wait};
use crate::event::{End, Start};
use crate::fault::{Fault, Warning};
use crate::graph::{AskKind, Graph, Leaf, Node};
use crate::ids::{FrameIx, LeafIx, NodeRef, ThreadIx};
use crate::message::ToolCall;
use crate::messages::Log;
use crate::schema::Checks;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

/// The state of a run. [`State::apply`] is the only mutation (E-02). A clone goes its own way, and shares what is never changed:
/// messages, values that events brought, graphs.
#[derive(Clone, Debug)]
pub struct State {
    /// The frames; the first is the run's own graph (E-34).
    pub(crate) frames: Frames,
    /// Frames whose threads have not got their first messages yet.
    pub(crate) seeding: Vec<FrameIx>,
    pub(crate) checks: Arc<Checks>,
    pub(crate) sizes: Sizes,
    pub(crate) said: Said,
    /// Time of the latest input.
    pub(crate) now: i64,
    /// Events applied.
    pub(crate) events: u64,
    pub(crate) start: Start,
    pub(crate) status: Status,
    pub(crate) messages: Log,
    /// Ids of calls in any of them. Clones share them until one has more.
    pub(crate) call_ids: Arc<HashSet<Arc<str>>>,
    /// Nodes with something to derive; each at most once.
    pub(crate) agenda: VecDeque<NodeRef>,
    /// Effects requested and not completed.
    pub(crate) pending: BTreeMap<EffectId, PendingEffect>,
    /// How many of them ask a model, and the tokens that they reserve, both counted against the budget before the answers (E-20).
    pub(crate) pending_models: u64,
    pub(crate) pending_tokens: u64,
    /// Tokens that model requests under way reserve, of those below a cap on tokens or cost.
    pub(crate) reserves: BTreeMap<EffectId, u64>,
    /// Nodes whose model request waits until the budget has room for it.
    pub(crate) for_room: Vec<NodeRef>,
    /// Output tokens of the largest reply so far.
    pub(crate) largest_reply: u64,
    /// Model requests that were ended early below a cap on tokens or cost: what they used is unknown.
    pub(crate) uncounted: u64,
    /// The number of the input with which the latest turn of the driver began. What was requested after it has not been sent yet.
    pub(crate) last_input: u64,
    /// Effects that the last event ended early, of those that count.
    pub(crate) ended_early: Vec<EarlyEnd>,
    /// Those of them in frames that are closed, of which it turned out that they had not been sent.
    pub(crate) unsent: Vec<EarlyEnd>,
    /// Effects that wait for their turn while the run ends.
    pub(crate) never_sent: BTreeSet<EffectId>,
    pub(crate) asks: BTreeMap<Arc<str>, Asking>,
    /// What is waited for no longer than until then (E-37); ids are places.
    pub(crate) timers: BTreeMap<Arc<str>, Wait>,
    /// Writes in doubt that are not to run again, by the ask (E-05).
    pub(crate) declined: BTreeMap<Arc<str>, Declined>,
    /// What people have said that answers no question (E-43).
    pub(crate) people: PersonMessages,
    pub(crate) usage: Usage,
    /// How often it began to count from nothing.
    pub(crate) resets: u32,
    /// The event with which it last did: what was requested before is the source's.
    pub(crate) counts_from: u64,
    pub(crate) warnings: Vec<Warning>,
    /// Why models could not be asked by nodes that went on without them (D-18), since the run last began anew.
    pub(crate) unasked: Vec<Fault>,
    /// Recorded successes that new requests may take (E-29).
    pub(crate) reuse: ReuseCache,
    /// What stands for the frames that it has something of.
    pub(crate) keys: Keys,
    /// How often nodes of frames were started in the run that this one was forked from.
    pub(crate) prior_visits: BTreeMap<Spot, u32>,
    /// What became of requests since it began anew, if it did.
    pub(crate) lineage: Option<Box<Lineage>>,
    /// How long the effect was under way that has just come to an end, in milliseconds.
    pub(crate) worked_ms: u32,
    /// What nodes recorded that can't be taken any more, if somebody wants to know ([`State::recording`]).
    pub(crate) recorder: Option<Box<Recording>>,
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

/// An effect that was requested and has not completed.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingEffect {
    /// How many events the journal had when it was requested: the order of requests.
    pub(crate) event: u64,
    /// The node it belongs to.
    pub node: NodeRef,
    /// Which call of the node's current leaf; 0 for a model.
    pub(crate) slot: u32,
    /// How long it waits before it is dispatched, if it does.
    pub(crate) wait: Option<Box<Wait>>,
    /// What it does to the world; a model call counts as `idempotent` (E-05).
    pub effects: Effects,
    /// Whether it asks a model.
    pub model: bool,
}

/// An effect that was ended early and counts.
#[derive(Clone, Debug)]
pub(crate) struct EarlyEnd {
    pub(crate) effect: EffectId,
    /// The innermost node around it whose frame is still open, and how deep that frame is.
    pub(crate) around: NodeRef,
    pub(crate) depth: u32,
    pub(crate) model: bool,
}

/// Each path that waits for a model has one.
const _: () = assert!(size_of::<PendingEffect>() <= 32);

impl PendingEffect {
    /// How long it waits before it is dispatched (E-14).
    pub fn wait(&self) -> Wait {
        self.wait.as_deref().copied().unwrap_or_default()
    }
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

/// A write in doubt that a person did not want to run again: the word can still be changed.
#[derive(Clone, Debug)]
pub struct Declined {
    /// The id of the node it belongs to.
    pub node: Arc<str>,
    /// The call.
    pub call: ToolCall,
    pub(super) turn: Turn,
}

impl State {
    /// The state before the first event of a run of `graph`. The orders of its nodes are derived once; all its runs share them.
    pub fn new(graph: Arc<Graph>) -> State {
        State {
            frames: Frames::new(graph),
            seeding: Vec::new(),
            checks: Arc::default(),
            sizes: Sizes::default(),
            said: Said::default(),
            now: 0,
            events: 0,
            start: Start::default(),
            status: Status::New,
            messages: Log::new(),
            call_ids: Arc::default(),
            agenda: VecDeque::new(),
            pending: BTreeMap::new(),
            pending_models: 0,
            pending_tokens: 0,
            reserves: BTreeMap::new(),
            for_room: Vec::new(),
            largest_reply: 0,
            uncounted: 0,
            last_input: 0,
            ended_early: Vec::new(),
            unsent: Vec::new(),
            never_sent: BTreeSet::new(),
            asks: BTreeMap::new(),
            timers: BTreeMap::new(),
            declined: BTreeMap::new(),
            people: PersonMessages::default(),
            usage: Usage::default(),
            resets: 0,
            counts_from: 0,
            warnings: Vec::new(),
            unasked: Vec::new(),
            reuse: ReuseCache::default(),
            keys: Keys::default(),
            lineage: None,
            worked_ms: 0,
            prior_visits: BTreeMap::new(),
            recorder: None,
        }
    }

    /// The state before the first event of another run of the graph that this one has now, with the schemas that are compiled.
    #[must_use]
    pub fn another(&self) -> State {
        State { checks: Arc::clone(&self.checks), ..State::new(Arc::clone(&self.frames.root().graph)) }
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
    /// The node of a frame that a node is itself, or in a frame that it opened.
    pub(crate) fn within(&self, mut node: NodeRef, frame: FrameIx) -> Option<NodeRef> {
        while node.frame != frame {
            node = self.of(node).opened_by?.0;
        }
        Some(node)
    }
    pub(crate) fn done(&self, node: NodeRef) -> Option<&Done> {
        self.of(node).done(node.node)
    }
}
