//! Running a case in this process: the real compiler, the real driver, a journal in memory, and a clock that
//! jumps, so that time-outs and back-offs cost no time.

use super::case::{Case, CrashAt, Options, Resume, Step, Tool};
use super::ports::{CaseModel, CaseTools, Definitions, Pace, reload};
use selvedge_dialects::diagnostic::Diagnostic;
use selvedge_dialects::recognise::Choice;
use selvedge_dialects::{Capabilities, Diagnostics, Dialect, DocumentLimits, Files, Source};
use selvedge_engine::{
    AskKind, Budget, EffectPlace, Graph, Input, ModelRequest, Record, Start, State, ToolDef, ToolRequest,
    answered,
};
use selvedge_runtime::{Controls, Driver, Halt, Journal, Limits};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name of every case's run.
pub const RUN: &str = "case";

/// The files of a case.
#[derive(Debug)]
struct CaseFiles(BTreeMap<String, Value>);

impl Files for CaseFiles {
    fn read(&self, path: &str, _: &DocumentLimits) -> Result<Source, String> {
        let document = self.0.get(path).ok_or("there is no such file")?;
        let text = serde_json::to_string_pretty(document).map_err(|error| error.to_string())?;
        Ok(Source::new(path, &text))
    }
}

/// A document and what the checker found in it.
#[derive(Debug)]
pub struct Compiled {
    /// The graph, if there are no errors.
    pub graph: Option<Arc<Graph>>,
    /// The first data layer.
    pub initial: Map<String, Value>,
    /// The document's own caps.
    pub budget: Budget,
    /// All findings, in the order of the text.
    pub findings: Vec<Diagnostic>,
}

/// Reads and compiles the document of a case.
///
/// # Errors
/// If the case itself is wrong.
pub fn compile(case: &Case) -> Result<Compiled, String> {
    let mut documents = [&case.plan, &case.task, &case.workflow].into_iter().flatten();
    let text = match (documents.next(), documents.next(), &case.text) {
        (Some(document), None, None) => {
            serde_json::to_string_pretty(document).map_err(|error| error.to_string())?
        }
        (None, None, Some(text)) => text.clone(),
        _ => return Err("a case has one of `plan`, `task`, `workflow` and `text`".into()),
    };
    let source = Source::new("case.json", &text).beside(Arc::new(CaseFiles(case.files.clone())));
    let mut diagnostics = Diagnostics::new();
    let dialect = match &case.options.dialect {
        Some(name) => Some(Dialect::from_name(name).ok_or_else(|| format!("no dialect {name}"))?),
        None => None,
    };
    let choice = Choice { dialect, plan: case.options.plan.as_deref() };
    let mut limits = DocumentLimits::default();
    limits.nodes = case.options.nodes.unwrap_or(limits.nodes);
    limits.json_nesting = case.options.json_nesting.unwrap_or(limits.json_nesting);
    let document = selvedge_dialects::read(&source, choice, &limits, &mut diagnostics);
    let mut compiled =
        Compiled { graph: None, initial: Map::new(), budget: Budget::default(), findings: Vec::new() };
    if let Some(document) = document {
        compiled.initial = document.inputs(&case.inputs, &mut diagnostics);
        compiled.budget = document.budget();
        let definitions = Definitions(&case.tools);
        let capabilities = Capabilities { model: !case.script.is_empty(), limits, ..Capabilities::default() };
        let graph = document.compile(&definitions, &compiled.initial, &capabilities, &mut diagnostics);
        compiled.graph = graph.filter(|_| !diagnostics.has_errors()).map(Arc::new);
    }
    compiled.findings = diagnostics.report(&source);
    Ok(compiled)
}

/// What reached the world, and how far the driver came.
#[derive(Debug)]
pub struct Seen {
    /// Requests to the model, in order.
    pub requests: Vec<ModelRequest>,
    /// Calls of tools, in order.
    pub calls: Vec<ToolRequest>,
    /// Why the driver stopped.
    pub halt: Halt,
}

