//! What is known of a run that goes on: a fold of its events and of what its calls say meanwhile (E-15).
//!
//! Each event and each piece of text costs a constant, however large the run is.

mod flights;

pub(super) use flights::Flying;

use super::Now;
use super::track::{Phase, Track};
use crate::asks;
use crate::look::events::node_of;
use crate::nodes::Tally;
use crate::progress::limited::Limited;
use crate::recovery::done;
use selvedge_engine::{Asked, EffectId, Event, NodeIx, Record, Recovered, State, Tokens, Usage};
use selvedge_host::timeline::NodeStatus;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Why a call waits to be tried again, where an earlier process was told.
const AGAIN: &str = "it failed before";

/// How long an interrupt lets effects end (C-05), in milliseconds.
const GRACE_MS: i64 = 5_000;

/// A run as the live view knows it.
#[derive(Debug)]
pub(super) struct View {
    /// The run's id.
    pub(super) run: String,
    /// The run that it is a fork of.
    pub(super) source: Option<Arc<str>>,
    /// Nodes that took what was recorded before, and ran nothing.
    pub(super) reused: HashSet<NodeIx>,
    /// When this process began to drive it; all times here are milliseconds by a clock that nobody can set.
    pub(super) begun: i64,
    pub(super) track: Track,
    /// Nodes that run.
    pub(super) active: BTreeMap<NodeIx, Active>,
    /// Lanes with a node that runs; with nodes to come and none that runs; with neither.
    pub(super) busy: BTreeSet<usize>,
    pub(super) idle: BTreeSet<usize>,
    pub(super) over: BTreeSet<usize>,
    /// What each lane's nodes have used.
    pub(super) spent: Vec<Tokens>,
    pub(super) usage: Usage,
    /// Nodes that ended in whatever way, those of them that failed, and all.
    pub(super) ended: usize,
    failed: usize,
    pub(super) nodes: usize,
    pub(super) retries: u64,
    /// Decisions about steps that failed (D-22), and steps that do not run for them.
    pub(super) recoveries: u64,
    pub(super) skipped: u64,
    /// Whether any text has streamed.
    pub(super) streamed: bool,
    /// The node whose text is shown, since when.
    pub(super) focus: Option<(NodeIx, i64)>,
    /// Since when the run is winding down.
    pub(super) stopping: Option<i64>,
    limited: Limited,
    effects: HashMap<EffectId, NodeIx>,
    asks: HashMap<Arc<str>, NodeIx>,
}

/// A node that runs.
#[derive(Debug, Default)]
pub(super) struct Active {
    /// When it started.
    pub(super) started: i64,
    pub(super) tokens: Tokens,
    /// Whether it asked for anything itself.
    asked: bool,
    /// Its effects that were requested and have not ended, in that order.
    pub(super) flying: Vec<Flying>,
    /// What a person is asked, by the ask's id.
    pub(super) asking: Vec<(Arc<str>, String)>,
    /// Why its next call may not begin yet.
    pub(super) held: String,
    /// What failed, or what was decided about it.
    pub(super) recovery: String,
    /// The end of the text that streams.
    pub(super) text: String,
    /// The last line of a tool's own progress.
    pub(super) note: String,
}

impl View {
    /// What is known of a run before this process drives it.
    pub(super) fn new(run: &str, state: &State, source: Option<&str>, now: Now) -> Self {
        let track = Track::new(state);
        let mut view = Self {
            run: run.to_owned(),
            source: source.map(Into::into),
            reused: HashSet::new(),
            begun: now.running,
            active: BTreeMap::new(),
            busy: BTreeSet::new(),
            idle: BTreeSet::new(),
            over: BTreeSet::new(),
            spent: vec![Tokens::default(); track.lanes().len()],
            usage: state.usage(),
            ended: 0,
            failed: 0,
            nodes: state.progress().1,
            retries: 0,
            recoveries: 0,
            skipped: 0,
            streamed: false,
            focus: None,
            stopping: None,
            limited: Limited::default(),
            effects: HashMap::new(),
            asks: HashMap::new(),
            track,
        };
        view.catch_up(state, now, HashMap::new());
        view
    }

