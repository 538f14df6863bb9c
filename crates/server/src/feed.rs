//! A run's events for all who watch it (S-04): its journal is read once, whoever drives it, and the watchers share what was read.
//! Each takes it at its own pace; nothing waits for one that is slow.

use bytes::Bytes;
use selvedge_engine::State;
use selvedge_host::report;
use selvedge_http::Secret;
use selvedge_runtime::{LoadError, graph_of};
use selvedge_store::{RunStatus, Store, StoreError};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, broadcast, watch};

/// Events that are read, and kept, together.
const CHUNK: u64 = 256;
/// Bytes of events that are kept of a run.
const KEPT: usize = 8 * 1024 * 1024;
/// Deltas that a watcher may be behind; what it misses of them nobody keeps.
const DELTAS: usize = 256;
/// How often it is looked for events of a run that another process drives, and of one that nobody does.
const DRIVEN: Duration = Duration::from_millis(100);
const ALONE: Duration = Duration::from_secs(1);

/// The runs that are watched.
pub(crate) struct Feeds {
    store: Arc<Store>,
    secrets: Arc<[Secret]>,
    feeds: Mutex<HashMap<String, Weak<Feed>>>,
}

/// A run that is watched.
pub(crate) struct Feed {
    store: Arc<Store>,
    secrets: Arc<[Secret]>,
    run: String,
    /// Any state of the run's graph, for names.
    names: State,
    standing: watch::Sender<Standing>,
    chunks: tokio::sync::Mutex<Chunks>,
    deltas: broadcast::Sender<Bytes>,
    /// There are new events, says who drives the run here.
    news: Notify,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The number of its last event.
    pub(crate) events: u64,
    pub(crate) status: RunStatus,
    pub(crate) driven: bool,
}

/// Events as they are sent, by [`CHUNK`]s.
#[derive(Default)]
struct Chunks {
    known: BTreeMap<u64, Vec<Bytes>>,
    bytes: usize,
}

impl Standing {
    fn of(store: &Store, run: &str) -> Result<Self, StoreError> {
        // In this order: what was driven a moment ago has its last events.
        let driven = store.is_driven(run).unwrap_or(true);
        let events = store.last_event(run)?;
        Ok(Self { events, status: store.run(run)?.status, driven })
    }

    /// What watchers are told of it.
    pub(crate) fn frame(self) -> Bytes {
        let Self { events, status, driven } = self;
        let data = json!({"status": status.as_str(), "driven": driven, "events": events});
        Bytes::from(format!("event: standing\ndata: {data}\n\n"))
    }
}

