//! The one graph that every document lowers to (E-01).
//!
//! A [`Graph`] is a *dataflow* of [`Node`]s: each runs once all that it can observe has finished, and
//! they retire in list order. A node's body is a [`Flow`] of [`Leaf`]s: one is live at a time, and the
//! first out-edge whose guard holds is taken. Nothing here says what a node observes: that is derived
//! from the graph itself ([`crate::schedule`]), so that no document format can get it wrong.

use crate::effect::{Effects, ToolDef};
use crate::event::Budget;
use crate::ids::{GraphIx, LeafIx, NodeIx, Table, TailIx, ThreadIx};
use crate::template::{OnMissing, Template};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;

mod act;
mod control;
mod derived;
mod edits;
mod leaves;
mod recovery;
mod rounds;
pub use act::{Act, AskKind, Call, Expects, INTERNAL, Infer, Retry, Told, is_operation};
pub use control::{Control, Join, Loop, Paths, PathsOf, Strategy, Sub, Times, Way, When};
pub use derived::Derived;
pub use edits::Edit;
pub use leaves::Tail;
pub use recovery::{Action, Alternative, Fact, Recovery};
pub use rounds::{AtLimit, Between, Draft, OnEmpty, Over, Rounds};

/// A compiled document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// The document's name, for people.
    #[serde(default)]
    pub name: Option<Arc<str>>,
    /// Every thread that can exist.
    pub threads: Table<ThreadIx, ThreadDef>,
    /// The nodes, in list order, which is the order of meaning (P-20).
    pub nodes: Table<NodeIx, Node>,
    /// The tools that nodes name, by bound name, as pinned for the run.
    pub tools: BTreeMap<Arc<str>, Arc<ToolDef>>,
    /// Tools that a model was not offered, by name, with why: who chooses one all the same is told (D-17).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub withheld: BTreeMap<Arc<str>, Arc<str>>,
    /// Leaves that are the same for many nodes, stated once: how they recover.
    #[serde(default, skip_serializing_if = "Table::is_empty")]
    pub tails: Table<TailIx, Arc<Tail>>,
    /// How its nodes follow each other.
    #[serde(default, skip_serializing_if = "Control::is_dataflow")]
    pub control: Control,
    /// Of the run's own graph: all graphs that nodes open frames of, those that nodes of such graphs open included. They have
    /// the tools of this one.
    #[serde(default, skip_serializing_if = "Table::is_empty")]
    pub graphs: Table<GraphIx, Arc<Graph>>,
    /// Of an inner graph: caps on what each of its frames uses, with all below it (E-20). One that has used them up has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Arc<Budget>>,
    /// The orders of its nodes, once a run has asked for them.
    #[serde(skip)]
    pub derived: Derived,
}

/// A thread of the graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadDef {
    /// Its name.
    pub name: Arc<str>,
    /// The user message that it holds from the start; a thread without one is opened by its first node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Template>,
}

/// One node of a graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Unique in the graph; what results and placeholders call it.
    pub id: Arc<str>,
    /// For people.
    pub name: Arc<str>,
    /// What it does.
    pub body: Flow,
    /// What its failure means for the run.
    #[serde(default)]
    pub on_error: OnError,
    /// Overrides the declared effects of every tool it calls (E-22).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    /// What an unresolved placeholder becomes (D-10).
    #[serde(default)]
    pub on_missing: OnMissing,
    /// The tool that gives the node its result, for `results.*.tool_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// Earlier nodes that it waits for whatever it observes (D-14); ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Arc<str>>,
    /// How its flow may recover, and how often (D-17 … D-19).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Arc<Recovery>>,
    /// In a flow: where it goes on, the first way that is open. Without one that follows a success, the frame ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<Way>,
    /// In a flow: its result is that of the node before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passes: bool,
    /// Of one that opens frames: by which other id those behind it know it, and results show it. A fork is known by its join, and a
    /// loop by its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Arc<str>>,
    /// The name of that, where it says more than the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_name: Option<Arc<str>>,
    /// Caps on what it uses, with all below it, in all of its visits together (E-20): with them used up it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Arc<Budget>>,
    /// With its budget used up, whoever asks a model below it has failed, as it is with the run's own, and not the node: what is around
    /// those can still say what they have come to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fails_within: bool,
}

/// What a node's failure means (P-16).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// It ends the run.
    #[default]
    Fail,
    /// The run goes on without its result.
    Continue,
    /// Later nodes that can't depend on it still run; those that can are skipped, and the run fails (D-16).
    Finish,
}

