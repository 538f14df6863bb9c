//! What the nodes of a run that have not started wait for (P-20), by its timeline and the schedule of its graph.
//!
//! Watchers see the machine's state only while events come, but waits are to be told at any time. Each event costs a constant;
//! so does each question about a node.

use crate::nodes::Progress;
use selvedge_engine::graph::{Control, OnError};
use selvedge_engine::schedule::{Schedule, Until};
use selvedge_engine::{Graph, Ix, NodeIx, NodeRef, OrderIx, State};
use selvedge_host::explain::waits::turn;
use selvedge_host::timeline::{News, Timeline};
use std::sync::Arc;

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It has not started.
    Waiting,
    /// It runs.
    Running,
    /// It ended well.
    Done,
    /// It failed.
    Failed,
    /// It does not run, because it may depend on one that failed (D-16).
    Skipped,
}

impl Phase {
    /// How far that is: what goes back begins again.
    fn step(self) -> u8 {
        match self {
            Self::Waiting => 0,
            Self::Running => 1,
            Self::Done | Self::Failed | Self::Skipped => 2,
        }
    }
}

/// Where a row of a timeline stands.
fn phase_of(timeline: &Timeline, row: usize) -> Phase {
    let Some(node) = timeline.nodes().get(row) else { return Phase::Waiting };
    match node.current() {
        Some(visit) if visit.ended.is_some() && visit.fault.is_some() => Phase::Failed,
        Some(visit) if visit.ended.is_some() => Phase::Done,
        Some(visit) if visit.started.is_some() => Phase::Running,
        _ if node.skipped.is_some() => Phase::Skipped,
        _ => Phase::Waiting,
    }
}

/// The nodes of one thread, in list order: at most one of them runs at a time. A node without a thread, a step of a
/// step task, has a lane of its own.
#[derive(Debug)]
pub(crate) struct Lane {
    /// The thread's name; for a node without a thread, the node's id.
    pub(crate) name: Arc<str>,
    /// Whether it is a thread.
    pub(crate) threaded: bool,
    /// Its nodes.
    pub(crate) nodes: Vec<NodeIx>,
    /// How many of them have ended.
    pub(crate) ended: usize,
    /// The first of them that has not started.
    next: usize,
}

/// The nodes of a run's own graph, as its timeline has them.
#[derive(Debug)]
pub(crate) struct Track {
    graph: Arc<Graph>,
    schedule: Schedule,
    phases: Vec<Phase>,
    ended: usize,
    failed: usize,
    skipped: usize,
    /// For each order, how many of its first writers have settled.
    prefix: Vec<u32>,
    retired: u32,
    lanes: Vec<Lane>,
    lane_of: Vec<usize>,
}

impl Track {
    /// Where the nodes of a run stand now.
    pub(crate) fn new(timeline: &Timeline, state: &State) -> Self {
        let graph = Arc::clone(state.graph());
        let schedule = Schedule::derive(&graph, state.start().sequential);
        let (lanes, lane_of) = lanes(&graph);
        let mut track = Self {
            phases: vec![Phase::Waiting; graph.nodes.len()],
            ended: 0,
            failed: 0,
            skipped: 0,
            prefix: vec![0; schedule.orders.len()],
            retired: 0,
            graph,
            schedule,
            lanes,
            lane_of,
        };
        for node in timeline.frames().first().into_iter().flat_map(|root| &root.nodes) {
            track.take(timeline, *node);
        }
        track.retire(state);
        track
    }

    /// Takes over what is new of a timeline: the nodes that stand elsewhere now; `None` where some are back where they had been,
    /// and all of it was read again.
    pub(crate) fn follow(&mut self, timeline: &Timeline, state: &State, news: &News) -> Option<Vec<NodeIx>> {
        let back = |row: &usize| {
            let node = self.node_at(timeline, *row);
            node.is_some_and(|node| phase_of(timeline, *row).step() < self.phase(node).step())
        };
        if news.moved || news.nodes.iter().any(back) {
            *self = Self::new(timeline, state);
            return None;
        }
        let moved = news.nodes.iter().filter_map(|row| self.take(timeline, *row)).collect();
        self.retire(state);
        Some(moved)
    }

