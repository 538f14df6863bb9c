//! A run that is folded once, for any number of forks of it.

use crate::error::Error;
use selvedge_engine::{Event, Graph, Record, Recording, Start, State};
use selvedge_runtime::{LoadError, Reading};
use selvedge_store::{RunInfo, Store, StoreError};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// How many states of a run are kept on its way: a fork folds the events behind the nearest one.
const KEPT: u64 = 64;
/// The fewest events between two of them.
const APART: u64 = 1024;

/// A run, as it is now, from which any number of forks may begin ([`Host::fork_of`](crate::Host::fork_of)). It may go on meanwhile: what it does from here on
/// is not looked at.
pub struct Forkable {
    pub(crate) dir: PathBuf,
    pub(crate) store: Arc<Store>,
    pub(crate) info: RunInfo,
    /// Its number of events.
    pub(crate) events: u64,
    /// What is wrong with those behind them, if it had more (E-44).
    pub(crate) damage: Option<String>,
    /// What it had begun with, as of its end.
    pub(crate) now: Start,
    /// The graph that it came to.
    pub(crate) graph: Arc<Graph>,
    /// What it has recorded.
    pub(crate) past: Arc<Recording>,
    /// Reads its journal, and knows what its own sources had recorded.
    pub(crate) reading: Reading,
    /// What it was on its way, in order.
    moments: Vec<State>,
    /// What it had begun with before it left its own sources, each with the last event of that.
    before: Vec<(u64, Start)>,
}

/// Which states of a run are kept, by their numbers of events, and whether damage behind the last of them is let be.
pub(super) struct Moments {
    pub(super) at: BTreeSet<u64>,
    pub(super) suffice: bool,
}

impl Forkable {
    /// The run's id.
    pub fn id(&self) -> &str {
        &self.info.id
    }

    /// How many events it has.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Folds a run, and keeps states on its way.
    pub(super) fn whole(dir: PathBuf, store: Arc<Store>, run: &str) -> Result<Self, Error> {
        Self::kept(dir, store, run, APART)
    }

    /// The same with states that are at least so many events apart.
    pub(super) fn kept(dir: PathBuf, store: Arc<Store>, run: &str, apart: u64) -> Result<Self, Error> {
        let events = store.last_event(run)?;
        let apart = usize::try_from((events / KEPT).max(apart)).unwrap_or(usize::MAX);
        let moments = Moments { at: (0..=events).step_by(apart).collect(), suffice: false };
        let run = Self::fold(dir, store, run, events, &moments)?;
        run.moments.last().into_iter().for_each(|moment| run.past.lay_out(moment));
        Ok(run)
    }

    /// Folds a run that has so many events. Whoever drives it goes on undisturbed. Of a damaged one, all that is before the damage is the
    /// run, if that suffices (E-44).
    pub(super) fn fold(
        dir: PathBuf,
        store: Arc<Store>,
        run: &str,
        events: u64,
        wanted: &Moments,
    ) -> Result<Self, Error> {
        let info = store.run(run)?;
        let mut reading = Reading::open(&store, run)?;
        let mut state = State::recording(Arc::clone(reading.graph()));
        let (mut moments, mut before) = (Vec::new(), Vec::new());
        let mut see = |state: &State, record: &Record| {
            if matches!(record.event, Event::Forked(_)) {
                before.push((state.events(), state.start().clone()));
            }
        };
        for at in &wanted.at {
            reading.fold(&mut state, *at, &mut see)?;
            moments.push(state.snapshot());
        }
        let (mut events, mut damage) = (events, None);
        match reading.fold(&mut state, events, see) {
            Err(LoadError::Store(found @ StoreError::DamagedRun { event: Some(bad), .. }))
                if wanted.suffice =>
            {
                (events, damage) = (bad.saturating_sub(1), Some(found.what()));
            }
            folded => folded?,
        }
        let (now, graph) = (state.start().clone(), Arc::clone(state.graph()));
        let past = Arc::new(state.past());
        Ok(Self { dir, store, info, events, damage, now, graph, past, reading, moments, before })
    }

    /// What it had begun with, as of an event.
    pub(super) fn start_at(&self, event: u64) -> &Start {
        let then = self.before.iter().find(|(last, _)| event <= *last);
        then.map_or(&self.now, |(_, start)| start)
    }

    /// The run as it was after so many events.
    pub(super) fn state_at(&self, events: u64) -> Result<State, Error> {
        let near = self.moments.iter().rev().find(|moment| moment.events() <= events);
        self.gone_on(near.cloned(), events)
    }

    /// The same for the only fork of it, which needs no state that is kept after that.
    pub(super) fn left_at(&mut self, events: u64) -> Result<State, Error> {
        let mut near = std::mem::take(&mut self.moments);
        near.retain(|moment| moment.events() <= events);
        self.gone_on(near.pop(), events)
    }

    fn gone_on(&self, near: Option<State>, events: u64) -> Result<State, Error> {
        let mut state = near.unwrap_or_else(|| State::new(Arc::clone(self.reading.graph())));
        if state.events() < events {
            self.reading.clone().fold(&mut state, events, |_, _| {})?;
        }
        Ok(state)
    }
}
