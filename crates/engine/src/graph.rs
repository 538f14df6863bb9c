//! The one graph that every document lowers to (E-01).
//!
//! A [`Graph`] is a *dataflow* of [`Node`]s: each runs once all that it can observe has finished, and
//! they retire in list order. A node's body is a [`Flow`] of [`Leaf`]s: one is live at a time, and the
//! first out-edge whose guard holds is taken. Nothing here says what a node observes: that is derived
//! from the graph itself ([`crate::schedule`]), so that no document format can get it wrong.

use crate::effect::{Effects, ModelSettings, ReplySchema, ToolDef};
use crate::event::Budget;
use crate::expression::Expression;
use crate::ids::{GraphIx, LeafIx, NodeIx, Table, TailIx, ThreadIx};
use crate::message::Slice;
use crate::template::{JsonTemplate, OnMissing, Template};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;

mod control;
mod derived;
mod edits;
mod leaves;
mod recovery;
mod rounds;
pub use control::{Control, Join, Loop, Paths, PathsOf, Strategy, Sub, Times, Way, When};
pub use derived::Derived;
pub use edits::Edit;
pub use leaves::Tail;
pub use recovery::{Action, Alternative, Fact, Recovery};
pub use rounds::{AtLimit, Between, Draft, OnEmpty, Rounds};

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
    /// The thread of the node has more bytes than this.
    Over(u32),
    /// A person has said something to the node that it has not taken yet (E-43).
    Messages,
}

/// What a leaf does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Creates the flow's thread from a slice of another (P-03, P-06).
    Open {
        /// The source.
        from: ThreadIx,
        /// Which of its messages.
        slice: Slice,
    },
    /// Appends a user message to the flow's thread (P-10).
    #[serde(rename = "say")]
    AppendText(Template),
    /// Asks a person before going on (E-21, E-33). What is said to anything but [`AskKind::Approve`] is the node's result, and
    /// with a thread a user message there.
    Ask(AskKind, Template, #[serde(default, skip_serializing_if = "Option::is_none")] Option<Box<Expects>>),
    /// Asks a model for the next message of the flow's thread (E-23).
    Infer(Box<Infer>),
    /// Runs one tool; with a thread, call and result are appended to it (P-13), unless it is an operation (E-40).
    Call(Call),
    /// Answers the tool calls of the last reply (P-11): runs what may run, in order where effects need it.
    Answer {
        /// `false` answers every call with the refusal that the limits are used up (P-14).
        run: bool,
        /// How often a transient fault of a tool is tried again (P-24).
        retry: Retry,
        /// Seconds a call may take.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_s: Option<f64>,
    },
    /// Publishes the flow's result: a keyed value of the run, and a message on another thread (P-18).
    Publish {
        /// Where the message goes; the flow's own thread gets none (P-19).
        to: ThreadIx,
        /// Stands before the result, with nothing between.
        description: Template,
        /// A label of the publishing node that reports show.
        label: Arc<str>,
    },
    /// Waits until the node stands first in line: all earlier ones have retired (D-16).
    #[serde(rename = "turn")]
    AwaitRetirement,
    /// Appends a user message to the flow's thread: the text, and the facts as one JSON object.
    #[serde(rename = "brief")]
    AppendFacts {
        /// Stands before the facts, with an empty line between.
        text: Template,
        /// In this order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        facts: Vec<Fact>,
    },
    /// Reads the last reply, in the schema `reflection`, applies the limits and says what happens (D-17 … D-19).
    Decide,
    /// Runs the call that was decided on; its result is the node's. It is tried again as the node's own call says, and
    /// ends in time as that says, unless a repaired definition has a `timeout`.
    #[serde(rename = "try")]
    Retry,
    /// Turns the `steps` of the last reply into nodes by the flow's compiler (D-20, D-21). Its arguments are
    /// `{"steps", "strategy"?, "earlier": [{"id", "tool", "success"}]}` and the context; its output is
    /// `{"nodes": [Node], "tails": [Tail], "tools": {name: ToolDef}}`, where nodes refer to these tails, or
    /// `{"diagnostics": […]}`, which is a fault.
    Compile {
        /// Constant members of the arguments.
        #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
        context: serde_json::Map<String, Value>,
        /// How many lists of steps may be refused for one decision to replan, with the last of which
        /// [`Guard::Exhausted`] holds: one more than go back.
        tries: u32,
    },
    /// Puts the compiled nodes in the place of this node and all later ones (D-20).
    Splice,
    /// Opens a frame for each path of a fork, and joins them. It is the last leaf of its flow: what its paths left on other threads
    /// than the node's own stays there.
    Fork(Box<Paths>),
    /// Opens one frame after the other. It is the last leaf of its flow, too, unless it goes round beside a model's rounds
    /// ([`Times::Aside`]).
    Loop(Box<Loop>),
    /// Opens one frame.
    Sub(Box<Sub>),
    /// Takes something away from the flow's thread (E-09).
    Edit(Edit),
    /// Sets a variable of the flow that the node is in.
    Set(Arc<str>, JsonTemplate),
    /// Its value is the node's result.
    Give(JsonTemplate),
    /// Sets a variable to what an expression comes to (E-46).
    Compute(Arc<str>, Expression),
    /// Sets a variable to what was said last on the flow's thread, but for the task, as a text of bounded size.
    Recall(Arc<str>),
    /// Tells the user something, under a code.
    Warn(Arc<str>, Template),
    /// Appends what people have said to the node since it did so last, each as a user message of its thread (E-43).
    TakeMessages,
    /// Binds tools in the scope of the flow that the node is in (E-41): an object of definitions by name ([`ToolDef`]). `null`
    /// takes a binding back.
    Bind(JsonTemplate),
}

