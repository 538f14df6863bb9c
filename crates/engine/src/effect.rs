//! Effects: what only the outside can do, and what came back.
//!
//! The engine requests an effect by an event that holds references, never copies;
//! [`crate::State::request`] builds the request from them when the driver wants to send it.

mod outputs;
mod printed;

pub use outputs::Outputs;
pub use printed::Printed;

use crate::fault::{Fault, FaultKind};
use crate::message::ToolCall;
use crate::messages::Messages;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a tool does to the world (E-22), weakest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effects {
    /// Depends on its arguments only and changes nothing.
    Pure,
    /// Looks at the world and changes nothing.
    Read,
    /// Changes the world, but twice is as good as once.
    Idempotent,
    /// Changes the world each time it is called.
    #[default]
    Write,
}

/// A tool as the graph and the model know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDef {
    /// The bound name.
    pub name: Arc<str>,
    /// What the model is told about it.
    pub description: Arc<str>,
    /// JSON Schema of the arguments object.
    pub input_schema: Value,
    /// The fields of its output object that go to `runtime_metadata`; `None` if not declared (D-05, D-24).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_params: Option<Outputs>,
    /// Declared effects; `None` is treated as `write` (E-22).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    /// Content hash of the code or definition.
    pub version: Arc<str>,
    /// Where it comes from, for people: a file, `built-in`, `command`, `mcp:SERVER`.
    pub source: Arc<str>,
    /// Seconds a call may take, if the tool says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
    /// Whether a person has to approve each call (A-22, `shell`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approval: bool,
}

/// The structural name of one effect: frame path / node / visit / attempt (E-06).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EffectId(pub Arc<str>);

impl std::fmt::Display for EffectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Settings that go to the model as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelSettings {
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Cap on the reply's tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Sampling seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Stop sequences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Settings only some providers know (P-26): `enable_search`, `enable_thinking`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// Fields of the request's body that are sent as they are (P-28).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub body: Map<String, Value>,
}

impl ModelSettings {
    /// These settings, and those of `under` where these say nothing.
    #[must_use]
    pub fn over(self, under: &Self) -> Self {
        let merged = |over: Map<String, Value>, under: &Map<String, Value>| {
            let mut merged = under.clone();
            merged.extend(over);
            merged
        };
        Self {
            temperature: self.temperature.or(under.temperature),
            top_p: self.top_p.or(under.top_p),
            max_tokens: self.max_tokens.or(under.max_tokens),
            seed: self.seed.or(under.seed),
            stop: if self.stop.is_empty() { under.stop.clone() } else { self.stop },
            extra: merged(self.extra, &under.extra),
            body: merged(self.body, &under.body),
        }
    }
}

/// A JSON Schema that the reply has to fit, with the name it is asked for by (E-26, E-33).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplySchema {
    /// `manager`, `judge`, …, or the node's id.
    pub name: Arc<str>,
    /// The JSON Schema.
    pub schema: Value,
}

/// Everything a model adapter needs to make one call. Messages are shared, not copied.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The effect; also the idempotency key.
    pub effect: EffectId,
    /// The id of the node that asks, as in the document.
    pub node: Arc<str>,
    /// The thread the node runs on.
    pub thread: Arc<str>,
    /// The model role or name the document asked for; `basic` if it did not.
    pub role: Arc<str>,
    /// Exactly what is sent, in order (E-23).
    pub messages: Messages,
    /// The tools offered; empty means that the request has no tools at all (P-15).
    pub tools: Vec<Arc<ToolDef>>,
    /// Without `tools`: those of the whole graph, for providers that want calls in the history defined (E-30).
    pub known: Vec<Arc<ToolDef>>,
    /// The shape the reply must have.
    pub schema: Option<ReplySchema>,
    /// Sampling settings.
    pub settings: ModelSettings,
    /// Seconds the whole reply may take, when the node says so.
    pub timeout_s: Option<f64>,
}

