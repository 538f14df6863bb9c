//! The driver of the simulation: outcomes in an order that a seed chooses, the journal as text, and processes that
//! die and begin again from any prefix of it.

use super::generate::{advice, plan};
use super::observed::Observed;
use super::task::{SimStep, SimTask, TOOLS, tool};
use super::world::World;
use crate::driver::first_attempt;
use crate::journal::{Journal, Mark, digest};
use crate::rng::Rng;
use selvedge_dialects::Capabilities;
use selvedge_dialects::recognise::Choice;
use selvedge_dialects::{Diagnostics, DocumentLimits, Source, ToolSource, read};
use selvedge_engine::{
    EffectId, Effects, Event, Failure, Fault, Fork, Graph, Input, ModelReply, Outcome, Record, Request,
    RunStatus, Start, State, ToolDef,
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// More events than any task of the generator makes.
const MANY: usize = 5_000;

/// The simulated tools, for the dialect.
pub struct SimTools;

impl ToolSource for SimTools {
    fn def(&self, name: &str) -> Option<Arc<ToolDef>> {
        tool(name).map(|tool| tool.def())
    }
    fn names(&self) -> Vec<String> {
        TOOLS.iter().map(|tool| tool.name.to_owned()).collect()
    }
}

/// The graph of a task, through the dialect.
///
/// # Errors
/// What the dialect has against it, or a race (E-11).
pub fn graph(task: &SimTask) -> Result<Arc<Graph>, String> {
    let source = Source::new("task.json", &task.json().to_string());
    let mut diagnostics = Diagnostics::default();
    let limits = DocumentLimits::default();
    let capabilities = Capabilities { model: task.model, ..Capabilities::default() };
    let document = read(&source, Choice::default(), &limits, &mut diagnostics);
    let graph = document
        .and_then(|document| document.compile(&SimTools, &task.initial, &capabilities, &mut diagnostics));
    let graph = graph.filter(|_| !diagnostics.has_errors()).ok_or_else(|| format!("{diagnostics:?}"))?;
    let schedule = selvedge_engine::schedule::Schedule::derive(&graph, false);
    schedule.prove(&graph).map_err(|race| format!("E-11: {race}"))?;
    Ok(Arc::new(graph))
}

/// One process that runs a task.
pub struct Sim<'t> {
    task: &'t SimTask,
    rng: Rng,
    sequential: bool,
    /// The outside.
    pub world: World,
    /// The run.
    pub state: State,
    /// The run's journal.
    pub journal: Journal,
    now: i64,
    /// Questions to the model, by node and schema, in the order of the journal: which one it is decides the answer.
    asked: BTreeMap<(String, String), Vec<EffectId>>,
    ladder: Vec<(String, String)>,
    /// Writes that were sent; kept across crashes, as the outside keeps them.
    sent: BTreeSet<String>,
    /// Writes that were in flight when a process died.
    pub lost: usize,
    /// Questions of this process to the model, whose answers depend on how often it was asked, and calls that succeeded by
    /// tools that are not pure: they saw or changed the world as it was then.
    pub looked: usize,
    /// Writes that succeeded in this process: the step, and what was written.
    pub wrote: Vec<(String, String)>,
}

impl<'t> Sim<'t> {
    /// A process before the first event.
    pub fn new(task: &'t SimTask, graph: &Arc<Graph>, seed: u64, sequential: bool) -> Self {
        Self {
            task,
            rng: Rng::new(seed),
            sequential,
            world: World::default(),
            state: State::new(Arc::clone(graph)),
            journal: Journal::default(),
            now: 1_000,
            asked: BTreeMap::new(),
            ladder: Vec::new(),
            sent: BTreeSet::new(),
            lost: 0,
            looked: 0,
            wrote: Vec::new(),
        }
    }

