//! What the journal tells of each node.

use crate::failure::Failure;
use crate::look::Found;
use crate::look::events::node_of;
use crate::nodes::Nodes;
use crate::recovery::{Ladder, Rung};
use selvedge_engine::graph::Act;
use selvedge_engine::schedule::Schedule;
use selvedge_engine::{EffectId, Effects, Event, Fault, Graph, Ix, NodeIx, Outcome, Record, State, ThreadIx};
use selvedge_runtime::Reading;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// When something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// The event's number: times alone don't tell what came first.
    pub(super) n: u64,
    /// Milliseconds since 1970.
    pub(super) at: i64,
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
    /// Whether it asked a model, or took a recorded answer.
    asked: bool,
    /// The strongest effects of the calls it makes, as far as they are known.
    pub(super) calls: Option<Effects>,
    /// The part of another thread that its own was opened with.
    opened: Option<(ThreadIx, usize, usize)>,
    /// Messages it appended to its thread.
    appended: usize,
    /// The thread that it published a message to, not its own.
    published: Option<ThreadIx>,
}

impl Told {
    /// A node that has not started.
    fn fresh(graph: &Graph, node: NodeIx) -> Self {
        Self { calls: fixed_calls(graph, node), ..Self::default() }
    }
}

/// All nodes, in list order.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// What is told of each.
    pub(super) nodes: Vec<Told>,
    /// The times of the first and the last event.
    pub(super) from_to: Option<(i64, i64)>,
    /// Forks: the event of each, and the time between the last event that it shares and that one, in which the run
    /// did not exist.
    gaps: Vec<(u64, i64)>,
    /// For each node, whether all nodes before it had finished, and the last event of that.
    finished_before: Vec<Option<u64>>,
    /// What was done about what failed, in the order of the journal (D-22).
    pub(super) rungs: Vec<Rung>,
}

/// Reads a run's journal.
///
/// # Errors
/// If it can't be read.
pub(super) fn read(found: &Found) -> Result<(State, Story), Failure> {
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
        reader.event(&state, &record.event, Moment { n: entry.n, at: entry.at_ms });
    }
    reader.settle(&state);
    Ok((state, reader.finish()))
}

struct Reader {
    known: Nodes,
    threads: HashMap<Arc<str>, ThreadIx>,
    ladder: Ladder,
    story: Story,
}

impl Reader {
    fn new(graph: &Arc<Graph>) -> Self {
        let threads = graph.threads.iter().map(|(ix, thread)| (thread.name.clone(), ix)).collect();
        let nodes = graph.nodes.indices().map(|node| Told::fresh(graph, node)).collect();
        let known = Nodes::of(graph);
        Self { known, threads, ladder: Ladder::default(), story: Story { nodes, ..Story::default() } }
    }

    fn told(&mut self, id: &str) -> Option<&mut Told> {
        let node = self.known.position(id)?;
        self.story.nodes.get_mut(node.get())
    }

