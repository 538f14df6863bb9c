//! What the leaves of a node do.

use super::{Edit, Fact, Loop, OnEmpty, Paths, Sub};
use crate::effect::{ModelSettings, ReplySchema};
use crate::expression::Expression;
use crate::ids::ThreadIx;
use crate::message::Slice;
use crate::template::{JsonTemplate, Template};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

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
        /// [`Guard::Exhausted`](super::Guard::Exhausted) holds: one more than go back.
        tries: u32,
    },
    /// Puts the compiled nodes in the place of this node and all later ones (D-20).
    Splice,
    /// Opens a frame for each path of a fork, and joins them. It is the last leaf of its flow: what its paths left on other threads
    /// than the node's own stays there.
    Fork(Box<Paths>),
    /// Opens one frame after the other. It is the last leaf of its flow, too, unless it goes round beside a model's rounds
    /// ([`Times::Aside`](super::Times::Aside)).
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
    /// Binds tools in the scope of the flow that the node is in (E-41): an object of definitions by name ([`ToolDef`](crate::ToolDef)). `null`
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
    /// The node that runs the document says so, and not the node itself: a write that was sent is not tried again (W-18).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_inherited: bool,
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
