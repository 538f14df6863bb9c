//! A run that is driven, from outside: what it does, what people say to it, and how to stop it (E-43, C-05).

use crate::command::{Command, Refusal};
use crate::driver::{DriveError, Driver, Halt};
use crate::journal::Journal;
use crate::stop::Stop;
use selvedge_engine::{Input, Record, State};
use selvedge_store::{Bell, DriverLock, Store};
use serde_json::Value;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::JoinHandle;

/// Commands that may wait for a run to hear them; who gives one more waits.
const WAITING: usize = 16;
/// Commits that a listener may be behind.
const BEHIND: usize = 32;
/// Letters that are read at a time.
const LETTERS: u32 = 64;

/// A run that is driven. Clones are the same run. With the last one gone it goes on all the same, until it ends or waits
/// for a person.
#[derive(Clone, Debug)]
pub struct RunHandle {
    commands: mpsc::Sender<Said>,
    told: broadcast::WeakSender<Told>,
    next: Arc<AtomicU64>,
    stop: Stop,
}

impl RunHandle {
    /// A handle, and what a driver is given of it.
    pub fn new(stop: Stop) -> (Self, Controls) {
        let (commands, heard) = mpsc::channel(WAITING);
        let told = broadcast::Sender::new(BEHIND);
        let listeners = Listeners { told, next: Arc::default() };
        let (told, next) = (listeners.told.downgrade(), Arc::clone(&listeners.next));
        let handle = Self { commands, told, next, stop: stop.clone() };
        (handle, Controls { stop, commands: Some(heard), listeners: Some(listeners), ..Controls::default() })
    }

    /// Gives a command; returns once its event is durable.
    ///
    /// # Errors
    /// If it was refused: nothing of it is in the journal.
    pub async fn give(&self, command: Command) -> Result<(), Refusal> {
        let (reply, replied) = oneshot::channel();
        let said = Said { command: Ok(command), by: By::Handle(reply) };
        self.commands.send(said).await.map_err(|_| Refusal::NotDriven)?;
        replied.await.unwrap_or(Err(Refusal::NotDriven))
    }

    /// Answers an open ask (E-21), like [`Command::Answer`].
    ///
    /// # Errors
    /// If it was refused.
    pub async fn answer(&self, ask: impl Into<Arc<str>>, value: Value) -> Result<(), Refusal> {
        self.give(Command::Answer { ask: ask.into(), value }).await
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
        let heard = match self.told.upgrade() {
            Some(told) => told.subscribe(),
            None => broadcast::channel(1).1,
        };
        // Behind the subscription: what is told between the two comes, and is no surprise.
        let next = Some(self.next.load(Ordering::Acquire)).filter(|next| *next > 0);
        Events { heard, next, after: None }
    }

    /// Interrupts the driver, without ending the run.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }
}

/// Durable events, one after the other.
#[derive(Clone, Debug)]
pub enum Told {
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
    heard: broadcast::Receiver<Told>,
    /// The number of the next event; `None` if nobody drove the run when this began.
    next: Option<u64>,
    /// What comes after the events that were missed.
    after: Option<Told>,
}

impl Events {
    /// What comes next; `None` once the run is not driven any more. May be dropped and called again at any time.
    pub async fn next(&mut self) -> Option<Told> {
        if let Some(told) = self.after.take() {
            return Some(told);
        }
        loop {
            match self.heard.recv().await {
                Ok(told) => return Some(self.in_order(told)),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    fn in_order(&mut self, told: Told) -> Told {
        let Told::Events { first, records } = &told else { return told };
        let (first, expected) = (*first, self.next.replace(first + records.len() as u64));
        match expected.filter(|expected| *expected < first) {
            Some(missed) => {
                self.after = Some(told);
                Told::Missed { first: missed, last: first - 1 }
            }
            None => told,
        }
    }
}

/// A command, and who waits for what becomes of it.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) command: Result<Command, Refusal>,
    pub(crate) by: By,
}

/// Who has given a command.
#[derive(Debug)]
pub(crate) enum By {
    /// A handle of this process.
    Handle(oneshot::Sender<Result<(), Refusal>>),
    /// A letter of that id in the inbox.
    Letter(String),
}

/// A driver's end of [`RunHandle`]s, and of the inbox: what is said to one run from outside. The default is nobody's.
#[derive(Debug, Default)]
pub struct Controls {
    stop: Stop,
    commands: Option<mpsc::Receiver<Said>>,
    listeners: Option<Listeners>,
    inbox: Option<Inbox>,
    /// What was heard while nobody drove.
    heard: Vec<Said>,
    /// There were handles, and there are none any more.
    abandoned: bool,
}

/// Who listens to a run.
#[derive(Clone, Debug)]
pub(crate) struct Listeners {
    told: broadcast::Sender<Told>,
    /// The number of the event that comes next; 0 while nobody drives.
    next: Arc<AtomicU64>,
}

impl Listeners {
    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        self.told.receiver_count() > 0
    }

    /// So many events are durable.
    pub(crate) fn durable(&self, events: u64) {
        self.next.store(events + 1, Ordering::Release);
    }

    /// Tells of the last events of so many.
    pub(crate) fn tell(&self, records: Vec<Record>, events: u64) {
        let first = (events + 1).saturating_sub(records.len() as u64);
        // Nobody listens any more.
        let _ = self.told.send(Told::Events { first, records: records.into() });
    }
}

/// A run's part of the inbox.
#[derive(Debug)]
struct Inbox {
    store: Arc<Store>,
    run: Arc<str>,
    bell: Bell,
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

