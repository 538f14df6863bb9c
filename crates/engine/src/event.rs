//! The journal's vocabulary.
//!
//! *Inputs* are what the outside did; each is recorded by [`crate::State::accept`]. Every other event is
//! *derived* by [`crate::State::step`], so that a replay of the inputs gives all of them again (E-18).

use crate::effect::{EffectId, Outcome, Printed, Took, ToolDef};
use crate::fault::{Fault, Warning};
use crate::graph::{Action, AskKind};
use crate::message::Role;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

mod input;
pub use input::{Budget, EDITION, Fork, Input, Limits, Start};

/// One line of a journal: an event and the run's time when it happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Milliseconds since the Unix epoch, of the latest input.
    pub at: i64,
    /// What happened.
    pub event: Event,
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
///
/// A run in memory keeps all of them, several for each node: what is rare or large is behind a pointer.
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
        /// What the tool printed meanwhile, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        printed: Option<Arc<Printed>>,
        /// What its time went into, by a clock that nobody can set (C-15). Earlier versions did not record it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took: Option<Took>,
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
        value: Box<Value>,
    },
    /// Input: a person says something that answers no question (E-43).
    PersonMessage(Box<PersonMessage>),
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
    /// Input: other limits hold from here on (E-12).
    LimitsSet {
        /// All of them.
        limits: Box<Limits>,
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
    /// Input: the time of a timer has come (E-37).
    Fired {
        /// Which timer.
        timer: Arc<str>,
    },
    /// Input: effects that were ended early, or that the next event ends, had waited for their turn and had not been sent (E-20).
    Unsent {
        /// Which effects.
        effects: Vec<EffectId>,
    },
    /// Input: a bug ended this run.
    Poisoned {
        /// The failed assertion.
        message: String,
    },
    /// All that the node can observe has finished; it runs.
    NodeStarted {
        /// Which node.
        node: Arc<str>,
        /// What its placeholders find that the user should know.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<Warning>,
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
        start: u32,
        /// First message not taken.
        end: u32,
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
    /// Thread edit: messages of a thread are there no more, or others stand for them (E-09).
    Edited {
        /// By which node.
        node: Arc<str>,
        /// Of which thread.
        thread: Arc<str>,
        /// Which messages, in order, by their places before the edit.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        replaced: Vec<Replaced>,
    },
    /// An effect is to be dispatched.
    Requested {
        /// Its id.
        effect: EffectId,
        /// For a tool whose arguments stand in no message: the arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Box<Value>>,
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
        args: Option<Box<Value>>,
    },
    /// A call of a reply was answered without running anything (P-14, P-15, E-10).
    Refused {
        /// Which call, in the form of an effect id.
        effect: EffectId,
        /// Why.
        fault: Box<Fault>,
        /// For a tool whose arguments stand in no message: the arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Box<Value>>,
    },
    /// A person is asked.
    Asked(Box<Asked>),
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
        fault: Option<Box<Fault>>,
        /// What the user should know.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<Warning>,
    },
    /// A leaf ended in a fault, and an edge of it says how to go on.
    Caught {
        /// Which node.
        node: Arc<str>,
        /// The fault.
        fault: Box<Fault>,
    },
    /// What is done about the node's last fault (D-17, D-22).
    Recovered(Box<Recovered>),
    /// The compiled nodes of an effect's output take the place of a node and all later ones (D-20).
    Spliced {
        /// The node that is replaced.
        node: Arc<str>,
        /// The effect that compiled them.
        effect: EffectId,
        /// What the user should know.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<Warning>,
    },
    /// A node does not run, because it may depend on one that failed or was skipped (D-16).
    NodeSkipped {
        /// Which node.
        node: Arc<str>,
        /// The first node it may depend on that has no result.
        because: Arc<str>,
    },
    /// A leaf opened frames: the paths of a fork, the next iteration of a loop, a subgraph (E-34).
    Entered {
        /// Which node.
        node: Arc<str>,
        /// Of a fork: how many paths.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        paths: Option<u32>,
        /// Of a loop: which iteration, from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        iteration: Option<u32>,
        /// When its time is up, in milliseconds since 1970 (E-37).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due: Option<i64>,
    },
    /// A leaf goes on that had opened frames: all that it waited for has ended.
    Left {
        /// Which node.
        node: Arc<str>,
        /// Of a fork: how its paths came together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        joined: Option<Box<Joined>>,
    },
    /// A node of a flow has ended, and no way on from it is open: its frame has failed.
    Unrouted {
        /// Which node.
        node: Arc<str>,
        /// Why.
        fault: Box<Fault>,
    },
    /// A node was given its result.
    Given {
        /// Which node.
        node: Arc<str>,
        /// The result.
        value: Box<Value>,
    },
    /// A node set a variable of its flow.
    Set {
        /// Which node.
        node: Arc<str>,
        /// The variable.
        name: Arc<str>,
        /// What it is from here on.
        value: Box<Value>,
    },
    /// A node told the user something.
    Warned {
        /// Which node.
        node: Arc<str>,
        /// What.
        warning: Box<Warning>,
    },
    /// A node bound tools in the scope of its flow (E-41).
    Bound {
        /// Which node.
        node: Arc<str>,
        /// What these names mean from here on; `None`: what they meant before they were bound.
        tools: BTreeMap<Arc<str>, Option<Arc<ToolDef>>>,
    },
    /// The run came to an end.
    Ended {
        /// How.
        status: End,
        /// Why, if it did not complete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Box<Fault>>,
    },
}

