//! The loop: inputs in, events durable, effects out.

use crate::clock::{Clock, SystemClock, wait};
use crate::command::Refusal;
use crate::flight::{Answer, BATCH, Flight, keep_flying};
use crate::handle::{Controls, GivenCommand, Listeners, Sender};
use crate::journal::Journal;
use crate::load::losses;
use crate::ports::{Delta, Model, Operations, Tools, Trouble, Unanswered};
use crate::stop::Stop;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use selvedge_engine::{EffectId, Event, Input, ModelRequest, Record, RunStatus, State};
use selvedge_store::{Settled, StoreError};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tracing::Instrument;

mod advance;
mod alarms;
mod dispatch;
mod spans;

use advance::{Advanced, advance};
use alarms::Alarms;
use dispatch::Seen;
use spans::Spans;

/// How long an interrupt lets effects end (C-05).
const GRACE: Duration = Duration::from_secs(5);

/// Limits that the driver applies (E-28).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Model calls at a time.
    pub max_parallel: usize,
    /// Tool calls at a time.
    pub concurrency: usize,
    /// Seconds a run may take; `None` is no limit.
    pub run_timeout_s: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_parallel: 512, concurrency: 8, run_timeout_s: None }
    }
}

/// Someone who looks on. Nothing a watcher does steers the run (E-15).
pub trait Watcher: Send + Sync {
    /// Events that are durable now, and the state after them.
    fn events(&self, state: &State, records: &[Record]);
    /// A dispatched effect has its turn under the limits on parallel calls, and begins.
    fn began(&self, effect: &EffectId) {
        let _ = effect;
    }
    /// A delta of an effect in flight.
    fn delta(&self, effect: &EffectId, delta: Delta) {
        let _ = (effect, delta);
    }
}

/// Drives runs: the ports, and how much of them at a time.
#[derive(Clone)]
pub struct Driver {
    /// The one way to call a model.
    pub model: Arc<dyn Model>,
    /// The one way to call a tool.
    pub tools: Arc<dyn Tools>,
    /// The one way to call an operation; without it each is a fault.
    pub operations: Option<Arc<dyn Operations>>,
    /// Who looks on.
    pub watcher: Option<Arc<dyn Watcher>>,
    /// What it goes by when it waits, and dates events.
    pub clock: Arc<dyn Clock>,
    models: Arc<Semaphore>,
    calls: Arc<Semaphore>,
    run_timeout_s: Option<u64>,
}

/// Why a driver stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The run ended.
    Ended,
    /// Only a person can let it go on.
    Waiting,
    /// It was interrupted and can be resumed.
    Interrupted,
    /// An internal assertion failed; the journal says so (E-17).
    Poisoned,
}

/// Why a driver gave up.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The journal could not be written; the run can be resumed from what is in it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An operation has no answer, for a reason that is no outcome of it; the run can be resumed, and asks again.
    #[error("{0}")]
    Unanswered(Trouble),
    /// An event could not be written as JSON, which is a bug.
    #[error("internal error: an event can't be written as JSON: {0}")]
    Unwritable(String),
}

impl DriveError {
    pub(crate) fn unwritable(error: serde_json::Error) -> Self {
        Self::Unwritable(error.to_string())
    }
}

/// Lets so many calls through at a time.
fn gate(calls: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(calls.clamp(1, Semaphore::MAX_PERMITS)))
}

/// One drive of one run.
struct Drive<'a> {
    driver: &'a Driver,
    run: Arc<str>,
    state: &'a mut State,
    journal: &'a mut Journal,
    /// Calls in flight. They are polled here, in the run's own task: an answer needs no hop between
    /// threads, and dropping them cancels every call down to its last child process (E-13).
    flying: FuturesUnordered<Flight>,
    /// Their ids.
    known: HashSet<EffectId>,
    /// What was in flight when an earlier process died and has not been sent again yet.
    earlier: Vec<EffectId>,
    /// Answers that came while a commit was under way.
    inbox: Vec<Answer>,
    alarms: Alarms,
    /// What operations say that have no answer.
    unanswered: Unanswered,
    /// Who listens through a handle.
    listeners: Option<Listeners>,
    spans: Spans,
    /// Whether something is left to derive from the inputs so far.
    unfinished: bool,
    random: RandomState,
    drawn: u64,
}

impl Driver {
    /// A driver over these ports, without operations.
    pub fn new(model: Arc<dyn Model>, tools: Arc<dyn Tools>, limits: Limits) -> Self {
        Self {
            model,
            tools,
            operations: None,
            watcher: None,
            clock: Arc::new(SystemClock),
            models: gate(limits.max_parallel),
            calls: gate(limits.concurrency),
            run_timeout_s: limits.run_timeout_s,
        }
    }

    /// The same driver, with operations.
    #[must_use]
    pub fn with_operations(self, operations: Arc<dyn Operations>) -> Self {
        Self { operations: Some(operations), ..self }
    }

