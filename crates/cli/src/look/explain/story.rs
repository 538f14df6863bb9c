//! What the journal tells of each node.

use super::times::{Doing, Open, Piece, Span, pieces};
use crate::commands::run::now_ms;
use crate::look::Found;
use crate::look::answers::Answer;
use crate::look::events::node_of;
use crate::nodes::Nodes;
use crate::recovery::{Ladder, Rung};
use selvedge_engine::graph::{Act, Leaf};
use selvedge_engine::{
    EffectId, Effects, Event, Fault, Graph, Ix, NodeIx, Outcome, Record, RunStatus, State, ThreadIx,
};
use selvedge_host::Error;
use selvedge_runtime::Reading;
use std::collections::HashMap;
use std::sync::Arc;

/// When something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// The event's number: times alone don't tell what came first.
    pub(super) n: u64,
    /// Milliseconds since 1970, by the journal.
    pub(super) at: i64,
    /// The same on the run's line of time: what a fork shares with its source is moved up to it, so that times between
    /// moments are times of the run. A fork may be made long after its source ended.
    pub(super) line: i64,
}

/// The last visit of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// When it started.
    pub(super) started: Option<Moment>,
    /// When it had finished.
    pub(super) ended: Option<Moment>,
    /// Whether it failed.
    pub(super) failed: bool,
    /// Why.
    pub(super) fault: Option<Box<Fault>>,
    /// The event with the outcome of its last call that failed and had printed something.
    pub(super) said: Option<u64>,
    /// The node that failed before it, for which it does not run (D-16).
    pub(super) skipped: Option<Arc<str>>,
    /// What its time went into.
    pub(super) spans: Vec<Span>,
    /// What people said to its questions.
    pub(super) answers: Vec<Answer>,
    /// What goes on in it now, if it has not ended: a call, or a question to a person.
    pub(super) now: Option<Doing>,
    /// Its calls that took a recorded result, and those that were asked for.
    pub(super) calls_reused: (usize, usize),
    /// Whether it asked a model, or took a recorded answer.
    pub(super) asked: bool,
    /// The strongest effects of the calls it makes, as far as they are known.
    pub(super) calls: Option<Effects>,
    /// The part of another thread that its own was opened with.
    pub(super) opened: Option<(ThreadIx, usize, usize)>,
    /// Messages it appended to its thread.
    pub(super) appended: usize,
    /// The thread that it published a message to, not its own.
    pub(super) published: Option<ThreadIx>,
}

impl Told {
    /// A node that has not started.
    fn fresh(graph: &Graph, node: NodeIx) -> Self {
        Self { calls: fixed_calls(graph, node), ..Self::default() }
    }

    /// It begins anew. What people said stays told: a no may have been taken back since.
    fn begin(&mut self, fresh: Self) {
        *self = Self { answers: std::mem::take(&mut self.answers), ..fresh };
    }
}

/// All nodes, in list order.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// What is told of each.
    pub(super) nodes: Vec<Told>,
    /// The first and the last event.
    pub(super) from_to: Option<(Moment, Moment)>,
    /// Forks: the event of each, and the time between the last event that it shares and that one, in which the run
    /// did not exist.
    gaps: Vec<(u64, i64)>,
    /// The event with which a fork left its source, and the source.
    forked: Option<(u64, Arc<str>)>,
    /// For each node, whether all nodes before it had finished, and the last event of that.
    finished_before: Vec<Option<u64>>,
    /// What was done about what failed, in the order of the journal (D-22).
    pub(super) rungs: Vec<Rung>,
}

/// Reads a run's journal.
///
/// # Errors
/// If it can't be read.
pub(super) fn read(found: &Found) -> Result<(State, Story), Error> {
    let mut reading = Reading::open(&found.store, found.run())?;
    let mut reader = Reader::new(reading.graph());
    let mut state = State::new(Arc::clone(reading.graph()));
    for entry in found.store.journal(found.run(), 1)? {
        let entry = entry?;
        let record = Record { at: entry.at_ms, event: reading.event(&entry)? };
        state.apply_record(&record);
        if matches!(&record.event, Event::Forked(fork) if fork.graph.is_some()) {
            // A fork that began another document: what was told was told of the one before (E-19).
            reader = Reader::new(state.graph());
        }
        if matches!(&record.event, Event::Spliced { .. }) {
            reader.spliced(&state);
        }
        reader.event(&state, &record.event, Moment { n: entry.n, at: entry.at_ms, line: entry.at_ms });
    }
    // What goes on goes on until now: where a process drives it, and where a person is waited for.
    if matches!(state.status(), RunStatus::Waiting) || state.ended().is_none() && found.driven {
        reader.go_on(now_ms());
    }
    reader.settle(&state);
    Ok((state, reader.finish()))
}

