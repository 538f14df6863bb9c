//! The driver of the simulation: outcomes and answers in an order that a seed chooses, the journal as text, and processes
//! that die and begin again from any prefix of it. Workflows are driven by it, and agents.

use super::block::{SimWorkflow, THREADS, VARIABLES};
use super::document::{document, metadata};
use super::reference::{Left, Observed};
use crate::canon::Msg;
use crate::journal::Journal;
use crate::rng::Rng;
use selvedge_dialects::Capabilities;
use selvedge_dialects::recognise::Choice;
use selvedge_dialects::{Diagnostics, DocumentLimits, Source, ToolSource, read};
use selvedge_engine::{
    AskKind, EffectId, Effects, Event, Failure, FaultKind, Fork, Graph, Input, ModelReply, ModelRequest,
    Outcome, Record, Request, RunStatus, Start, State, ToolDef, ToolRequest, answered,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// More turns than any workflow of the generator takes.
const MANY: usize = 50_000;

struct Look;

impl ToolSource for Look {
    fn def(&self, name: &str) -> Option<Arc<ToolDef>> {
        let def = ToolDef {
            name: "look".into(),
            description: "a simulated tool".into(),
            input_schema: json!({"type": "object"}),
            output_params: None,
            effects: Some(Effects::Read),
            version: "1".into(),
            source: "simulated".into(),
            timeout_s: None,
            approval: false,
        };
        (name == "look").then(|| Arc::new(def))
    }
    fn names(&self) -> Vec<String> {
        vec!["look".into()]
    }
}

/// What answers a run: what is said follows from what is asked, never from the order in which it is.
pub trait Outside {
    /// What runs begin with.
    fn initial(&self) -> Map<String, Value>;
    /// What a model says that is `sent` these messages.
    ///
    /// # Errors
    /// That it fails, for good.
    fn model(&self, sent: Vec<Msg>, request: &ModelRequest) -> Result<ModelReply, FaultKind>;
    /// What a tool gives, or an operation.
    ///
    /// # Errors
    /// That it fails, for good.
    fn tool(&self, request: &ToolRequest) -> Result<Value, FaultKind>;
    /// What a person says to a question; to one for approval `yes` or `no`.
    fn person(&self, approval: bool, prompt: &str) -> Value;
}

/// The graph of a workflow, through the dialect.
///
/// # Errors
/// What the dialect has against it.
pub fn graph(workflow: &SimWorkflow) -> Result<Arc<Graph>, String> {
    compiled(&document(workflow), &metadata(), &Capabilities::default())
}

/// The graph of a document, of which `look` is the only tool.
///
/// # Errors
/// What the dialect has against it.
pub fn compiled(
    document: &Value,
    initial: &Map<String, Value>,
    with: &Capabilities,
) -> Result<Arc<Graph>, String> {
    let source = Source::new("document.json", &document.to_string());
    let mut diagnostics = Diagnostics::default();
    let document = read(&source, Choice::default(), &DocumentLimits::default(), &mut diagnostics);
    let graph = document.and_then(|document| document.compile(&Look, initial, with, &mut diagnostics));
    let graph = graph.filter(|_| !diagnostics.has_errors());
    graph.map(Arc::new).ok_or_else(|| format!("{:?}", diagnostics.report(&source)))
}

/// One process that runs a document.
pub struct Sim<'w> {
    outside: &'w dyn Outside,
    rng: Rng,
    /// The run.
    pub state: State,
    /// The run's journal.
    pub journal: Journal,
    /// What this process has been asked and has not answered.
    requested: BTreeSet<EffectId>,
}

impl<'w> Sim<'w> {
    /// A process before the first event.
    pub fn new(outside: &'w dyn Outside, graph: &Arc<Graph>, seed: u64) -> Self {
        let (state, journal) = (State::new(Arc::clone(graph)), Journal::default());
        Self { outside, rng: Rng::new(seed), state, journal, requested: BTreeSet::new() }
    }

    /// A process that finds the first `events` of a journal after a crash (E-05).
    ///
    /// # Errors
    /// A journal that does not read.
    pub fn recover(before: &Self, graph: &Arc<Graph>, events: usize, seed: u64) -> Result<Self, String> {
        let mut sim = Self::new(before.outside, graph, seed);
        sim.journal = before.journal.cut(events);
        for record in sim.journal.records()? {
            sim.state.apply_record(&record);
        }
        Ok(sim)
    }

    /// A process that makes a fork of a run, which shares its first `at` events and has another outside, or the same (E-19).
    ///
    /// # Errors
    /// A journal that does not read.
    pub fn forked(
        source: &Sim<'_>,
        outside: &'w dyn Outside,
        graph: &Arc<Graph>,
        (at, seed): (usize, u64),
        fork: Fork,
    ) -> Result<Self, String> {
        let mut sim = Self::new(outside, graph, seed);
        sim.journal = source.journal.cut(at);
        for record in sim.journal.records()? {
            sim.state.apply_record(&record);
        }
        // No effect of a fork has the id of one that its source had asked for by then, shared or not (E-29).
        let known = usize::try_from(fork.events).unwrap_or(usize::MAX);
        for record in source.journal.cut(known).records()? {
            if let Event::Requested { effect, .. } = record.event {
                sim.requested.insert(effect);
            }
        }
        sim.input(Input::Fork(Box::new(fork)))?;
        Ok(sim)
    }

