//! The journal's vocabulary.
//!
//! *Inputs* are what the outside did; each is recorded by [`crate::State::accept`]. Every other event is
//! *derived* by [`crate::State::step`], so that a replay of the inputs gives all of them again (E-18).

use crate::effect::{EffectId, Outcome, ToolDef};
use crate::fault::{Fault, Warning};
use crate::graph::{Action, AskKind, Graph};
use crate::machine::Past;
use crate::message::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One line of a journal: an event and the run's time when it happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Milliseconds since the Unix epoch, of the latest input.
    pub at: i64,
    /// What happened.
    pub event: Event,
}

/// What the outside did.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The run begins.
    Start(Box<Start>),
    /// An effect came to an end. `jitter` is a random number below 1,000,000 for the back-off (E-14).
    Complete(EffectId, Outcome, u32),
    /// A write was in flight when an earlier process died (E-05).
    Lose(EffectId),
    /// A person answered (E-21).
    Answer(Arc<str>, Value),
    /// The run is to end now (E-13).
    Cancel,
    /// The run's own time limit was reached.
    Expire(u64),
    /// The run's caps are replaced where these are given (E-20), before it goes on.
    Budget(Budget),
    /// Other models answer from here on, by role (E-29).
    Models(BTreeMap<Arc<str>, Arc<str>>),
    /// A failed run is to go on, or any run with tools that have changed: `tools` are the definitions that differ
    /// from the pinned ones (P-21).
    Resume(Vec<ToolDef>),
    /// The run leaves its source here and goes on by itself (E-19).
    Fork(Box<Fork>),
    /// An internal assertion failed (E-17).
    Poison(String),
}

/// What a run begins with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// The compiled graph's hash (E-05).
    pub graph: Arc<str>,
    /// The first data layer (D-01).
    #[serde(default)]
    pub initial: Map<String, Value>,
    /// Turns overlap off (P-20).
    #[serde(default)]
    pub sequential: bool,
    /// Caps of the run (E-20).
    #[serde(default)]
    pub budget: Budget,
    /// Limits that the machine itself applies (E-28).
    #[serde(default)]
    pub limits: Limits,
    /// Which model answers for a role, in the driver's words; equal words are the same model (E-29).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<Arc<str>, Arc<str>>,
}

/// Where and how a run leaves its source (E-19). It holds references only: what the source had recorded is folded
/// from the source's own journal whenever the fork is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fork {
    /// The source's id.
    pub source: Arc<str>,
    /// How many events the source had: what of them may be reused, also behind the shared prefix (E-29).
    pub events: u64,
    /// Hash of the graph that the fork begins anew; without one it goes on where the shared prefix ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Arc<str>>,
    /// The first data layer of a fork that begins anew; absent: the source's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<Map<String, Value>>,
    /// Caps in place of the source's. What was used counts from the fork on (E-20).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Turns overlap off from here on (P-20).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequential: bool,
    /// Other models by role, as in [`Event::ModelsSet`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<Arc<str>, Arc<str>>,
    /// Definitions that replace the pinned ones (P-21).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolDef>,
    /// Edited messages: the text that takes the place of a recorded reply's or output's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<EffectId, Arc<str>>,
    /// What the first `events` events of the source recorded; filled in by whoever reads the journal.
    #[serde(skip)]
    pub past: Option<Arc<Past>>,
    /// The graph that `graph` names; filled in by whoever reads the journal.
    #[serde(skip)]
    pub compiled: Option<Arc<Graph>>,
}