struct Reader {
    known: Nodes,
    threads: HashMap<Arc<str>, ThreadIx>,
    ladder: Ladder,
    open: Open,
    story: Story,
}

impl Reader {
    fn new(graph: &Arc<Graph>) -> Self {
        let threads = graph.threads.iter().map(|(ix, thread)| (thread.name.clone(), ix)).collect();
        let nodes = graph.nodes.indices().map(|node| Told::fresh(graph, node)).collect();
        let known = Nodes::of(graph);
        let story = Story { nodes, ..Story::default() };
        Self { known, threads, ladder: Ladder::default(), open: Open::default(), story }
    }

    fn told(&mut self, id: &str) -> Option<&mut Told> {
        let node = self.known.position(id)?;
        self.story.nodes.get_mut(node.get())
    }

    /// `state` is the state after the event.
    fn event(&mut self, state: &State, event: &Event, moment: Moment) {
        let (from, last) = self.story.from_to.unwrap_or((moment, moment));
        if let Event::Forked(fork) = event {
            self.story.gaps.push((moment.n, moment.at.saturating_sub(last.at).max(0)));
            self.story.forked = Some((moment.n, fork.source.clone()));
        }
        self.story.from_to = Some((from, moment));
        self.time(event, moment);
        self.ladder.event(&self.known, moment.n, moment.at, event);
        match event {
            Event::NodeStarted { node, .. } => {
                let fresh = self.known.position(node).map(|ix| Told::fresh(state.graph(), ix));
                if let (Some(told), Some(fresh)) = (self.told(node), fresh) {
                    told.begin(Told { started: Some(moment), ..fresh });
                }
            }
            Event::NodeFinished { node, fault, .. } => {
                if let Some(told) = self.told(node) {
                    told.ended = Some(moment);
                    told.failed = fault.is_some();
                    told.fault.clone_from(fault);
                }
            }
            Event::Completed { effect, outcome: Outcome::Failed(_), printed: Some(_), .. } => {
                if let Some(told) = self.told(&node_of(&effect.0)) {
                    told.said = Some(moment.n);
                }
            }
            Event::NodeSkipped { node, because } => {
                if let Some(told) = self.told(node) {
                    told.skipped = Some(because.clone());
                }
            }
            Event::Opened { node, from, start, end, .. } => {
                let from = self.threads.get(from).copied();
                if let Some(told) = self.told(node) {
                    told.opened = from.map(|from| (from, *start as usize, *end as usize));
                }
            }
            Event::Appended { node, .. } => {
                if let Some(told) = self.told(node) {
                    told.appended += 1;
                }
            }
            Event::Published { node, to, .. } => {
                let own = self.known.get(node).and_then(|known| known.body.thread);
                let to = self.threads.get(to).copied().filter(|to| own != Some(*to));
                if let Some(told) = self.told(node) {
                    told.published = to;
                }
            }
            Event::Requested { effect, .. } => self.request(state, effect, false),
            Event::Reused { effect, .. } => self.request(state, effect, true),
            Event::Resumed { .. } | Event::Forked(_) => self.resumed(state),
            _ => {}
        }
    }

    /// What a node's time goes into.
    fn time(&mut self, event: &Event, moment: Moment) {
        let (node, spans) = match event {
            Event::Requested { effect, .. } => return self.open.call(effect, moment, 0),
            Event::Retried { effect, after_ms, .. } => return self.open.call(effect, moment, *after_ms),
            Event::Asked(asked) => return self.open.ask(&asked.ask, &asked.node, moment),
            Event::Completed { effect, took, .. } => {
                (node_of(&effect.0).into_owned(), self.open.ended(effect, moment, *took))
            }
            Event::Answered { ask, value } => {
                let (node, span) = match self.open.answer(ask, moment) {
                    Some((node, span)) => (node, vec![span]),
                    // A no was taken back.
                    None => (node_of(ask).into_owned(), Vec::new()),
                };
                if let Some(told) = self.told(&node) {
                    told.answers.push(Answer::new(ask, value));
                }
                (node, span)
            }
            _ => return,
        };
        if let Some(told) = self.told(&node) {
            told.spans.extend(spans);
        }
    }