impl Act {
    /// The schema that what comes of it fits, if it says one: a reply, or an answer.
    pub(crate) fn schema(&self) -> Option<&Value> {
        match self {
            Self::Infer(infer) => infer.schema.as_ref().map(|schema| &schema.schema),
            Self::Ask(AskKind::Answer | AskKind::Edit, _, Some(expects)) => expects.schema.as_ref(),
            _ => None,
        }
    }
    /// Whether it is one call that the graph, and not a model's reply, names.
    pub(crate) fn is_fixed(&self) -> bool {
        matches!(self, Self::Call(_) | Self::Retry | Self::Compile { .. })
    }
}

/// Names of operations begin so (E-40): tools that are Selvedge's own, which only a graph calls. No model is told of them, and
/// they leave no message.
pub const INTERNAL: &str = "selvedge__";

/// Whether a tool of that name is an operation.
pub fn is_operation(tool: &str) -> bool {
    tool.starts_with(INTERNAL)
}

/// A model call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Infer {
    /// The model role or name; empty is `basic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// Whether the flow's tools are offered.
    #[serde(default)]
    pub offer_tools: bool,
    /// Goes first in the request and never enters the thread (E-23).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Template>,
    /// The shape a reply without calls must have (E-33).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<ReplySchema>,
    /// A later leaf finds out what the reply is worth, and sends it back with its reasons ([`Act::Compile`]): it is not
    /// held against the schema here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// Nobody makes the calls of its reply: they are left out of it, and of a reply without words nothing is left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_words: bool,
    /// What becomes of an empty reply.
    #[serde(default, skip_serializing_if = "OnEmpty::asks_again")]
    pub on_empty: OnEmpty,
    /// Sampling settings.
    #[serde(default)]
    pub settings: ModelSettings,
    /// Seconds the reply may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
}

/// A fixed tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The tool's bound name.
    pub tool: Arc<str>,
    /// Its arguments.
    pub args: JsonTemplate,
    /// How often a transient fault is tried again.
    #[serde(default)]
    pub retry: Retry,
    /// Seconds a call may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
    /// What an operation is told that works between the rounds of another node.
    #[serde(default, skip_serializing_if = "Told::is_nothing")]
    pub told: Told,
}

/// What an operation is told beside its arguments: it stands in the run already, and in its event there is a digest of it (E-08, E-40).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// Nothing.
    #[default]
    Nothing,
    /// `calls`: what tools were called for since a graph last worked between the rounds, and what came of it.
    Calls,
    /// The same, and, where the provider does not count it, `texts`: what is said in the conversation, but for what such an operation had
    /// counted before, in whose place stands what it answered: `counted`.
    Conversation,
}

impl Told {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }
}

/// Retries of a tool's transient faults (P-24, D-17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Attempts beyond the first; `None` if the document says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Seconds before the next attempt; `None` is E-14's back-off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_s: Option<f64>,
}

/// What comes with a question to a person, and what the answer has to be (E-21).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Expects {
    /// What is shown with it; of [`AskKind::Edit`] what is to be edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<JsonTemplate>,
    /// The JSON Schema that an answer fits; of an approval nothing is held against it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Seconds after which nobody is asked any more (E-37).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
}

/// What a person is asked for (E-21).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AskKind {
    /// Yes or no.
    Approve,
    /// A free answer.
    Answer,
    /// What is shown, changed.
    Edit,
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