/// Caps on what a run may use; absent is no cap (E-20).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Model calls that were answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Input and output tokens together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money, in the price table's currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// The limits that the machine itself applies; keys of `[limits]` (E-28).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Bytes of one message.
    pub message_bytes: u64,
    /// Events of one journal.
    pub events: u64,
    /// Attempts of one model call at transport faults (E-14).
    pub model_attempts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message_bytes: 16 << 20, events: 10_000_000, model_attempts: 5 }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Every node retired.
    Completed,
    /// A fault ended it.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// What one line of the journal says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// Input: the run began.
    Started(Box<Start>),
    /// Input: an effect came to an end.
    Completed {
        /// Which effect.
        effect: EffectId,
        /// What came back.
        outcome: Outcome,
        /// Chosen by the driver for the back-off; parts of a million.
        #[serde(default, skip_serializing_if = "is_zero")]
        jitter: u32,
    },
    /// Input: nobody knows whether this write happened.
    Lost {
        /// Which effect.
        effect: EffectId,
    },
    /// Input: a person answered.
    Answered {
        /// Which ask.
        ask: Arc<str>,
        /// The answer.
        value: Value,
    },
    /// Input: the run was cancelled.
    CancelRequested,
    /// Input: the run's time was up.
    Expired {
        /// The limit, in seconds.
        seconds: u64,
    },
    /// Input: caps of the run were replaced.
    BudgetSet {
        /// The new caps; an absent one stays as it was.
        budget: Budget,
    },
    /// Input: other models answer from here on.
    ModelsSet {
        /// By role; a role that is absent stays as it was.
        models: BTreeMap<Arc<str>, Arc<str>>,
    },
    /// Input: a failed run goes on.
    Resumed {
        /// Definitions that replace the pinned ones from here on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<ToolDef>,
    },
    /// Input: the run leaves its source.
    Forked(Box<Fork>),
    /// Input: a bug ended this run.
    Poisoned {
        /// The failed assertion.
        message: String,
    },
    /// All that the node can observe has finished; it runs.
    NodeStarted {
        /// Which node.
        node: Arc<str>,
    },
    /// Thread edit: a thread was created from a slice of another.
    Opened {
        /// By which node.
        node: Arc<str>,
        /// The new thread.
        thread: Arc<str>,
        /// The source.
        from: Arc<str>,
        /// First message taken, from 0.
        start: usize,
        /// First message not taken.
        end: usize,
    },
    /// Thread edit: a message was appended.
    Appended {
        /// By which node.
        node: Arc<str>,
        /// To which thread.
        thread: Arc<str>,
        /// What it says; by reference where it was said before.
        body: Body,
    },
    /// An effect is to be dispatched.
    Requested {
        /// Its id.
        effect: EffectId,
        /// For a tool whose arguments stand in no message: the arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Value>,
        /// What the request could not say as it stands in the thread (E-23).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<Warning>,
    },
    /// An effect that failed is to be tried again, under a new id.
    Retried {
        /// The new attempt.
        effect: EffectId,
        /// How long to wait first, in milliseconds (E-14).
        after_ms: u64,
        /// Why, for people.
        reason: String,
    },
    /// A recorded success stands for a new request (E-29).
    Reused {
        /// The new request.
        effect: EffectId,
        /// The recorded one.
        from: EffectId,
        /// For a tool whose arguments stand in no message: the arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Value>,
    },
    /// A call of a reply was answered without running anything (P-14, P-15, E-10).
    Refused {
        /// Which call, in the form of an effect id.
        effect: EffectId,
        /// Why.
        fault: Fault,
        /// For a tool whose arguments stand in no message: the arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Value>,
    },
    /// A person is asked.
    Asked {
        /// The ask's id.
        ask: Arc<str>,
        /// The node that waits.
        node: Arc<str>,
        /// What is asked for.
        ask_kind: AskKind,
        /// The question.
        prompt: String,
    },
    /// A node published its result: a keyed value, and a message when `to` is not its own thread (P-18).
    Published {
        /// Which node.
        node: Arc<str>,
        /// To which thread.
        to: Arc<str>,
        /// What stands before the result.
        description: String,
    },
    /// A node came to an end; it retires when all before it have.
    NodeFinished {
        /// Which node.
        node: Arc<str>,
        /// Why it failed, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
        /// What the user should know.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<Warning>,
    },
    /// A leaf ended in a fault, and an edge of it says how to go on.
    Caught {
        /// Which node.
        node: Arc<str>,
        /// The fault.
        fault: Fault,
    },
    /// What is done about the node's last fault (D-17, D-22).
    Recovered {
        /// Which node.
        node: Arc<str>,
        /// The action.
        action: Action,
        /// Who chose it.
        by: Chooser,
        /// Why, for people.
        reason: String,
        /// The tool to call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<Arc<str>>,
        /// Its parameters, as a template; absent: as the node has them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parameters: Option<Value>,
        /// The repaired definition.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<Value>,
        /// What a replan is meant to do, for people (D-20).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        strategy: Option<Arc<str>>,
        /// The steps of a replan, if they came along.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        steps: Option<Value>,
    },
    /// The compiled nodes of an effect's output take the place of a node and all later ones (D-20).
    Spliced {
        /// The node that is replaced.
        node: Arc<str>,
        /// The effect that compiled them.
        effect: EffectId,
    },
    /// A node does not run, because it may depend on one that failed or was skipped (D-16).
    NodeSkipped {
        /// Which node.
        node: Arc<str>,
        /// The first node it may depend on that has no result.
        because: Arc<str>,
    },
    /// The run came to an end.
    Ended {
        /// How.
        status: End,
        /// Why, if it did not complete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
    },
}

