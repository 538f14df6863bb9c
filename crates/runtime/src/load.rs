//! From a stored journal back to a state: the whole of recovery is this fold (E-03, E-05).

use crate::ahead::ahead;
use crate::ports::Model;
use selvedge_engine::{
    EDITION, EffectId, Event, Graph, Input, ModelRequest, Record, Recording, Request, Start, State,
};
use selvedge_store::{Entry, RunInfo, Store, StoreError};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Why a run could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An event or graph that this binary can't read.
    #[error("run {run}: {what} can't be read: {cause}; a newer Selvedge may have written it")]
    Unreadable {
        /// The run.
        run: String,
        /// Which part.
        what: String,
        /// Why.
        cause: String,
    },
    /// A run whose events mean something that this binary does not know (E-42).
    #[error(
        "run {run} was recorded by a newer version: its events are of edition {edition}, and this version knows those up to {EDITION}"
    )]
    Newer {
        /// The run.
        run: String,
        /// Its edition.
        edition: u32,
    },
}

/// A run as its journal leaves it.
#[derive(Debug)]
pub struct Loaded {
    /// Its row in the index.
    pub info: RunInfo,
    /// Its state.
    pub state: State,
}

/// The compiled graph that a run names by hash (E-05): the one it was started with, a fork's own if it has one.
///
/// # Errors
/// If the store has no readable graph for it.
pub fn graph_of(store: &Store, info: &RunInfo) -> Result<Arc<Graph>, LoadError> {
    let hash = info.graph.ok_or_else(|| unreadable(&info.id, "its compiled graph", "the run names none"))?;
    graph_at(store, &info.id, &hash.to_string())
}

fn graph_at(store: &Store, run: &str, hash: &str) -> Result<Arc<Graph>, LoadError> {
    let bytes = store.get_blob(hash.parse()?).map_err(|error| match error {
        // It belongs to a run, and so does the damage (E-44).
        StoreError::Damaged { .. } | StoreError::UnknownBlob { .. } => {
            store.damaged_run(run, &format!("its compiled graph: {}", error.what()))
        }
        error => error,
    })?;
    let graph = recorded(&bytes);
    Ok(Arc::new(graph.map_err(|error| unreadable(run, "its compiled graph", &error.to_string()))?))
}

/// Reads JSON that a run has written: as deep as values and graphs are, with what is around them. How deep values are
/// was limited when they came (`json_nesting`, E-28).
///
/// # Errors
/// If it is not what was expected.
pub fn recorded<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

fn unreadable(run: &str, what: &str, cause: &str) -> LoadError {
    LoadError::Unreadable { run: run.into(), what: what.into(), cause: cause.into() }
}

/// Reads the events of a stored journal, and with them what they only name: the graph that a run begins with, and
/// for a fork what its sources had recorded (E-19).
#[derive(Clone, Debug)]
pub struct Reading {
    store: Store,
    run: String,
    graph: Arc<Graph>,
    pasts: Pasts,
    /// What its sources begin with, folded to keep what they record.
    begun: Option<Box<State>>,
}

/// What runs had recorded after so many events.
type Pasts = BTreeMap<(String, u64), Arc<Recording>>;

impl Reading {
    /// Begins to read the journal of `run`.
    ///
    /// # Errors
    /// If it is not there, or does not begin with a graph that can be read.
    pub fn open(store: &Store, run: &str) -> Result<Self, LoadError> {
        let info = store.run(run)?;
        let start = beginning(store, run)?;
        let graph = match (&info.fork, start) {
            (None, _) => graph_of(store, &info)?,
            // A fork's journal begins with its source's graph, whichever it came to.
            (Some(_), Some(start)) => graph_at(store, run, &start.graph)?,
            (Some(_), None) => return Err(unreadable(run, "event 1", "it is no beginning")),
        };
        Ok(Self { store: store.clone(), run: run.to_owned(), graph, pasts: Pasts::new(), begun: None })
    }