    fn request(&mut self, state: &State, effect: &EffectId, reused: bool) {
        let node = node_of(&effect.0);
        let asks = self.known.position(&node).is_some_and(|ix| asks_model(state.graph(), ix, effect));
        let effects = state.pending().get(effect).filter(|pending| !pending.model).map(|p| p.effects);
        if let Some(told) = self.told(&node) {
            told.asked |= asks;
            told.calls = told.calls.max(effects);
            match reused {
                true => told.calls_reused.0 += 1,
                false => told.calls_reused.1 += 1,
            }
        }
    }

    /// What is to start anew has not started yet (P-21).
    fn resumed(&mut self, state: &State) {
        let graph = state.graph();
        for ((told, view), node) in
            self.story.nodes.iter_mut().zip(state.node_views()).zip(graph.nodes.indices())
        {
            if view.started == 0 {
                told.begin(Told::fresh(graph, node));
            }
        }
    }

    /// What ran ahead of a recovery may have been undone and not begun again (D-16): the state knows.
    fn settle(&mut self, state: &State) {
        self.still_open(state);
        let graph = state.graph();
        let nodes = self.story.nodes.iter_mut().zip(graph.nodes.indices());
        for ((told, node), view) in nodes.zip(state.node_views()) {
            if view.started == 0 && view.ended.is_none() {
                told.begin(Told::fresh(graph, node));
            }
        }
    }

    /// The run's times reach until now, and not only to its last event.
    fn go_on(&mut self, now: i64) {
        if let Some((_, last)) = &mut self.story.from_to {
            let at = now.max(last.at);
            (last.at, last.line) = (at, at);
        }
    }

    /// What has not ended goes on at the end of the run's times.
    fn still_open(&mut self, state: &State) {
        let Some((_, last)) = self.story.from_to.filter(|_| state.ended().is_none()) else { return };
        for effect in state.pending().keys() {
            let spans = self.open.ended(effect, last, None);
            let lasts = |span: &Span| span.from.line < span.to.line;
            let now = match spans.as_slice() {
                [again, out] if lasts(again) && !lasts(out) => Doing::Again,
                _ => Doing::Flying,
            };
            if let Some(told) = self.told(&node_of(&effect.0)) {
                told.spans.extend(spans);
                // Where something is out, that counts.
                told.now = Some(told.now.map_or(now, |known| known.min(now)));
            }
        }
        for ask in state.asks().keys() {
            if let Some((node, span)) = self.open.answer(ask, last)
                && let Some(told) = self.told(&node)
            {
                told.spans.push(span);
                told.now = told.now.or(Some(Doing::Person));
            }
        }
    }

    /// Other steps took the place of some (D-20): what has started stays as it was told, the rest is new.
    fn spliced(&mut self, state: &State) {
        let graph = state.graph();
        let mut told = std::mem::take(&mut self.story.nodes);
        let nodes = graph.nodes.indices().zip(state.node_views()).map(|(node, view)| {
            let known = self.known.position(view.node).and_then(|old| told.get_mut(old.get()));
            match known {
                Some(known) if view.started > 0 => std::mem::take(known),
                _ => Told::fresh(graph, node),
            }
        });
        self.story.nodes = nodes.collect();
        self.known = Nodes::of(graph);
    }

    fn finish(mut self) -> Story {
        self.story.rungs = self.ladder.into_rungs();
        self.story.line_up();
        let mut last = Some(0);
        for told in &self.story.nodes {
            self.story.finished_before.push(last);
            last = last.zip(told.ended).map(|(last, ended)| ended.n.max(last));
        }
        self.story
    }
}

/// The effects of calls that a node makes in any case.
fn fixed_calls(graph: &Graph, node: NodeIx) -> Option<Effects> {
    let node = graph.nodes.get(node)?;
    let calls = node.body.leaves.values().filter_map(|leaf| match &leaf.act {
        Act::Call(call) => Some(graph.effects(node, &call.tool)),
        _ => None,
    });
    calls.max()
}

/// Whether an effect of a node is a request to a model: its id names the leaf after the node (E-06).
fn asks_model(graph: &Graph, node: NodeIx, effect: &EffectId) -> bool {
    let (place, node) = (effect.place(), graph.nodes.get(node));
    let is_of = |known: &&Leaf| place.as_ref().is_some_and(|place| *known.name == *place.leaf);
    let leaf = node.and_then(|node| graph.leaves(node).find(is_of));
    matches!(leaf.map(|leaf| &leaf.act), Some(Act::Infer(_)))
}

