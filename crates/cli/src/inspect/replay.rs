//! `selvedge replay`: a recorded run's inputs, fed to the engine again, give every other event (E-18).

use super::args::ReplayArgs;
use super::page::{BOLD, GREEN, Page, RED};
use super::{Found, guarded};
use crate::args::Common;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_host::Error;
use selvedge_host::text::counted;
use selvedge_runtime::{Divergence, Reading, Replayed};
use serde_json::json;

/// Characters that a person is shown of either side, around the first difference.
const AROUND: (usize, usize) = (60, 240);

/// Replays a run.
pub(crate) fn replay(args: &ReplayArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let found = Found::new(common, &args.run, ui)?;
    let replayed = selvedge_runtime::replay(&mut Reading::open(&found.store, found.run())?)?;
    let ui = guarded(ui);
    let (text, exit) = match &replayed.diverged {
        None => (agrees(&found, &replayed), Exit::Completed),
        Some(divergence) => (differs(&found, divergence), Exit::Failed),
    };
    ui.result(&if ui.json { object(&found, &replayed) } else { text });
    Ok(exit)
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
    let told = counted(inputs, "input");
    page.line(&format!("  {}: {told}, {} derived", counted(events, "event"), events.saturating_sub(*inputs)));
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
