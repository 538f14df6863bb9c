//! A run's timeline, by the nodes of its graph in list order.

use crate::inspect::Found;
use crate::inspect::answers::Answer;
use crate::inspect::timeline;
use selvedge_engine::graph::Act;
use selvedge_engine::{Effects, Fault, Graph, Ix, NodeIx, Printed, RunStatus, State};
use selvedge_host::Error;
use selvedge_host::timeline::{
    Activity, Durations, Interval, Moment, NodeTimeline, Reuse, Rung, Timeline, Visit,
};
use selvedge_runtime::{Clock, SystemClock};
use std::sync::Arc;

/// A run's timeline until some moment.
pub(super) struct Story {
    pub(super) timeline: Timeline,
    graph: Arc<Graph>,
    /// The end of the run's times: its last event, or now.
    pub(super) until: Moment,
    /// For each node, whether all nodes before it had finished, and the last event of that.
    finished_before: Vec<Option<u64>>,
}

/// Reads a run's journal.
///
/// # Errors
/// If it can't be read.
pub(super) fn read(found: &Found) -> Result<(State, Story), Error> {
    let (state, timeline) = timeline::read(found, None)?;
    // What goes on goes on until now: where a process drives it, and where a person is waited for.
    let goes_on = matches!(state.status(), RunStatus::Waiting) || state.ended().is_none() && found.driven;
    let story = Story::new(timeline, Arc::clone(state.graph()), goes_on.then(|| SystemClock.now_ms()));
    Ok((state, story))
}

impl Story {
    fn new(timeline: Timeline, graph: Arc<Graph>, now: Option<i64>) -> Self {
        let last = timeline.last().unwrap_or(Moment { n: 0, at: 0 });
        let until = Moment { at: now.unwrap_or(last.at).max(last.at), ..last };
        let mut story = Self { timeline, graph, until, finished_before: Vec::new() };
        let mut last = Some(0);
        for node in story.graph.nodes.indices() {
            story.finished_before.push(last);
            last = last.zip(story.ended(node)).map(|(last, ended)| ended.n.max(last));
        }
        story
    }

    /// What is known of a node, if anything happened to it.
    pub(super) fn node(&self, node: NodeIx) -> Option<&NodeTimeline> {
        self.timeline.root(&self.graph.nodes.get(node)?.id)
    }

    /// Its last visit, unless it is to begin anew.
    pub(super) fn visit(&self, node: NodeIx) -> Option<&Visit> {
        self.node(node)?.current()
    }

    /// When it started.
    pub(super) fn started(&self, node: NodeIx) -> Option<Moment> {
        self.visit(node)?.started
    }

    /// When it had ended.
    pub(super) fn ended(&self, node: NodeIx) -> Option<Moment> {
        self.visit(node)?.ended
    }

    /// Why it failed.
    pub(super) fn fault(&self, node: NodeIx) -> Option<(&Fault, Option<&Arc<Printed>>)> {
        let visit = self.visit(node)?;
        Some((visit.fault.as_deref()?, visit.printed_by_failed()))
    }

    /// The node for which it does not run (D-16).
    pub(super) fn skipped(&self, node: NodeIx) -> Option<&Arc<str>> {
        self.node(node)?.skipped.as_ref()
    }

    /// What people said to its questions.
    pub(super) fn answers(&self, node: NodeIx) -> impl Iterator<Item = Answer> {
        let answers = self.node(node).into_iter().flat_map(|node| &node.answers);
        answers.map(|answer| Answer::new(&answer.ask, &answer.value))
    }

    /// What goes on in it now, if it has not ended: a call, or a question to a person.
    pub(super) fn now(&self, node: NodeIx) -> Option<Activity> {
        self.timeline.activity(self.node(node)?, self.until)
    }

    /// When its visit began and ended on the line of time; one that goes on ends with the run's times.
    pub(super) fn extent(&self, node: NodeIx) -> Option<(i64, i64)> {
        self.timeline.extent(self.node(node)?, self.until)
    }

    /// What it did one after the other.
    pub(super) fn intervals(&self, node: NodeIx) -> Vec<Interval> {
        self.node(node).map(|node| self.timeline.intervals(node, self.until)).unwrap_or_default()
    }

    /// What its time went into.
    pub(super) fn durations(&self, node: NodeIx) -> Durations {
        Durations::of(&self.intervals(node))
    }

    /// The strongest effects of the calls it makes, as far as they are known.
    pub(super) fn effects(&self, node: NodeIx) -> Option<Effects> {
        let own = self.graph.nodes.get(node)?;
        let fixed = own.body.leaves.values().filter_map(|leaf| match &leaf.act {
            Act::Call(call) => Some(self.graph.effects(own, &call.tool)),
            _ => None,
        });
        fixed.max().max(self.visit(node).and_then(Visit::effects))
    }

    /// How much of it comes from another run or an earlier visit.
    pub(super) fn reused(&self, node: NodeIx) -> Option<Reuse<'_>> {
        self.timeline.reuse(self.node(node)?)
    }

    /// What was done about what failed (D-22).
    pub(super) fn rungs(&self) -> &[Rung] {
        self.timeline.recovery().rungs()
    }

    /// When something was done about a fault, on the line of time.
    pub(super) fn line(&self, rung: &Rung) -> i64 {
        self.timeline.line(Moment { n: rung.n, at: rung.at })
    }

    /// When the run began, on the line of time.
    pub(super) fn begun(&self) -> Option<i64> {
        self.timeline.first().map(|first| self.timeline.line(first))
    }

    /// Whether a node started before an earlier one had finished.
    pub(super) fn ran_ahead(&self, node: NodeIx) -> bool {
        let before = self.finished_before.get(node.get()).copied().flatten();
        self.started(node).is_some_and(|started| before.is_none_or(|before| before > started.n))
    }
}

/// `reused from RUN`, or how much of it.
pub(super) fn reuse_words(reuse: &Reuse<'_>) -> String {
    let from = reuse.from.map_or("an earlier visit", |from| from);
    match reuse.whole() {
        true => format!("reused from {from}"),
        false => format!("{} of {} calls reused from {from}", reuse.calls, reuse.of),
    }
}