/// One run of a case, from its start or from what a crash left of its journal.
#[derive(Debug)]
pub struct Session {
    /// The compiled document.
    pub graph: Arc<Graph>,
    /// The live state.
    pub state: State,
    /// The journal.
    pub records: Vec<Record>,
    options: Options,
    tools: BTreeMap<String, Tool>,
    script: Vec<Value>,
    pace: Pace,
    model: Arc<CaseModel>,
    world: Arc<CaseTools>,
}

impl Session {
    /// A session before its first event.
    ///
    /// # Errors
    /// If the script is wrong.
    pub fn new(case: &Case, graph: Arc<Graph>, pace: Pace) -> Result<Self, String> {
        Ok(Self {
            state: State::new(Arc::clone(&graph)),
            graph,
            records: Vec::new(),
            options: case.options.clone(),
            tools: case.tools.clone(),
            script: case.script.clone(),
            pace,
            model: Arc::new(CaseModel::new(&case.script, pace)?),
            world: Arc::new(CaseTools::new(&case.tools, pace)),
        })
    }

    /// Another session with the same journal, in the world as it is now.
    ///
    /// # Errors
    /// If the script is wrong.
    pub fn again(&self) -> Result<Self, String> {
        Ok(Self {
            state: State::new(Arc::clone(&self.graph)),
            graph: Arc::clone(&self.graph),
            records: self.records.clone(),
            options: self.options.clone(),
            tools: self.tools.clone(),
            script: self.script.clone(),
            pace: self.pace,
            model: Arc::new(CaseModel::new(&self.script, self.pace)?),
            world: Arc::new(CaseTools::new(&self.tools, self.pace)),
        })
    }

    /// The session of a case that has come to its end before, with this journal.
    ///
    /// # Errors
    /// If the script is wrong.
    pub fn recorded(case: &Case, graph: Arc<Graph>, records: Vec<Record>) -> Result<Self, String> {
        let mut session = Self::new(case, graph, Pace::AsWritten)?;
        case.then.iter().filter_map(|step| step.resume.as_ref()).for_each(|resume| session.change(resume));
        session.records = records;
        session.restart(usize::MAX)?;
        Ok(session)
    }

    /// Starts the run and drives it until it stops.
    ///
    /// # Errors
    /// If it can't be driven.
    pub fn start(&mut self, compiled: &Compiled, sequential: bool) -> Result<Seen, String> {
        let given = self.options.budget;
        let start = Start {
            graph: self.graph.hash().map_err(|error| error.to_string())?.into(),
            initial: compiled.initial.clone(),
            sequential: sequential || self.options.sequential,
            budget: Budget {
                calls: given.calls.or(compiled.budget.calls),
                tokens: given.tokens.or(compiled.budget.tokens),
                cost: given.cost.or(compiled.budget.cost),
            },
            limits: self.options.limits,
            ..Start::default()
        };
        self.drive(vec![Input::Start(Box::new(start))])
    }

    /// Drives the run until it stops.
    ///
    /// # Errors
    /// If it can't be driven.
    pub fn drive(&mut self, inputs: Vec<Input>) -> Result<Seen, String> {
        let (requests, calls) = (self.model.seen().len(), self.world.seen().len());
        let mut limits = Limits { run_timeout_s: self.options.timeout, ..Limits::default() };
        limits.max_parallel = self.options.max_parallel.unwrap_or(limits.max_parallel);
        let driver = Driver::new(Arc::clone(&self.model) as _, Arc::clone(&self.world) as _, limits);
        let driver = driver.with_operations(Arc::clone(&self.world) as _);
        let mut journal = Journal::Memory(std::mem::take(&mut self.records));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .map_err(|error| error.to_string())?;
        let mut controls = Controls::default();
        let driving = driver.drive(RUN, &mut self.state, &mut journal, inputs, &mut controls);
        let halt = runtime.block_on(driving).map_err(|error| error.to_string())?;
        if let Journal::Memory(records) = journal {
            self.records = records;
        }
        let requests = self.model.seen().split_off(requests);
        let calls = self.world.seen().split_off(calls);
        Ok(Seen { requests, calls, halt })
    }