/// Everything an adapter needs to make one call of a tool, or of an operation.
#[derive(Clone, Debug)]
pub struct ToolRequest {
    /// The effect. What a repeated call is known by is [`Self::key`].
    pub effect: EffectId,
    /// The id of the node that asks, as in the document.
    pub node: Arc<str>,
    /// The tool, as pinned by the run.
    pub tool: Arc<ToolDef>,
    /// The arguments object, resolved and checked against the tool's schema.
    pub args: Value,
    /// Seconds the call may take, when the node says so; else the tool's own, else the limit.
    pub timeout_s: Option<f64>,
}

impl ToolRequest {
    /// What all attempts at the same call have in common. What an operation changes outside the run carries it, with the run, so
    /// that a repeat finds what was done (E-40).
    pub fn key(&self) -> EffectId {
        self.effect.place().map_or_else(|| self.effect.clone(), |place| place.first().id())
    }
}

/// A request of any kind.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "built once per effect and moved at once")]
pub enum Request {
    /// Ask a model.
    Model(ModelRequest),
    /// Run a tool.
    Tool(ToolRequest),
    /// Run an operation of Selvedge's own: a tool whose name begins with [`crate::graph::INTERNAL`] (E-40).
    Operation(ToolRequest),
}

/// What a model call used, in the provider's own figures (E-20).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tokens {
    /// Tokens of the prompt.
    #[serde(default)]
    pub input: u64,
    /// Tokens of the reply.
    #[serde(default)]
    pub output: u64,
    /// Price by the configured table, in its currency; 0 without one.
    #[serde(default)]
    pub cost: f64,
    /// Those of `input` that the provider read from a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// Those of `output` that the model spent on thoughts that are no part of the reply.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

impl Tokens {
    /// Adds another call's. A provider's figure may be nonsense, but never a failed assertion.
    pub fn add(&mut self, other: &Tokens) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.cost += other.cost;
    }

    /// The cost as it is shown (C-02): to 12 significant digits, so that neither binary fractions nor the order in
    /// which calls were added up show in it.
    pub fn shown_cost(&self) -> f64 {
        format!("{:.11e}", self.cost).parse().unwrap_or(self.cost)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

fn is_nothing(tokens: &Tokens) -> bool {
    *tokens == Tokens::default()
}

/// What a provider said of tokens that no reply can have taken (E-20): below 0, above 10^12, or no number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Of the prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub input: bool,
    /// Of the reply.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output: bool,
}

impl Unread {
    /// Whether all that was said could be taken.
    pub fn is_empty(&self) -> bool {
        !self.input && !self.output
    }
}

/// A model's whole answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The text, possibly empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The tool calls in order, with the ids the provider gave (possibly empty or repeated: E-10).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// What it used.
    #[serde(default)]
    pub tokens: Tokens,
    /// The provider's word for why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Why it is not all that the model had to say; `None`: it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// How many characters in it are U+FFFD because only a part of them came.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unmended: u32,
    /// Which figures of its tokens were said and are none.
    #[serde(default, skip_serializing_if = "Unread::is_empty")]
    pub unread: Unread,
}

impl ModelReply {
    /// How a cut reply ended and what to do about it, for warnings and faults (E-27); `None` for a whole one.
    pub fn cut_words(&self) -> Option<String> {
        let stop = self.stop.as_deref().unwrap_or("unknown");
        Some(match self.cut? {
            Cut::Limit if stop == "model_context_window_exceeded" => format!(
                "the reply ended where the model's context was full (stop reason `{stop}`): send less of the thread, \
                 or use a model with more context"
            ),
            Cut::Limit => format!(
                "the reply ended at the limit of tokens (stop reason `{stop}`): raise max_tokens, or let the model \
                 say less"
            ),
            Cut::Withheld => format!("the provider held back the rest of the reply (stop reason `{stop}`)"),
        })
    }
}

/// Why a reply ended before the model did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cut {
    /// A limit of tokens: of the reply, or of the model's context.
    Limit,
    /// A filter of the provider.
    Withheld,
}

