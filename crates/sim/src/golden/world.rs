//! The world of a recorded run: each effect comes to what it came to, in the order of the recording.

use super::runs::Run;
use crate::conformance::messages::short;
use crate::driver::first_attempt;
use selvedge_engine::{
    EffectId, Event, Failure, Input, ModelReply, ModelRequest, Operated, Outcome, Request, State, ToolRequest,
};
use selvedge_runtime::{
    CallContext, Controls, Driver, Halt, Journal, Limits, Model, Operations, Pending, Stop, Tools,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Between two events of the recording, on a clock that jumps: more than any wait for another attempt.
const BETWEEN: Duration = Duration::from_secs(1_000);

/// What one process meets.
#[derive(Clone, Default)]
pub(super) struct World(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// What effects came to, and at which event.
    outcomes: BTreeMap<EffectId, (usize, Outcome)>,
    /// What they asked.
    asked: BTreeMap<EffectId, String>,
    /// The first event behind those that the process has read, and the last one.
    events: (usize, usize),
    began: Mutex<Option<Instant>>,
    stop: Stop,
    wrong: Mutex<Vec<String>>,
}

impl World {
    /// The world of a run as of the first `events` events.
    pub(super) fn new(run: &Run, events: usize) -> Self {
        let mut inner = Inner { events: (events, run.records.len()), ..Inner::default() };
        let mut state = State::new(Arc::clone(&run.graph));
        for (at, record) in run.records.iter().enumerate() {
            state.apply_record(record);
            match &record.event {
                Event::Completed { effect, outcome, .. } => {
                    inner.outcomes.insert(effect.clone(), (at, outcome.clone()));
                }
                Event::Requested { effect, .. } | Event::Retried { effect, .. } => {
                    inner.asked.extend(state.request(effect).map(|asked| (effect.clone(), content(&asked))));
                }
                _ => {}
            }
        }
        Self(Arc::new(inner))
    }

    /// Drives a run until it stops, or until all that is left was never answered.
    pub(super) fn drive(
        &self,
        state: &mut State,
        journal: &mut Journal,
        inputs: Vec<Input>,
    ) -> Result<Halt, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .map_err(|error| error.to_string())?;
        let ports = Arc::new(self.clone());
        let driver = Driver::new(Arc::clone(&ports) as _, Arc::clone(&ports) as _, Limits::default());
        let driver = driver.with_operations(ports);
        let mut controls = Controls::from(self.0.stop.clone());
        let driving = driver.drive("recorded", state, journal, inputs, &mut controls);
        let halt = runtime.block_on(driving).map_err(|error| error.to_string())?;
        let wrong = self.0.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.first().map_or(Ok(halt), |wrong| Err(wrong.clone()))
    }

    /// What comes of an effect, in its time.
    async fn outcome(self, effect: EffectId, asked: String) -> Outcome {
        let Inner { outcomes, asked: asked_then, events: (read, all), began, stop, wrong } = &*self.0;
        if let Some(known) = asked_then.get(&effect).filter(|known| **known != asked) {
            let text = format!("{effect} asks for something else\n  recorded: {known}\n  here:     {asked}");
            wrong.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        }
        let began = *began.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        let until =
            |event: usize| began + BETWEEN * u32::try_from(event.saturating_sub(*read)).unwrap_or(u32::MAX);
        // A call that a crash has repeated is another attempt at the same; one that was recorded without an answer had none.
        let first = first_attempt(&effect);
        let again = || {
            let same = |known: &EffectId| first_attempt(known) == first && !asked_then.contains_key(&effect);
            outcomes.iter().rfind(|(known, _)| same(known)).map(|(_, found)| found)
        };
        match outcomes.get(&effect).or_else(again) {
            Some((at, outcome)) => {
                tokio::time::sleep_until(until(*at)).await;
                outcome.clone()
            }
            None => {
                tokio::time::sleep_until(until(all + 1)).await;
                stop.interrupt();
                stop.interrupt();
                std::future::pending().await
            }
        }
    }
}

impl Model for World {
    fn call(&self, request: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        let outcome = self.clone().outcome(request.effect.clone(), content(&Request::Model(request)));
        Box::pin(async move {
            match outcome.await {
                Outcome::Reply(reply) => Ok(ModelReply::clone(&reply)),
                Outcome::Failed(failure) => Err(*failure),
                Outcome::Output(_) | Outcome::Operated(_) => Err(misfit("an output")),
            }
        })
    }
}

impl Tools for World {
    fn call(&self, request: ToolRequest, _: CallContext) -> Pending<Value> {
        let outcome = self.clone().outcome(request.effect.clone(), content(&Request::Tool(request)));
        Box::pin(async move {
            match outcome.await {
                Outcome::Output(output) => Ok(Value::clone(&output)),
                Outcome::Failed(failure) => Err(*failure),
                Outcome::Reply(_) | Outcome::Operated(_) => Err(misfit("no output of a tool")),
            }
        })
    }
}

impl Operations for World {
    fn call(&self, request: ToolRequest, _: CallContext) -> Pending<Operated> {
        let outcome = self.clone().outcome(request.effect.clone(), content(&Request::Operation(request)));
        Box::pin(async move {
            match outcome.await {
                Outcome::Output(output) => Ok(Operated { output, ..Operated::default() }),
                Outcome::Operated(operated) => Ok(Operated::clone(&operated)),
                Outcome::Failed(failure) => Err(*failure),
                Outcome::Reply(reply) => Err(misfit(&reply.text)),
            }
        })
    }
}

/// What a request asks, as a text.
fn content(request: &Request) -> String {
    match request {
        Request::Model(asked) => {
            let messages: Vec<Value> = asked.messages.iter().map(|message| short(message)).collect();
            json!([asked.node, asked.thread, asked.role, messages, asked.tools, asked.settings, asked.schema])
        }
        Request::Tool(asked) | Request::Operation(asked) => json!([asked.node, asked.tool, asked.args]),
    }
    .to_string()
}

fn misfit(what: &str) -> Failure {
    Failure::permanent(
        selvedge_engine::FaultKind::ExecutionFailure,
        format!("another kind of effect came to {what}"),
    )
}
