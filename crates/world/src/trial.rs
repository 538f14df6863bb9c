//! One run in the world: the loop of a driver ("Driving the engine" in ARCHITECTURE.md) on a clock that nobody waits for. Nothing in
//! here fails but what luck lets fail.

use crate::luck::{Hit, Luck};
use crate::outside::{self, Outside, Recorded, Session};
use crate::rng::{Rng, hash};
use crate::values;
use crate::words::Words;
use selvedge_engine::graph::Act;
use selvedge_engine::{
    EffectId, Effects, Event, FaultKind, Graph, Input, Outcome, Record, Request, RunStatus, Start, State,
    Took, done,
};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

/// When every simulated run begins: a moment like any other, the same for all.
const BEGINS: i64 = 1_767_225_600_000;

/// A document in a simulated world.
pub struct World {
    pub(crate) graph: Arc<Graph>,
    pub(crate) fresh: State,
    pub(crate) words: Words,
    /// What runs begin with.
    pub start: Start,
    /// Names of the first data layer that have no value, with the schemas of random ones.
    pub unknown: Vec<(Arc<str>, Value)>,
    /// Who answers before chance does.
    pub outside: Arc<dyn Outside>,
    /// What calls came to in another run.
    pub recorded: Recorded,
    /// Events of a run after which it is not gone on with.
    pub most: usize,
}

/// How a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It ended.
    Ended,
    /// It waits for people, and no timer lets it go on.
    Waiting,
    /// It has come to [`World::most`] events.
    Long,
    /// It neither ended nor waits for anything: a bug.
    Stuck,
}

/// A run that has taken place.
pub struct Trial {
    /// Its state.
    pub state: State,
    /// Its journal.
    pub records: Vec<Record>,
    /// What bad luck it had, in order.
    pub hits: Vec<Hit>,
    /// How it stopped.
    pub stop: Stop,
    /// What effects came to, and after how long.
    outcomes: HashMap<EffectId, (Outcome, u64)>,
    answers: HashMap<Arc<str>, Value>,
    /// Calls that may not be made twice, in the order of their requests.
    pub(crate) writes: Vec<EffectId>,
    /// Those of them that were made again after nobody knew whether they had happened.
    pub(crate) repeated: Vec<EffectId>,
    /// Of a process that went on after a crash: whether a call in doubt was made again, so that it may come to something else.
    pub(crate) unsure: bool,
}

impl World {
    /// A world for runs of a compiled document, in which chance answers.
    pub fn new(graph: Arc<Graph>, start: Start) -> Self {
        let (fresh, words) = (State::new(Arc::clone(&graph)), Words::of(&graph));
        let (outside, recorded) = (Arc::new(()), Recorded::new());
        Self { graph, fresh, words, start, unknown: Vec::new(), outside, recorded, most: 10_000 }
    }

    /// The compiled document.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Schemas of the document and its tools of which no value could be made that fits, each by what it belongs to.
    pub fn unmade(&self) -> Vec<String> {
        let tools = self
            .graph
            .tools
            .values()
            .map(|tool| (format!("the arguments of `{}`", tool.name), &tool.input_schema));
        let leaves =
            self.graph.all_nodes().flat_map(|node| node.body.leaves.values().map(move |leaf| (node, leaf)));
        let of_leaves = leaves.filter_map(|(node, leaf)| {
            let schema = match &leaf.act {
                Act::Infer(infer) => &infer.schema.as_ref()?.schema,
                Act::Ask(_, _, expects) => expects.as_ref()?.schema.as_ref()?,
                _ => return None,
            };
            Some((format!("what `{}` asks for", node.id), schema))
        });
        let fits = |schema: &Value| {
            let made = |seed| values::fitting(schema, &self.words, &mut Rng::new(seed));
            (0..20).any(|seed| values::fits(schema, &made(seed)))
        };
        tools.chain(of_leaves).filter(|(_, schema)| !fits(schema)).map(|(what, _)| what).collect()
    }

    /// Runs it from its beginning. What `given` has of its places comes out as it did there.
    pub fn run(&self, luck: &Luck, given: Option<&Trial>) -> Trial {
        let mut process = Process::new(self, luck, given, false);
        let mut start = self.start.clone();
        for (name, schema) in &self.unknown {
            let value = values::fitting(schema, &self.words, &mut luck.dice("input", name));
            start.initial.insert(name.to_string(), value);
        }
        process.input(Input::Start(Box::new(start)));
        process.go_on()
    }

    /// Goes on with the first `events` events of a run whose process died then (E-05): calls come out as they did in it.
    pub fn resume(&self, luck: &Luck, before: &Trial, events: usize) -> Trial {
        let mut process = Process::new(self, luck, Some(before), true);
        process.hits.clone_from(&before.hits);
        process.hits.push(Hit::Crash(events));
        for record in before.records.iter().take(events) {
            process.state.apply_record(record);
            process.note(record);
            process.records.push(record.clone());
        }
        process.recover();
        process.go_on()
    }
}

