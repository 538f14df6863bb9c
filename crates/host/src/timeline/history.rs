//! What is known of one node: its visits, and of each what it asked for.

use super::frames::Inner;
use selvedge_engine::{AskKind, EffectId, Effects, Fault, FramePath, Outcome, Printed, Tokens, Took};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// When something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Moment {
    /// The event's number: times alone don't tell what came first.
    pub n: u64,
    /// Milliseconds since 1970, by the journal.
    pub at: i64,
}

/// A node instance: a node of a frame.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeTimeline {
    /// The frame.
    pub frame: FramePath,
    /// Where that is in [`super::Timeline::frames`].
    pub within: usize,
    /// The node's id.
    pub node: Arc<str>,
    /// How often it began, in order.
    pub visits: Vec<Visit>,
    /// Whether the last visit counts: not where it is to begin anew, and has not.
    pub goes_on: bool,
    /// The node without a result for which it does not run (D-16).
    pub skipped: Option<Arc<str>>,
    /// What people said to its questions, in all its visits: a no may have been taken back since.
    pub answers: Vec<Answer>,
}

/// From one start of a node to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Visit {
    /// Which of the node's, from 1.
    pub number: u32,
    /// The event after which it could begin: the end of a node before it, the opening of its frame, an answer. In a graph whose
    /// nodes wait for what they observe, of several events of one commit the last.
    pub released_by: u64,
    /// When it started; one that failed before it could has no start.
    pub started: Option<Moment>,
    /// When it had ended.
    pub ended: Option<Moment>,
    /// Why it failed, if it did.
    pub fault: Option<Box<Fault>>,
    /// Whether it was cut off with the frame that it is in.
    pub cancelled: bool,
    /// What it asked models, tools and operations, in order.
    pub calls: Vec<Call>,
    /// What it asked people, in order.
    pub questions: Vec<Question>,
    /// What its calls of models used, failed attempts included (E-20).
    pub tokens: Tokens,
    /// Calls that took a recorded result.
    pub reused: u32,
    /// Calls that were asked for here.
    pub requested: u32,
    /// What it did with threads.
    pub thread: ThreadUse,
    /// Where the nodes of the frames that it opened are in [`super::Timeline::nodes`].
    pub inner: Vec<usize>,
    /// These frames, by how they stand.
    pub frames: Inner,
    /// Attempts that are under way, or wait to be: the call and the attempt.
    #[serde(skip)]
    pub(super) under_way: Vec<(usize, usize)>,
}

/// What a visit did with threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ThreadUse {
    /// The part of another thread that its own was opened with.
    pub opened: Option<Opened>,
    /// Messages that it appended to its own.
    pub appended: usize,
    /// The thread to which it published its result; its own too.
    pub published: Option<Arc<str>>,
}

/// A part of a thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Opened {
    /// The thread.
    pub from: Arc<str>,
    /// The first message, from 0.
    pub start: u32,
    /// The first behind the last.
    pub end: u32,
}

/// A call, with all its attempts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Call {
    /// Of what.
    pub kind: CallKind,
    /// The arguments of a tool or an operation, where the journal says them.
    pub arguments: Option<Arc<Value>>,
    /// What it does to the world, as far as that is known.
    pub effects: Option<Effects>,
    /// Whose recorded outcome it took, if it did (E-29).
    pub reused: Option<EffectId>,
    /// Its attempts; one at least.
    pub attempts: Vec<Attempt>,
}

/// What is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    /// A model.
    Model,
    /// A tool, by its bound name.
    Tool(Arc<str>),
    /// An operation of Selvedge's own.
    Operation(Arc<str>),
    /// The journal does not say it: its outcome was recorded by another run, or it was refused.
    Unknown,
}

impl CallKind {
    /// The name of a tool or an operation.
    pub fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Tool(name) | Self::Operation(name) => Some(name),
            Self::Model | Self::Unknown => None,
        }
    }
}

/// One attempt of a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attempt {
    /// Its effect.
    pub effect: EffectId,
    /// When it was asked for.
    pub requested: Moment,
    /// How long it waits before it is dispatched, in milliseconds (E-14).
    pub after_ms: u64,
    /// Why it is made again; nothing for the first.
    pub reason: Option<Arc<str>>,
    /// When it came to an end.
    pub ended: Option<Moment>,
    /// What its time went into, where that was recorded.
    pub took: Option<Took>,
    /// What came of it.
    pub outcome: Option<Outcome>,
    /// What the tool printed.
    pub printed: Option<Arc<Printed>>,
    /// Whether nobody knows if it happened (E-05).
    pub lost: bool,
    /// Whether it was ended early while it waited for its turn (E-20).
    pub unsent: bool,
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Question {
    /// The ask's id.
    pub ask: Arc<str>,
    /// What is asked for.
    pub kind: AskKind,
    /// The question.
    pub prompt: Arc<str>,
    /// When it was asked.
    pub asked: Moment,
    /// When a terminal that asked others first showed it (E-21): from then on a person was waited for.
    pub shown: Option<Moment>,
    /// When it was answered, or its time was up.
    pub closed: Option<Moment>,
}

