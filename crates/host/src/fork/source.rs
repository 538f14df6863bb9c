//! The run that is forked: folded once, for all that a fork has to know of it.

use super::edits::Edits;
use crate::error::Error;
use crate::tools::Pins;
use crate::ways::WayOut;
use selvedge_engine::{Event, Graph, Outcome, Place, Recording, Start, State};
use selvedge_runtime::{LoadError, Reading};
use selvedge_store::{RunInfo, Store, StoreError};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A run that is forked, as it is now. It may go on meanwhile: what it does from here on is not looked at.
pub(crate) struct Source {
    pub(crate) dir: PathBuf,
    pub(crate) store: Arc<Store>,
    pub(crate) info: RunInfo,
    /// Its number of events.
    pub(crate) events: u64,
    /// What is wrong with those behind them, if it had more (E-44).
    pub(crate) damage: Option<String>,
    /// The last event that the fork shares with it, but for what edits say.
    pub(crate) at: u64,
    /// What it had begun with, as of that event.
    pub(crate) then: Start,
    /// The same as of its end.
    pub(crate) now: Start,
    /// The graph that it came to.
    pub(crate) graph: Arc<Graph>,
    /// What it has recorded.
    pub(crate) past: Arc<Recording>,
    /// The edited messages.
    pub(crate) edits: Edits,
    /// Reads its journal, and knows what its own sources had recorded.
    pub(crate) reading: Reading,
}

impl Source {
    /// Folds the run. Whoever drives it goes on undisturbed. Of a damaged one, all that is before the damage is the run, if
    /// that is what is to be forked (E-44).
    ///
    /// # Errors
    /// There is no such event, or `messages` are none that can be edited: those of the document (`anew` has another one)
    /// or of models and tools, each with its event's number.
    pub(crate) fn fold(
        dir: PathBuf,
        store: Arc<Store>,
        run: &str,
        at: Option<u64>,
        messages: &[(u64, String)],
        anew: bool,
    ) -> Result<Self, Error> {
        let mut events = store.last_event(run)?;
        let info = store.run(run)?;
        let last = at.unwrap_or(events);
        if !(1..=events).contains(&last) {
            let message = format!("run {run} has {events} events: there is no event {last}");
            let help = format!("--at takes 1 to {events}; {} lists them", WayOut::Events(run));
            return Err(Error::usage("C-13", "unknown-event", &message).help(&help));
        }
        let mut reading = Reading::open(&store, run)?;
        let mut state = State::recording(Arc::clone(reading.graph()));
        let mut places: BTreeMap<u64, Option<Place>> = BTreeMap::new();
        let mut fold = |state: &mut State, until: u64| {
            reading.fold(state, until, |state, record| {
                let n = state.events() + 1;
                if messages.iter().any(|(wanted, _)| *wanted == n) {
                    places.insert(n, state.place_of(&record.event));
                }
            })
        };
        fold(&mut state, last)?;
        let then = state.start().clone();
        let mut damage = None;
        match fold(&mut state, events) {
            Err(LoadError::Store(found @ StoreError::DamagedRun { event: Some(bad), .. }))
                if at.is_some_and(|at| at < bad) =>
            {
                (events, damage) = (bad.saturating_sub(1), Some(found.what()));
            }
            folded => folded?,
        }
        let edits = Edits::of(&store, run, events, messages, &places, anew)?;
        let (now, graph) = (state.start().clone(), Arc::clone(state.graph()));
        let past = Arc::new(state.past());
        let at = last;
        Ok(Self { dir, store, info, events, damage, at, then, now, graph, past, edits, reading })
    }

    /// The run's tools whose texts are kept: they stand in for files that are there no more.
    pub(crate) fn pins(&self) -> Result<Pins, Error> {
        let mut pins = Pins::new();
        for (name, tool) in &self.graph.tools {
            // Only Python files have their text's hash for a version, and their text kept.
            let Ok(hash) = tool.version.parse() else { continue };
            if self.store.has_blob(hash)? {
                pins.insert(Arc::clone(name), Arc::clone(tool));
            }
        }
        Ok(pins)
    }

    /// Whether a script may have answered in what a fork goes on with (C-07): its source was scripted, and the events that
    /// they share have an answer that is not a tool's. Behind them nothing of a script is taken over but by a fork that a
    /// script drives, as the models must be the same (E-29); nor is anything at all where the fork begins anew.
    pub(crate) fn script_answered(&self, anew: bool, shared: u64) -> Result<bool, Error> {
        if !self.info.scripted || anew {
            return Ok(false);
        }
        for entry in self.store.journal(&self.info.id, 1)?.until(shared) {
            let entry = entry?;
            let event: Option<Event> = selvedge_runtime::recorded(entry.json.as_bytes()).ok();
            let tool = matches!(&event, Some(Event::Completed { outcome: Outcome::Output(_), .. }));
            if !tool && matches!(&event, None | Some(Event::Completed { .. } | Event::Reused { .. })) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