    /// Begins to read the journal of another run of the same store, and knows already what this one has found of their sources.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn then(self, run: &str) -> Result<Self, LoadError> {
        Ok(Self { pasts: self.pasts, ..Self::open(&self.store, run)? })
    }

    /// The sources of the run begin with the events that `state` has folded, which is one of [`State::recording`]: they are not folded
    /// again to find what was recorded.
    #[must_use]
    pub fn begun(self, state: State) -> Self {
        Self { begun: Some(Box::new(state)), ..self }
    }

    /// The run whose journal it reads.
    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    /// Where that is stored.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The graph with which the journal begins: [`State::new`] takes it. A fork may change it later.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The event of an entry, whole.
    ///
    /// # Errors
    /// If it, or what it names, can't be read.
    pub fn event(&mut self, entry: &Entry) -> Result<Event, LoadError> {
        let mut event = parsed(&self.run, entry)?;
        self.complete(&mut event)?;
        Ok(event)
    }

    /// Folds the events behind those that `state` has, up to event `until`, into it; `see` is shown each before it is applied.
    ///
    /// # Errors
    /// If one can't be read: `state` is then what the events before it leave.
    pub fn fold(
        &mut self,
        state: &mut State,
        until: u64,
        mut see: impl FnMut(&State, &Record),
    ) -> Result<(), LoadError> {
        let next = state.events() + 1;
        self.each(next, until, |reading, mut record| {
            let source = state.is_recording().then_some(&mut *state);
            reading.complete_after(source, &mut record.event)?;
            see(state, &record);
            state.apply_record(&record);
            Ok(())
        })
    }

    /// Hands over the records of the events `from` to `until`, whole and in order: for who folds them into more than one state, or
    /// looks at the state behind each.
    ///
    /// # Errors
    /// If one can't be read: those before it were handed over.
    pub fn records(&mut self, from: u64, until: u64, mut each: impl FnMut(&Record)) -> Result<(), LoadError> {
        self.each(from, until, |reading, mut record| {
            reading.complete(&mut record.event)?;
            each(&record);
            Ok(())
        })
    }

    fn each(
        &mut self,
        from: u64,
        until: u64,
        mut each: impl FnMut(&mut Self, Record) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let (store, run) = (self.store.clone(), self.run.clone());
        let decode = |entry: Entry| parsed(&run, &entry).map(|event| Record { at: entry.at_ms, event });
        // What comes behind them may be damaged (E-44).
        let journal = store.journal(&run, from)?.until(until);
        ahead(journal, decode, |records| {
            for read in records {
                each(self, read?)?;
            }
            Ok(())
        })
    }

    /// Finds out what the sources of a fork had recorded: all of them in one go, however many they are.
    fn foresee(&mut self) -> Result<(), LoadError> {
        let Some(point) = self.store.run(&self.run)?.fork else { return Ok(()) };
        let entry = self.store.journal(&self.run, point.events + 1)?.next().transpose()?;
        if let Some(Event::Forked(fork)) = entry.map(|entry| parsed(&self.run, &entry)).transpose()? {
            self.past(&fork.source, fork.events)?;
        }
        Ok(())
    }

    /// Adds to an event what it only names.
    pub(crate) fn complete(&mut self, event: &mut Event) -> Result<(), LoadError> {
        self.complete_after(None, event)
    }

    /// The same. `source`: the state before it, if that knows what it has recorded: it is then that of the source, where the source had no
    /// more events.
    fn complete_after(&mut self, source: Option<&mut State>, event: &mut Event) -> Result<(), LoadError> {
        let Event::Forked(fork) = event else { return Ok(()) };
        let at = (fork.source.to_string(), fork.events);
        let ends = source.filter(|source| source.events() == fork.events);
        fork.past = Some(match (self.pasts.get(&at), ends) {
            (Some(past), _) => Arc::clone(past),
            (None, Some(source)) => {
                let past = Arc::new(source.take_past());
                self.pasts.insert(at, Arc::clone(&past));
                past
            }
            (None, None) => {
                self.foresee()?;
                self.past(&fork.source, fork.events)?
            }
        });
        if let Some(hash) = &fork.graph {
            fork.compiled = Some(graph_at(&self.store, &self.run, hash)?);
        }
        Ok(())
    }

    /// What a run had recorded after so many events. The sources of forks come first, however long their chain is; those that had no more
    /// events than a fork shares are folded with it, and what two of them share is folded once.
    fn past(&mut self, run: &str, events: u64) -> Result<Arc<Recording>, LoadError> {
        let wanted = (run.to_owned(), events);
        let mut chain = vec![(wanted.clone(), u64::MAX)];
        let (mut run, mut events, mut shared) = (wanted.0.clone(), wanted.1, u64::MAX);
        while let Some(point) = self.store.run(&run)?.fork.filter(|point| point.events < events) {
            let n = point.events + 1;
            let entry = self.store.journal(&run, n)?.next().transpose()?;
            let Some(Event::Forked(fork)) = entry.as_ref().map(|entry| parsed(&run, entry)).transpose()?
            else {
                return Err(unreadable(&run, &format!("event {n}"), "a fork begins with another event"));
            };
            (run, events, shared) = (point.run, fork.events, shared.min(point.events));
            let at = (run.clone(), events);
            if self.pasts.contains_key(&at) {
                break;
            }
            if events > point.events {
                chain.push((at, shared));
            }
        }
        // The first one to fold is the last one here: each is folded on from what all that come behind it share.
        let mut begun = self.begun.take().map(|begun| *begun);
        while let Some((at, shared)) = chain.pop() {
            if !self.pasts.contains_key(&at) {
                let shared = Some(shared).filter(|_| !chain.is_empty());
                let past = Arc::new(self.recorded(&at.0, at.1, shared, &mut begun)?);
                self.pasts.insert(at, past);
            }
        }
        self.pasts.get(&wanted).cloned().ok_or_else(|| unreadable(&wanted.0, "its past", "it has none"))
    }

    /// Folds a run from where `begun` has come to, which becomes what it is after the `shared` events; what is known of its own sources is known
    /// to this reading, too, and what it comes by is.
    fn recorded(
        &mut self,
        run: &str,
        events: u64,
        shared: Option<u64>,
        begun: &mut Option<State>,
    ) -> Result<Recording, LoadError> {
        let usable = begun.take().filter(|begun| begun.events() <= events.min(shared.unwrap_or(events)));
        let (mut reading, mut state) = match usable {
            // They begin with the same graph.
            Some(begun) => (Self { run: run.to_owned(), ..self.bare() }, begun),
            None => {
                let reading = Reading::open(&self.store, run)?;
                let state = State::recording(Arc::clone(&reading.graph));
                (reading, state)
            }
        };
        reading.pasts = std::mem::take(&mut self.pasts);
        let mut fold = || {
            if let Some(shared) = shared.filter(|shared| *shared <= events) {
                reading.fold(&mut state, shared, |_, _| {})?;
                *begun = Some(state.clone());
            }
            reading.fold(&mut state, events, |_, _| {})
        };
        let folded = fold();
        self.pasts = reading.pasts;
        folded?;
        Ok(state.past())
    }

    /// A reading that knows nothing of any source.
    fn bare(&self) -> Self {
        let (store, run, graph) = (self.store.clone(), self.run.clone(), Arc::clone(&self.graph));
        Self { store, run, graph, pasts: Pasts::new(), begun: None }
    }
}