/// Something that will happen.
enum Next {
    Outcome(EffectId, Outcome, u64),
    Answer(Arc<str>, Value),
}

/// With when, what comes first of what happens at one time, and which one it is.
type Due = Reverse<(i64, u64, usize)>;

/// A process that drives a run.
struct Process<'w> {
    world: &'w World,
    luck: &'w Luck,
    given: Option<&'w Trial>,
    /// Whether things take as long as they took there.
    again: bool,
    session: Box<dyn Session + 'w>,
    state: State,
    records: Vec<Record>,
    due: BinaryHeap<Due>,
    next: Vec<Option<Next>>,
    /// When effects were requested, and asks asked.
    asked_at: HashMap<Arc<str>, i64>,
    /// What was requested and asked, and has not been sent by this process.
    requested: Vec<EffectId>,
    questions: Vec<Arc<str>>,
    now: i64,
    hits: Vec<Hit>,
    outcomes: HashMap<EffectId, (Outcome, u64)>,
    answers: HashMap<Arc<str>, Value>,
    unsure: bool,
    writes: Vec<EffectId>,
    repeated: Vec<EffectId>,
    /// Whether the outcome that came last was that there was none in time.
    timed_out: bool,
}

impl<'w> Process<'w> {
    fn new(world: &'w World, luck: &'w Luck, given: Option<&'w Trial>, again: bool) -> Self {
        Self {
            world,
            luck,
            given,
            again,
            session: world.outside.session(),
            state: world.fresh.another(),
            records: Vec::with_capacity(given.map_or(64, |given| given.records.len())),
            due: BinaryHeap::new(),
            next: Vec::new(),
            asked_at: HashMap::new(),
            requested: Vec::new(),
            questions: Vec::new(),
            now: BEGINS,
            hits: Vec::new(),
            outcomes: HashMap::new(),
            answers: HashMap::new(),
            unsure: false,
            writes: Vec::new(),
            repeated: Vec::new(),
            timed_out: false,
        }
    }

    fn input(&mut self, input: Input) {
        if let Some(event) = self.state.accept(input) {
            self.state.tick(self.now);
            self.push(event);
        }
    }

    fn push(&mut self, event: Event) {
        let record = Record { at: self.state.tick(0), event };
        self.state.apply(&record.event);
        self.note(&record);
        self.records.push(record);
    }

    /// Remembers when something was asked for.
    fn note(&mut self, record: &Record) {
        self.now = self.now.max(record.at);
        match &record.event {
            Event::Requested { effect, .. } | Event::Retried { effect, .. } => {
                self.asked_at.insert(Arc::clone(&effect.0), record.at);
                self.requested.push(effect.clone());
                if self.state.pending().get(effect).is_some_and(|row| row.effects == Effects::Write) {
                    if matches!(record.event, Event::Retried { .. }) && self.timed_out {
                        self.repeated.push(effect.clone());
                    }
                    self.writes.push(effect.clone());
                }
            }
            Event::Completed { outcome, .. } => {
                self.timed_out =
                    matches!(outcome, Outcome::Failed(failure) if failure.fault.kind == FaultKind::Timeout);
            }
            Event::Asked(asked) => {
                self.asked_at.entry(Arc::clone(&asked.ask)).or_insert(record.at);
                self.questions.push(Arc::clone(&asked.ask));
            }
            _ => {}
        }
    }

    /// Of what was under way when the process died nobody knows whether it happened, if it may not happen twice (E-05).
    fn recover(&mut self) {
        for timer in self.state.overdue(self.now) {
            self.input(Input::Fire(timer));
        }
        let pending = self.state.pending_in_order().into_iter();
        let lost = pending.filter(|(_, row)| row.effects == Effects::Write).map(|(effect, _)| effect.clone());
        let lost: Vec<EffectId> = lost.collect();
        lost.into_iter().for_each(|effect| self.input(Input::Lose(effect)));
    }

    fn go_on(mut self) -> Trial {
        let stop = loop {
            while self.records.len() < self.world.most
                && let Some(event) = self.state.step()
            {
                self.push(event);
            }
            if self.state.ended().is_some() {
                break Stop::Ended;
            }
            if self.records.len() >= self.world.most {
                break Stop::Long;
            }
            self.dispatch();
            if !self.happens() {
                break match self.state.status() {
                    RunStatus::Waiting => Stop::Waiting,
                    _ => Stop::Stuck,
                };
            }
        };
        let Self { state, records, hits, outcomes, answers, unsure, writes, repeated, .. } = self;
        Trial { state, records, hits, stop, outcomes, answers, writes, repeated, unsure }
    }

    /// Sends all that was requested and asked and has not been sent by this process, if it is still waited for.
    fn dispatch(&mut self) {
        for effect in std::mem::take(&mut self.requested) {
            let Some(row) = self.state.pending().get(&effect) else { continue };
            let (model, wait) = (row.model, row.wait().ms);
            let (outcome, takes) = self.outcome(&effect, model);
            self.outcomes.insert(effect.clone(), (outcome.clone(), takes));
            let at = self.begun(&effect.0, wait.saturating_add(takes));
            self.happens_at(at, Arc::clone(&effect.0), Next::Outcome(effect, outcome, takes));
        }
        for ask in std::mem::take(&mut self.questions) {
            self.ask(ask);
        }
    }

