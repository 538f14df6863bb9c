//! `selvedge replay`: a recorded run's inputs, fed to the engine again, give every other event (E-18).

use super::args::ReplayArgs;
use super::page::{BOLD, GREEN, Page, RED};
use super::{Found, guarded};
use crate::args::Common;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_engine::{Input, State};
use selvedge_host::Error;
use selvedge_runtime::Reading;
use serde_json::json;
use std::sync::Arc;

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
    /// The recorded event with its time, as they are stored.
    expected: String,
    /// What the engine makes at that place; `None` if it makes nothing there.
    derived: Option<String>,
}

/// Replays a run.
pub(crate) fn replay(args: &ReplayArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let found = Found::new(common, &args.run, ui)?;
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
fn replayed(found: &Found) -> Result<Replayed, Error> {
    let mut reading = Reading::open(&found.store, found.run())?;
    let mut state = State::new(Arc::clone(reading.graph()));
    let mut replayed = Replayed { events: 0, inputs: 0, diverged: None };
    for entry in found.store.journal(found.run(), 1)? {
        let entry = entry?;
        let unreadable =
            |error: serde_json::Error| found.unreadable(format!("event {}", entry.n), error.to_string());
        let recorded = reading.event(&entry)?;
        // An input brings its time with it; what follows from it has the same one.
        let (event, at) = match Input::from_event(recorded) {
            Some(input) => {
                replayed.inputs += 1;
                (state.accept(input), state.tick(entry.at_ms))
            }
            None => (state.step(), state.tick(0)),
        };
        let derived = event.as_ref().map(serde_json::to_string).transpose().map_err(unreadable)?;
        let line = |at: i64, event: &str| format!("{{\"at\":{at},\"event\":{event}}}");
        let (expected, derived) = (line(entry.at_ms, &entry.json), derived.map(|event| line(at, &event)));
        let Some(event) = event.filter(|_| derived.as_ref() == Some(&expected)) else {
            replayed.diverged = Some(Divergence { n: entry.n, expected, derived });
            return Ok(replayed);
        };
        state.apply(&event);
        replayed.events += 1;
    }
    Ok(replayed)
}

/// `{run_id, events, inputs, diverged: null | {n, expected, derived}}`, both events byte for byte.
fn object(found: &Found, replayed: &Replayed) -> String {
    let diverged = replayed.diverged.as_ref().map_or("null".to_owned(), |divergence| {
        let Divergence { n, expected, derived } = divergence;
        format!("{{\"n\":{n},\"expected\":{expected},\"derived\":{}}}", derived.as_deref().unwrap_or("null"))
    });
    let (run, events, inputs) = (json!(found.run()), replayed.events, replayed.inputs);
    format!("{{\"run_id\":{run},\"events\":{events},\"inputs\":{inputs},\"diverged\":{diverged}}}\n")
}

fn agrees(found: &Found, replayed: &Replayed) -> String {
    let mut page = Page::new();
    let agrees = page.paint(GREEN, "agrees");
    let Replayed { events, inputs, .. } = replayed;
    page.line(&format!("run {}: the replay {agrees}", found.run()));
    let told = if *inputs == 1 { "1 input".to_owned() } else { format!("{inputs} inputs") };
    page.line(&format!("  {events} events: {told}, {} derived", events.saturating_sub(*inputs)));
    page.take()
}

fn differs(found: &Found, divergence: &Divergence) -> String {
    let mut page = Page::new();
    let Divergence { n, expected, derived } = divergence;
    let diverges = page.paint(RED, "diverges");
    page.line(&format!("run {}: the replay {diverges} at event {n}", found.run()));
    let nothing = "nothing: the engine can't go on there without an input, or does not take this one";
    let derived = derived.as_deref().unwrap_or(nothing);
    let same = expected.chars().zip(derived.chars()).take_while(|(a, b)| a == b).count();
    page.labelled("  recorded", BOLD, 12, &around(expected, same), usize::MAX);
    page.labelled("  derived", BOLD, 12, &around(derived, same), usize::MAX);
    page.labelled("", "", 2, "the events before it agree; --json has both in full", 2);
    let why = "the journal was changed, or another version wrote it: replay it with that version";
    page.labelled("", "", 2, why, 4);
    page.take()
}

/// The part of an event that differs, and what stands around it.
fn around(text: &str, same: usize) -> String {
    let from = same.saturating_sub(AROUND.0);
    let mut part: String = text.chars().skip(from).take(AROUND.0 + AROUND.1).collect();
    if from > 0 {
        part.insert(0, '…');
    }
    if text.chars().count() > from + AROUND.0 + AROUND.1 {
        part.push('…');
    }
    part
}