    /// Takes over where all nodes stand, and what is in flight. Of nodes that ran before, what is known is kept.
    fn catch_up(&mut self, state: &State, now: Now, mut before: HashMap<Arc<str>, Active>) {
        (self.active, self.effects, self.asks) = Default::default();
        (self.busy, self.idle, self.over) = Default::default();
        (self.ended, self.failed, self.skipped) = (0, 0, 0);
        for node in state.graph().nodes.indices() {
            match self.track.phase(node) {
                Phase::Running => {
                    let known = self.track.id(node).and_then(|id| before.get_mut(id));
                    match known.map(std::mem::take) {
                        Some(known) => drop(self.active.insert(node, known)),
                        None => self.activate(node, now.running),
                    }
                }
                Phase::Done => self.ended += 1,
                Phase::Failed => (self.ended, self.failed) = (self.ended + 1, self.failed + 1),
                Phase::Skipped => (self.ended, self.skipped) = (self.ended + 1, self.skipped + 1),
                Phase::Waiting => {}
            }
        }
        (0..self.track.lanes().len()).for_each(|lane| self.sort(lane));
        for (effect, pending) in state.pending() {
            let node = state.outermost(pending.node);
            let known = self.active.get_mut(&node);
            match known.filter(|active| active.flying.iter().any(|flying| flying.effect == *effect)) {
                Some(_) => drop(self.effects.insert(effect.clone(), node)),
                None => {
                    // What is left of a wait that an earlier process began.
                    let left = i64::try_from(pending.wait.left_ms(now.journal)).unwrap_or(i64::MAX);
                    let again = (left > 0).then(|| (now.running.saturating_add(left), AGAIN.to_owned()));
                    self.fly(state, effect, again);
                }
            }
        }
        for active in self.active.values_mut() {
            active.flying.retain(|flying| self.effects.contains_key(&flying.effect));
            active.asking.clear();
        }
        for (ask, asking) in state.asks() {
            self.ask(ask, state.outermost(asking.node), asks::prompt(state, asking));
        }
        let running: Vec<NodeIx> = self.active.keys().copied().collect();
        self.look_again(state, running);
    }

    /// Events that are durable now, and the state after them.
    pub(super) fn events(&mut self, state: &State, records: &[Record], now: Now) {
        if records.iter().any(|record| self.moves(&record.event)) {
            return self.anew(state, records, now);
        }
        let mut touched = Vec::new();
        for record in records {
            touched.extend(self.event(state, record, now.running));
        }
        if records.iter().any(|record| matches!(record.event, Event::NodeFinished { .. })) {
            // Who was held back may go on, or has another one to wait for.
            let held = self.active.iter().filter(|(_, active)| !active.held.is_empty());
            touched.extend(held.map(|(node, _)| *node));
        }
        self.usage = state.usage();
        self.track.retire(state);
        self.look_again(state, touched);
    }

    /// Whether nodes may stand elsewhere after an event, or be others: what ran ahead of a recovery may begin again.
    fn moves(&self, event: &Event) -> bool {
        match event {
            Event::Resumed { .. } | Event::Forked(_) | Event::Spliced { .. } | Event::Recovered(_) => true,
            Event::NodeStarted { node, .. } | Event::NodeFinished { node, .. } => {
                let Some(node) = self.track.node(node) else { return true };
                let mends = |active: &Active| !active.recovery.is_empty();
                // One that had ended begins again.
                matches!(self.track.phase(node), Phase::Done | Phase::Failed)
                    || self.active.get(&node).is_some_and(mends)
            }
            Event::Requested { effect, .. } => {
                let node = self.track.node(&node_of(&effect.0));
                let active = node.and_then(|node| self.active.get(&node));
                active.is_some_and(|active| !active.recovery.is_empty())
            }
            _ => false,
        }
    }

