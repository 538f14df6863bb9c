//! A run that is driven, from outside: what it does, commands to it, and how to stop it (E-43, C-05).

use crate::blocking::blocking;
use crate::clock::{Clock, wait_for_long};
use crate::command::{Command, Refusal};
use crate::driver::{DriveError, Driver, Halt};
use crate::journal::Journal;
use crate::stop::Stop;
use selvedge_engine::{Input, PersonMessage, Record, State};
use selvedge_store::{DriverLock, InboxEntry, InboxWatch, Store, StoreError};
use serde_json::Value;
use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot};

/// Commands that may wait for a run to take them; who gives one more waits.
const QUEUED: usize = 16;
/// Commits that a listener may be behind.
const BEHIND: usize = 32;
/// Entries of the inbox that are read at a time.
const ENTRIES: u32 = 64;
/// How often a read of the inbox that failed is tried again, and after how long.
const RETRIES: (u32, Duration) = (8, Duration::from_millis(250));

/// A run that is driven. Clones are the same run. With the last one gone it goes on all the same, until it ends or waits
/// for a person.
#[derive(Clone, Debug)]
pub struct RunHandle {
    /// Boxed: a channel has room for all that may wait from its beginning, and most runs are never told anything.
    commands: mpsc::Sender<Box<GivenCommand>>,
    batches: Weak<Batches>,
    next: Arc<AtomicU64>,
    stop: Stop,
}

impl RunHandle {
    /// A handle, and what a driver is given of it.
    pub fn new(stop: Stop) -> (Self, Controls) {
        let (commands, given) = mpsc::channel(QUEUED);
        let listeners = Listeners::default();
        let (batches, next) = (Arc::downgrade(&listeners.batches), Arc::clone(&listeners.next));
        let handle = Self { commands, batches, next, stop: stop.clone() };
        (handle, Controls { stop, commands: Some(given), listeners: Some(listeners), ..Controls::default() })
    }

    /// Gives a command; returns once its event is durable.
    ///
    /// # Errors
    /// If it was refused: nothing of it is in the journal.
    pub async fn give(&self, command: Command) -> Result<(), Refusal> {
        let (reply, replied) = oneshot::channel();
        let given = GivenCommand { command: Ok(command), sender: Sender::Handle(reply) };
        self.commands.send(Box::new(given)).await.map_err(|_| Refusal::NotDriven)?;
        replied.await.unwrap_or(Err(Refusal::NotDriven))
    }

    /// Answers an open ask (E-21), like [`Command::Answer`].
    ///
    /// # Errors
    /// If it was refused.
    pub async fn answer(&self, ask: impl Into<Arc<str>>, value: Value) -> Result<(), Refusal> {
        self.give(Command::Answer { ask: ask.into(), value }).await
    }

    /// Says something that answers no question, like [`Command::Message`].
    ///
    /// # Errors
    /// If it was refused.
    pub async fn message(&self, message: PersonMessage) -> Result<(), Refusal> {
        self.give(Command::Message(message)).await
    }

    /// Cancels the run (E-13).
    ///
    /// # Errors
    /// If it was refused.
    pub async fn cancel(&self) -> Result<(), Refusal> {
        self.give(Command::Cancel {}).await
    }

    /// The run's events from now on, each once it is durable.
    pub fn events(&self) -> Events {
        let batches = match self.batches.upgrade() {
            Some(batches) => batches.get_or_init(|| broadcast::Sender::new(BEHIND)).subscribe(),
            None => broadcast::channel(1).1,
        };
        // Behind the subscription: what is sent between the two comes, and is no surprise.
        let next = Some(self.next.load(Ordering::Acquire)).filter(|next| *next > 0);
        Events { batches, next, after: None }
    }

    /// Interrupts the driver, without ending the run.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }
}

/// Durable events, one after the other.
#[derive(Clone, Debug)]
pub enum EventBatch {
    /// What one commit has made durable.
    Events {
        /// The number of the first.
        first: u64,
        /// All of them, in order.
        records: Arc<[Record]>,
    },
    /// A listener was too slow for these; they are in the journal.
    Missed {
        /// The number of the first.
        first: u64,
        /// The number of the last.
        last: u64,
    },
}

/// A run's events, for one listener. It holds nothing up: what it does not take in time it is told to have missed.
#[derive(Debug)]
pub struct Events {
    batches: broadcast::Receiver<EventBatch>,
    /// The number of the next event; `None` if nobody drove the run when this began.
    next: Option<u64>,
    /// What comes after the events that were missed.
    after: Option<EventBatch>,
}