    /// Takes over where a node of the run's own graph stands; which it is, if that is elsewhere than before.
    fn take(&mut self, timeline: &Timeline, row: usize) -> Option<NodeIx> {
        let node = self.node_at(timeline, row)?;
        let (before, now) = (self.phase(node), phase_of(timeline, row));
        if before == now {
            return None;
        }
        if let Some(known) = self.phases.get_mut(node.get()) {
            *known = now;
        }
        let ended = now.step() == Phase::Done.step();
        (self.ended, self.failed) =
            (self.ended + usize::from(ended), self.failed + usize::from(now == Phase::Failed));
        self.skipped += usize::from(now == Phase::Skipped);
        let phases = &self.phases;
        let waits = |node: &NodeIx| phases.get(node.get()) == Some(&Phase::Waiting);
        if let Some(lane) = self.lane_of.get(node.get()).and_then(|lane| self.lanes.get_mut(*lane)) {
            lane.ended += usize::from(ended);
            // It goes on to the first that has not started.
            while lane.nodes.get(lane.next).is_some_and(|node| !waits(node)) {
                lane.next += 1;
            }
        }
        self.settle(node);
        Some(node)
    }

    /// Later nodes may build on how a node ended, if it has.
    fn settle(&mut self, node: NodeIx) {
        for (order, _) in self.schedule.member.get(node).into_iter().flatten() {
            let Some(writers) = self.schedule.orders.get(*order).map(|order| &order.writers) else {
                continue;
            };
            let Some(mut prefix) = self.prefix.get(order.get()).copied() else { continue };
            while writers.get(prefix as usize).is_some_and(|node| self.has_settled(*node)) {
                prefix += 1;
            }
            if let Some(known) = self.prefix.get_mut(order.get()) {
                *known = prefix;
            }
        }
    }

    /// Whether a node has ended in a way that later ones may build on.
    fn has_settled(&self, node: NodeIx) -> bool {
        let goes_on = || self.graph.nodes.get(node).is_some_and(|def| def.on_error != OnError::Fail);
        match self.phase(node) {
            Phase::Done | Phase::Skipped => true,
            Phase::Failed => goes_on(),
            Phase::Waiting | Phase::Running => false,
        }
    }

    /// Takes over how many nodes have retired; in a flow none waits for that.
    fn retire(&mut self, state: &State) {
        if !self.flows() {
            self.retired = u32::try_from(state.progress().0).unwrap_or(u32::MAX);
        }
    }

    /// How many nodes of the run's own graph have come how far.
    pub(crate) fn progress(&self) -> Progress {
        let done = self.ended - self.failed - self.skipped;
        Progress { done, failed: self.failed, skipped: self.skipped, of: self.phases.len() }
    }

    /// The node of the run's own graph that a row of its timeline is about.
    pub(crate) fn node_at(&self, timeline: &Timeline, row: usize) -> Option<NodeIx> {
        let node = timeline.nodes().get(row).filter(|node| node.within == 0)?;
        self.schedule.by_id.get(&node.node).copied()
    }

    /// Whether its nodes follow each other by their ways.
    pub(crate) fn flows(&self) -> bool {
        self.graph.control == Control::Flow
    }
    /// Where a node stands.
    pub(crate) fn phase(&self, node: NodeIx) -> Phase {
        self.phases.get(node.get()).copied().unwrap_or(Phase::Waiting)
    }
    /// The threads that nodes run on, in the order of their first nodes.
    pub(crate) fn lanes(&self) -> &[Lane] {
        &self.lanes
    }
    /// The lane of a node.
    pub(crate) fn lane_of(&self, node: NodeIx) -> Option<usize> {
        self.lane_of.get(node.get()).copied()
    }
    /// The node of a lane that is to start next.
    pub(crate) fn head(&self, lane: usize) -> Option<NodeIx> {
        self.lanes.get(lane).and_then(|lane| lane.nodes.get(lane.next)).copied()
    }

    /// The node of a lane that started last.
    pub(crate) fn last_started(&self, lane: usize) -> Option<NodeIx> {
        let lane = self.lanes.get(lane)?;
        lane.nodes.get(lane.next.checked_sub(1)?).copied()
    }

    /// A node's id and, where it says more, its name.
    pub(crate) fn title(&self, node: NodeIx) -> String {
        match self.graph.nodes.get(node) {
            Some(def) if def.name != def.id => format!("{} {}", def.id, def.name),
            Some(def) => def.id.to_string(),
            None => String::new(),
        }
    }

