//! The runs that this server drives: begun by requests, or gone on with when it starts (S-01).

use crate::feed::Feeds;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::webhooks::Webhooks;
use futures_util::FutureExt;
use hyper::StatusCode;
use selvedge_engine::{EffectId, Record, RunStatus, State};
use selvedge_host::library::record;
use selvedge_host::options::RunOptions;
use selvedge_host::{Begun, Error, Host, LockedRun};
use selvedge_runtime::{Clock, Delta, Driven, RunHandle, SystemClock, Watcher};
use selvedge_store::{RunStatus as StoredStatus, RunUpdate, RunsPage, Store};
use serde_json::json;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// After how long it is tried again where there are as many runs as there may be, in seconds.
const BUSY_S: u32 = 5;
/// How often the index of timers is looked at.
const TIMERS: Duration = Duration::from_secs(1);
/// Runs that are looked at together at the start.
const PAGE: u32 = 200;
/// How long effects have to end when the server does (C-05), and a moment more for what is recorded of them.
pub(crate) const WINDING_DOWN: Duration = Duration::from_secs(7);

/// The runs that are driven here.
pub(crate) struct Drives {
    host: Host,
    store: Arc<Store>,
    feeds: Arc<Feeds>,
    metrics: Arc<Metrics>,
    webhooks: Arc<Webhooks>,
    /// Runs that may go on at a time; those that wait for a person are not counted.
    most: usize,
    runs: Mutex<HashMap<String, Driving>>,
    /// A run has come to an end, or to a stop.
    ended: Notify,
    /// Ids for which a run is being made.
    making: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// The server is about to end: no run begins any more.
    closing: AtomicBool,
}

/// A run that is driven.
struct Driving {
    handle: RunHandle,
    watcher: Arc<Told>,
}

/// Tells those who watch a run of what it does.
struct Told {
    feeds: Arc<Feeds>,
    metrics: Arc<Metrics>,
    webhooks: Arc<Webhooks>,
    run: String,
    /// Whether it waits for a person, and nothing of it goes on.
    waits: AtomicBool,
}

impl Watcher for Told {
    fn events(&self, state: &State, records: &[Record]) {
        self.metrics.records(records);
        if state.status() != RunStatus::Running {
            self.webhooks.stopped();
        }
        self.waits.store(state.status() == RunStatus::Waiting, Ordering::Relaxed);
        if let Some(feed) = self.feeds.watched(&self.run) {
            feed.new_events();
        }
    }

    fn delta(&self, effect: &EffectId, delta: Delta) {
        let Some(feed) = self.feeds.watched(&self.run) else { return };
        let (word, text) = match &delta {
            Delta::Text(text) => ("text", text),
            Delta::Progress(line) => ("progress", line),
        };
        feed.tell(&json!({"effect": effect, "node": feed.node_of(&effect.0), word: text}));
    }
}