impl Feeds {
    pub(crate) fn new(store: Arc<Store>, secrets: Vec<Secret>) -> Self {
        Self { store, secrets: secrets.into(), feeds: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The feed of a run, which begins with its first watcher and ends with its last. It reads the store.
    ///
    /// # Errors
    /// There is no such run, or it can't be read.
    pub(crate) fn feed(&self, run: &str, runtime: &tokio::runtime::Handle) -> Result<Arc<Feed>, LoadError> {
        if let Some(feed) = self.watched(run) {
            return Ok(feed);
        }
        let info = self.store.run(run)?;
        let names = State::new(graph_of(&self.store, &info)?);
        let standing = Standing::of(&self.store, run)?;
        let mut feeds = self.lock();
        if let Some(feed) = feeds.get(run).and_then(Weak::upgrade) {
            return Ok(feed);
        }
        let feed = Arc::new(Feed {
            store: Arc::clone(&self.store),
            secrets: Arc::clone(&self.secrets),
            run: run.to_owned(),
            names,
            standing: watch::Sender::new(standing),
            chunks: tokio::sync::Mutex::default(),
            deltas: broadcast::Sender::new(DELTAS),
            news: Notify::new(),
        });
        feeds.retain(|_, feed| feed.strong_count() > 0);
        feeds.insert(run.to_owned(), Arc::downgrade(&feed));
        runtime.spawn(look(Arc::downgrade(&feed)));
        Ok(feed)
    }

    /// The feed of a run, if somebody watches it.
    pub(crate) fn watched(&self, run: &str) -> Option<Arc<Feed>> {
        self.lock().get(run).and_then(Weak::upgrade)
    }
}

/// Looks for what is new, as long as somebody watches.
async fn look(feed: Weak<Feed>) {
    loop {
        let Some(watched) = feed.upgrade() else { return };
        let (store, run) = (Arc::clone(&watched.store), watched.run.clone());
        let standing = tokio::task::spawn_blocking(move || Standing::of(&store, &run)).await;
        // What can't be read now is tried again; who asks for events is told.
        if let Ok(Ok(standing)) = standing {
            watched.standing.send_if_modified(|known| {
                let changed = *known != standing;
                *known = standing;
                changed
            });
        }
        let pause = if watched.standing.borrow().driven { DRIVEN } else { ALONE };
        let news = watched.news.notified();
        tokio::select! {
            () = news => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

impl Feed {
    /// Where the run stands, and from when on that changes.
    pub(crate) fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// Pieces of replies from now on, as they are sent.
    pub(crate) fn deltas(&self) -> broadcast::Receiver<Bytes> {
        self.deltas.subscribe()
    }

    /// Events behind that one, as they are sent: some of them at least, if there are any.
    ///
    /// # Errors
    /// If they can't be read.
    pub(crate) async fn frames(self: &Arc<Self>, after: u64) -> Result<Vec<Bytes>, LoadError> {
        let (chunk, skip) = (after / CHUNK, usize::try_from(after % CHUNK).unwrap_or_default());
        // Who is first reads; the others wait, and find what was read.
        let mut chunks = self.chunks.lock().await;
        let have = chunks.known.get(&chunk).map_or(0, Vec::len);
        if have <= skip {
            let from = chunk * CHUNK + have as u64 + 1;
            let feed = Arc::clone(self);
            let read = tokio::task::spawn_blocking(move || feed.read(from, (chunk + 1) * CHUNK)).await;
            let read = read.unwrap_or_else(|_| Ok(Vec::new()))?;
            chunks.add(chunk, read);
        }
        let frames = chunks.known.get(&chunk).and_then(|frames| frames.get(skip..));
        Ok(frames.unwrap_or_default().to_vec())
    }

    /// Reads events.
    fn read(&self, from: u64, to: u64) -> Result<Vec<Bytes>, LoadError> {
        let entries = self.store.journal(&self.run, from)?.until(to);
        entries.map(|entry| self.frame(&entry?)).collect()
    }

    fn frame(&self, entry: &selvedge_store::Entry) -> Result<Bytes, LoadError> {
        let object = report::event(&self.names, entry).map_err(|error| LoadError::Unreadable {
            run: self.run.clone(),
            what: format!("event {}", entry.n),
            cause: error.to_string(),
        })?;
        let data = self.shown(&object);
        Ok(Bytes::from(format!("id: {}\ndata: {data}\n\n", entry.n)))
    }

    /// Tells of a piece of a reply.
    pub(crate) fn tell(&self, delta: &Value) {
        if self.deltas.receiver_count() > 0 {
            let data = self.shown(delta);
            let _ = self.deltas.send(Bytes::from(format!("event: delta\ndata: {data}\n\n")));
        }
    }

    fn shown(&self, value: &Value) -> String {
        // JSON has its line breaks escaped, so that it is one line of the stream.
        report::escaped(&report::redacted(&value.to_string(), &self.secrets)).into_owned()
    }

    /// Says that there is something new.
    pub(crate) fn new_events(&self) {
        self.news.notify_one();
    }

    /// What people call the node of an effect.
    pub(crate) fn node_of(&self, effect: &str) -> String {
        self.names.told_name(&report::name_of(effect)).into_owned()
    }
}

impl Chunks {
    fn add(&mut self, chunk: u64, frames: Vec<Bytes>) {
        self.bytes += frames.iter().map(Bytes::len).sum::<usize>();
        self.known.entry(chunk).or_default().extend(frames);
        // Those that most are done with go first.
        while self.bytes > KEPT
            && let Some(first) = self.known.first_key_value().map(|(first, _)| *first)
            && first != chunk
            && let Some(gone) = self.known.remove(&first)
        {
            self.bytes -= gone.iter().map(Bytes::len).sum::<usize>();
        }
    }
}
