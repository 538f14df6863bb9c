//! When each node of a run ran, whom it waited for and why, and whose messages it saw (C-15, P-20): read off its timeline.
//!
//! [`Journal`] is a run that was read, [`Story`] its node instances one by one, [`Explained`] what they waited for.

mod before;
mod critical;
mod seen;
mod story;
pub mod waits;

pub use before::Waited;
use before::Waits;
pub use critical::{Step, critical, path};
pub use seen::{Readers, Saw, Seen, Shown};
pub use story::{At, Story};

use crate::error::Error;
use crate::report::{self, Said};
use crate::reused::Request;
use crate::text::or_meant;
use crate::time;
use crate::timeline::{Activity, Durations, Followed, Moment, Rung, Spent, Visit};
use selvedge_engine::{Graph, Origin, RunStatus, State};
use selvedge_runtime::{Clock, Reading, SystemClock};
use selvedge_store::Store;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// A run's journal, read for whoever explains it.
pub struct Journal {
    /// The run, and what happened in it.
    pub run: Followed,
    /// What its models were shown.
    pub shown: Shown,
    /// Until when what goes on goes on.
    now: Option<i64>,
}

impl Journal {
    /// Reads it. `driven`: a process drives the run, so that what goes on goes on until now.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read(store: &Store, run: &str, driven: bool) -> Result<Self, Error> {
        let mut reading = Reading::open(store, run)?;
        let (mut run, mut shown) = (Followed::new(reading.graph()), Shown::default());
        reading.records(1, u64::MAX, |record| {
            run.take(record);
            shown.take(&run.state, record);
        })?;
        let now = now(&run.state, driven);
        Ok(Self { run, shown, now })
    }

    /// What happened, node instance by node instance.
    pub fn story(&self) -> Story<'_> {
        Story::new(&self.run.timeline, self.run.state.graph(), self.now)
    }
}

/// Until when what goes on in a run goes on, as it is now: also where a person is waited for.
pub fn now(state: &State, driven: bool) -> Option<i64> {
    let goes_on = state.status() == RunStatus::Waiting || state.ended().is_none() && driven;
    goes_on.then(|| SystemClock.now_ms())
}

/// A run, explained.
pub struct Explained<'s> {
    /// The graph that it came to.
    pub graph: Arc<Graph>,
    /// As it is.
    pub state: &'s State,
    /// What happened.
    pub story: Story<'s>,
    /// Whether a process drives it.
    pub driven: bool,
    waits: Waits,
    /// Where the rungs of each node stand in the story's ladder.
    by_node: HashMap<Arc<str>, Vec<usize>>,
}

impl<'s> Explained<'s> {
    /// Of a run as it is at the end of a story; `driven`: a process drives it.
    pub fn new(state: &'s State, story: Story<'s>, driven: bool) -> Self {
        let graph = Arc::clone(state.graph());
        let waits = Waits::new(&story);
        let mut by_node: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        for (at, rung) in story.rungs().iter().enumerate() {
            by_node.entry(rung.node.clone()).or_default().push(at);
        }
        Self { graph, state, story, driven, waits, by_node }
    }

    /// The instance that people are told is called so, or that reports call so (W-03): of several iterations the last.
    pub fn named(&self, id: &str) -> Option<At> {
        let called = |at: &At| {
            let node = self.story.node(*at);
            node.is_some_and(|node| *self.state.report_name(&self.story.timeline.event_name(node)) == *id)
        };
        let told = self.story.root().chain(self.story.all()).find(|at| self.story.name(*at) == id);
        told.or_else(|| self.story.all().rev().find(called))
    }

