//! Two runs as their journals leave them; what both share is read once.

use crate::timeline::{Followed, Timeline};
use selvedge_engine::State;
use selvedge_runtime::{LoadError, Reading};
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
    fn read(store: &Store, mut reading: Reading, run: &str, mut shared: Followed) -> Result<Self, LoadError> {
        let next = shared.state.events() + 1;
        reading.records(next, u64::MAX, |record| shared.take(record))?;
        let Followed { state, timeline } = shared;
        Ok(Self { info: store.run(run)?, state, timeline })
    }
}

/// Reads two runs, by their ids, and says what they share.
///
/// # Errors
/// If one of them can't be read.
pub fn both(store: &Store, a: &str, b: &str) -> Result<(Side, Side, Option<Shared>), LoadError> {
    let shared = shared(store, a, b)?;
    let (mut from_a, mut from_b) = (Reading::open(store, a)?, Reading::open(store, b)?);
    let (begun_a, begun_b) = match &shared {
        None => (Followed::new(from_a.graph()), Followed::new(from_b.graph())),
        Some(shared) => {
            // One of them is a fork: it has to know what the rest of its source recorded.
            let mut begun = Followed::from(State::recording(Arc::clone(from_a.graph())));
            from_a.records(1, shared.events, |record| begun.take(record))?;
            from_a = from_a.begun(begun.state.clone());
            from_b = from_b.begun(begun.state.clone());
            begun.state = begun.state.snapshot();
            (begun.clone(), begun)
        }
    };
    // The rest of each by itself, at the same time.
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
    Ok((read_a?, read_b?, shared))
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
