//! What is shown of a run that goes on: its timeline, and what no journal has: which calls have their turn, what they say
//! meanwhile (E-15), and times by a clock that nobody can set.
//!
//! Each event and each piece of text costs a constant, however large the run is.

mod flights;
mod standing;

pub(super) use flights::{Active, Flying};

use super::Now;
use super::track::{Phase, Track};
use crate::nodes::Progress;
use crate::recovery::done;
use selvedge_engine::{EffectId, Event, NodeIx, Record, Recovered, State, Tokens, Usage};
use selvedge_host::timeline::{News, NodeStatus, NodeTimeline, Timeline, Visit};
use standing::Standing;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// How long an interrupt lets effects end (C-05), in milliseconds.
const GRACE_MS: i64 = 5_000;

/// A run as the live view knows it.
#[derive(Debug)]
pub(super) struct View {
    /// The run's id.
    pub(super) run: String,
    /// The run that it is a fork of.
    pub(super) source: Option<Arc<str>>,
    /// When this process began to drive it; all times here are milliseconds by a clock that nobody can set.
    pub(super) begun: i64,
    /// What happened.
    pub(super) timeline: Timeline,
    pub(super) track: Track,
    /// Nodes that have started and not ended, by their places in the timeline.
    pub(super) active: BTreeMap<usize, Active>,
    /// Where these stand.
    standing: Standing,
    /// Lanes with nodes to come and none that runs; with neither.
    pub(super) idle: BTreeSet<usize>,
    pub(super) over: BTreeSet<usize>,
    /// What each lane's nodes have used, by the lane's name.
    pub(super) spent: HashMap<Arc<str>, Tokens>,
    /// Frames in which calls have their turn, each with how many, by the node that opened them.
    pub(super) working: HashMap<usize, BTreeMap<usize, u32>>,
    pub(super) usage: Usage,
    pub(super) retries: u64,
    /// Decisions about steps that failed (D-22).
    pub(super) recoveries: u64,
    /// Whether any text has streamed.
    pub(super) streamed: bool,
    /// The node whose text is shown, since when.
    pub(super) focus: Option<(usize, i64)>,
    /// Since when the run is winding down.
    pub(super) stopping: Option<i64>,
    effects: HashMap<EffectId, usize>,
}

impl View {
    /// What is known of a run so far.
    pub(super) fn new(run: &str, state: &State, timeline: Timeline, source: Option<&str>, now: Now) -> Self {
        let mut view = Self {
            run: run.to_owned(),
            source: source.map(Into::into),
            begun: now.running,
            track: Track::new(&timeline, state),
            timeline,
            active: BTreeMap::new(),
            standing: Standing::default(),
            idle: BTreeSet::new(),
            over: BTreeSet::new(),
            spent: HashMap::new(),
            working: HashMap::new(),
            usage: state.usage(),
            retries: 0,
            recoveries: 0,
            streamed: false,
            focus: None,
            stopping: None,
            effects: HashMap::new(),
        };
        view.stand(state, now);
        view
    }

    /// Takes over where all nodes stand, and what is in flight. Of nodes that ran before, what is known is kept.
    fn stand(&mut self, state: &State, now: Now) {
        (self.idle, self.over) = Default::default();
        let known: Vec<usize> = self.active.keys().copied().collect();
        for row in known.into_iter().chain(0..self.timeline.nodes().len()) {
            self.sync(row, state, now);
        }
        (0..self.track.lanes().len()).for_each(|lane| self.sort(lane));
        let running: Vec<usize> = self.active.keys().copied().collect();
        running.into_iter().for_each(|row| self.look_again(state, row));
    }

    /// What records that are durable now brought to the timeline, and the state after them.
    pub(super) fn events(&mut self, state: &State, records: &[Record], news: &News, now: Now) {
        self.usage = state.usage();
        for record in records {
            match &record.event {
                Event::Retried { .. } => self.retries += 1,
                Event::Recovered(_) => self.recoveries += 1,
                _ => {}
            }
        }
        match self.track.follow(&self.timeline, state, news) {
            None => self.stand(state, now),
            Some(moved) => {
                news.nodes.iter().for_each(|row| self.sync(*row, state, now));
                moved.into_iter().for_each(|node| self.moved(node));
                if records.iter().any(|record| matches!(record.event, Event::NodeFinished { .. })) {
                    // Who was held back may go on, or has another one to wait for.
                    let held = self.active.iter().filter(|(_, active)| !active.held.is_empty());
                    let held: Vec<usize> = held.map(|(row, _)| *row).collect();
                    held.into_iter().for_each(|row| self.look_again(state, row));
                }
                news.nodes.iter().for_each(|row| self.look_again(state, *row));
            }
        }
        records.iter().for_each(|record| self.mend(&record.event));
    }

    /// A node stands elsewhere now: so does its lane.
    fn moved(&mut self, node: NodeIx) {
        let Some(lane) = self.track.lane_of(node) else { return };
        let over = matches!(self.track.phase(node), Phase::Done | Phase::Failed);
        if let (true, Some(known)) = (over, self.track.lanes().get(lane)) {
            let spent = self.row(node).and_then(|row| self.visit(row)).map(|visit| visit.tokens);
            self.spent.entry(known.name.clone()).or_default().add(&spent.unwrap_or_default());
        }
        self.sort(lane);
    }