    /// Only effects of its own journal have to have ids of their own: a node that goes on in place (E-36) asks under those that it had in the
    /// source, too.
    pub(crate) fn goes_on_in_place(&mut self) -> Result<(), String> {
        let records = self.journal.records()?.into_iter();
        let own = records.filter_map(|record| match record.event {
            Event::Requested { effect, .. } => Some(effect),
            _ => None,
        });
        self.requested = own.collect();
        Ok(())
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// A broken rule.
    pub fn run(&mut self) -> Result<(), String> {
        if self.journal.is_empty() {
            let graph = self.state.graph().hash().map_err(|error| error.to_string())?.into();
            let start = Start {
                graph,
                initial: self.outside.initial(),
                limits: crate::canon::limits(),
                ..Start::default()
            };
            self.input(Input::Start(Box::new(start)))?;
        }
        let mut turns = 0;
        while self.state.ended().is_none() {
            turns += 1;
            if turns > MANY {
                return Err("the run does not end".into());
            }
            match self.state.step() {
                Some(event) if !self.rng.chance(5) || self.state.pending().is_empty() => self.push(event)?,
                _ => self.outside()?,
            }
        }
        Ok(())
    }

    /// Lets the outside do one thing.
    fn outside(&mut self) -> Result<(), String> {
        let ready: Vec<EffectId> = self.state.pending().keys().cloned().collect();
        let open: Vec<Arc<str>> = self.state.asks().keys().cloned().collect();
        if ready.is_empty() && open.is_empty() {
            return if self.state.step().is_some() { Ok(()) } else { Err("the run is stuck".into()) };
        }
        if ready.is_empty() && self.state.step().is_none() && self.state.status() != RunStatus::Waiting {
            return Err("E-21: only a person can go on, and the status is not `waiting`".into());
        }
        if !open.is_empty() && (ready.is_empty() || self.rng.chance(40)) {
            let Some(ask) = self.rng.pick(&open).cloned() else { return Ok(()) };
            let asked = self
                .state
                .asks()
                .get(&ask)
                .map(|asked| (asked.kind == AskKind::Approve, asked.prompt.to_string()));
            let (approval, prompt) = asked.ok_or("an ask that is not open")?;
            let said = self.outside.person(approval, &prompt);
            let said = if approval { said } else { answered(said, None, None) };
            return self.input(Input::Answer(ask, said));
        }
        let Some(effect) = self.rng.pick(&ready).cloned() else { return Ok(()) };
        let outcome = self.outcome(&effect)?;
        let printed = crate::world::printed(&effect);
        self.input(Input::Complete(effect, outcome, 0, printed, None))
    }

    fn outcome(&self, effect: &EffectId) -> Result<Outcome, String> {
        let answer = match self.state.request(effect).ok_or_else(|| format!("{effect} has no request"))? {
            Request::Model(request) => {
                let sent: Vec<Msg> =
                    request.messages.iter().map(|message| Msg::from(message.as_ref())).collect();
                crate::watch::valid_conversation(&sent).map_err(|error| format!("{effect}: {error}"))?;
                self.outside.model(sent, &request).map(|reply| Outcome::Reply(Arc::new(reply)))
            }
            Request::Tool(request) | Request::Operation(request) => {
                self.outside.tool(&request).map(|output| Outcome::Output(Arc::new(output)))
            }
        };
        Ok(answer.unwrap_or_else(|kind: FaultKind| Failure::permanent(kind, "simulated").into()))
    }

    fn input(&mut self, input: Input) -> Result<(), String> {
        match self.state.accept(input) {
            Some(event) => self.push(event),
            None => Ok(()),
        }
    }

    fn push(&mut self, event: Event) -> Result<(), String> {
        if let Event::Requested { effect, .. } = &event
            && !self.requested.insert(effect.clone())
        {
            return Err(format!("E-04: {effect} is requested twice"));
        }
        if let Event::Forked(fork) = &event {
            self.journal.sources.push((fork.past.clone(), fork.compiled.clone()));
        }
        let record = Record { at: self.state.tick(0), event };
        self.journal.lines.push(serde_json::to_string(&record).map_err(|error| error.to_string())?);
        self.state.apply(&record.event);
        Ok(())
    }

    /// The observable result.
    pub fn observed(&self) -> Observed {
        let view = self.state.view();
        let end = match view.fault() {
            Some(fault) => Err(fault.kind.name().to_owned()),
            None => Ok(numbered(view.output())),
        };
        let left = end.is_ok().then(|| {
            let runtime = view.runtime();
            let variables = VARIABLES.map(|name| {
                let set =
                    runtime.iter().find(|(known, _)| ***known == *name).map(|(_, value)| value.value.clone());
                set.or_else(|| self.state.start().initial.get(name).cloned()).unwrap_or_default()
            });
            let threads = view
                .threads()
                .filter(|(name, thread)| THREADS.contains(&name.as_ref()) && !thread.is_empty())
                .map(|(name, thread)| {
                    (name.to_string(), thread.iter().map(|message| Msg::from(message.as_ref())).collect())
                });
            Left { variables: variables.into(), threads: threads.collect() }
        });
        Observed { end, left }
    }
}

/// The keys of joins are path ids; the reference has numbers.
fn numbered(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let name =
                |key: &String| key.rsplit_once('-').map_or(key.clone(), |(_, number)| number.to_owned());
            Value::Object(
                members.iter().map(|(key, value)| (name(key), numbered(value))).collect::<Map<_, _>>(),
            )
        }
        other => other.clone(),
    }
}
