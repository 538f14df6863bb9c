//! Replay: the inputs that a run has recorded, and nothing else, give every other event again (E-18).

use crate::ahead::ahead;
use crate::reading::Reading;
use crate::recorded::{LoadError, parsed};
use selvedge_engine::{Event, Input, State};
use selvedge_store::Entry;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a replay has found.
#[derive(Debug)]
pub struct Replayed {
    /// Events that came out as they were recorded, from the first that was looked at on.
    pub events: u64,
    /// Inputs among them.
    pub inputs: u64,
    /// The first event that came out differently.
    pub diverged: Option<Divergence>,
    /// The state that those events leave.
    pub state: State,
}

/// An event that came out differently.
#[derive(Debug)]
pub struct Divergence {
    /// Its number.
    pub n: u64,
    /// The recorded event with its time, as they are stored: `{"at":…,"event":…}`.
    pub expected: String,
    /// What the engine makes at that place; `None` if it makes nothing there.
    pub derived: Option<String>,
}

/// Feeds a run's recorded inputs to the engine and compares what follows from them. A journal may end anywhere (an interrupt, a
/// crash, a run that waits or goes on): as far as it goes, it must agree.
///
/// # Errors
/// If the journal, or what it names, can't be read.
pub fn replay(reading: &mut Reading) -> Result<Replayed, LoadError> {
    let state = State::new(Arc::clone(reading.graph()));
    replay_from(reading, state, |_| {})
}

/// The same of the events behind those that a state has: what two runs share need not be looked at twice. `after` is shown the state behind each
/// event that agrees.
///
/// # Errors
/// Those of [`replay`].
pub fn replay_from(
    reading: &mut Reading,
    state: State,
    mut after: impl FnMut(&State),
) -> Result<Replayed, LoadError> {
    let next = state.events() + 1;
    let mut replayed = Replayed { events: 0, inputs: 0, diverged: None, state };
    let (store, run) = (reading.store().clone(), reading.run().to_owned());
    let decode = |entry: Entry| parsed(&run, &entry).map(|event| (entry, event));
    ahead(store.journal(&run, next)?, decode, |entries| {
        let mut derived = String::new();
        for read in entries {
            let (entry, mut event) = read?;
            reading.complete_after(&mut replayed.state, &mut event)?;
            derived.clear();
            // Of a journal that was changed, the engine may never have heard the like.
            let agrees = catch_unwind(AssertUnwindSafe(|| replayed.next(&entry, event, &mut derived)));
            if !agrees.unwrap_or(false) {
                let expected = format!("{{\"at\":{},\"event\":{}}}", entry.at_ms, entry.json);
                let derived = Some(derived).filter(|derived| !derived.is_empty());
                replayed.diverged = Some(Divergence { n: entry.n, expected, derived });
                return Ok(());
            }
            after(&replayed.state);
        }
        Ok::<(), LoadError>(())
    })?;
    Ok(replayed)
}

impl Replayed {
    /// Makes the next event and applies it, if it is the recorded one. `derived` becomes what was made instead.
    fn next(&mut self, entry: &Entry, recorded: Event, derived: &mut String) -> bool {
        // An input brings its time with it; what follows from it has the same one.
        let (event, at, input) = match Input::from_event(recorded) {
            Some(input) => (self.state.accept(input), self.state.tick(entry.at_ms), 1),
            None => (self.state.step(), self.state.tick(0), 0),
        };
        let Some(event) = event else { return false };
        let Ok(json) = serde_json::to_string(&event) else { return false };
        if json != entry.json || at != entry.at_ms {
            // Writing to a text can't fail.
            let _ = write!(derived, "{{\"at\":{at},\"event\":{json}}}");
            return false;
        }
        self.state.apply(&event);
        (self.events, self.inputs) = (self.events + 1, self.inputs + input);
        true
    }
}