    /// From here on hears what other processes say to the run of this journal, which has so many events.
    pub(crate) fn attend(&mut self, journal: &Journal, events: u64) {
        if let Some(listeners) = &self.listeners {
            listeners.durable(events);
        }
        if let (Journal::Stored { store, run, .. }, None) = (journal, &self.inbox) {
            let (bell, store, run) = (store.bell(run), Arc::clone(store), Arc::clone(run));
            self.inbox = Some(Inbox { store, run, bell });
        }
    }

    /// Waits until somebody says something, and keeps it for the drive that comes next, or until the last handle is gone.
    /// May be dropped and called again at any time.
    pub async fn heard(&mut self) {
        while self.heard.is_empty() && !self.abandoned {
            self.heard = self.hear().await;
        }
    }

    pub(crate) fn listeners(&self) -> Option<Listeners> {
        self.listeners.clone()
    }

    /// What was heard while nobody drove.
    pub(crate) fn kept(&mut self) -> Vec<Said> {
        std::mem::take(&mut self.heard)
    }

    /// Waits until something is said, or the last handle is gone. May be dropped and called again at any time.
    pub(crate) async fn hear(&mut self) -> Vec<Said> {
        let Self { commands, inbox, .. } = self;
        let said = async {
            match commands {
                Some(commands) => commands.recv().await,
                None => pending().await,
            }
        };
        let rung = async {
            match inbox {
                Some(inbox) => inbox.bell.rung().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            said = said => {
                let Some(first) = said else {
                    (self.commands, self.abandoned) = (None, true);
                    return Vec::new();
                };
                // What comes together shares a commit.
                let more = std::iter::from_fn(|| self.commands.as_mut()?.try_recv().ok());
                std::iter::once(first).chain(more.take(WAITING)).collect()
            }
            () = rung => self.letters(),
        }
    }

    /// The letters that nobody has taken. What can't be read now is rung for again with the next commit.
    fn letters(&self) -> Vec<Said> {
        let Some(Inbox { store, run, .. }) = &self.inbox else { return Vec::new() };
        let letters = store.letters(run, LETTERS).unwrap_or_default().into_iter();
        let said =
            letters.map(|letter| Said { command: Command::read(&letter.body), by: By::Letter(letter.id) });
        said.collect()
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

impl Driver {
    /// Drives a run in a task of its own. While there is a handle a run that waits for a person is kept, and goes on with
    /// the answer. `lock` is given back with the task's end.
    ///
    /// Whoever needs what it came to awaits the task; dropping that, too, lets the run go on.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(
        self,
        run: &str,
        state: State,
        journal: Journal,
        inputs: Vec<Input>,
        lock: Option<DriverLock>,
    ) -> (RunHandle, JoinHandle<Driven>) {
        let (handle, mut controls) = RunHandle::new(Stop::default());
        controls.attend(&journal, state.events());
        let run: Arc<str> = run.into();
        let task = tokio::spawn(async move {
            let mut driven = Driven { state, journal, halt: Ok(Halt::Waiting) };
            let mut inputs = inputs;
            loop {
                let Driven { state, journal, halt } = &mut driven;
                *halt = self.drive(&run, state, journal, std::mem::take(&mut inputs), &mut controls).await;
                if !matches!(halt, Ok(Halt::Waiting)) {
                    break;
                }
                let stop = controls.stop().clone();
                tokio::select! {
                    biased;
                    () = stop.reached(1) => break,
                    () = controls.heard() => {}
                }
                if controls.heard.is_empty() {
                    break;
                }
            }
            drop(lock);
            driven
        });
        (handle, task)
    }
}