    /// What failed, or what was decided about it.
    fn mend(&mut self, event: &Event) {
        let (node, text) = match event {
            Event::Caught { node, fault } => (node, format!("{}: {}", fault.kind.name(), fault.message)),
            Event::Recovered(recovered) => {
                let Recovered { node, action, tool, parameters, strategy, reason, .. } = &**recovered;
                let done = done(*action, tool.as_deref(), parameters.is_some(), strategy.as_deref());
                (node, format!("{done}: {reason}"))
            }
            _ => return,
        };
        let row = self.timeline.frames().first().and_then(|root| root.node(node));
        if let Some(active) = row.and_then(|row| self.active.get_mut(&row)) {
            active.recovery = text;
        }
    }

    /// The visit of a node that counts.
    pub(super) fn visit(&self, row: usize) -> Option<&Visit> {
        self.timeline.nodes().get(row)?.current()
    }

    /// The row of a node of the run's own graph.
    pub(super) fn row(&self, node: NodeIx) -> Option<usize> {
        self.timeline.frames().first()?.node(self.track.id(node)?)
    }

    /// The running node of a row.
    pub(super) fn active_at(&self, node: NodeIx) -> Option<(&Active, &Visit)> {
        let row = self.row(node)?;
        self.active.get(&row).zip(self.visit(row))
    }

    /// Whether a node took what was recorded before, and ran nothing.
    pub(super) fn is_reused(&self, node: NodeIx) -> bool {
        let known = self.row(node).and_then(|row| self.timeline.nodes().get(row));
        known.is_some_and(|node| self.timeline.reuse(node).is_some_and(|reuse| reuse.whole()))
    }

    /// What is shown of a node follows what its timeline says.
    fn sync(&mut self, row: usize, state: &State, now: Now) {
        let number = self.visit(row).filter(|visit| visit.goes_on()).map(|visit| visit.number);
        match number {
            Some(number) => self.goes_on(row, number, state, now),
            None => self.land_all(row),
        }
        self.stands(row, now.running);
    }

    /// A node with nothing in flight is held back by others, if it runs at all.
    fn look_again(&mut self, state: &State, row: usize) {
        let Some(active) = self.active.get(&row) else { return };
        let idle = active.flying.is_empty() && active.asking.is_empty();
        let held = self
            .track
            .node_at(&self.timeline, row)
            .filter(|_| idle)
            .and_then(|node| self.track.held(state, node));
        if let Some(active) = self.active.get_mut(&row) {
            active.held = held.unwrap_or_default();
        }
    }

    /// Puts a lane among its like.
    fn sort(&mut self, lane: usize) {
        self.idle.remove(&lane);
        self.over.remove(&lane);
        if self.runs(lane).is_some() {
            return;
        }
        match self.track.head(lane) {
            Some(_) => self.idle.insert(lane),
            None => self.over.insert(lane),
        };
    }

    /// The node of a lane that runs.
    pub(super) fn runs(&self, lane: usize) -> Option<NodeIx> {
        // Nodes of a thread start in list order, so what runs is the last that started.
        let node = self.track.last_started(lane)?;
        self.active_at(node).map(|_| node)
    }

    /// The run winds down since `now`, if it did not before (C-05).
    pub(super) fn stop(&mut self, now: i64) {
        self.stopping.get_or_insert(now);
    }

    /// Seconds that effects may still take when the run winds down.
    pub(super) fn grace(&self, now: i64) -> Option<i64> {
        let since = self.stopping?;
        Some((since + GRACE_MS - now).clamp(0, GRACE_MS).div_euclid(1000) + 1).map(|s| s.min(GRACE_MS / 1000))
    }

    /// How many nodes of the run's own graph have come how far.
    pub(super) fn progress(&self) -> Progress {
        self.track.progress()
    }

    /// The nodes that run have run since they started, whoever drove the run then.
    pub(super) fn since_started(&mut self, now: Now) {
        for (row, active) in &mut self.active {
            let started = self.timeline.nodes().get(*row).and_then(NodeTimeline::current);
            if let Some(started) = started.and_then(|visit| visit.started) {
                active.started = now.running.saturating_sub(now.journal.saturating_sub(started.at).max(0));
            }
        }
    }

    /// How many effects are under way; those that wait for their turn never begin when the run winds down (C-05).
    pub(super) fn under_way(&self) -> usize {
        let flying = self.active.values().flat_map(|active| &active.flying);
        flying.filter(|call| call.began).count()
    }

    /// How many of the nodes that have started stand there, in the words of the other views. Those that wait for what they opened are
    /// not counted beside it.
    pub(super) fn standing(&self, status: NodeStatus) -> usize {
        self.standing.count(status)
    }

    /// The lanes whose node stands there.
    pub(super) fn busy(&self, status: NodeStatus) -> Option<&BTreeSet<usize>> {
        self.standing.lanes(status)
    }

    /// Time has passed: calls that waited to be tried again wait for their turn now.
    pub(super) fn tick(&mut self, now: i64) {
        while let Some(row) = self.standing.due(now) {
            self.stands(row, now);
        }
    }

    /// Whether the nodes of the run's own graph follow each other by their ways.
    pub(super) fn flows(&self) -> bool {
        self.track.flows()
    }
}
