//! What comes from outside: the inputs, and what a run begins with.

use super::{Event, PersonMessage};
use crate::effect::{EffectId, Outcome, Printed, Took, ToolDef};
use crate::graph::Graph;
use crate::machine::Recording;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the outside did.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The run begins.
    Start(Box<Start>),
    /// An effect came to an end, with a random number below 1,000,000 for the back-off (E-14), what the tool had printed
    /// and what its time went into, which is for people and decides nothing.
    Complete(EffectId, Outcome, u32, Option<Arc<Printed>>, Option<Took>),
    /// A write was in flight when an earlier process died (E-05).
    Lose(EffectId),
    /// A person answered (E-21).
    Answer(Arc<str>, Value),
    /// A person says something that answers no question (E-43).
    PersonMessage(PersonMessage),
    /// The run is to end now (E-13).
    Cancel,
    /// The run's own time limit was reached.
    Expire(u64),
    /// The run's caps are replaced where these are given (E-20), before it goes on.
    Budget(Budget),
    /// Other limits hold from here on (E-12), before it goes on.
    Limits(Limits),
    /// Other models answer from here on, by role (E-29).
    Models(BTreeMap<Arc<str>, Arc<str>>),
    /// A failed run is to go on, or any run with tools that have changed: `tools` are the definitions that differ
    /// from the pinned ones (P-21).
    Resume(Vec<ToolDef>),
    /// The run leaves its source here and goes on by itself (E-19).
    Fork(Box<Fork>),
    /// The time of a timer has come (E-37).
    Fire(Arc<str>),
    /// Effects that were ended early, or are about to be, had not been sent (E-20).
    Unsent(Vec<EffectId>),
    /// An internal assertion failed (E-17).
    Poison(String),
}

/// The edition of what is derived that a run begins with today ([`Start::edition`]), and the last one that is known (E-42).
pub const EDITION: u32 = 7;

/// What a run begins with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// What else the run derives than the first journals did, so that it is replayed as it was (E-18, E-42); 0: nothing.
    /// From 1 on: the warnings `input-shadowed` (D-07) and `large-tool-output` (E-28), what a model writes that one brace
    /// closes at its end is text (D-09), and a node that a resume begins anew says its warnings anew. From 2 on: the warning
    /// `large-message` (E-28). From 3 on ids of calls make no difference between requests (E-29), and from 4 on what ran afresh makes
    /// nothing outdated if it only looked at the world, on a path that was cut off. From 5 on a used-up budget does not say that the
    /// run is to be resumed (E-20), and what looks between rounds is told which results a request had. From 6 on what had finished
    /// ahead of its turn stands in a fork that changes nothing but messages (E-19).
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub edition: u32,
    /// The run that began it, if one did (E-39).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Arc<str>>,
}

