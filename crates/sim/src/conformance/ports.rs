//! The world of a case: a scripted model and tools given as data. Both keep what reached them.

use super::case::{Outcome, Tool};
use selvedge_dialects::steps;
use selvedge_engine::{
    Event, Failure, Fault, FaultKind, ModelReply, ModelRequest, Operated, Record, Request, State, ToolRequest,
};
use selvedge_models::scripted::Scripted;
use selvedge_runtime::{CallContext, Model, Operations, Pending, Tools};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long outcomes are held back on top of what the case says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Not at all.
    AsWritten,
    /// By a time that depends on this seed and the effect, so that the order of outcomes is another one.
    Shuffled(u64),
}

impl Pace {
    async fn wait(self, effect: &str) {
        if let Pace::Shuffled(seed) = self {
            let mut hasher = DefaultHasher::new();
            (seed, effect).hash(&mut hasher);
            tokio::time::sleep(Duration::from_millis(hasher.finish() % 1_000)).await;
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The model of a case.
#[derive(Debug)]
pub struct CaseModel {
    script: Scripted,
    pace: Pace,
    seen: Mutex<Vec<ModelRequest>>,
}

impl CaseModel {
    /// A model with these rules (C-07).
    ///
    /// # Errors
    /// What is wrong with the rules.
    pub fn new(rules: &[Value], pace: Pace) -> Result<Self, String> {
        let yaml = Value::Array(rules.to_vec()).to_string();
        let script = Scripted::parse("script", &yaml).map_err(|error| error.to_string())?;
        Ok(Self { script, pace, seen: Mutex::default() })
    }

    /// The requests so far, in the order in which they came.
    pub fn seen(&self) -> Vec<ModelRequest> {
        locked(&self.seen).clone()
    }
}

impl Model for CaseModel {
    fn call(&self, request: ModelRequest, context: CallContext) -> Pending<ModelReply> {
        locked(&self.seen).push(request.clone());
        let (pace, effect) = (self.pace, request.effect.clone());
        let reply = self.script.call(request, context);
        Box::pin(async move {
            pace.wait(&effect.0).await;
            reply.await
        })
    }

    fn counts(&self) -> bool {
        true
    }

    fn recorded(&self, request: &ModelRequest, run: &str) {
        self.script.recorded(request, run);
    }
}

/// The tools of a case.
#[derive(Debug)]
pub struct CaseTools {
    tools: BTreeMap<String, Tool>,
    pace: Pace,
    counts: Mutex<HashMap<(String, usize), u64>>,
    seen: Mutex<Vec<ToolRequest>>,
}

impl CaseTools {
    /// These tools.
    pub fn new(tools: &BTreeMap<String, Tool>, pace: Pace) -> Self {
        Self { tools: tools.clone(), pace, counts: Mutex::default(), seen: Mutex::default() }
    }

    /// The calls so far, in the order in which they came.
    pub fn seen(&self) -> Vec<ToolRequest> {
        locked(&self.seen).clone()
    }

    /// Counts a call and finds what it comes to.
    fn decide(&self, request: &ToolRequest) -> Option<&Outcome> {
        let tool = self.tools.get(request.tool.name.as_ref())?;
        let mut counts = locked(&self.counts);
        let mut found = None;
        for (at, outcome) in tool.does.iter().enumerate() {
            let args = outcome.args.as_ref().is_none_or(|args| *args == request.args);
            let node = outcome.node.as_ref().is_none_or(|node| **node == *request.node);
            if !(args && node) {
                continue;
            }
            let count = counts.entry((request.tool.name.to_string(), at)).or_insert(0);
            *count += 1;
            if found.is_none() && outcome.nth.is_none_or(|nth| nth == *count) {
                found = Some(outcome);
            }
        }
        found
    }
}

impl Tools for CaseTools {
    fn call(&self, request: ToolRequest, _: CallContext) -> Pending<Value> {
        let outcome = self.decide(&request).cloned();
        let (pace, effect, limit) = (self.pace, request.effect.clone(), request.timeout_s);
        locked(&self.seen).push(request);
        Box::pin(async move {
            pace.wait(&effect.0).await;
            let Some(outcome) = outcome else { return Ok(Value::Null) };
            let takes = Duration::from_millis(outcome.delay_ms);
            if let Some(limit) = limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok())
                && takes > limit
            {
                tokio::time::sleep(limit).await;
                let message = format!("no output within {} s", limit.as_secs_f64());
                return Err(Failure::transient(FaultKind::Timeout, message));
            }
            tokio::time::sleep(takes).await;
            match outcome.fault {
                None => Ok(outcome.output),
                Some(fault) => Err(Failure {
                    transient: fault.transient,
                    unsent: fault.unsent,
                    ..Failure::of(Fault::new(fault.kind, fault.message))
                }),
            }
        })
    }
}

impl Operations for CaseTools {
    /// Nobody in the world sees it.
    fn call(&self, request: ToolRequest, _: CallContext) -> Pending<Operated> {
        let compiles = request.tool.name == steps::compiler().name;
        let nodes = compiles.then(|| steps::compile_more(&request.args, &Definitions(&self.tools)));
        let none = || Failure::permanent(FaultKind::UnknownTool, "a case has no such operation");
        Box::pin(std::future::ready(nodes.map(Operated::from).ok_or_else(none)))
    }
}

/// A new process that has read this journal: its state, and a world that has seen what came to an end.
pub fn reload(mut state: State, records: &[Record], model: &CaseModel, tools: &CaseTools) -> State {
    let mut count = selvedge_runtime::Count::new(super::run::RUN, Some(model), None);
    for record in records {
        if let Event::Completed { effect, .. } = &record.event
            && let Some(Request::Tool(request)) = state.request(effect)
        {
            tools.decide(&request);
        }
        count.see(&state, &record.event);
        state.apply_record(record);
    }
    state
}

/// The tool definitions, for the compiler.
#[derive(Debug)]
pub struct Definitions<'a>(pub &'a BTreeMap<String, Tool>);

impl selvedge_dialects::ToolSource for Definitions<'_> {
    fn def(&self, name: &str) -> Option<Arc<selvedge_engine::ToolDef>> {
        self.0.get(name).map(|tool| Arc::new(tool.def(name)))
    }
    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}
