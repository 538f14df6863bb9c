//! `selvedge replay`: a recorded run's inputs, fed to the engine again, give every other event (E-18).

use super::args::ReplayArgs;
use super::page::{BOLD, GREEN, Page, RED};
use super::{Found, guarded};
use crate::args::Common;
use crate::failure::{Exit, Failure};
use crate::ui::Ui;
use selvedge_engine::{Event, Input, State};
use selvedge_runtime::graph_of;
use selvedge_store::Entry;
use serde_json::json;

/// Characters that a person is shown of either side, around the first difference.
const AROUND: (usize, usize) = (60, 240);

/// What a replay found.
struct Replayed {
    events: u64,
    inputs: u64,
    diverged: Option<Divergence>,
}

/// The first event that came out differently.
struct Divergence {
    n: u64,
    /// The recorded event, as it is stored.
    expected: String,
    /// What the engine makes at that place; `None` if it makes nothing there.
    derived: Option<String>,
}

/// Replays a run.
pub(crate) fn replay(args: &ReplayArgs, common: &Common, ui: &Ui) -> Result<Exit, Failure> {
    let found = Found::new(common, &args.run)?;
    let replayed = replayed(&found)?;
    let ui = guarded(ui);
    let (text, exit) = match &replayed.diverged {
        None => (agrees(&found, &replayed), Exit::Completed),
        Some(divergence) => (differs(&found, divergence), Exit::Failed),
    };
    ui.result(&if ui.json { object(&found, &replayed) } else { text });
    Ok(exit)
}

/// Feeds the recorded inputs and compares what follows from them. A journal may end anywhere (an interrupt, a
/// crash, a run that waits or goes on): as far as it goes, it must agree.
fn replayed(found: &Found) -> Result<Replayed, Failure> {
    let mut state = State::new(graph_of(&found.store, &found.info)?);
    let mut replayed = Replayed { events: 0, inputs: 0, diverged: None };
    for entry in found.store.journal(found.run(), 1)? {
        let entry = entry?;
        let unreadable =
            |error: serde_json::Error| found.unreadable(format!("event {}", entry.n), error.to_string());
        let recorded: Event = serde_json::from_str(&entry.json).map_err(unreadable)?;
        let input = Input::from_event(recorded);
        let derived = match &input {
            // The time of an input is one of the things that are recorded; what follows has the same.
            Some(_) => drop(state.tick(entry.at_ms)),
            None => {}
        };
        let () = derived;
        replayed.inputs += u64::from(input.is_some());
        let of_time = input.is_some() || state.tick(entry.at_ms.min(0)) == entry.at_ms;
        let event = match input {
            Some(input) => state.accept(input),
            None => state.step(),
        };
        let text = event.as_ref().map(serde_json::to_string).transpose().map_err(unreadable)?;
        if text.as_deref() != Some(entry.json.as_str()) || !of_time {
            replayed.diverged = Some(divergence(entry, text, state.tick(0), of_time));
            return Ok(replayed);
        }
        if let Some(event) = event {
            state.apply(&event);
        }
        replayed.events += 1;
    }
    Ok(replayed)
}