impl Drives {
    pub(crate) fn new(
        host: Host,
        store: Arc<Store>,
        (feeds, metrics, webhooks): (Arc<Feeds>, Arc<Metrics>, Arc<Webhooks>),
        most: usize,
    ) -> Self {
        let (runs, making) = (Mutex::default(), Mutex::default());
        Self {
            host,
            store,
            feeds,
            metrics,
            webhooks,
            most,
            runs,
            ended: Notify::new(),
            making,
            closing: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Driving>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many go on, and how many wait for a person.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let runs = self.lock();
        let waiting = runs.values().filter(|run| run.watcher.waits.load(Ordering::Relaxed)).count();
        (runs.len() - waiting, waiting)
    }

    /// Whether one more may go on.
    ///
    /// # Errors
    /// There are as many as there may be (S-06).
    pub(crate) fn room(&self) -> Result<(), Problem> {
        if self.closing.load(Ordering::Relaxed) {
            let message = "the server is about to end";
            return Err(
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "S-01", "closing", message).after(BUSY_S)
            );
        }
        // Who waits is looked for only where that matters.
        if self.lock().len() < self.most || self.counts().0 < self.most {
            return Ok(());
        }
        let message = format!("{} runs are going on, which is as many as may (--max-runs)", self.most);
        Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "S-06", "too-many-runs", &message).after(BUSY_S))
    }

    /// Who makes a run of that id waits for who is about to.
    pub(crate) fn making(&self, id: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        making.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(making.entry(id.to_owned()).or_default())
    }

    /// Drives a run from here on, until it ends or the server does.
    pub(crate) fn drive(self: &Arc<Self>, mut begun: Begun) {
        let waits = AtomicBool::new(false);
        let (feeds, metrics) = (Arc::clone(&self.feeds), Arc::clone(&self.metrics));
        let webhooks = Arc::clone(&self.webhooks);
        let watcher = Arc::new(Told { feeds, metrics, webhooks, run: begun.id.clone(), waits });
        begun.driver.watcher = Some(Arc::clone(&watcher) as Arc<dyn Watcher>);
        let id = begun.id.clone();
        let (handle, driven) = begun.driven();
        self.lock().insert(id.clone(), Driving { handle, watcher });
        let drives = Arc::clone(self);
        tokio::spawn(async move {
            // A run that comes upon a bug has ended here, too, and the panic was told where it happened.
            let driven = AssertUnwindSafe(driven).catch_unwind().await.ok();
            if let Some(driven) = driven.filter(|driven| record::calls_library(&driven.state)) {
                // Most runs have none, and each is kept for as long as its run goes on.
                Box::pin(drives.record(&id, driven)).await;
            }
            drives.lock().remove(&id);
            if let Some(feed) = drives.feeds.watched(&id) {
                feed.new_events();
            }
            drives.ended.notify_waiters();
        });
    }

    /// Calls of library tools become tests. The run itself is what it is, whether or not they do.
    async fn record(&self, id: &str, driven: Driven) {
        let (environment, store, id) =
            (self.host.environment.clone(), Arc::clone(&self.store), id.to_owned());
        let record = move || record::calls(&environment, &store, &id, &driven.state);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(record).await {
            let why = error.diagnostics.first().map(|first| first.message.clone()).unwrap_or_default();
            self.host.observer.warning(&format!("the calls of library tools were not recorded: {why}"));
        }
    }

    /// Goes on with a run that is locked, and notes that this server drives it.
    pub(crate) async fn go_on(self: &Arc<Self>, run: LockedRun, over: &RunOptions) -> Result<(), Error> {
        let id = run.run.id().to_owned();
        let begun = self.host.resume(run, over).await?;
        let stored = RunOptions::stored(&begun.info.options);
        if !stored.served
            && let Ok(options) = (RunOptions { served: true, ..stored }).to_stored()
        {
            let update = RunUpdate { options: Some(options), ..RunUpdate::default() };
            self.store.update_run(&id, update).await?;
        }
        self.drive(begun);
        Ok(())
    }

    /// Goes on with what a server drove in this state folder when it died, the oldest first.
    pub(crate) async fn take_up(self: Arc<Self>) {
        let store = Arc::clone(&self.store);
        let left = tokio::task::spawn_blocking(move || left(&store)).await.unwrap_or_default();
        for id in left {
            while self.room().is_err() {
                let ended = self.ended.notified();
                tokio::select! {
                    () = ended => {}
                    () = tokio::time::sleep(Duration::from_secs(1)) => {}
                }
            }
            match self.continue_run(&id).await {
                Ok(()) => self.host.observer.note(&format!("run {id} goes on")),
                Err(error) => self.host.observer.warning(&format!("run {id} does not go on: {error}")),
            }
        }
    }

    /// Continues runs that wait and that no process drives, once a timer of them is due (S-12, E-37): the index says which, so that no run is
    /// looked at before.
    pub(crate) async fn fire_timers(self: Arc<Self>) {
        // Runs that could not be continued, each with the time of its timer: they are tried once.
        let mut failed: HashMap<String, i64> = HashMap::new();
        loop {
            tokio::time::sleep(TIMERS).await;
            let store = Arc::clone(&self.store);
            let due = tokio::task::spawn_blocking(move || due(&store)).await.unwrap_or_default();
            failed.retain(|id, at| due.iter().any(|(due, when)| due == id && when == at));
            for (id, at) in due {
                if self.room().is_err() {
                    break;
                }
                if failed.contains_key(&id) || self.lock().contains_key(&id) {
                    continue;
                }
                match self.continue_run(&id).await {
                    Ok(()) => self.host.observer.note(&format!("run {id} continues: a timer was due")),
                    Err(error) => {
                        let message =
                            format!("a timer of run {id} is due, and the run can't continue: {error}");
                        self.host.observer.warning(&message);
                        failed.insert(id, at);
                    }
                }
            }
        }
    }

    /// Continues a run, unless another process drives it.
    async fn continue_run(self: &Arc<Self>, id: &str) -> Result<(), Error> {
        let (host, id) = (self.host.clone(), id.to_owned());
        match tokio::task::spawn_blocking(move || host.lock(&id)).await {
            // Another process was faster.
            Ok(Err(error)) if error.is("run-driven") => Ok(()),
            Ok(Ok(run)) => self.go_on(run, &RunOptions::default()).await,
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::internal("the run could not be taken up")),
        }
    }

    /// Has all runs come to a stop (C-05): effects get a while to end, and every run can be resumed.
    pub(crate) async fn wind_down(&self) {
        self.closing.store(true, Ordering::Relaxed);
        let interrupt = || self.lock().values().for_each(|run| run.handle.stop().interrupt());
        interrupt();
        let all = async {
            loop {
                let ended = self.ended.notified();
                if self.lock().is_empty() {
                    return;
                }
                tokio::select! {
                    () = ended => {}
                    () = tokio::time::sleep(Duration::from_millis(50)) => {}
                }
            }
        };
        if tokio::time::timeout(WINDING_DOWN, all).await.is_err() {
            interrupt();
        }
    }

    /// Stops all runs at once.
    pub(crate) fn stop(&self) {
        self.lock().values().for_each(|run| run.handle.stop().interrupt());
    }
}

/// The runs that wait, that no process drives and of which a timer is due, each with its time.
fn due(store: &Store) -> Vec<(String, i64)> {
    let due = store.due_runs(SystemClock.now_ms()).unwrap_or_default();
    due.into_iter().filter(|(id, _)| !store.is_driven(id).unwrap_or(true)).collect()
}

/// The runs that a server drove and nobody drives now, the oldest first.
fn left(store: &Store) -> Vec<String> {
    let mut ids = Vec::new();
    for status in [StoredStatus::Running, StoredStatus::Waiting] {
        let mut after = None;
        loop {
            let page = RunsPage { status: Some(status), after, limit: PAGE, ..RunsPage::default() };
            let Ok(found) = store.page_of_runs(&page) else { break };
            let served = found.runs.sound.into_iter().filter(|info| RunOptions::stored(&info.options).served);
            ids.extend(
                served
                    .filter(|info| !store.is_driven(&info.id).unwrap_or(true))
                    .map(|info| (info.started_ms, info.id)),
            );
            after = found.next;
            if after.is_none() {
                break;
            }
        }
    }
    ids.sort();
    ids.into_iter().map(|(_, id)| id).collect()
}