    /// Drives a run until it ends, waits or is interrupted. `inputs` come first, and then the commands that are given at any
    /// moment through `controls` (E-43); effects that are pending in `state` were in flight when an earlier process died.
    ///
    /// # Errors
    /// If the journal can't be written. What is in it stays valid; the run can be resumed.
    pub async fn drive(
        &self,
        run: &str,
        state: &mut State,
        journal: &mut Journal,
        inputs: Vec<Input>,
        controls: &mut Controls,
    ) -> Result<Halt, DriveError> {
        controls.connect(journal, state.events());
        // What came due while nobody drove did so before any command that is given now (E-37).
        let mut first: Vec<Input> = state.overdue(self.clock.now_ms()).into_iter().map(Input::Fire).collect();
        first.extend(losses(state));
        first.extend(inputs);
        let earlier = state.pending_in_order().into_iter().map(|(effect, _)| effect.clone()).collect();
        let mut drive = Drive {
            driver: self,
            run: run.into(),
            state,
            journal,
            flying: FuturesUnordered::new(),
            known: HashSet::new(),
            earlier,
            inbox: Vec::new(),
            alarms: Alarms::default(),
            unanswered: Unanswered::default(),
            listeners: controls.listeners(),
            spans: Spans::of(run),
            unfinished: false,
            random: RandomState::new(),
            drawn: 0,
        };
        // Whatever panics in here, be it a port, belongs to this run and ends it alone (E-17).
        let span = drive.spans.run();
        match AssertUnwindSafe(drive.run(first, controls)).catch_unwind().instrument(span).await {
            Ok(halt) => halt,
            Err(panic) => drive.poison(&panic_text(panic.as_ref())).await,
        }
    }
}