impl Default for Start {
    fn default() -> Self {
        Self {
            graph: Arc::default(),
            initial: Map::new(),
            sequential: false,
            budget: Budget::default(),
            limits: Limits::default(),
            models: BTreeMap::new(),
            edition: EDITION,
            parent: None,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_none_yet(edition: &u32) -> bool {
    *edition == 0
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
    /// Limits in place of the source's (E-12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
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
    /// Whether the source had more events, which can't be read any more (E-44): nobody knows which writes it made there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// What the first `events` events of the source recorded; filled in by whoever reads the journal.
    #[serde(skip)]
    pub past: Option<Arc<Recording>>,
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
    /// Attempts of one model call at transport faults that there are at least (E-14).
    pub model_attempts: u32,
    /// How long the waits between attempts are in all at least, in milliseconds (E-14). Journals from before there was this
    /// limit have none, and are read so: the attempts that they record were counted alone.
    #[serde(default, skip_serializing_if = "is_none")]
    pub retry_span_ms: u64,
    /// The longest wait between two attempts that is a run's own choice, in milliseconds (E-14).
    #[serde(default = "usual_wait", skip_serializing_if = "is_usual_wait")]
    pub retry_wait_ms: u64,
    /// The longest Retry-After that is waited for, in milliseconds (E-14).
    #[serde(default = "usual_rate_limit", skip_serializing_if = "is_usual_rate_limit")]
    pub rate_limit_wait_ms: u64,
    /// Tool calls of one reply. Runs that began before there was this limit have none.
    #[serde(default = "unlimited", skip_serializing_if = "Option::is_none")]
    pub calls_per_reply: Option<u64>,
    /// Steps of holding one value against a schema (E-45). Runs that began before there was this limit check as it was done
    /// then.
    #[serde(default = "unlimited", skip_serializing_if = "Option::is_none")]
    pub schema_steps: Option<u64>,
    /// Bytes of the messages and tools of one model request; 0 is no limit, and what runs have that began before there was
    /// one.
    #[serde(default, skip_serializing_if = "is_none")]
    pub model_request_bytes: u64,
    /// Paths of one fork over a list.
    #[serde(default = "usual_count", skip_serializing_if = "is_usual_count")]
    pub fanout: u64,
    /// Iterations of one loop, whatever it allows itself.
    #[serde(default = "usual_count", skip_serializing_if = "is_usual_count")]
    pub loop_iterations: u64,
    /// Timers at a time (E-37).
    #[serde(default = "usual_timers", skip_serializing_if = "are_usual_timers")]
    pub timers: u64,
    /// Frames inside each other.
    #[serde(default = "usual_depth", skip_serializing_if = "is_usual_depth")]
    pub subgraph_depth: u32,
    /// What one evaluation of an expression may cost: steps, elements, and bytes of text (E-46).
    #[serde(default = "usual_cost", skip_serializing_if = "is_usual_cost")]
    pub expression_cost: u64,
}

/// What a journal that does not say it means, whatever is the default today.
fn unlimited() -> Option<u64> {
    None
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 16 << 20,
            events: 10_000_000,
            model_attempts: 5,
            retry_span_ms: 15_000,
            retry_wait_ms: usual_wait(),
            rate_limit_wait_ms: usual_rate_limit(),
            calls_per_reply: Some(1_000),
            schema_steps: Some(crate::schema::STEPS),
            model_request_bytes: 4 << 20,
            fanout: usual_count(),
            loop_iterations: usual_count(),
            timers: usual_timers(),
            subgraph_depth: usual_depth(),
            expression_cost: usual_cost(),
        }
    }
}

/// Of paths of a fork, and of iterations of a loop.
fn usual_count() -> u64 {
    10_000
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_usual_count(count: &u64) -> bool {
    *count == usual_count()
}

fn usual_timers() -> u64 {
    100_000
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn are_usual_timers(timers: &u64) -> bool {
    *timers == usual_timers()
}

fn usual_depth() -> u32 {
    32
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_usual_depth(depth: &u32) -> bool {
    *depth == usual_depth()
}

fn usual_cost() -> u64 {
    crate::expression::COST
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_usual_cost(cost: &u64) -> bool {
    *cost == usual_cost()
}

fn usual_wait() -> u64 {
    30_000
}

fn usual_rate_limit() -> u64 {
    60_000
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_none(number: &u64) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_usual_wait(wait: &u64) -> bool {
    *wait == usual_wait()
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_usual_rate_limit(wait: &u64) -> bool {
    *wait == usual_rate_limit()
}

impl Limits {
    /// The larger of both: a run that goes on takes limits that were raised, and none that would end it (E-12).
    pub fn raised(self, to: Limits) -> Limits {
        Limits {
            fanout: self.fanout.max(to.fanout),
            loop_iterations: self.loop_iterations.max(to.loop_iterations),
            timers: self.timers.max(to.timers),
            subgraph_depth: self.subgraph_depth.max(to.subgraph_depth),
            expression_cost: self.expression_cost.max(to.expression_cost),
            message_bytes: self.message_bytes.max(to.message_bytes),
            events: self.events.max(to.events),
            model_attempts: self.model_attempts.max(to.model_attempts),
            retry_span_ms: self.retry_span_ms.max(to.retry_span_ms),
            retry_wait_ms: self.retry_wait_ms.max(to.retry_wait_ms),
            rate_limit_wait_ms: self.rate_limit_wait_ms.max(to.rate_limit_wait_ms),
            calls_per_reply: self.calls_per_reply.max(to.calls_per_reply),
            schema_steps: self.schema_steps.max(to.schema_steps),
            model_request_bytes: match (self.model_request_bytes, to.model_request_bytes) {
                (0, _) | (_, 0) => 0,
                (own, other) => own.max(other),
            },
        }
    }
}

impl Input {
    /// The input that an event records; `None` for a derived one. [`crate::State::accept`] makes the same event
    /// of it again, which is how a recorded run is replayed (E-18).
    pub fn from_event(event: Event) -> Option<Self> {
        Some(match event {
            Event::Started(start) => Input::Start(start),
            Event::Completed { effect, outcome, jitter, printed, took } => {
                Input::Complete(effect, outcome, jitter, printed, took)
            }
            Event::Lost { effect } => Input::Lose(effect),
            Event::Answered { ask, value } => Input::Answer(ask, *value),
            Event::PersonMessage(message) => Input::PersonMessage(*message),
            Event::CancelRequested => Input::Cancel,
            Event::Expired { seconds } => Input::Expire(seconds),
            Event::BudgetSet { budget } => Input::Budget(budget),
            Event::LimitsSet { limits } => Input::Limits(*limits),
            Event::ModelsSet { models } => Input::Models(models),
            Event::Resumed { tools } => Input::Resume(tools),
            Event::Forked(fork) => Input::Fork(fork),
            Event::Fired { timer } => Input::Fire(timer),
            Event::Unsent { effects } => Input::Unsent(effects),
            Event::Poisoned { message } => Input::Poison(message),
            Event::NodeStarted { .. }
            | Event::Opened { .. }
            | Event::Appended { .. }
            | Event::Edited { .. }
            | Event::Requested { .. }
            | Event::Retried { .. }
            | Event::Reused { .. }
            | Event::Refused { .. }
            | Event::Asked(_)
            | Event::Published { .. }
            | Event::NodeFinished { .. }
            | Event::Caught { .. }
            | Event::Recovered(_)
            | Event::Spliced { .. }
            | Event::NodeSkipped { .. }
            | Event::Entered { .. }
            | Event::Left { .. }
            | Event::Unrouted { .. }
            | Event::Given { .. }
            | Event::Set { .. }
            | Event::Bound { .. }
            | Event::Warned { .. }
            | Event::Ended { .. } => return None,
        })
    }
}