    /// The state after all of the events says where nodes stand.
    fn anew(&mut self, state: &State, records: &[Record], now: Now) {
        for record in records {
            match &record.event {
                Event::Completed { effect, outcome, .. } => drop(self.land(effect, Some(outcome))),
                Event::Retried { .. } => self.retries += 1,
                Event::Caught { .. } | Event::Recovered(_) => drop(self.mend(&record.event)),
                _ => {}
            }
        }
        self.usage = state.usage();
        let track = Track::new(state);
        let old = std::mem::replace(&mut self.track, track);
        self.reused.clear();
        for record in records {
            match &record.event {
                Event::Reused { effect, .. } => self.reused.extend(self.track.node(&node_of(&effect.0))),
                Event::Requested { effect, .. } => {
                    self.track.node(&node_of(&effect.0)).map(|node| self.reused.remove(&node));
                }
                _ => {}
            }
        }
        // Lanes that are still there keep what they have used.
        let spent = old.lanes().iter().map(|lane| lane.name.clone()).zip(std::mem::take(&mut self.spent));
        let mut spent: HashMap<Arc<str>, Tokens> = spent.collect();
        let lanes = self.track.lanes().iter();
        self.spent = lanes.map(|lane| spent.remove(&lane.name).unwrap_or_default()).collect();
        self.nodes = state.progress().1;
        let active = std::mem::take(&mut self.active).into_iter();
        let active = active.filter_map(|(node, active)| Some((old.id(node)?.clone(), active))).collect();
        self.catch_up(state, now, active);
    }

    /// What failed, or what was decided about it.
    fn mend(&mut self, event: &Event) -> Option<NodeIx> {
        let (node, text) = match event {
            Event::Caught { node, fault } => (node, format!("{}: {}", fault.kind.name(), fault.message)),
            Event::Recovered(recovered) => {
                let Recovered { node, action, tool, parameters, strategy, reason, .. } = &**recovered;
                self.recoveries += 1;
                let done = done(*action, tool.as_deref(), parameters.is_some(), strategy.as_deref());
                (node, format!("{done}: {reason}"))
            }
            _ => return None,
        };
        let node = self.track.node(node)?;
        self.active.get_mut(&node)?.recovery = text;
        Some(node)
    }

    /// Nodes with nothing in flight are held back by others, if they run at all.
    fn look_again(&mut self, state: &State, nodes: Vec<NodeIx>) {
        for node in nodes {
            let Some(active) = self.active.get_mut(&node) else { continue };
            let idle = active.flying.is_empty() && active.asking.is_empty();
            let held = idle.then(|| self.track.held(state, node)).flatten();
            active.held = held.unwrap_or_default();
        }
    }

    /// Takes an event in; the node that may be held back now.
    fn event(&mut self, state: &State, record: &Record, now: i64) -> Option<NodeIx> {
        match &record.event {
            Event::NodeStarted { node, .. } => {
                let node = self.track.node(node)?;
                self.reused.remove(&node);
                self.track.started(node);
                self.activate(node, now);
                self.sort(self.track.lane_of(node)?);
                Some(node)
            }
            Event::NodeFinished { node, fault, .. } => {
                self.finished(self.track.node(node)?, fault.is_some());
                None
            }
            Event::Requested { effect, .. } => {
                let node = self.fly(state, effect, None)?;
                self.reused.remove(&node);
                self.active.get_mut(&node)?.asked = true;
                Some(node)
            }
            Event::Reused { effect, .. } => {
                let node = self.track.node(&node_of(&effect.0))?;
                // What has asked for something before has not been reused whole.
                self.reused.extend((!self.active.get(&node)?.asked).then_some(node));
                None
            }
            Event::Retried { effect, after_ms, reason } => {
                self.retries += 1;
                let until = now.saturating_add(i64::try_from(*after_ms).unwrap_or(i64::MAX));
                let because = self.limited.because(effect, reason);
                self.fly(state, effect, Some((until, because)))
            }
            Event::Completed { effect, outcome, .. } => self.land(effect, Some(outcome)),
            Event::Lost { effect } => self.land(effect, None),
            Event::Asked(asked) => {
                let Asked { ask, node, prompt, .. } = &**asked;
                let node = self.track.node(node)?;
                let open = state.asks().get(ask).map(|ask| asks::prompt(state, ask));
                self.ask(ask, node, open.unwrap_or_else(|| prompt.clone()));
                Some(node)
            }
            Event::Answered { ask, .. } => {
                let node = self.asks.remove(ask)?;
                self.active.get_mut(&node)?.asking.retain(|(known, _)| known != ask);
                Some(node)
            }
            Event::Caught { .. } => self.mend(&record.event),
            Event::NodeSkipped { node, .. } => {
                let node = self.track.node(node)?;
                self.track.skipped(node);
                (self.ended, self.skipped) = (self.ended + 1, self.skipped + 1);
                self.sort(self.track.lane_of(node)?);
                None
            }
            // A reply was taken in, and its calls may have to wait.
            Event::Appended { node, .. } => self.track.node(node),
            _ => None,
        }
    }