impl Story {
    /// Puts every moment on the run's line of time.
    fn line_up(&mut self) {
        let gaps = std::mem::take(&mut self.gaps);
        let line = |moment: &mut Moment| moment.line = closed(&gaps, moment.n, moment.at);
        for told in &mut self.nodes {
            told.started.iter_mut().chain(&mut told.ended).for_each(line);
            told.spans.iter_mut().flat_map(|span| [&mut span.from, &mut span.to]).for_each(line);
        }
        self.from_to.iter_mut().flat_map(|(from, to)| [from, to]).for_each(line);
        self.gaps = gaps;
    }

    /// When something was done about a fault, on the line of time.
    pub(super) fn line(&self, rung: &Rung) -> i64 {
        closed(&self.gaps, rung.n, rung.at)
    }

    /// When a node's visit began and ended on the line of time; one that goes on ends with the journal.
    pub(super) fn visit(&self, node: NodeIx) -> Option<(i64, i64)> {
        let told = self.nodes.get(node.get())?;
        let from = told.started?.line;
        let last = self.from_to.map_or(from, |(_, last)| last.line);
        Some((from, told.ended.map_or(last, |ended| ended.line).max(from)))
    }

    /// What a node did one after the other.
    pub(super) fn pieces(&self, node: NodeIx) -> Vec<Piece> {
        let Some((from, to)) = self.visit(node) else { return Vec::new() };
        pieces(self.nodes.get(node.get()).map_or(&[][..], |told| &told.spans), from, to)
    }

    /// How much of a node comes from another run or an earlier visit: whose calls are `of` so many, and of which run, if
    /// it is another one.
    pub(super) fn reused(&self, node: NodeIx) -> Option<Reused<'_>> {
        let told = self.nodes.get(node.get())?;
        let from = self.forked.as_ref().map(|(_, source)| &**source);
        let shared = self.forked.as_ref().is_some_and(|(n, _)| told.ended.is_some_and(|ended| ended.n < *n));
        let (reused, asked) = told.calls_reused;
        match shared {
            true => Some(Reused { from, calls: 0, of: 0 }),
            false => (reused > 0).then_some(Reused { from, calls: reused, of: reused + asked }),
        }
    }

    /// Whether a node started before an earlier one had finished.
    pub(super) fn ran_ahead(&self, node: NodeIx) -> bool {
        let started = self.nodes.get(node.get()).and_then(|told| told.started);
        let before = self.finished_before.get(node.get()).copied().flatten();
        started.is_some_and(|started| before.is_none_or(|before| before > started.n))
    }
}

/// A time without the gaps behind it.
fn closed(gaps: &[(u64, i64)], n: u64, at: i64) -> i64 {
    let behind = gaps.iter().filter(|(gap, _)| n < *gap).map(|(_, gap)| gap);
    at.saturating_add(behind.sum())
}

/// What a node takes over of what was recorded before.
pub(super) struct Reused<'s> {
    /// The run, if it is another one.
    from: Option<&'s str>,
    calls: usize,
    of: usize,
}

impl Reused<'_> {
    /// Whether nothing of the node ran here.
    pub(super) fn whole(&self) -> bool {
        self.calls == self.of
    }

    /// `reused from RUN`, or how much of it.
    pub(super) fn told(&self) -> String {
        let from = self.from.unwrap_or("an earlier visit");
        match self.whole() {
            true => format!("reused from {from}"),
            false => format!("{} of {} calls reused from {from}", self.calls, self.of),
        }
    }

    /// The run's id, `run` if it is the run itself.
    pub(super) fn run<'r>(&'r self, run: &'r str) -> &'r str {
        self.from.unwrap_or(run)
    }
}

#[cfg(test)]
impl Story {
    /// A story of nodes with these times.
    pub(super) fn of(times: &[(i64, Option<i64>)]) -> Self {
        let moment = |at: i64| Moment { n: 1, at, line: at };
        let told = |(from, to): &(i64, Option<i64>)| Told {
            started: Some(moment(*from)),
            ended: to.map(moment),
            ..Told::default()
        };
        let last = times.iter().map(|(from, to)| to.unwrap_or(*from)).max().unwrap_or(0);
        Self {
            nodes: times.iter().map(told).collect(),
            from_to: Some((moment(0), moment(last))),
            ..Self::default()
        }
    }
}