    /// When something is over that takes so long: by the time at which it was asked for, so that a crash changes no order.
    fn begun(&self, id: &Arc<str>, takes: u64) -> i64 {
        let from = self.asked_at.get(id).copied().unwrap_or(self.now);
        from.saturating_add_unsigned(takes)
    }

    fn happens_at(&mut self, at: i64, id: Arc<str>, what: Next) {
        self.due.push(Reverse((at, self.luck.tie(&id), self.next.len())));
        self.next.push(Some(what));
    }

    fn outcome(&mut self, effect: &EffectId, model: bool) -> (Outcome, u64) {
        let own = self.luck.takes(&effect.0);
        if let Some((outcome, took)) = self.given.and_then(|given| given.outcomes.get(effect)).cloned() {
            if self.session.counts()
                && let Some(Request::Model(request)) = self.state.request(effect)
            {
                self.session.model(&request);
            }
            let of_it = |hit: &&Hit| matches!(hit, Hit::Fault(known, _) if known == effect);
            let hit = self.given.and_then(|given| given.hits.iter().find(of_it)).cloned();
            self.hits.extend(hit.filter(|hit| !self.hits.contains(hit)));
            return (outcome, if self.again { took } else { own });
        }
        if let Some((kind, outcome, longer)) = self.luck.fault(effect, model) {
            self.hits.push(Hit::Fault(effect.clone(), kind));
            return (outcome, own.saturating_add(longer));
        }
        let Some(request) = self.state.request(effect) else { return (Outcome::Output(Arc::default()), own) };
        let World { recorded, words, .. } = self.world;
        let (outcome, least) = outside::outcome(&mut *self.session, recorded, words, self.luck, &request);
        (outcome, own.max(least))
    }

    /// A person hears a question.
    fn ask(&mut self, id: Arc<str>) {
        let Some(ask) = self.state.asks().get(&id) else { return };
        if self.state.doubted_call(ask).is_some() {
            // Whoever is asked knows what became of it.
            let effect = EffectId(Arc::clone(&id));
            let known = self.given.and_then(|given| given.outcomes.get(&effect)).cloned();
            let (value, takes) = match known {
                Some((Outcome::Output(output), takes)) => (done(&output), takes),
                known => {
                    self.unsure = true;
                    (json!("yes"), known.map_or(0, |(_, takes)| takes))
                }
            };
            let at = self.begun(&id, takes).max(self.now);
            return self.happens_at(at, Arc::clone(&id), Next::Answer(id, value));
        }
        let known = self.given.and_then(|given| given.answers.get(&id)).cloned();
        let value = match known {
            Some(value) => Some(value),
            None if self.luck.is_silent(&id) => {
                self.hits.push(Hit::Silence(Arc::clone(&id)));
                None
            }
            None => outside::said(&self.world.words, self.luck, &self.state, &id, ask),
        };
        let Some(value) = value else { return };
        self.answers.insert(Arc::clone(&id), value.clone());
        let at = self.begun(&id, self.luck.takes(&id));
        self.happens_at(at, Arc::clone(&id), Next::Answer(id, value));
    }

    /// The next thing happens; false if there is none.
    fn happens(&mut self) -> bool {
        while let Some(Reverse((_, _, at))) = self.due.peek() {
            let live = match self.next.get(*at) {
                Some(Some(Next::Outcome(effect, ..))) => self.state.pending().contains_key(effect),
                Some(Some(Next::Answer(ask, _))) => self.state.asks().contains_key(ask),
                _ => false,
            };
            if live {
                break;
            }
            self.due.pop();
        }
        let first = self.due.peek().map(|Reverse((at, ..))| *at);
        let timer = self.state.timers().iter().min_by_key(|(_, wait)| wait.until);
        let timer = timer.map(|(id, wait)| (Arc::clone(id), wait.until));
        if let Some((id, until)) = timer.filter(|(_, until)| first.is_none_or(|first| *until <= first)) {
            self.now = self.now.max(until);
            self.input(Input::Fire(id));
            return true;
        }
        let Some(Reverse((at, _, next))) = self.due.pop() else { return false };
        self.now = self.now.max(at);
        match self.next.get_mut(next).and_then(Option::take) {
            Some(Next::Outcome(effect, outcome, takes)) => {
                let jitter = u32::try_from(hash(self.luck.seed(), &effect.0) % 1_000_000).unwrap_or(0);
                let worked_ms = u32::try_from(takes).unwrap_or(u32::MAX);
                let took = Some(Took { queued_ms: 0, worked_ms });
                self.input(Input::Complete(effect, outcome, jitter, None, took));
            }
            Some(Next::Answer(ask, value)) => self.input(Input::Answer(ask, value)),
            None => {}
        }
        true
    }
}
