//! The driver of the simulation: feeds inputs in an order that a seed chooses, keeps the journal as text, and
//! can begin again from any prefix of it.

mod begin;
pub(crate) mod outside;

use crate::canon;
use crate::journal::{Journal, Mark, digest};
use crate::observed::Observed;
use crate::plan::SimPlan;
use crate::rng::Rng;
use crate::watch::Watch;
use crate::world::World;
use selvedge_engine::{Budget, EffectId, Event, Graph, Input, Record, Request, Start, State};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// More events than any plan of the generator makes.
const MANY: usize = 20_000;

/// What a person says of a write about which nobody knows whether it happened (E-05).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Said {
    /// Run it again.
    #[default]
    Again,
    /// Do not run it again.
    No,
    /// It happened, and what came back.
    Done,
}

/// How one execution goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Schedule {
    /// Chooses the order of completion, delays and batches.
    pub seed: u64,
    /// Turns overlap off (P-20).
    pub sequential: bool,
    /// What a person says of a lost write.
    pub lost: Said,
    /// Cap on model calls (E-20).
    pub budget: Option<u64>,
    /// Whether digests of the state are kept, to compare a fold with.
    pub marks: bool,
    /// Whether a recovery sends writes that were in flight again, against E-05: for the canary.
    pub rerun_writes: bool,
}

/// One process that runs a plan.
pub struct Sim<'p> {
    plan: &'p SimPlan,
    schedule: Schedule,
    rng: Rng,
    /// The outside.
    pub world: World,
    /// The run.
    pub state: State,
    /// The run's journal.
    pub journal: Journal,
    watch: Watch,
    now: i64,
    requests: Vec<(usize, String)>,
    /// Effects that were lost, by the id of their first attempt.
    lost: BTreeMap<EffectId, u32>,
    /// What each effect asked: the node, and the content with the node's id in front.
    pub(crate) contents: BTreeMap<EffectId, (usize, String)>,
    asked_lost: BTreeSet<String>,
    sent: BTreeSet<EffectId>,
}

/// The id of an effect's first attempt: what all of them have in common.
pub fn first_attempt(effect: &EffectId) -> EffectId {
    effect.place().map_or_else(|| effect.clone(), |place| place.first().id())
}

impl<'p> Sim<'p> {
    /// A process before the first event.
    pub fn new(plan: &'p SimPlan, graph: &Arc<Graph>, world: World, schedule: Schedule) -> Self {
        Self {
            plan,
            schedule,
            rng: Rng::new(schedule.seed),
            world,
            state: State::new(Arc::clone(graph)),
            journal: Journal::default(),
            watch: Watch::default(),
            now: 1_000,
            requests: Vec::new(),
            lost: BTreeMap::new(),
            contents: BTreeMap::new(),
            asked_lost: BTreeSet::new(),
            sent: BTreeSet::new(),
        }
    }

    /// The same with another plan from here on.
    pub fn of(mut self, plan: &'p SimPlan) -> Self {
        self.plan = plan;
        self
    }

    fn keep_source(&mut self, event: &Event) {
        if let Event::Forked(fork) = event {
            self.journal.sources.push((fork.past.clone(), fork.compiled.clone()));
        }
    }

    /// Runs until the end, or until the journal has `stop` events.
    ///
    /// # Errors
    /// A broken rule.
    pub fn run(&mut self, stop: Option<usize>) -> Result<(), String> {
        if self.journal.is_empty() {
            let graph = self.state.graph().hash().map_err(|error| error.to_string())?.into();
            let start = Start {
                graph,
                initial: self.plan.metadata.clone(),
                sequential: self.schedule.sequential,
                budget: Budget { calls: self.schedule.budget, ..Budget::default() },
                limits: crate::canon::limits(),
                ..Start::default()
            };
            self.input(Input::Start(Box::new(start)))?;
        }
        loop {
            if self.journal.len() > MANY {
                return Err("the run does not end".into());
            }
            if stop.is_some_and(|stop| self.journal.len() >= stop) {
                return Ok(());
            }
            // Several inputs may be recorded before the machine goes on.
            if !self.rng.chance(15) && !self.step_once(stop)? {
                return Ok(());
            }
            if self.state.ended().is_none() && (self.state.step().is_none() || self.rng.chance(10)) {
                self.outside()?;
            }
        }
    }

