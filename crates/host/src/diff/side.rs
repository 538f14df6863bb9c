//! Two runs as their journals leave them; what both share is read once.

use crate::timeline::{Followed, Timeline};
use selvedge_engine::{Event, Recording, State};
use selvedge_runtime::{LoadError, Reading, recorded};
use selvedge_store::{RunInfo, Store};
use serde::Serialize;
use std::sync::Arc;

/// One of the two runs.
pub struct Side {
    /// Its row in the index.
    pub info: RunInfo,
    /// Its state.
    pub state: State,
    /// What happened in it.
    pub timeline: Timeline,
}

/// The events that two runs have in common: the same lines of one journal (E-19).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shared {
    /// The run that recorded the last of them.
    pub run: String,
    /// How many they are.
    pub events: u64,
}

impl Side {
    /// The run, folded on from what both begin with.
    fn read(store: &Store, mut reading: Reading, run: &str, mut begun: Followed) -> Result<Self, LoadError> {
        let next = begun.state.events() + 1;
        reading.records(next, u64::MAX, |record| begun.take(record))?;
        let Followed { state, timeline } = begun;
        Ok(Self { info: store.run(run)?, state, timeline })
    }

    /// The same of the source of a fork, and what it had recorded after `events`, which the fork has to know.
    fn source(
        mut reading: Reading,
        run: (&Store, &str),
        mut begun: Followed,
        events: u64,
    ) -> Result<(Self, Recording), LoadError> {
        reading.records(begun.state.events() + 1, events, |record| begun.take(record))?;
        let (store, id) = run;
        // Where the fork begins from its end, nobody asks it for that again.
        let past = match store.last_event(id)? > events {
            true => begun.state.clone().past(),
            false => begun.state.take_past(),
        };
        Ok((Self::read(store, reading, id, begun)?, past))
    }
}

/// Reads two runs, by their ids, and says what they share.
///
/// # Errors
/// If one of them can't be read.
pub fn both(store: &Store, a: &str, b: &str) -> Result<(Side, Side, Option<Shared>), LoadError> {
    let shared = shared(store, a, b)?;
    let (from_a, from_b) = (Reading::open(store, a)?, Reading::open(store, b)?);
    let (read_a, read_b) = match &shared {
        Some(shared) if shared.run == b && a != b => {
            let (b, a) = source_and_fork(store, (from_b, b), (from_a, a), shared)?;
            (a, b)
        }
        Some(shared) if shared.run == a && a != b => {
            source_and_fork(store, (from_a, a), (from_b, b), shared)?
        }
        _ => side_by_side(store, (from_a, a), (from_b, b), shared.as_ref())?,
    };
    Ok((read_a, read_b, shared))
}

/// Reads a run and a fork of it, or of a fork of it: what the source had recorded is found on the way.
fn source_and_fork(
    store: &Store,
    (mut source, of): (Reading, &str),
    (fork, run): (Reading, &str),
    shared: &Shared,
) -> Result<(Side, Side), LoadError> {
    let mut begun = Followed::from(State::recording(Arc::clone(source.graph())));
    source.records(1, shared.events, |record| begun.take(record))?;
    let begun_fork = Followed { state: begun.state.snapshot(), timeline: begun.timeline.clone() };
    let left = store.journal(run, shared.events + 1)?.next().transpose()?;
    let left = left.and_then(|entry| match recorded(entry.json.as_bytes()) {
        Ok(Event::Forked(fork)) if *fork.source == *of => Some(fork.events),
        _ => None,
    });
    // Whoever has no such event can't be read either, and is told why.
    let events = left.filter(|events| *events >= shared.events).unwrap_or(shared.events);
    let (source, past) = Side::source(source, (store, of), begun, events)?;
    let fork = fork.knowing(of, events, past);
    Ok((source, Side::read(store, fork, run, begun_fork)?))
}

/// Reads two runs of which neither is a fork of the other: the rest of each by itself, at the same time.
fn side_by_side(
    store: &Store,
    (mut from_a, a): (Reading, &str),
    (mut from_b, b): (Reading, &str),
    shared: Option<&Shared>,
) -> Result<(Side, Side), LoadError> {
    let (begun_a, begun_b) = match shared {
        None => (Followed::new(from_a.graph()), Followed::new(from_b.graph())),
        Some(shared) => {
            // Each has to know what the rest of its source recorded.
            let mut begun = Followed::from(State::recording(Arc::clone(from_a.graph())));
            from_a.records(1, shared.events, |record| begun.take(record))?;
            from_a = from_a.begun(begun.state.clone());
            from_b = from_b.begun(begun.state.clone());
            begun.state = begun.state.snapshot();
            (begun.clone(), begun)
        }
    };
    let (read_a, read_b) = std::thread::scope(|scope| {
        let (reading, begun) = (from_b.clone(), begun_b.clone());
        let read_b = std::thread::Builder::new()
            .name("selvedge-diff".into())
            .spawn_scoped(scope, move || Side::read(store, reading, b, begun));
        (Side::read(store, from_a, a, begun_a), read_b.map(|thread| thread.join()))
    });
    let read_b = match read_b {
        Ok(Ok(read)) => read,
        Ok(Err(panicked)) => std::panic::resume_unwind(panicked),
        // No thread to be had: one after the other.
        Err(_) => Side::read(store, from_b, b, begun_b),
    };
    Ok((read_a?, read_b?))
}

/// The beginning that two journals have in common, as one of the runs is a fork of the other, or both are of a third one.
fn shared(store: &Store, a: &str, b: &str) -> Result<Option<Shared>, LoadError> {
    let (chain_a, chain_b) = (chain(store, a)?, chain(store, b)?);
    let common = chain_a.iter().find_map(|(run, events)| {
        let (_, other) = chain_b.iter().find(|(known, _)| known == run)?;
        Some((run.clone(), (*events).min(*other)))
    });
    let Some((run, events)) = common else { return Ok(None) };
    let events = events.min(store.last_event(&run)?);
    Ok((events > 0).then_some(Shared { run, events }))
}

/// A run and those that it is a fork of, each with how many of its events it shares.
fn chain(store: &Store, run: &str) -> Result<Vec<(String, u64)>, LoadError> {
    let mut chain = vec![(run.to_owned(), u64::MAX)];
    let mut at = store.run(run)?;
    let mut least = u64::MAX;
    while let Some(point) = at.fork.take() {
        least = least.min(point.events);
        at = store.run(&point.run)?;
        chain.push((point.run, least));
    }
    Ok(chain)
}
