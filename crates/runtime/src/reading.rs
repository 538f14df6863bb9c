//! Reading the journal of a run with what its events only name: graphs, and what the sources of forks had recorded (E-05, E-19).

use crate::ahead::ahead;
use crate::graphs;
use crate::recorded::{LoadError, beginning, graph_of, parsed, unreadable};
use selvedge_engine::{Event, Graph, Record, Recording, State};
use selvedge_store::{Entry, Store};
use std::collections::BTreeMap;
use std::sync::Arc;

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
            (Some(_), Some(start)) => graphs::of(store, run, &start.graph)?,
            (Some(_), None) => return Err(unreadable(run, "event 1", "it is no beginning")),
        };
        Ok(Self { store: store.clone(), run: run.to_owned(), graph, pasts: Pasts::new(), begun: None })
    }

    /// It is known already what a run had recorded after so many events.
    #[must_use]
    pub fn knowing(mut self, run: &str, events: u64, past: Recording) -> Self {
        self.pasts.insert((run.to_owned(), events), Arc::new(past));
        self
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
            reading.complete_after(state, &mut record.event)?;
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
    fn complete(&mut self, event: &mut Event) -> Result<(), LoadError> {
        let Event::Forked(fork) = event else { return Ok(()) };
        let known = self.pasts.get(&(fork.source.to_string(), fork.events)).cloned();
        fork.past = Some(match known {
            Some(past) => past,
            None => {
                self.foresee()?;
                self.past(&fork.source, fork.events)?
            }
        });
        if let Some(hash) = &fork.graph {
            fork.compiled = Some(graphs::of(&self.store, &self.run, hash)?);
        }
        Ok(())
    }

    /// The same of the event behind a state: if that knows what it has recorded, it is what the source had, where the source had no more
    /// events.
    pub(crate) fn complete_after(&mut self, state: &mut State, event: &mut Event) -> Result<(), LoadError> {
        if let Event::Forked(fork) = event
            && state.is_recording()
            && state.events() == fork.events
        {
            let at = (fork.source.to_string(), fork.events);
            self.pasts.entry(at).or_insert_with(|| Arc::new(state.take_past()));
        }
        self.complete(event)
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