impl Drive<'_> {
    async fn run(&mut self, first: Vec<Input>, controls: &mut Controls) -> Result<Halt, DriveError> {
        let stop = controls.stop().clone();
        let queued = controls.take_queued();
        self.turn(first, queued, true).await?;
        self.dispatch_earlier();
        self.alarms.set(self.state, &*self.driver.clock);
        // A time that the clock can't hold is no limit.
        let limit = self.driver.run_timeout_s.map(Duration::from_secs);
        let deadline = limit.and_then(|limit| tokio::time::Instant::now().checked_add(limit));
        let expired = async move {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let stopped = stop.reached(1);
        let unanswered = self.unanswered.clone();
        tokio::pin!(expired, stopped);
        loop {
            if let Some(halt) = self.quiet() {
                return Ok(halt);
            }
            let alarm = self.alarm();
            let mut commands = Vec::new();
            let inputs = tokio::select! {
                biased;
                trouble = unanswered.told() => return Err(DriveError::Unanswered(trouble)),
                () = &mut stopped => return self.wind_down(&stop).await,
                // No input comes between: what follows from the last ones has not all been derived.
                () = tokio::task::yield_now(), if self.unfinished => Vec::new(),
                () = &mut expired => vec![Input::Expire(self.driver.run_timeout_s.unwrap_or_default())],
                timer = alarm => vec![Input::Fire(timer)],
                given = controls.next_commands() => {
                    commands = given?;
                    Vec::new()
                }
                () = self.answered() => self.inputs(),
            };
            self.turn(inputs, commands, true).await?;
        }
    }

    /// The next timer, once it is due.
    fn alarm(&mut self) -> impl Future<Output = Arc<str>> + use<> {
        let next = self.alarms.next(self.state);
        let clock = Arc::clone(&self.driver.clock);
        async move {
            let Some((due, timer)) = next else { return std::future::pending().await };
            wait(&*clock, due.saturating_sub(clock.running())).await;
            timer
        }
    }

    fn quiet(&self) -> Option<Halt> {
        match self.state.status() {
            RunStatus::Running => None,
            RunStatus::Waiting => Some(Halt::Waiting),
            RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => Some(Halt::Ended),
        }
    }

    /// Waits until at least one answer is in the inbox; with no call in flight, for ever.
    async fn answered(&mut self) {
        if self.inbox.is_empty() {
            match self.flying.next().await {
                Some(answer) => self.inbox.push(answer),
                None => std::future::pending().await,
            }
        }
    }

    /// The answers so far, and all that are ready: they share a commit.
    fn inputs(&mut self) -> Vec<Input> {
        while self.inbox.len() < BATCH
            && let Some(Some(answer)) = self.flying.next().now_or_never()
        {
            self.inbox.push(answer);
        }
        let answers = std::mem::take(&mut self.inbox);
        let complete = answers.into_iter().map(|(effect, (outcome, printed, took))| {
            self.known.remove(&effect);
            let jitter = self.jitter();
            Input::Complete(effect, outcome, jitter, printed, took)
        });
        complete.collect()
    }

    /// A random number below a million, for the back-off (E-14).
    fn jitter(&mut self) -> u32 {
        self.drawn += 1;
        let mut hasher = self.random.build_hasher();
        hasher.write_u64(self.drawn);
        u32::try_from(hasher.finish() % 1_000_000).unwrap_or(0)
    }

    /// Accepts inputs and commands, derives what follows, makes it durable, and dispatches what was requested.
    async fn turn(
        &mut self,
        inputs: Vec<Input>,
        commands: Vec<GivenCommand>,
        go_on: bool,
    ) -> Result<(), DriveError> {
        let (records, replies) = self.advance(inputs, commands, go_on);
        let settled = replies.iter().filter_map(settled).collect::<Result<Vec<Settled>, _>>()?;
        if !records.is_empty() || !settled.is_empty() {
            self.keep(records, settled).await?;
        }
        for (sender, reply) in replies {
            if let Sender::Handle(to) = sender {
                // Who has given up waiting does not want to know.
                let _ = to.send(reply);
            }
        }
        Ok(())
    }

    /// Accepts inputs and commands and derives what follows: the records, and what becomes of the commands.
    fn advance(
        &mut self,
        inputs: Vec<Input>,
        commands: Vec<GivenCommand>,
        go_on: bool,
    ) -> (Vec<Record>, Vec<(Sender, Result<(), Refusal>)>) {
        let at = self.driver.clock.now_ms();
        let model = &self.driver.model;
        let recall = model.counts().then_some(|request: ModelRequest| model.recorded(&request, &self.run));
        // Looked up at most once a turn, as few turns end anything early.
        let (flying, waiting) = (&self.flying, OnceCell::new());
        let waits = |effect: &EffectId| {
            let waiting: &HashSet<&EffectId> = waiting.get_or_init(|| {
                flying.iter().filter(|flight| !flight.has_begun()).map(|flight| &flight.effect).collect()
            });
            waiting.contains(effect)
        };
        let Advanced { records, replies, unfinished, .. } =
            advance(self.state, (inputs, commands), at, go_on, recall, &waits);
        self.unfinished = unfinished;
        (records, replies)
    }

    /// Makes records durable, tells of them, and dispatches what they request.
    async fn keep(&mut self, records: Vec<Record>, settled: Vec<Settled>) -> Result<(), DriveError> {
        let requested: Vec<EffectId> = records.iter().filter_map(|record| requested(&record.event)).collect();
        self.alarms.note(self.state, &records, &*self.driver.clock);
        self.spans.note(self.state, &records);
        let commit = self.journal.append(&records, self.state, settled);
        // Only what is durable may be seen or sent (E-04).
        keep_flying(commit, &mut self.flying, &mut self.inbox).await?;
        if !records.is_empty() {
            if let Some(watcher) = &self.driver.watcher {
                watcher.events(self.state, &records);
            }
            if let Some(listeners) = self.listeners.as_ref().filter(|listeners| listeners.any()) {
                listeners.send(records, self.state.events());
            }
        }
        if let Some(listeners) = &self.listeners {
            listeners.durable(self.state.events());
        }
        // What this turn asks for was asked later than that.
        self.dispatch_earlier();
        for effect in requested {
            self.dispatch(effect, Seen::Now);
        }
        self.drop_unwanted();
        Ok(())
    }

    async fn poison(&mut self, message: &str) -> Result<Halt, DriveError> {
        let event = Event::Poisoned { message: message.to_owned() };
        let record = Record { at: self.state.tick(self.driver.clock.now_ms()), event };
        // What the panic left behind need not be a state; the journal's fold is one.
        let _ = catch_unwind(AssertUnwindSafe(|| self.state.apply_record(&record)));
        self.journal.append(&[record], self.state, Vec::new()).await?;
        Ok(Halt::Poisoned)
    }

    /// Ctrl-C: effects may end within a grace, nothing new begins (C-05).
    async fn wind_down(&mut self, stop: &Stop) -> Result<Halt, DriveError> {
        self.drop_waiting();
        let unanswered = self.unanswered.clone();
        let deadline = tokio::time::Instant::now() + GRACE;
        while !self.known.is_empty() && self.quiet().is_none() {
            let inputs = tokio::select! {
                biased;
                trouble = unanswered.told() => return Err(DriveError::Unanswered(trouble)),
                () = stop.reached(2) => break,
                () = tokio::time::sleep_until(deadline) => break,
                () = self.answered() => self.inputs(),
            };
            self.turn(inputs, Vec::new(), false).await?;
            // What was not sent is pending, too, and hides in the numbers what is cut off.
            self.drop_cut_off();
        }
        Ok(Halt::Interrupted)
    }
}

/// What the sender of an entry of the inbox is told.
fn settled((sender, reply): &(Sender, Result<(), Refusal>)) -> Option<Result<Settled, DriveError>> {
    let Sender::Inbox(id) = sender else { return None };
    let reply = serde_json::to_string(reply).map_err(DriveError::unwritable);
    Some(reply.map(|reply| Settled { id: id.clone(), reply }))
}

/// The effect that an event asks to dispatch.
fn requested(event: &Event) -> Option<EffectId> {
    match event {
        Event::Requested { effect, .. } | Event::Retried { effect, .. } => Some(effect.clone()),
        _ => None,
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