    /// A node's id.
    pub(crate) fn id(&self, node: NodeIx) -> Option<&Arc<str>> {
        self.graph.nodes.get(node).map(|def| &def.id)
    }

    /// A node's name, if it says more than the id.
    pub(crate) fn name(&self, node: NodeIx) -> &str {
        self.graph.nodes.get(node).filter(|def| def.name != def.id).map_or("", |def| &def.name)
    }

    /// What a node that has not started waits for, in words; empty if nothing holds it back. "waits for load (reads
    /// its result), open (takes [0, 1] of thread main)".
    pub(crate) fn waits(&self, node: NodeIx) -> String {
        const SHOWN: usize = 3;
        let mut told: Vec<(String, &str)> = Vec::new();
        for wait in self.schedule.waits.get(node).into_iter().flatten() {
            if let Some(after) = self.unmet(wait.until)
                && !told.iter().any(|(known, _)| *known == after)
            {
                told.push((after, &wait.why));
            }
        }
        if told.is_empty() && self.phase(node) == Phase::Waiting {
            // What it reads could still be set by a node that has not ended.
            told.extend(
                self.unmet(Until::Retired(node.0)).map(|after| (after, "what it reads may still change")),
            );
        }
        let reason = |(after, why): &(String, &str)| {
            let why = why.replace(&format!("the result of {after}"), "its result");
            format!("{after} ({})", why.replace(&format!("depends on {after}"), "depends on it"))
        };
        let mut words: Vec<String> = told.iter().take(SHOWN).map(reason).collect();
        if told.len() > SHOWN {
            words.push(format!("{} more", told.len() - SHOWN));
        }
        if words.is_empty() { String::new() } else { format!("waits for {}", words.join(", ")) }
    }

    /// Why the next call of a running node may not begin yet, in words (E-22).
    pub(crate) fn held(&self, state: &State, node: NodeIx) -> Option<String> {
        let (tool, until) = state.held_back(NodeRef::root(node))?;
        let effects = self.graph.nodes.get(node).map(|def| self.graph.effects(def, tool));
        let why = effects.and_then(turn).map(|why| format!(" ({why})")).unwrap_or_default();
        Some(format!("holds {tool} back until {} is done{why}", self.unmet(until)?))
    }

    /// The id of the first node that has to settle before `until` holds.
    fn unmet(&self, until: Until) -> Option<String> {
        let node = match until {
            Until::Finished(node) => (!self.has_settled(node)).then_some(node),
            Until::First(order, count) => {
                self.next_writer(order).filter(|(at, _)| *at < count).map(|(_, n)| n)
            }
            Until::Retired(count) => (self.retired < count).then_some(NodeIx(self.retired)),
        };
        self.graph.nodes.get(node?).map(|def| def.id.to_string())
    }

    fn next_writer(&self, order: OrderIx) -> Option<(u32, NodeIx)> {
        let at = *self.prefix.get(order.get())?;
        let writer = *self.schedule.orders.get(order)?.writers.get(at as usize)?;
        Some((at, writer))
    }
}

/// Lanes in the order of their first nodes, and the lane of each node.
fn lanes(graph: &Graph) -> (Vec<Lane>, Vec<usize>) {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut by_thread: Vec<Option<usize>> = vec![None; graph.threads.len()];
    let mut lane_of = Vec::with_capacity(graph.nodes.len());
    for (node, def) in graph.nodes.iter() {
        let known = def.body.thread.and_then(|thread| by_thread.get(thread.get()).copied().flatten());
        let lane = known.unwrap_or(lanes.len());
        if known.is_none() {
            let thread = def.body.thread.and_then(|thread| graph.threads.get(thread));
            let name = thread.map_or_else(|| def.id.clone(), |thread| thread.name.clone());
            let threaded = thread.is_some();
            lanes.push(Lane { name, threaded, nodes: Vec::new(), ended: 0, next: 0 });
            if let Some(slot) = def.body.thread.and_then(|thread| by_thread.get_mut(thread.get())) {
                *slot = Some(lane);
            }
        }
        if let Some(lane) = lanes.get_mut(lane) {
            lane.nodes.push(node);
        }
        lane_of.push(lane);
    }
    (lanes, lane_of)
}