/// What a person said.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// To which question.
    pub ask: Arc<str>,
    /// The answer, as it is recorded.
    pub value: Arc<Value>,
    /// When.
    pub at: Moment,
}

/// How much of a visit was recorded before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse<'t> {
    /// By which run; nothing for an earlier visit of the same run.
    pub from: Option<&'t Arc<str>>,
    /// How many of its calls took a recorded result.
    pub calls: u32,
    /// How many calls it made in all; none where it had ended before the run left its source.
    pub of: u32,
}

impl Reuse<'_> {
    /// Whether nothing of the visit ran here.
    pub fn whole(&self) -> bool {
        self.calls == self.of
    }
}

impl NodeTimeline {
    pub(super) fn new(frame: FramePath, within: usize, node: Arc<str>) -> Self {
        Self { frame, within, node, visits: Vec::new(), goes_on: false, skipped: None, answers: Vec::new() }
    }

    /// The visit that counts: the last, unless the node is to begin anew.
    pub fn current(&self) -> Option<&Visit> {
        self.visits.last().filter(|_| self.goes_on)
    }

    pub(super) fn current_mut(&mut self) -> Option<&mut Visit> {
        self.visits.last_mut().filter(|_| self.goes_on)
    }

    /// The next visit, or the start of one that a person was asked about first.
    pub(super) fn begin(&mut self, released_by: u64, started: Option<Moment>) {
        if let Some(visit) =
            self.current_mut().filter(|visit| visit.started.is_none() && visit.ended.is_none())
        {
            (visit.started, visit.released_by) = (started, released_by);
            self.skipped = None;
            return;
        }
        let number = self.visits.last().map_or(0, |last| last.number) + 1;
        push(&mut self.visits, Visit { number, released_by, started, ..Visit::default() });
        (self.goes_on, self.skipped) = (true, None);
    }
}

/// Adds to what mostly stays the only one: a list that grows by itself begins with room for four.
pub(super) fn push<T>(list: &mut Vec<T>, one: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(one);
}

impl Visit {
    /// Whether it asked a model, or took a recorded answer.
    pub fn asked_model(&self) -> bool {
        self.calls.iter().any(|call| call.kind == CallKind::Model)
    }

    /// The strongest effects of its calls of tools, as far as they are known.
    pub fn effects(&self) -> Option<Effects> {
        self.calls.iter().filter_map(|call| call.effects).max()
    }

    /// All attempts of all calls, each with its call.
    pub fn attempts(&self) -> impl Iterator<Item = (&Call, &Attempt)> {
        self.calls.iter().flat_map(|call| call.attempts.iter().map(move |attempt| (call, attempt)))
    }

    /// Attempts that are under way, or wait to be, in the order of their requests.
    pub fn under_way(&self) -> impl Iterator<Item = (&Call, &Attempt)> {
        self.under_way.iter().filter_map(|(call, attempt)| {
            let call = self.calls.get(*call)?;
            Some((call, call.attempts.get(*attempt)?))
        })
    }

    /// Questions that nobody has answered.
    pub fn open_questions(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| question.closed.is_none())
    }

    /// Whether it has started and not ended.
    pub fn goes_on(&self) -> bool {
        self.started.is_some() && self.ended.is_none()
    }

    /// What its last attempt that failed and had printed something printed.
    pub fn printed_by_failed(&self) -> Option<&Arc<Printed>> {
        let failed =
            self.attempts().filter(|(_, attempt)| matches!(attempt.outcome, Some(Outcome::Failed(_))));
        let printed = failed.filter_map(|(_, attempt)| Some((attempt.ended, attempt.printed.as_ref()?)));
        printed.max_by_key(|(ended, _)| *ended).map(|(_, printed)| printed)
    }
}

impl Attempt {
    /// Whether it is under way, or waits to be.
    pub fn is_open(&self) -> bool {
        self.ended.is_none() && !self.lost
    }
    /// Whether its request was sent (E-20). One without an outcome that has ended was ended early: it was sent if its wait was over.
    pub fn was_sent(&self) -> bool {
        let waited = |ended: Moment| ended.at >= self.requested.at.saturating_add_unsigned(self.after_ms);
        match &self.outcome {
            Some(outcome) => outcome.is_sent(),
            None => !self.unsent && self.ended.is_some_and(waited),
        }
    }
}