/// What a person says to a run that answers no question ([`Event::PersonMessage`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonMessage {
    /// What is said.
    pub text: Arc<str>,
    /// The node that is meant, or that opened whoever is, as events call it; without it the next one that takes messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Arc<str>>,
    /// Who says it, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<str>>,
}

/// How a join was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JoinOutcome {
    /// As its strategy asks.
    Met,
    /// Its strategy can't be met any more.
    Unmet,
    /// Its time was up first.
    Timeout,
}

/// How the paths of a fork came together ([`Event::Left`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Joined {
    /// How it was decided.
    pub outcome: JoinOutcome,
    /// The path whose threads go on, if it completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main: Option<Arc<str>>,
    /// Paths that completed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub completed: Vec<Arc<str>>,
    /// Paths that failed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Arc<str>>,
    /// Paths that were cut off, or did not begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cancelled: Vec<Arc<str>>,
}

/// A question to a person ([`Event::Asked`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The ask's id.
    pub ask: Arc<str>,
    /// The node that waits.
    pub node: Arc<str>,
    /// What is asked for.
    pub ask_kind: AskKind,
    /// The question.
    pub prompt: String,
    /// What is shown with it, or is to be edited.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub value: Option<Arc<Value>>,
    /// When nobody is asked any more, in milliseconds since 1970 (E-37).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<i64>,
}

/// A field that is there has a value, and null is one.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Value>>, D::Error> {
    Value::deserialize(deserializer).map(|value| Some(Arc::new(value)))
}

impl Asked {
    /// Whether a call may run, or a node begin.
    pub(crate) fn approval(ask: Arc<str>, node: Arc<str>, prompt: String) -> Event {
        let (ask_kind, value, due) = (AskKind::Approve, None, None);
        Event::Asked(Box::new(Self { ask, node, ask_kind, prompt, value, due }))
    }
}

/// What is done about a node's last fault ([`Event::Recovered`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recovered {
    /// Which node.
    pub node: Arc<str>,
    /// The action.
    pub action: Action,
    /// Who chose it.
    pub by: Chooser,
    /// Why, for people.
    pub reason: String,
    /// The tool to call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// Its parameters, as a template; absent: as the node has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// The repaired definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Value>,
    /// What a replan is meant to do, for people (D-20).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Arc<str>>,
    /// The steps of a replan, if they came along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Value>,
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
    /// What a person said, by the ask's id.
    Answer(Arc<str>),
    /// What a person said that answers no question, by its number among these, from 0.
    PersonMessage(u32),
}

/// Messages of a thread that are there no more ([`Event::Edited`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    /// The first, from 0.
    pub start: u32,
    /// The first behind them.
    pub end: u32,
    /// The one message that stands for them; without one they are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<StandIn>,
}

/// A message that is made of others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StandIn {
    /// A user message with the words of the one that stood at this place.
    Summary(u32),
    /// The replaced message without these calls, by their ids.
    Without(Vec<Arc<str>>),
    /// The replaced result of a call, with this text.
    Text(Arc<str>),
}

/// Five or six records a node are most of what a long run costs.
const _: () = assert!(size_of::<Event>() <= 64);

impl Event {
    /// Whether the outside did it, so that a replay has to be fed with it (E-18).
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Event::Started(_)
                | Event::Completed { .. }
                | Event::Lost { .. }
                | Event::Answered { .. }
                | Event::PersonMessage(_)
                | Event::CancelRequested
                | Event::Expired { .. }
                | Event::BudgetSet { .. }
                | Event::LimitsSet { .. }
                | Event::ModelsSet { .. }
                | Event::Resumed { .. }
                | Event::Forked(_)
                | Event::Fired { .. }
                | Event::Unsent { .. }
                | Event::Poisoned { .. }
        )
    }

    /// Whether it begins a turn of the driver: what was requested before it has been dispatched.
    pub fn begins_turn(&self) -> bool {
        self.is_input() && !matches!(self, Event::Unsent { .. })
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests;