/// What a run had recorded after its first `events` events, for a fork of it (E-29).
///
/// # Errors
/// If the run is not there or can't be read.
pub fn past(store: &Store, run: &str, events: u64) -> Result<Arc<Recording>, LoadError> {
    Reading::open(store, run)?.past(run, events)
}

/// What a run began with; `None` while its journal is empty, and if a bug ended it before it began (E-17).
///
/// # Errors
/// If it can't be read, or means what this binary does not know (E-42).
pub fn beginning(store: &Store, run: &str) -> Result<Option<Box<Start>>, LoadError> {
    let Some(first) = store.journal(run, 1)?.next().transpose()? else { return Ok(None) };
    match parsed(run, &first)? {
        Event::Started(start) if start.edition > EDITION => {
            Err(LoadError::Newer { run: run.to_owned(), edition: start.edition })
        }
        Event::Started(start) => Ok(Some(start)),
        _ => Ok(None),
    }
}

pub(crate) fn parsed(run: &str, entry: &Entry) -> Result<Event, LoadError> {
    recorded(entry.json.as_bytes())
        .map_err(|error| unreadable(run, &format!("event {}", entry.n), &error.to_string()))
}

/// Loads a run up to event `until`, or whole. A model that counts requests is told of those that were made (C-07).
///
/// # Errors
/// If the run is not there or can't be read.
pub fn load(
    store: &Store,
    run: &str,
    until: Option<u64>,
    model: Option<&dyn Model>,
) -> Result<Loaded, LoadError> {
    let info = store.run(run)?;
    let mut reading = Reading::open(store, run)?;
    let mut state = State::new(Arc::clone(reading.graph()));
    let mut count = Count::new(run, model, info.fork.as_ref().map(|point| point.events + 1));
    reading.fold(&mut state, until.unwrap_or(u64::MAX), |state, record| count.see(state, &record.event))?;
    Ok(Loaded { info, state })
}