    /// `state` is the state after the event.
    fn event(&mut self, state: &State, event: &Event, moment: Moment) {
        let (from, last) = self.story.from_to.unwrap_or((moment.at, moment.at));
        if matches!(event, Event::Forked(_)) {
            self.story.gaps.push((moment.n, moment.at.saturating_sub(last).max(0)));
        }
        self.story.from_to = Some((from, moment.at));
        self.ladder.event(&self.known, moment.n, moment.at, event);
        match event {
            Event::NodeStarted { node, .. } => {
                let fresh = self.known.position(node).map(|ix| Told::fresh(state.graph(), ix));
                if let (Some(told), Some(fresh)) = (self.told(node), fresh) {
                    *told = Told { started: Some(moment), ..fresh };
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
            Event::Requested { effect, .. } | Event::Reused { effect, .. } => self.request(state, effect),
            Event::Resumed { .. } | Event::Forked(_) => self.resumed(state),
            _ => {}
        }
    }

    fn request(&mut self, state: &State, effect: &EffectId) {
        let node = node_of(&effect.0);
        let asks = self.known.position(&node).is_some_and(|ix| asks_model(state.graph(), ix, effect));
        let effects = state.pending().get(effect).filter(|pending| !pending.model).map(|p| p.effects);
        if let Some(told) = self.told(&node) {
            told.asked |= asks;
            told.calls = told.calls.max(effects);
        }
    }

    /// What is to start anew has not started yet (P-21).
    fn resumed(&mut self, state: &State) {
        let graph = state.graph();
        for ((told, view), node) in
            self.story.nodes.iter_mut().zip(state.node_views()).zip(graph.nodes.indices())
        {
            if view.started == 0 {
                *told = Told::fresh(graph, node);
            }
        }
    }

    /// What ran ahead of a recovery may have been undone and not begun again (D-16): the state knows.
    fn settle(&mut self, state: &State) {
        let graph = state.graph();
        let nodes = self.story.nodes.iter_mut().zip(graph.nodes.indices());
        for ((told, node), view) in nodes.zip(state.node_views()) {
            if view.started == 0 && view.ended.is_none() {
                *told = Told::fresh(graph, node);
            }
        }
    }

    /// Other steps took the place of some (D-20): what has started stays as it was told, the rest is new.
    fn spliced(&mut self, state: &State) {
        let graph = state.graph();
        let mut told = std::mem::take(&mut self.story.nodes);
        let views = state.node_views();
        let nodes = graph.nodes.indices().zip(&views).map(|(node, view)| {
            let known = self.known.position(&view.node).and_then(|old| told.get_mut(old.get()));
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
    let leaf = effect.0.split('/').nth(1).unwrap_or_default();
    let node = graph.nodes.get(node);
    let leaf = node.and_then(|node| graph.leaves(node).find(|known| *known.name == *leaf));
    matches!(leaf.map(|leaf| &leaf.act), Some(Act::Infer(_)))
}

impl Story {
    /// Moves what forks share with their sources up to them, so that times between moments are times of work: a
    /// fork may be made long after its source ended.
    pub(super) fn close_gaps(&mut self) {
        let gaps = std::mem::take(&mut self.gaps);
        let close = |n: u64, at: &mut i64| {
            let closed = gaps.iter().filter(|(gap, _)| n < *gap).map(|(_, gap)| gap);
            *at = at.saturating_add(closed.sum());
        };
        self.rungs.iter_mut().for_each(|rung| close(rung.n, &mut rung.at));
        let moments = self.nodes.iter_mut().flat_map(|told| [&mut told.started, &mut told.ended]);
        for moment in moments.flatten() {
            close(moment.n, &mut moment.at);
        }
    }

    /// Whether a node started before an earlier one had finished.
    pub(super) fn ran_ahead(&self, node: NodeIx) -> bool {
        let started = self.nodes.get(node.get()).and_then(|told| told.started);
        let before = self.finished_before.get(node.get()).copied().flatten();
        started.is_some_and(|started| before.is_none_or(|before| before > started.n))
    }

    /// Walks the threads, node by node in list order.
    pub(super) fn seen<'s>(&'s self, graph: &Graph, schedule: &'s Schedule) -> Seen<'s> {
        let threads = graph.threads.values().map(|thread| {
            let base = usize::from(thread.first.is_some());
            Talk { base, said: vec![None; base], ..Talk::default() }
        });
        let own = graph.nodes.values().map(|node| node.body.thread).collect();
        Seen { story: self, schedule, own, threads: threads.collect() }
    }
}

#[cfg(test)]
impl Story {
    /// A story of nodes with these times.
    pub(super) fn of(times: &[(i64, Option<i64>)]) -> Self {
        let moment = |at: i64| Moment { n: 1, at };
        let told = |(from, to): &(i64, Option<i64>)| Told {
            started: Some(moment(*from)),
            ended: to.map(moment),
            ..Told::default()
        };
        let last = times.iter().map(|(from, to)| to.unwrap_or(*from)).max().unwrap_or(0);
        Self { nodes: times.iter().map(told).collect(), from_to: Some((0, last)), ..Self::default() }
    }
}

/// Who said what on each thread, as far as the walk has come.
pub(super) struct Seen<'s> {
    story: &'s Story,
    schedule: &'s Schedule,
    own: Vec<Option<ThreadIx>>,
    /// By the position of the thread.
    threads: Vec<Talk>,
}

/// A thread: it only grows, in list order.
#[derive(Default)]
struct Talk {
    /// Messages that it holds before any node writes to it.
    base: usize,
    /// For each message, the node that said it; `None` is the document.
    said: Vec<Option<NodeIx>>,
    /// The number of messages after each writer.
    after: Vec<usize>,
    /// Everybody who said something, in order.
    speakers: Vec<NodeIx>,
    known: HashSet<NodeIx>,
}

impl Talk {
    fn say(&mut self, node: Option<NodeIx>) {
        self.said.push(node);
        if let Some(node) = node.filter(|node| self.known.insert(*node)) {
            self.speakers.push(node);
        }
    }
}

impl Seen<'_> {
    /// The nodes whose messages stood on the thread of `node` when it started, in order, if it showed them to a
    /// model. To be asked of all nodes, in list order.
    pub(super) fn next(&mut self, node: NodeIx) -> Vec<NodeIx> {
        let Some(told) = self.story.nodes.get(node.get()) else { return Vec::new() };
        let taken = told.opened.map(|(from, start, end)| self.slice(node, from, start, end));
        let own = self.own.get(node.get()).copied().flatten();
        let mut seen = Vec::new();
        if let Some(talk) = own.and_then(|thread| self.threads.get_mut(thread.get())) {
            taken.into_iter().flatten().for_each(|speaker| talk.say(speaker));
            if told.asked {
                seen = talk.speakers.clone();
            }
            (0..told.appended).for_each(|_| talk.say(Some(node)));
        }
        if let Some(talk) = told.published.and_then(|to| self.threads.get_mut(to.get())) {
            talk.say(Some(node));
        }
        for (order, _) in self.schedule.member.get(node).into_iter().flatten() {
            // The first orders are those of the threads.
            if let Some(talk) = self.threads.get_mut(order.get()) {
                talk.after.push(talk.said.len());
            }
        }
        seen
    }

    /// What a node took of another thread, of which it observes the first writers only.
    fn slice(&self, node: NodeIx, from: ThreadIx, start: usize, end: usize) -> Vec<Option<NodeIx>> {
        let Some(talk) = self.threads.get(from.get()) else { return Vec::new() };
        let writers = self.schedule.open_at.get(node).copied().unwrap_or_default();
        let length = match (writers as usize).checked_sub(1) {
            None => talk.base,
            Some(last) => talk.after.get(last).copied().unwrap_or(talk.said.len()),
        };
        talk.said.get(start..end.min(length)).unwrap_or_default().to_vec()
    }
}