    /// A process that finds `journal` after a crash, with the world as it was left (E-05).
    ///
    /// # Errors
    /// A fold that differs from the state that was live (E-03).
    pub fn recover(
        task: &'t SimTask,
        graph: &Arc<Graph>,
        before: &Sim<'t>,
        journal: &Journal,
        seed: u64,
    ) -> Result<Self, String> {
        let mut sim = Self::new(task, graph, seed, before.sequential);
        sim.world = before.world.clone();
        sim.world.rewind(journal.marks.last().map_or(0, |mark| mark.changes));
        for (at, (record, mark)) in journal.records()?.iter().zip(&journal.marks).enumerate() {
            sim.state.apply_record(record);
            sim.now = sim.now.max(record.at);
            sim.note(record, journal.lines.get(at).cloned().unwrap_or_default(), mark.changes)?;
            let digest = sim.journal.marks.last().and_then(|mark| mark.digest);
            if digest.is_some() && digest != mark.digest {
                return Err(format!("E-03: folding {} events gives another state than the live one", at + 1));
            }
        }
        let flying: Vec<(EffectId, Effects)> =
            sim.state.pending().iter().map(|(id, pending)| (id.clone(), pending.effects)).collect();
        for (effect, effects) in flying {
            if effects == Effects::Write {
                sim.lost += 1;
                sim.input(Input::Lose(effect))?;
            }
        }
        Ok(sim)
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// A broken rule.
    pub fn run(&mut self) -> Result<(), String> {
        if self.journal.is_empty() {
            let graph = self.state.graph().hash().map_err(|error| error.to_string())?.into();
            let (initial, sequential) = (self.task.initial.clone(), self.sequential);
            let limits = crate::canon::limits();
            let start = Start { graph, initial, sequential, limits, ..Start::default() };
            self.input(Input::Start(Box::new(start)))?;
        }
        while self.state.ended().is_none() {
            if self.journal.len() > MANY {
                return Err("the run does not end".into());
            }
            match self.state.step() {
                Some(event) if !self.rng.chance(5) || self.state.pending().is_empty() => self.push(event)?,
                _ => self.outside()?,
            }
        }
        Ok(())
    }

    /// A fork of a run that has ended, which shares its first `shared` events and begins in the world as it was left
    /// (E-19); with another document, if there is one.
    ///
    /// # Errors
    /// A journal that does not read, or a document that is none.
    pub fn forked(
        graph: &Arc<Graph>,
        source: &Sim<'t>,
        shared: usize,
        seed: u64,
        edited: Option<(&'t SimTask, Arc<Graph>)>,
    ) -> Result<Self, String> {
        let mut past = State::recording(Arc::clone(graph));
        for record in source.journal.records()? {
            past.apply_record(&record);
        }
        let mut sim = Self::new(source.task, graph, seed, source.sequential);
        sim.world = source.world.clone();
        let journal = source.journal.cut(shared);
        for (at, record) in journal.records()?.iter().enumerate() {
            sim.state.apply_record(record);
            sim.now = sim.now.max(record.at);
            let changes = sim.world.len();
            sim.note(record, journal.lines.get(at).cloned().unwrap_or_default(), changes)?;
        }
        // Which questions the outside has met.
        sim.asked.clone_from(&source.asked);
        let mut fork = Fork {
            source: "source".into(),
            events: source.journal.len() as u64,
            past: Some(Arc::new(past.past())),
            ..Fork::default()
        };
        if let Some((task, graph)) = edited {
            sim.task = task;
            fork.graph = Some(graph.hash().map_err(|error| error.to_string())?.into());
            fork.compiled = Some(graph);
        }
        sim.input(Input::Fork(Box::new(fork)))?;
        Ok(sim)
    }

    /// Whether the run asked a person.
    pub fn has_asked(&self) -> bool {
        self.journal.lines.iter().any(|line| line.contains("\"kind\":\"asked\""))
    }

    /// Goes on with a run that has failed, to its next end (E-05).
    ///
    /// # Errors
    /// A broken rule.
    pub fn resume(&mut self) -> Result<(), String> {
        self.input(Input::Resume(Vec::new()))?;
        self.run()
    }

    /// Lets the outside do one thing.
    fn outside(&mut self) -> Result<(), String> {
        let ready: Vec<EffectId> = self.state.pending().keys().cloned().collect();
        self.now += self.rng.within(0, 40);
        let Some(effect) = self.rng.pick(&ready).cloned() else {
            let Some(ask) = self.state.asks().keys().next().cloned() else {
                let (retired, all) = self.state.progress();
                return Err(format!("the run is stuck with {retired} of {all} nodes retired"));
            };
            // A step without recovery whose write was lost: run it again (E-05). What is known to have succeeded is not to
            // be done anew (E-29).
            let known = self
                .state
                .asks()
                .get(&ask)
                .is_some_and(|asking| asking.prompt.contains("with success before"));
            return self.input(Input::Answer(ask, json!(if known { "no" } else { "yes" })));
        };
        let not_before = self.state.pending().get(&effect).map_or(0, |pending| pending.wait().until);
        self.now = self.now.max(not_before);
        let outcome = self.outcome(&effect)?;
        let jitter = u32::try_from(self.rng.below(1_000_000)).unwrap_or(0);
        let printed = crate::world::printed(&effect);
        self.input(Input::Complete(effect, outcome, jitter, printed, None))
    }

    fn outcome(&mut self, effect: &EffectId) -> Result<Outcome, String> {
        let request = self.state.request(effect).ok_or_else(|| format!("{effect} has no request"))?;
        let place = effect.place().ok_or_else(|| format!("{effect} has no place"))?;
        let (step, attempt, first) = (place.place.node.to_string(), place.attempt, place.first().id());
        let request = match request {
            Request::Tool(request) | Request::Operation(request) => request,
            Request::Model(request) => {
                let schema = request.schema.map(|schema| schema.name.to_string()).unwrap_or_default();
                let asked = self.asked.get(&(request.node.to_string(), schema.clone()));
                let nth = asked.and_then(|bases| bases.iter().position(|known| *known == first));
                let nth = u32::try_from(nth.unwrap_or(0) + 1).unwrap_or(1);
                self.looked += 1;
                let text = match schema.as_str() {
                    "reflection" => advice(self.task, &request.node, nth).text(),
                    "steps" => {
                        let steps = plan(self.task, &request.node, nth);
                        json!({"steps": steps.iter().map(SimStep::json).collect::<Vec<_>>()}).to_string()
                    }
                    other => return Err(format!("a question in the schema `{other}`")),
                };
                let reply = ModelReply { text, ..ModelReply::default() };
                return Ok(Outcome::Reply(Arc::new(reply)));
            }
        };
        let Some(known) = tool(&request.tool.name) else {
            let output = selvedge_dialects::steps::compile_more(&request.args, &SimTools);
            return Ok(Outcome::Output(Arc::new(output)));
        };
        let answer = self.world.call(self.task, known, &request.args, attempt, &first.0);
        self.looked += usize::from(answer.is_ok() && known.effects != Effects::Pure);
        if answer.is_ok() && known.effects == Effects::Write {
            self.wrote.push((step, format!("{} {}", known.name, request.args)));
        }
        Ok(match answer {
            Ok(output) => Outcome::Output(Arc::new(output)),
            Err(broken) => {
                let fault = Fault::new(broken.kind, "simulated");
                Outcome::from(Failure { transient: broken.transient, ..Failure::of(fault) })
            }
        })
    }

    fn input(&mut self, input: Input) -> Result<(), String> {
        let Some(event) = self.state.accept(input) else { return Ok(()) };
        self.state.tick(self.now);
        self.push(event)
    }

    fn push(&mut self, event: Event) -> Result<(), String> {
        if let Event::Requested { effect, .. } = &event
            && !self.sent.insert(effect.to_string())
        {
            return Err(format!("E-04: {effect} is requested twice"));
        }
        let record = Record { at: self.state.tick(0), event };
        let line = serde_json::to_string(&record).map_err(|error| error.to_string())?;
        self.state.apply(&record.event);
        self.note(&record, line, self.world.len())
    }

    fn note(&mut self, record: &Record, line: String, changes: usize) -> Result<(), String> {
        match &record.event {
            Event::Requested { effect, .. } => {
                self.sent.insert(effect.to_string());
                if let Some(Request::Model(request)) = self.state.request(effect)
                    && let Some(schema) = request.schema
                {
                    let first = first_attempt(effect);
                    let asked =
                        self.asked.entry((request.node.to_string(), schema.name.to_string())).or_default();
                    if !asked.contains(&first) {
                        asked.push(first);
                    }
                }
            }
            Event::Recovered(recovered) => {
                self.ladder.push((recovered.node.to_string(), recovered.action.name().to_owned()));
            }
            _ => {}
        }
        self.journal.lines.push(line);
        let events = self.journal.len();
        let digest = events.is_multiple_of(3).then(|| digest(&self.state, events.is_multiple_of(24)));
        self.journal.marks.push(Mark { changes, digest });
        Ok(())
    }

    /// The observable result.
    pub fn observed(&self) -> Observed {
        let view = self.state.view();
        let kind = |fault: &Fault| fault.kind.name().to_owned();
        let results = view.results().map(|row| {
            (
                row.step_id.to_string(),
                row.tool_id.unwrap_or("").to_owned(),
                row.output.clone(),
                row.error.map(kind),
                row.attempts,
            )
        });
        let runtime = view.runtime().into_iter();
        let runtime = runtime.map(|(name, known)| {
            (
                name.to_string(),
                (known.value.clone(), known.node.map(|node| node.to_string()).unwrap_or_default()),
            )
        });
        // What ran ahead of a fault says nothing that anybody hears (P-20).
        let by_id = |id: &str| self.state.graph().nodes.values().any(|node| *node.id == *id);
        let hidden = |id: &str| by_id(id) && view.result(id).is_none();
        let heard =
            self.state.warnings().iter().filter(|warning| !warning.node.as_deref().is_some_and(hidden));
        let mut warnings: Vec<String> = heard.map(|warning| warning.code.to_string()).collect();
        warnings.sort();
        Observed {
            status: if view.status() == RunStatus::Completed { "completed" } else { "failed" }.into(),
            fault: view.fault().map(|fault| (kind(fault), fault.node.as_deref().unwrap_or("").to_owned())),
            results: results.collect(),
            runtime: runtime.collect(),
            writes: self.world.writes(),
            ladder: self.ladder.clone(),
            warnings,
        }
    }
}