impl Events {
    /// What comes next; `None` once the run is not driven any more. May be dropped and called again at any time.
    pub async fn next(&mut self) -> Option<EventBatch> {
        if let Some(batch) = self.after.take() {
            return Some(batch);
        }
        loop {
            match self.batches.recv().await {
                Ok(batch) => return Some(self.in_order(batch)),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    fn in_order(&mut self, batch: EventBatch) -> EventBatch {
        let EventBatch::Events { first, records } = &batch else { return batch };
        let (first, expected) = (*first, self.next.replace(first + records.len() as u64));
        match expected.filter(|expected| *expected < first) {
            Some(missed) => {
                self.after = Some(batch);
                EventBatch::Missed { first: missed, last: first - 1 }
            }
            None => batch,
        }
    }
}

/// A command, and who waits for what becomes of it.
#[derive(Debug)]
pub(crate) struct GivenCommand {
    /// What could not be read is refused like any other.
    pub(crate) command: Result<Command, Refusal>,
    pub(crate) sender: Sender,
}

/// Who has given a command.
#[derive(Debug)]
pub(crate) enum Sender {
    /// A handle of this process.
    Handle(oneshot::Sender<Result<(), Refusal>>),
    /// Another process, by the entry of this id in the inbox.
    Inbox(String),
}

/// A driver's end of [`RunHandle`]s, and of the inbox: the commands to one run. The default is nobody's.
#[derive(Debug, Default)]
pub struct Controls {
    stop: Stop,
    commands: Option<mpsc::Receiver<Box<GivenCommand>>>,
    listeners: Option<Listeners>,
    inbox: Option<Inbox>,
    /// What was given while nobody drove.
    queued: Vec<GivenCommand>,
    /// There were handles, and there are none any more.
    abandoned: bool,
}

/// What listeners are sent, from the first of them on: to most runs nobody listens.
type Batches = OnceLock<broadcast::Sender<EventBatch>>;

/// Who listens to a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listeners {
    batches: Arc<Batches>,
    /// The number of the event that comes next; 0 while nobody drives.
    next: Arc<AtomicU64>,
}

impl Listeners {
    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        self.batches.get().is_some_and(|batches| batches.receiver_count() > 0)
    }

    /// So many events are durable.
    pub(crate) fn durable(&self, events: u64) {
        self.next.store(events + 1, Ordering::Release);
    }

    /// Sends the last events of so many.
    pub(crate) fn send(&self, records: Vec<Record>, events: u64) {
        let first = (events + 1).saturating_sub(records.len() as u64);
        if let Some(batches) = self.batches.get() {
            // Nobody listens any more.
            let _ = batches.send(EventBatch::Events { first, records: records.into() });
        }
    }
}

type Reading = Pin<Box<dyn Future<Output = Result<Vec<InboxEntry>, StoreError>> + Send>>;

/// A run's part of the inbox.
struct Inbox {
    store: Arc<Store>,
    run: Arc<str>,
    watch: InboxWatch,
    /// A read that is under way: who waited for it may have turned to something else.
    reading: Option<Reading>,
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Inbox {
    /// Waits for entries that nobody has settled. May be dropped and called again at any time.
    async fn entries(&mut self) -> Result<Vec<InboxEntry>, StoreError> {
        if self.reading.is_none() {
            self.watch.changed().await;
        }
        let (store, run) = (&self.store, &self.run);
        let reading = self.reading.get_or_insert_with(|| Box::pin(read(Arc::clone(store), Arc::clone(run))));
        let entries = reading.await;
        self.reading = None;
        entries
    }
}

/// The entries of a run. What is in the way for a moment, such as a process that may open no more files, is waited out.
async fn read(store: Arc<Store>, run: Arc<str>) -> Result<Vec<InboxEntry>, StoreError> {
    let (retries, pause) = RETRIES;
    for _ in 0..retries {
        let run = Arc::clone(&run);
        if let Ok(entries) = blocking(&store, move |store| store.inbox_entries(&run, ENTRIES)).await {
            return Ok(entries);
        }
        tokio::time::sleep(pause).await;
    }
    blocking(&store, move |store| store.inbox_entries(&run, ENTRIES)).await
}

impl From<Stop> for Controls {
    fn from(stop: Stop) -> Self {
        Self { stop, ..Self::default() }
    }
}

impl Controls {
    /// What interrupts the driver.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// From here on takes the commands of other processes to the run of this journal, which has so many events.
    pub(crate) fn connect(&mut self, journal: &Journal, events: u64) {
        if let Some(listeners) = &self.listeners {
            listeners.durable(events);
        }
        if let (Journal::Stored { store, run, .. }, None) = (journal, &self.inbox) {
            let (watch, store, run) = (store.watch_inbox(run), Arc::clone(store), Arc::clone(run));
            self.inbox = Some(Inbox { store, run, watch, reading: None });
        }
    }