    /// A new process with the first `events` events of the journal.
    ///
    /// # Errors
    /// If the script is wrong.
    pub fn restart(&mut self, events: usize) -> Result<(), String> {
        self.records.truncate(events);
        self.model = Arc::new(CaseModel::new(&self.script, self.pace)?);
        self.world = Arc::new(CaseTools::new(&self.tools, self.pace));
        self.state = reload(State::new(Arc::clone(&self.graph)), &self.records, &self.model, &self.world);
        Ok(())
    }

    /// Does one step of `then`.
    ///
    /// # Errors
    /// If the step is wrong or the run can't be driven.
    pub fn step(&mut self, step: &Step) -> Result<Seen, String> {
        match step {
            Step {
                answer: Some(answers), cancel: false, resume: None, crash: None, poison: None, ..
            } => {
                let inputs = self.answers(answers)?;
                self.drive(inputs)
            }
            Step { answer: None, cancel: true, resume: None, crash: None, poison: None, .. } => {
                self.drive(vec![Input::Cancel])
            }
            Step { answer: None, cancel: false, resume: Some(resume), crash: None, poison: None, .. } => {
                self.resume(resume)
            }
            Step { answer: None, cancel: false, resume: None, crash: Some(at), poison: None, .. } => {
                let events = self.place(at)?;
                self.restart(events)?;
                self.drive(Vec::new())
            }
            Step {
                answer: None, cancel: false, resume: None, crash: None, poison: Some(message), ..
            } => self.drive(vec![Input::Poison(message.clone())]),
            _ => Err("a step does exactly one of `answer`, `cancel`, `resume`, `crash` and `poison`".into()),
        }
    }

    fn answers(&self, answers: &BTreeMap<String, Value>) -> Result<Vec<Input>, String> {
        let given = answers.iter().map(|(node, value)| {
            // A no to a write in doubt can be changed: then the failed run goes on with the other word.
            if let Some((ask, _)) = self.state.declined().filter(|(_, declined)| *declined.node == **node) {
                return Ok(vec![Input::Resume(Vec::new()), Input::Answer(Arc::clone(ask), value.clone())]);
            }
            let asks = self.state.asks().iter();
            let ask = asks.into_iter().find(|(_, ask)| *self.state.called(ask.node) == **node);
            let (ask, asking) = ask.ok_or_else(|| format!("node {node} asks nothing"))?;
            let word = match asking.kind {
                AskKind::Approve => value.clone(),
                AskKind::Answer | AskKind::Edit => answered(value.clone(), None, None),
            };
            Ok(vec![Input::Answer(Arc::clone(ask), word)])
        });
        Ok(given.collect::<Result<Vec<_>, String>>()?.concat())
    }

    /// Makes the world what it is at a resume.
    fn change(&mut self, resume: &Resume) {
        self.tools.extend(resume.tools.clone());
        if let Some(script) = &resume.script {
            self.script = script.clone();
        }
    }

    fn resume(&mut self, resume: &Resume) -> Result<Seen, String> {
        self.change(resume);
        self.restart(usize::MAX)?;
        let pinned = &self.state.graph().tools;
        let now = self.tools.iter().map(|(name, tool)| tool.def(name));
        let changed: Vec<ToolDef> =
            now.filter(|def| pinned.get(&def.name).is_some_and(|pinned| **pinned != *def)).collect();
        let limits = resume.limits.map(Input::Limits);
        self.drive(limits.into_iter().chain([Input::Resume(changed)]).collect())
    }

    fn place(&self, at: &CrashAt) -> Result<usize, String> {
        let fits = |record: &Record| {
            let event = serde_json::to_value(&record.event).unwrap_or_default();
            event.get("kind").and_then(Value::as_str) == Some(at.after.as_str())
                && node_of(&event).as_deref() == Some(at.node.as_str())
        };
        let all = self.records.iter().enumerate().filter(|(_, record)| fits(record));
        let found = all.map(|(place, _)| place).nth(at.nth.saturating_sub(1));
        found.map(|at| at + 1).ok_or_else(|| format!("no event {} of node {}", at.after, at.node))
    }
}

/// The node that an event belongs to.
pub fn node_of(event: &Value) -> Option<String> {
    let text = |key: &str| event.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let of_effect = || Some(EffectPlace::parse(text("effect")?)?.place.node.into_owned());
    text("node").map(str::to_owned).or_else(of_effect)
}
