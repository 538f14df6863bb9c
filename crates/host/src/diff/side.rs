//! Two runs as their journals leave them; what both share is read once.

use crate::timeline::Timeline;
use selvedge_engine::{Record, State};
use selvedge_runtime::{LoadError, Reading};
use selvedge_store::{RunInfo, Store};
use serde::Serialize;
use std::slice;
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
    fn new(store: &Store, run: &str) -> Result<(Self, Reading), LoadError> {
        let reading = Reading::open(store, run)?;
        let (state, timeline) = (State::new(Arc::clone(reading.graph())), Timeline::new(reading.graph()));
        Ok((Self { info: store.run(run)?, state, timeline }, reading))
    }

    fn take(&mut self, record: &Record) {
        self.state.apply_record(record);
        self.timeline.events(&self.state, slice::from_ref(record));
    }

    fn read(&mut self, mut reading: Reading) -> Result<(), LoadError> {
        let next = self.state.events() + 1;
        reading.records(next, u64::MAX, |record| self.take(record))
    }
}

/// Reads two runs, by their ids, and says what they share.
///
/// # Errors
/// If one of them can't be read.
pub fn both(store: &Store, a: &str, b: &str) -> Result<(Side, Side, Option<Shared>), LoadError> {
    let shared = shared(store, a, b)?;
    let ((mut a, mut reading), (mut b, other)) = (Side::new(store, a)?, Side::new(store, b)?);
    if let Some(shared) = &shared {
        reading.records(1, shared.events, |record| {
            a.take(record);
            b.take(record);
        })?;
    }
    // The rest of each by itself, at the same time.
    let (read_a, read_b) = std::thread::scope(|scope| {
        let side = &mut b;
        let read_b = std::thread::Builder::new()
            .name("selvedge-diff".into())
            .spawn_scoped(scope, move || side.read(other));
        (a.read(reading), read_b.map(|thread| thread.join()))
    });
    read_a?;
    match read_b {
        Ok(Ok(read)) => read?,
        Ok(Err(panicked)) => std::panic::resume_unwind(panicked),
        // No thread to be had: one after the other.
        Err(_) => {
            let reading = Reading::open(store, &b.info.id)?;
            b.read(reading)?;
        }
    }
    Ok((a, b, shared))
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