    /// Waits until a command is given, and queues it for the drive that comes next, or until the last handle is gone.
    /// May be dropped and called again at any time.
    ///
    /// # Errors
    /// If what other processes have given can't be read, for seconds.
    pub async fn wait_for_command(&mut self) -> Result<(), StoreError> {
        while self.queued.is_empty() && !self.abandoned {
            self.queued = self.next_commands().await?;
        }
        Ok(())
    }

    pub(crate) fn listeners(&self) -> Option<Listeners> {
        self.listeners.clone()
    }

    /// What was given while nobody drove.
    pub(crate) fn take_queued(&mut self) -> Vec<GivenCommand> {
        std::mem::take(&mut self.queued)
    }

    /// Waits until commands are given, or the last handle is gone. May be dropped and called again at any time.
    pub(crate) async fn next_commands(&mut self) -> Result<Vec<GivenCommand>, StoreError> {
        let Self { commands, inbox, .. } = self;
        let from_handle = async {
            match commands {
                Some(commands) => commands.recv().await,
                None => pending().await,
            }
        };
        let from_inbox = async {
            match inbox {
                Some(inbox) => inbox.entries().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            given = from_handle => {
                let Some(first) = given else {
                    (self.commands, self.abandoned) = (None, true);
                    return Ok(Vec::new());
                };
                // What comes together shares a commit.
                let more = std::iter::from_fn(|| self.commands.as_mut()?.try_recv().ok());
                Ok(std::iter::once(first).chain(more.take(QUEUED)).map(|given| *given).collect())
            }
            entries = from_inbox => Ok(entries?.into_iter().map(GivenCommand::from).collect()),
        }
    }
}

impl From<InboxEntry> for GivenCommand {
    fn from(entry: InboxEntry) -> Self {
        Self { command: Command::read(&entry.body), sender: Sender::Inbox(entry.id) }
    }
}

/// What a driven run came to.
#[derive(Debug)]
pub struct Driven {
    /// Its state.
    pub state: State,
    /// Its journal.
    pub journal: Journal,
    /// Why it is driven no longer.
    pub halt: Result<Halt, DriveError>,
}

/// The first timer of a run that waits, once it is due by a clock that nobody can set.
async fn first_timer(state: &State, clock: &dyn Clock) -> Arc<str> {
    let now = clock.now_ms();
    match state.timers().iter().min_by_key(|(_, wait)| wait.left_ms(now)) {
        Some((timer, left)) => {
            wait_for_long(clock, Duration::from_millis(left.left_ms(now))).await;
            Arc::clone(timer)
        }
        None => pending().await,
    }
}

impl Driver {
    /// A handle to a run, and what drives it as long as that is polled. While there is a handle a run that waits for a person is kept, and
    /// goes on with the answer. `lock` is given back at the end.
    pub fn driven(
        self,
        run: &str,
        state: State,
        journal: Journal,
        inputs: Vec<Input>,
        lock: Option<DriverLock>,
    ) -> (RunHandle, impl Future<Output = Driven> + Send + use<>) {
        let (handle, mut controls) = RunHandle::new(Stop::default());
        controls.connect(&journal, state.events());
        let run: Arc<str> = run.into();
        let mut driven = Driven { state, journal, halt: Ok(Halt::Waiting) };
        // Boxed, as it would be there twice in all that await it: once as it was given, and once as it is awaited.
        let driven = Box::pin(async move {
            let mut inputs = inputs;
            loop {
                let Driven { state, journal, halt } = &mut driven;
                *halt = self.drive(&run, state, journal, std::mem::take(&mut inputs), &mut controls).await;
                if !matches!(halt, Ok(Halt::Waiting)) {
                    break;
                }
                let stop = controls.stop().clone();
                let waited = tokio::select! {
                    biased;
                    () = stop.reached(1) => break,
                    // A run that is held fires its own timers (E-37).
                    timer = first_timer(state, &*self.clock) => {
                        inputs.push(Input::Fire(timer));
                        continue;
                    }
                    waited = controls.wait_for_command() => waited,
                };
                if let Err(error) = waited {
                    *halt = Err(DriveError::Store(error));
                    break;
                }
                if controls.queued.is_empty() {
                    break;
                }
            }
            drop(lock);
            driven
        });
        (handle, driven)
    }
}