/// Why an effect failed, as the adapter saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The fault, without a node.
    pub fault: Fault,
    /// Whether trying again may help: the transport faults of E-14, the transient ones of D-17.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transient: bool,
    /// The provider's Retry-After, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether it is known that no request was sent: then it counts as no call (C-02, E-20).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsent: bool,
    /// What a model's reply that was no use took all the same, by its provider's figures (E-20).
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub tokens: Tokens,
    /// Which figures of these were said and are none.
    #[serde(default, skip_serializing_if = "Unread::is_empty")]
    pub unread: Unread,
}

impl Failure {
    /// A failure that trying again does not mend.
    pub fn of(fault: Fault) -> Self {
        Self {
            fault,
            transient: false,
            retry_after_ms: None,
            unsent: false,
            tokens: Tokens::default(),
            unread: Unread::default(),
        }
    }
    /// The same of a fault that is yet to be made.
    pub fn permanent(kind: FaultKind, message: impl Into<String>) -> Self {
        Self::of(Fault::new(kind, message))
    }
    /// A failure that may pass.
    pub fn transient(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { transient: true, ..Self::permanent(kind, message) }
    }
    /// The same, of a request that was not sent.
    #[must_use]
    pub fn unsent(mut self) -> Self {
        self.unsent = true;
        self
    }
}

/// The output of an operation, with what it used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Operated {
    /// Its JSON value.
    pub output: Arc<Value>,
    /// What models used for it, by their providers' figures; it counts as that of the run's own calls does (E-20).
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub tokens: Tokens,
    /// Which figures of these were said and are none.
    #[serde(default, skip_serializing_if = "Unread::is_empty")]
    pub unread: Unread,
}

impl From<Value> for Operated {
    fn from(output: Value) -> Self {
        Self { output: Arc::new(output), ..Self::default() }
    }
}

impl From<Operated> for Outcome {
    fn from(operated: Operated) -> Self {
        match is_nothing(&operated.tokens) && operated.unread.is_empty() {
            true => Self::Output(operated.output),
            false => Self::Operated(Arc::new(operated)),
        }
    }
}

/// What came back from an effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// A model's answer.
    Reply(Arc<ModelReply>),
    /// A tool's output: its JSON value (E-25).
    Output(Arc<Value>),
    /// The output of an operation that has used a model (E-40).
    Operated(Arc<Operated>),
    /// Neither.
    Failed(Box<Failure>),
}

/// It stands in events and in what each call of a model leaves for a run that begins anew (E-29).
const _: () = assert!(size_of::<Outcome>() <= 16);

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

impl Outcome {
    /// What a tool or an operation gave.
    pub fn output(&self) -> Option<&Value> {
        match self {
            Self::Output(output) => Some(output),
            Self::Operated(operated) => Some(&operated.output),
            Self::Reply(_) | Self::Failed(_) => None,
        }
    }

    /// Whether its request was sent, so that it counts as a call (E-20).
    pub fn is_sent(&self) -> bool {
        !matches!(self, Self::Failed(failure) if failure.unsent)
    }

    /// What a call of a model took by its provider's figures, also one that came to nothing (E-20).
    pub fn tokens(&self) -> Option<&Tokens> {
        match self {
            Self::Reply(reply) => Some(&reply.tokens),
            Self::Operated(operated) => Some(&operated.tokens),
            Self::Failed(failure) if !is_nothing(&failure.tokens) => Some(&failure.tokens),
            Self::Failed(_) | Self::Output(_) => None,
        }
    }
}

/// What the time of a call that came to an end went into, waits before it was dispatched aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Took {
    /// How long it waited for its turn under the limits on parallel calls, in milliseconds.
    #[serde(default, skip_serializing_if = "is_none")]
    pub queued_ms: u32,
    /// How long it was under way after that, in milliseconds.
    pub worked_ms: u32,
}

/// A wait before an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// How long, in milliseconds.
    pub ms: u64,
    /// When it is over by the journal's times, in milliseconds since 1970.
    pub until: i64,
}

impl Wait {
    /// What is left of it at the time `now` for a process that did not see it begin: never more than all of it, whatever
    /// became of the clock meanwhile.
    pub fn left_ms(self, now: i64) -> u64 {
        u64::try_from(self.until.saturating_sub(now)).unwrap_or(0).min(self.ms)
    }
}

#[cfg(test)]
mod tests;
