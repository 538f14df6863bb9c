//! The run that is forked, and where a fork leaves it.

use super::edits::{Edits, Found};
use super::forkable::{Forkable, Moments};
use crate::error::Error;
use crate::text::counted;
use crate::tools::Pins;
use crate::ways::WayOut;
use selvedge_engine::{Event, Outcome, Start, State};
use selvedge_store::Store;
use std::path::PathBuf;
use std::sync::Arc;

/// A run that is forked.
pub(crate) struct Source {
    pub(crate) run: Arc<Forkable>,
    /// The last event that the fork shares with it, but for what edits say.
    pub(crate) at: u64,
    /// What it had begun with, as of that event.
    pub(crate) then: Start,
    /// The edited messages.
    pub(crate) edits: Edits,
}

impl Source {
    /// Folds the run for one fork.
    ///
    /// # Errors
    /// There is no such event, or `messages` are none that can be edited: those of the document (`anew` has another one)
    /// or of models and tools, each with its event's number.
    pub(crate) fn fold(
        (dir, store, run): (PathBuf, Arc<Store>, &str),
        at: Option<u64>,
        messages: &[(u64, String)],
        anew: bool,
    ) -> Result<Self, Error> {
        let events = store.last_event(run)?;
        let last = last(run, events, at)?;
        let edited = Found::of(&store, run, events, messages, anew)?;
        let moments = Moments { at: edited.moments(last).collect(), suffice: at.is_some() };
        let run = Arc::new(Forkable::fold(dir, store, run, events, &moments)?);
        Self::at(run, last, edited)
    }

    /// A fork of a run that is folded.
    ///
    /// # Errors
    /// Those of [`Self::fold`].
    pub(crate) fn of(
        run: Arc<Forkable>,
        at: Option<u64>,
        messages: &[(u64, String)],
        anew: bool,
    ) -> Result<Self, Error> {
        let last = last(run.id(), run.events, at)?;
        let edited = Found::of(&run.store, run.id(), run.events, messages, anew)?;
        Self::at(run, last, edited)
    }

    /// The run as it was after the events that the fork shares with it.
    pub(super) fn left_at(&mut self, shared: u64) -> Result<State, Error> {
        match Arc::get_mut(&mut self.run) {
            Some(run) => run.left_at(shared),
            None => self.run.state_at(shared),
        }
    }

    fn at(run: Arc<Forkable>, at: u64, edited: Found) -> Result<Self, Error> {
        let then = run.start_at(at).clone();
        let edits: Edits = edited.placed(&run)?;
        Ok(Self { run, at, then, edits })
    }

    /// The run's tools whose texts are kept: they stand in for files that are there no more.
    pub(crate) fn pins(&self) -> Result<Pins, Error> {
        let mut pins = Pins::new();
        for (name, tool) in &self.run.graph.tools {
            // Only Python files have their text's hash for a version, and their text kept.
            let Ok(hash) = tool.version.parse() else { continue };
            if self.run.store.has_blob(hash)? {
                pins.insert(Arc::clone(name), Arc::clone(tool));
            }
        }
        Ok(pins)
    }

    /// Whether a script may have answered in what a fork goes on with (C-07): its source was scripted, and the events that
    /// they share have an answer that is not a tool's. Behind them nothing of a script is taken over but by a fork that a
    /// script drives, as the models must be the same (E-29); nor is anything at all where the fork begins anew.
    pub(crate) fn script_answered(&self, anew: bool, shared: u64) -> Result<bool, Error> {
        if !self.run.info.scripted || anew {
            return Ok(false);
        }
        for entry in self.run.store.journal(self.run.id(), 1)?.until(shared) {
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

/// The last event that a fork shares with a run, but for what edits say.
fn last(run: &str, events: u64, at: Option<u64>) -> Result<u64, Error> {
    let last = at.unwrap_or(events);
    if (1..=events).contains(&last) {
        return Ok(last);
    }
    let message = format!("run {run} has {}: there is no event {last}", counted(events, "event"));
    let help = format!("--at takes 1 to {events}; {} lists them", WayOut::Events(run));
    Err(Error::usage("C-13", "unknown-event", &message).help(&help))
}