    fn activate(&mut self, node: NodeIx, at: i64) {
        self.active.insert(node, Active { started: at, ..Active::default() });
    }

    fn finished(&mut self, node: NodeIx, failed: bool) {
        self.track.finished(node, failed);
        (self.ended, self.failed) = (self.ended + 1, self.failed + usize::from(failed));
        let Some(active) = self.active.remove(&node) else { return };
        for flying in &active.flying {
            self.effects.remove(&flying.effect);
        }
        if self.focus.is_some_and(|(focus, _)| focus == node) {
            self.focus = None;
        }
        let Some(lane) = self.track.lane_of(node) else { return };
        if let Some(spent) = self.spent.get_mut(lane) {
            spent.add(&active.tokens);
        }
        self.sort(lane);
    }

    /// Puts a lane among its like.
    fn sort(&mut self, lane: usize) {
        for set in [&mut self.busy, &mut self.idle, &mut self.over] {
            set.remove(&lane);
        }
        if self.runs(lane).is_some() {
            self.busy.insert(lane);
        } else if self.track.head(lane).is_some() {
            self.idle.insert(lane);
        } else {
            self.over.insert(lane);
        }
    }

    /// The node of a lane that runs.
    pub(super) fn runs(&self, lane: usize) -> Option<NodeIx> {
        // Nodes of a thread start in list order, so what runs is the last that started.
        let node = self.track.last_started(lane)?;
        self.active.contains_key(&node).then_some(node)
    }

    fn ask(&mut self, ask: &Arc<str>, node: NodeIx, prompt: String) {
        if let Some(active) = self.active.get_mut(&node) {
            active.asking.push((ask.clone(), prompt));
            self.asks.insert(ask.clone(), node);
        }
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

    /// How many nodes have come how far.
    pub(super) fn tally(&self) -> Tally {
        let skipped = usize::try_from(self.skipped).unwrap_or(usize::MAX);
        let done = self.ended.saturating_sub(self.failed.saturating_add(skipped));
        Tally { done, failed: self.failed, skipped, not_started: 0, of: self.nodes }
    }

    /// The nodes that run have run since they started, whoever drove the run then.
    pub(super) fn since_started(&mut self, state: &State, now: Now) {
        for (node, active) in &mut self.active {
            if let Some(view) = state.node_view(*node) {
                active.started = now.running.saturating_sub(now.journal.saturating_sub(view.started).max(0));
            }
        }
    }

    /// How many effects are under way; those that wait for their turn never begin when the run winds down (C-05).
    pub(super) fn under_way(&self) -> usize {
        let flying = self.active.values().flat_map(|active| &active.flying);
        flying.filter(|call| call.began).count()
    }

    /// How many of the nodes that have started stand there, in the words of the other views.
    pub(super) fn standing(&self, fate: NodeStatus, now: i64) -> usize {
        self.active.values().filter(|active| active.fate(now) == fate).count()
    }

    /// The busy lanes whose node stands there.
    pub(super) fn busy(&self, fate: NodeStatus, now: i64) -> Vec<usize> {
        let active = |lane: usize| self.runs(lane).and_then(|node| self.active.get(&node));
        let stands = |lane: &usize| active(*lane).is_some_and(|active| active.fate(now) == fate);
        self.busy.iter().copied().filter(stands).collect()
    }
}

impl Active {
    /// Where the node stands: it runs unless a person is asked, or none of its calls has its turn.
    fn fate(&self, now: i64) -> NodeStatus {
        let later = |call: &Flying| call.again.as_ref().is_some_and(|(at, _)| *at > now);
        match self.flying.as_slice() {
            _ if !self.asking.is_empty() => NodeStatus::Asking,
            flying if flying.is_empty() || flying.iter().any(|call| call.began) => NodeStatus::Running,
            flying if flying.iter().all(later) => NodeStatus::Retrying,
            _ => NodeStatus::Queued,
        }
    }
}