/// The body of a node: leaves, of which one is live at a time; the first is the entry. Empty: does nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// The thread it owns while it runs: it sees all earlier writers, and no later one starts before it ends.
    /// A flow without one has a scratch thread of its own, which nobody else sees and whose texts are no result;
    /// its fixed calls appear on none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadIx>,
    /// Its own leaves.
    pub leaves: Table<LeafIx, Leaf>,
    /// The leaves that it shares with other flows; they come behind its own. [`Graph::leaves`] has both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailIx>,
    /// The tools a model may call here, in the order they are offered (P-15).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Arc<str>>,
    /// Whether models are offered what is bound in the scope, too, behind these and by name (E-41).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub offers_bound: bool,
    /// Calls allowed per tool (P-14); a tool that is absent has no limit of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub call_limits: BTreeMap<Arc<str>, u32>,
    /// Rounds of tool calls before the model has to conclude (P-14).
    #[serde(default)]
    pub max_rounds: u32,
    /// The pure tool of the graph that turns steps into nodes, for [`Act::Compile`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<Arc<str>>,
}

/// One act of a flow and where it leads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaf {
    /// Names the leaf in effect ids; unique in its flow.
    pub name: Arc<str>,
    /// What it does.
    pub act: Act,
    /// Where it goes on: the first edge that holds; none ends the flow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<Edge>,
}

/// Each node has some, of which one at most asks a model.
const _: () = assert!(size_of::<Leaf>() <= 128);

/// A way on from a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// When it is taken.
    pub when: Guard,
    /// The leaf it leads to; `None` ends the flow. Of a flow's own leaf: its tail's leaves are counted on from its own.
    /// Of a tail's: only the tail's are counted.
    pub to: Option<LeafIx>,
}

/// A condition on the state of a flow: total and without effects.
///
/// A fault of a leaf that has a [`Guard::Fault`] edge is caught: the edges are then tried in order like after a
/// success, so that one that is to be taken only after a fault stands before `Always`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// Holds.
    Always,
    /// The last reply has tool calls.
    Calls,
    /// A limit of the leaf is reached. At [`Act::AwaitRetirement`]: the rounds of reflection (D-19). At [`Act::Compile`]: it was
    /// refused for the last time. Elsewhere: `max_rounds`, or every offered tool has a limit and none is left (P-14).
    Exhausted,
    /// The leaf ended in a fault.
    Fault,
    /// The last decision is this one (D-17).
    Act(Action),
    /// The last decision is a replan and brought the steps along.
    Steps,
    /// The rounds of tool calls so far are none, or so many, or twice as many, and so on.
    Every(u16),
    /// The thread of the node has more bytes than this. No graph is made with it any more.
    Over(u32),
    /// The thread of the node may be larger than this.
    Outgrown(Over),
    /// A person has said something to the node that it has not taken yet (E-43).
    Messages,
}

impl Graph {
    /// The graph's identity: SHA-256 of its canonical JSON, in hex (E-05).
    ///
    /// # Errors
    /// Only if the graph can't be written as JSON, which is a bug.
    pub fn hash(&self) -> Result<String, serde_json::Error> {
        let bytes = serde_json::to_vec(self)?;
        Ok(hex(&Sha256::digest(bytes)))
    }
    /// It, and all graphs that nodes open frames of.
    pub fn all(&self) -> impl Iterator<Item = &Graph> {
        std::iter::once(self).chain(self.graphs.values().map(|graph| &**graph))
    }
    /// Its nodes, and those of all inner graphs.
    pub fn all_nodes(&self) -> impl Iterator<Item = &Node> {
        self.all().flat_map(|graph| graph.nodes.values())
    }
    /// The tools that models may be told of: all but the engine's own.
    pub fn offered(&self) -> impl Iterator<Item = &Arc<ToolDef>> {
        self.tools.values().filter(|tool| !is_operation(&tool.name))
    }
    /// Whether it is one of them.
    pub fn is_offered(&self, tool: &str) -> bool {
        self.tools.contains_key(tool) && !is_operation(tool)
    }
    /// The effects that a call of `tool` has at `node` (E-22): what the node says of its own tool says nothing of
    /// those that stand in for it.
    pub fn effects(&self, node: &Node, tool: &str) -> Effects {
        node.effects_of(tool, self.tools.get(tool).map(|def| &**def))
    }
}

impl Node {
    /// What results call it.
    pub fn shown_id(&self) -> &Arc<str> {
        self.end.as_ref().unwrap_or(&self.id)
    }
    /// The name that goes with that.
    pub fn shown_name(&self) -> &Arc<str> {
        let end = self.end_name.as_ref().or(self.end.as_ref());
        end.unwrap_or(&self.name)
    }
    /// The effects that a call of a tool has here, whose definition is this one. An operation is asked again under the key of the
    /// first attempt, and then does nothing anew (E-40).
    pub(crate) fn effects_of(&self, tool: &str, def: Option<&ToolDef>) -> Effects {
        let own = self.recovery.is_none() || self.tool.as_deref() == Some(tool);
        let says = self.effects.filter(|_| own);
        let effects = says.or_else(|| def.and_then(|def| def.effects)).unwrap_or_default();
        if is_operation(tool) { effects.min(Effects::Idempotent) } else { effects }
    }
}

/// Bytes as lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
