//! The driver of the runtime in the simulated world: its ports take times that a seed chooses, on a clock that nobody waits
//! for, and people answer through the handle while it drives (E-43).

use crate::driver::first_attempt;
use crate::driver::outside::{approves, content_of, said};
use crate::journal::Journal as Lines;
use crate::observed::Observed;
use crate::plan::SimPlan;
use crate::rng::{Rng, hash};
use crate::world::{Asker, World};
use selvedge_engine::{
    EffectId, Event, Failure, FaultKind, Graph, Input, ModelReply, ModelRequest, Operated, Outcome, Record,
    Request, Start, State, ToolRequest,
};
use selvedge_runtime::{
    CallContext, Clock, Driver, Halt, Journal, Limits, Model, Operations, Pending, RunHandle, Tools, Watcher,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What the ports and the people of one run share.
#[derive(Clone)]
struct Outside(Arc<Shared>);

struct Shared {
    plan: SimPlan,
    seed: u64,
    began: Instant,
    handle: OnceLock<RunHandle>,
    seen: Mutex<Seen>,
}

/// What has happened so far.
struct Seen {
    world: World,
    /// What each durable effect asks.
    contents: BTreeMap<EffectId, String>,
    requests: Vec<(usize, String)>,
    answered: BTreeSet<Arc<str>>,
    wrong: Vec<String>,
}

impl Outside {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A time that something takes, in milliseconds: often none, and sometimes long.
    fn time(&self, what: &str) -> Duration {
        let mut rng = Rng::new(hash(self.0.seed, what));
        let longest = if rng.chance(10) { 5_000 } else { 40 };
        let ms = if rng.chance(25) { 0 } else { rng.within(0, longest) };
        Duration::from_millis(ms.unsigned_abs())
    }

    /// What the world says to an effect, after its time. It must be durable by then (E-04).
    async fn outcome(self, effect: EffectId, node: Arc<str>, how: How) -> Result<Outcome, Failure> {
        tokio::time::sleep(self.time(&effect.0)).await;
        let mut seen = self.seen();
        let Some(content) = seen.contents.get(&effect).cloned() else {
            seen.wrong.push(format!("E-04: {effect} is sent, and is not durable"));
            return Err(Failure::permanent(FaultKind::ExecutionFailure, "not durable"));
        };
        let asker = Asker { node: &node, attempt: effect.place().map_or(1, |place| place.attempt) };
        let answer = match how {
            How::Model { tools, schema } => seen.world.model(asker, &content, &tools, schema.as_ref()),
            How::Tool(name) => {
                let effects = self.0.plan.node(&node).map(|(_, def)| self.0.plan.effects(def, &name));
                let effects = effects.unwrap_or(selvedge_engine::Effects::Write);
                seen.world.tool(asker, &first_attempt(&effect).0, &content, effects)
            }
        };
        said(answer).map_err(|failure| *failure)
    }

    async fn output(self, request: ToolRequest) -> Result<Value, Failure> {
        let how = How::Tool(request.tool.name.to_string());
        match self.outcome(request.effect, request.node, how).await? {
            Outcome::Output(output) => Ok((*output).clone()),
            other => Err(Failure::permanent(FaultKind::ExecutionFailure, format!("{other:?}"))),
        }
    }

    fn note(&self, state: &State, effect: &EffectId) {
        let (node, content) = match state.request(effect) {
            Some(Request::Model(request)) => (request.node.clone(), (content_of(state, &request), "model")),
            Some(Request::Tool(request) | Request::Operation(request)) => {
                let content = crate::canon::tool_content(&request.tool.name, &request.args);
                (request.node.clone(), (content, "tool"))
            }
            // What was asked in the turn that ended the run.
            None => return,
        };
        let at = self.0.plan.node(&node).map_or(0, |(at, _)| at);
        let mut seen = self.seen();
        seen.requests.push((at, format!("{node} {} {}", content.1, content.0)));
        seen.contents.insert(effect.clone(), content.0);
    }

    /// A person answers an ask, after a time, whatever the run does meanwhile.
    fn ask(&self, state: &State, ask: &Arc<str>) {
        let mut seen = self.seen();
        if !seen.answered.insert(Arc::clone(ask)) {
            return;
        }
        let word = if approves(&seen.world, state, ask) { "yes" } else { "no" };
        let (outside, ask) = (self.clone(), Arc::clone(ask));
        tokio::spawn(async move {
            tokio::time::sleep(outside.time(&format!("person {ask}"))).await;
            let Some(handle) = outside.0.handle.get() else { return };
            // It may have ended meanwhile, of another node's fault; nobody else answers.
            let refused = handle.answer(Arc::clone(&ask), json!("perhaps")).await;
            if refused.is_ok() {
                outside.seen().wrong.push(format!("E-43: {ask} takes any word"));
            }
            // Sent at once, one of two is refused.
            let twice = tokio::join!(
                handle.answer(Arc::clone(&ask), json!(word)),
                handle.answer(Arc::clone(&ask), json!(word))
            );
            if let (Ok(()), Ok(())) = twice {
                outside.seen().wrong.push(format!("E-43: {ask} is answered twice"));
            }
        });
    }
}

/// What is asked.
enum How {
    Model { tools: Vec<String>, schema: Option<Value> },
    Tool(String),
}

impl Model for Outside {
    fn call(&self, request: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        let tools = request.tools.iter().map(|tool| tool.name.to_string()).collect();
        let how = How::Model { tools, schema: request.schema.as_ref().map(|schema| schema.schema.clone()) };
        let outcome = self.clone().outcome(request.effect, request.node, how);
        Box::pin(async move {
            match outcome.await? {
                Outcome::Reply(reply) => Ok((*reply).clone()),
                other => Err(Failure::permanent(FaultKind::ExecutionFailure, format!("{other:?}"))),
            }
        })
    }
}

impl Tools for Outside {
    fn call(&self, request: ToolRequest, _: CallContext) -> Pending<Value> {
        Box::pin(self.clone().output(request))
    }
}

impl Operations for Outside {
    fn call(&self, request: ToolRequest, _: CallContext) -> Pending<Operated> {
        let output = self.clone().output(request);
        Box::pin(async move { output.await.map(Operated::from) })
    }
}

impl Watcher for Outside {
    fn events(&self, state: &State, records: &[Record]) {
        for record in records {
            if let Event::Requested { effect, .. } | Event::Retried { effect, .. } = &record.event {
                self.note(state, effect);
            }
        }
        for ask in state.asks().keys() {
            self.ask(state, ask);
        }
    }
}

impl Clock for Outside {
    fn now_ms(&self) -> i64 {
        1_000 + i64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    fn running(&self) -> Duration {
        self.0.began.elapsed()
    }
}

/// Runs a plan; what it came to, and its journal.
///
/// # Errors
/// A broken rule.
pub fn run(
    plan: &SimPlan,
    graph: &Arc<Graph>,
    world: World,
    seed: u64,
    sequential: bool,
) -> Result<(Observed, Lines), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.map_err(|error| error.to_string())?.block_on(drive(plan, graph, world, seed, sequential))
}

async fn drive(
    plan: &SimPlan,
    graph: &Arc<Graph>,
    world: World,
    seed: u64,
    sequential: bool,
) -> Result<(Observed, Lines), String> {
    let seen = Seen {
        world,
        contents: BTreeMap::new(),
        requests: Vec::new(),
        answered: BTreeSet::new(),
        wrong: Vec::new(),
    };
    let shared = Shared {
        plan: plan.clone(),
        seed,
        began: Instant::now(),
        handle: OnceLock::new(),
        seen: Mutex::new(seen),
    };
    let outside = Outside(Arc::new(shared));
    let port = Arc::new(outside.clone());
    let mut driver = Driver::new(Arc::clone(&port) as _, Arc::clone(&port) as _, Limits::default());
    driver.watcher = Some(Arc::clone(&port) as _);
    driver.clock = Arc::clone(&port) as _;
    let start = Start {
        graph: graph.hash().map_err(|error| error.to_string())?.into(),
        initial: plan.metadata.clone(),
        sequential,
        limits: crate::canon::limits(),
        ..Start::default()
    };
    let inputs = vec![Input::Start(Box::new(start))];
    let journal = Journal::Memory(Vec::new());
    let driver = driver.with_operations(port);
    let (handle, driven) = driver.driven("simulated", State::new(Arc::clone(graph)), journal, inputs, None);
    // The first of the run's turns comes behind this.
    let _ = outside.0.handle.set(handle);
    let driven = tokio::time::timeout(Duration::from_secs(1_000_000), driven).await;
    let driven = driven.map_err(|_| "the run does not end")?;
    let halt = driven.halt.map_err(|error| error.to_string())?;
    if halt != Halt::Ended {
        return Err(format!("the driver halts with {halt:?}"));
    }
    let seen = outside.seen();
    if let Some(wrong) = seen.wrong.first() {
        return Err(wrong.clone());
    }
    let Journal::Memory(records) = driven.journal else { return Err("it is in memory".into()) };
    let lines = records.iter().map(serde_json::to_string).collect::<Result<_, _>>();
    let lines = Lines { lines: lines.map_err(|error| error.to_string())?, ..Lines::default() };
    Ok((Observed::from_view(driven.state.view(), &seen.requests), lines))
}