    /// The same where there has to be one.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, id: &str, run: &str) -> Result<At, Error> {
        self.named(id).ok_or_else(|| {
            let ids: Vec<&str> = self.graph.nodes.values().take(20).map(|node| &*node.id).collect();
            let more = if self.graph.nodes.len() > ids.len() { ", …" } else { "" };
            let help = match ids.is_empty() {
                true => "it has no nodes".to_owned(),
                false => format!("its nodes are: {}{more}", ids.join(", ")),
            };
            let known: Vec<&str> = self.graph.nodes.values().map(|node| &*node.id).collect();
            let help = or_meant(id, &known, &help);
            let message = format!("run {run} has no node \"{id}\"");
            Error::usage("C-15", "unknown-node", &message).help(&help)
        })
    }

    /// The nodes that worked longest, the longest first; of equal ones the first in the list. What only waits for what it has opened
    /// is none of them.
    pub fn slowest(&self, most: usize) -> Vec<At> {
        let started = self.story.all().filter(|at| self.story.started(*at).is_some());
        let own = started.filter(|at| self.story.visit(*at).is_some_and(|visit| visit.frames.is_empty()));
        let mut nodes: Vec<(i64, At)> = own.map(|at| (self.story.durations(at).worked(), at)).collect();
        nodes.sort_by_key(|(worked, at)| (std::cmp::Reverse(*worked), *at));
        nodes.into_iter().take(most).map(|(_, at)| at).collect()
    }

    /// What people are told that it is (W-03).
    pub fn name(&self, at: At) -> &str {
        self.story.name(at)
    }

    /// What it waited for.
    pub fn waits(&self, at: At) -> &[Waited] {
        self.waits.of(self, at)
    }

    /// What was done about a node's faults (D-22).
    pub fn rungs(&self, at: At) -> impl Iterator<Item = &Rung> {
        let rungs = self.by_node.get(self.name(at)).filter(|_| self.story.root_node(at).is_some());
        rungs.into_iter().flatten().filter_map(|at| self.story.rungs().get(*at))
    }

    /// The calls of a node's last visit that were made afresh.
    pub fn afresh(&self, node: At) -> Vec<Request> {
        let attempts = self.story.visit(node).into_iter().flat_map(Visit::attempts);
        let afresh = attempts.filter_map(|(call, attempt)| match self.state.origin(&attempt.effect)? {
            Origin::Afresh(why) => {
                Some(Request { effect: attempt.effect.clone(), kind: call.kind.clone(), why })
            }
            Origin::Kept(_) | Origin::Reused(_) | Origin::Edited(_) => None,
        });
        afresh.collect()
    }

    /// Whether a call of a node's last visit took an outcome to which the fork gave another text (E-19).
    pub fn edited(&self, node: At) -> bool {
        let mut attempts = self.story.visit(node).into_iter().flat_map(Visit::attempts);
        attempts.any(|(_, attempt)| matches!(self.state.origin(&attempt.effect), Some(Origin::Edited(_))))
    }

    /// C-15's object of a node; with each of its calls if it is the `only` one.
    pub fn object<'a>(&'a self, run: &str, node: At, only: bool, seen: &mut Seen<'a>) -> Value {
        let when = |moment: Option<Moment>| moment.map(|moment| time::rfc3339(moment.at));
        let waited = self.waits(node).iter();
        let waited: Vec<Value> =
            waited.map(|waited| json!({"node": self.name(waited.at), "why": waited.why})).collect();
        let mut object = json!({
            "node": self.name(node),
            "started": when(self.story.started(node)),
            "ended": when(self.story.ended(node)),
            "waited_for": waited,
            "ran_ahead": self.story.ran_ahead(node),
        });
        let Some(fields) = object.as_object_mut() else { return object };
        fields.insert("messages_from".to_owned(), json!(seen.messages_from(node).unwrap_or_default()));
        if only {
            let saw = seen.calls(node);
            let saw = saw
                .iter()
                .map(|saw| json!({"effect": saw.effect, "messages": saw.messages, "from": saw.from, "shown": saw.shown}));
            fields.insert("saw".to_owned(), saw.collect());
        }
        let afresh = self.afresh(node);
        if !afresh.is_empty() {
            let name = |node: &str| self.state.told_name(node).into_owned();
            let afresh: Vec<Value> = afresh.iter().map(|request| report::afresh(request, name)).collect();
            fields.insert("afresh".to_owned(), afresh.into());
        }
        if self.edited(node) {
            fields.insert("edited".to_owned(), true.into());
        }
        if self.story.started(node).is_some()
            && let Value::Object(figures) = figures(&self.story.durations(node))
        {
            fields.extend(figures);
        }
        if let Some(reused) = self.story.reused(node).filter(|reuse| reuse.whole()) {
            fields.insert("reused_from".to_owned(), reused.from.map_or(run, |from| from).into());
        }
        let rungs: Vec<Value> = self.rungs(node).map(report::rung).collect();
        if let Some((fault, printed)) = self.story.fault(node) {
            fields.insert("fault".to_owned(), json!(fault));
            printed.map(|printed| fields.insert("printed".to_owned(), json!(printed)));
        }
        if !rungs.is_empty() {
            fields.insert("recovery".to_owned(), Value::from(rungs));
        }
        let answers: Vec<Value> = self.story.answers(node).map(|answer| Said::json(&answer)).collect();
        if !answers.is_empty() {
            fields.insert("answers".to_owned(), answers.into());
        }
        object
    }

    /// What was done about faults (C-15, D-22), of some nodes or of all: also of those that others have taken the place of (D-20).
    pub fn recovery(&self, only: Option<&[At]>) -> Vec<Value> {
        let about = |rung: &Rung| only.is_none_or(|only| only.iter().any(|at| *rung.node == *self.name(*at)));
        let rungs = self.story.rungs().iter().filter(|rung| about(rung));
        rungs.map(report::rung).collect()
    }

    /// What each role of a model has used (C-15), where there are several.
    pub fn roles(&self) -> Option<Value> {
        let roles = self.story.timeline.roles();
        let used = |(role, used): (&Arc<str>, &Spent)| (role.to_string(), report::spent(used));
        (roles.len() > 1).then(|| roles.iter().map(used).collect::<Map<_, _>>().into())
    }
}

/// C-15's figures. What the journal does not tell is null.
fn figures(sums: &Durations) -> Value {
    let known = sums.get(Activity::InFlight) == 0;
    json!({
        "total_ms": sums.total(),
        "worked_ms": known.then(|| sums.worked()),
        "queued_ms": known.then(|| sums.queued()),
        "waited_ms": sums.waited(),
        "waited": {
            "person_ms": sums.get(Activity::Asking),
            "retry_ms": sums.get(Activity::Retrying),
            "other_ms": sums.get(Activity::Other),
        },
    })
}