/// A fold that tells a model which requests the run has made (C-07's `nth`). Those in flight at the end are left to
/// whoever sends them again.
pub struct Count<'m> {
    run: String,
    model: Option<&'m dyn Model>,
    /// The event with which the run left its source: what came before counts only if it has retired, as the
    /// rest is asked, or recalled, again.
    forked: Option<u64>,
    held: Vec<ModelRequest>,
    /// Requested since the last input: not sent yet.
    unsent: BTreeSet<EffectId>,
}

impl<'m> Count<'m> {
    /// Counts for `model`, if there is one; `forked` is the number of the event with which a fork begins.
    pub fn new(run: &str, model: Option<&'m dyn Model>, forked: Option<u64>) -> Self {
        let model = model.filter(|model| model.counts());
        Self { run: run.to_owned(), model, forked, held: Vec::new(), unsent: BTreeSet::new() }
    }

    /// Whether its model wants to know.
    pub fn counts(&self) -> bool {
        self.model.is_some()
    }

    /// Sees an event before it is applied to `state`.
    pub fn see(&mut self, state: &State, event: &Event) {
        if self.model.is_none() {
            return;
        }
        if self.forked == Some(state.events() + 1) {
            self.forked = None;
            let anew = matches!(event, Event::Forked(fork) if fork.graph.is_some());
            let retired: BTreeSet<Arc<str>> =
                state.node_views().filter(|view| view.retired).map(|view| Arc::clone(view.node)).collect();
            let held = std::mem::take(&mut self.held);
            for request in held.into_iter().filter(|request| !anew && retired.contains(&request.node)) {
                self.count(request);
            }
            return;
        }
        match event {
            Event::Completed { effect, .. } => self.ended(state, std::iter::once(effect.clone())),
            Event::Reused { .. } => {
                if let Some(request) = state.recalled(event) {
                    self.count(request);
                }
            }
            Event::Requested { effect, .. } | Event::Retried { effect, .. } => {
                self.unsent.insert(effect.clone());
            }
            // What is in flight comes to nothing. It was sent, unless it was requested in the turn that ends it.
            Event::Resumed { .. } | Event::Poisoned { .. } | Event::Spliced { .. } => {
                let flying: Vec<EffectId> = state.pending().keys().cloned().collect();
                self.ended(state, flying.into_iter());
            }
            Event::Ended { .. } => {
                let sent = |effect: &&EffectId| !self.unsent.contains(*effect);
                let flying: Vec<EffectId> = state.pending().keys().filter(sent).cloned().collect();
                self.ended(state, flying.into_iter());
            }
            _ => {}
        }
        if event.is_input() {
            self.unsent.clear();
        }
    }

    fn ended(&mut self, state: &State, effects: impl Iterator<Item = EffectId>) {
        for effect in effects {
            // What could not be put together, which is what poisoned the run (E-17), was not asked.
            let request = catch_unwind(AssertUnwindSafe(|| state.request(&effect)));
            if let Ok(Some(Request::Model(request))) = request {
                self.count(request);
            }
        }
    }

    fn count(&mut self, request: ModelRequest) {
        match self.model {
            Some(_) if self.forked.is_some() => self.held.push(request),
            Some(model) => model.recorded(&request, &self.run),
            None => {}
        }
    }
}

/// What a driver says first about effects that were in flight when an earlier process died: a write may
/// have happened, everything else is simply dispatched again (E-05).
pub(crate) fn losses(state: &State) -> Vec<Input> {
    let pending = state.pending_in_order().into_iter();
    let writes = pending.filter(|(_, row)| row.effects == selvedge_engine::Effects::Write);
    writes.map(|(effect, _)| Input::Lose(effect.clone())).collect()
}