    /// Derives one event or all; false once the run has ended.
    fn step_once(&mut self, stop: Option<usize>) -> Result<bool, String> {
        let all = self.rng.chance(70) && stop.is_none();
        if all {
            self.quiesce()?;
        } else if let Some(event) = self.state.step() {
            self.push(event)?;
        }
        Ok(self.state.ended().is_none())
    }

    fn quiesce(&mut self) -> Result<(), String> {
        while let Some(event) = self.state.step() {
            self.push(event)?;
            if self.journal.len() > MANY {
                return Err("the machine does not come to rest".into());
            }
        }
        Ok(())
    }

    /// Records an input; one that changes nothing is dropped, as the machine says.
    ///
    /// # Errors
    /// A broken rule.
    pub fn input(&mut self, input: Input) -> Result<(), String> {
        let Some(event) = self.state.accept(input) else { return Ok(()) };
        self.state.tick(self.now);
        self.push(event)
    }

    fn push(&mut self, event: Event) -> Result<(), String> {
        let record = Record { at: self.state.tick(0), event };
        let line = serde_json::to_string(&record).map_err(|error| error.to_string())?;
        self.state.apply(&record.event);
        self.keep_source(&record.event);
        self.note(&record, line, self.world.changes())
    }

    /// Keeps the journal and checks what must hold after each event.
    fn note(&mut self, record: &Record, line: String, changes: usize) -> Result<(), String> {
        match &record.event {
            Event::Lost { effect } => {
                *self.lost.entry(first_attempt(effect)).or_insert(0) += 1;
                self.asked_lost.insert(effect.to_string());
            }
            Event::Requested { effect, .. } | Event::Retried { effect, .. } => self.note_request(effect)?,
            Event::Reused { effect, from, .. } => {
                // A reply that came at a later attempt answers the question of the first.
                let first = self.contents.get(&first_attempt(from));
                if let Some(content) = first.or_else(|| self.contents.get(from)).cloned() {
                    self.contents.insert(effect.clone(), content);
                }
            }
            _ => {}
        }
        self.journal.lines.push(line);
        let (events, marks) = (self.journal.len(), self.schedule.marks);
        let digest =
            (marks && events.is_multiple_of(4)).then(|| digest(&self.state, events.is_multiple_of(32)));
        self.journal.marks.push(Mark { changes, digest });
        let watched = self.watch.event(self.plan, &self.state, &record.event);
        watched.map_err(|error| format!("event {}: {error}", self.journal.len()))
    }

    fn note_request(&mut self, effect: &EffectId) -> Result<(), String> {
        let (node, content) = match self.state.request(effect) {
            Some(Request::Model(request)) => {
                (request.node.clone(), format!("{} model {}", request.node, self.model_content(&request)))
            }
            Some(Request::Tool(request) | Request::Operation(request)) => {
                let content = canon::tool_content(&request.tool.name, &request.args);
                (request.node.clone(), format!("{} tool {content}", request.node))
            }
            None => return Err(format!("{effect} was requested and has no request")),
        };
        let at = self.plan.node(&node).map_or(0, |(at, _)| at);
        self.contents.insert(effect.clone(), (at, content.clone()));
        self.requests.push((at, content));
        Ok(())
    }

    /// The observable result so far.
    pub fn observed(&self) -> Observed {
        Observed::from_view(self.state.view(), &self.requests)
    }

    /// P-20's order of calls, over the whole run.
    ///
    /// # Errors
    /// The two calls that were out of order.
    pub fn in_list_order(&self) -> Result<(), String> {
        self.watch.in_list_order()
    }
}