/// Who chose what to do about a fault (D-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Chooser {
    /// A model.
    Model,
    /// The ladder of alternatives (D-18).
    Ladder,
    /// What counts when a model's answer does not parse (D-17).
    Default,
}

/// What an appended message says (E-09's provenance): text is stated once in a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// A text of the document.
    Text(Role, Arc<str>),
    /// The reply of a model call.
    Reply(EffectId),
    /// The assistant message that stands for a fixed call (P-13).
    Call(EffectId),
    /// The result, fault or refusal of a tool call.
    Output(EffectId),
}

impl Event {
    /// Whether the outside did it, so that a replay has to be fed with it (E-18).
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Event::Started(_)
                | Event::Completed { .. }
                | Event::Lost { .. }
                | Event::Answered { .. }
                | Event::CancelRequested
                | Event::Expired { .. }
                | Event::BudgetSet { .. }
                | Event::ModelsSet { .. }
                | Event::Resumed { .. }
                | Event::Forked(_)
                | Event::Poisoned { .. }
        )
    }
}

impl Input {
    /// The input that an event records; `None` for a derived one. [`crate::State::accept`] makes the same event
    /// of it again, which is how a recorded run is replayed (E-18).
    pub fn from_event(event: Event) -> Option<Self> {
        Some(match event {
            Event::Started(start) => Input::Start(start),
            Event::Completed { effect, outcome, jitter } => Input::Complete(effect, outcome, jitter),
            Event::Lost { effect } => Input::Lose(effect),
            Event::Answered { ask, value } => Input::Answer(ask, value),
            Event::CancelRequested => Input::Cancel,
            Event::Expired { seconds } => Input::Expire(seconds),
            Event::BudgetSet { budget } => Input::Budget(budget),
            Event::ModelsSet { models } => Input::Models(models),
            Event::Resumed { tools } => Input::Resume(tools),
            Event::Forked(fork) => Input::Fork(fork),
            Event::Poisoned { message } => Input::Poison(message),
            Event::NodeStarted { .. }
            | Event::Opened { .. }
            | Event::Appended { .. }
            | Event::Requested { .. }
            | Event::Retried { .. }
            | Event::Reused { .. }
            | Event::Refused { .. }
            | Event::Asked { .. }
            | Event::Published { .. }
            | Event::NodeFinished { .. }
            | Event::Caught { .. }
            | Event::Recovered { .. }
            | Event::Spliced { .. }
            | Event::NodeSkipped { .. }
            | Event::Ended { .. } => return None,
        })
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests;
