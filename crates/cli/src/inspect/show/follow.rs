//! `show RUN --follow`: what a run does that another process drives, until that comes to an end (C-15).

use super::super::{Found, is_driven};
use crate::block_on::block_on;
use crate::failure::Exit;
use crate::output::Report;
use crate::signals::Signals;
use crate::ui::Ui;
use crate::watched::Watched;
use crate::words::command;
use selvedge_engine::{EffectId, Record, State};
use selvedge_host::Error;
use selvedge_host::options::RunOptions;
use selvedge_runtime::{Clock, SystemClock};
use selvedge_runtime::{Reading, Watcher, graph_of};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether there is something new.
const LOOK: Duration = Duration::from_millis(200);

/// Follows a run from its first event on, and prints it when nobody drives it any more. Ctrl-C ends the looking, and not
/// the run.
pub(super) fn follow(found: &Found, ui: &Ui) -> Result<Exit, Error> {
    // What winding a run down says is not said here.
    let silent = Ui { quiet: true, ..ui.clone() };
    block_on(0, async {
        let signals = Signals::listen(&silent);
        tokio::select! {
            biased;
            () = signals.came() => {
                let again = command(&["show", found.run(), "--follow"]);
                ui.notice(&format!("run {} goes on, and is looked at no more; again with: {again}", found.run()));
                Ok(Exit::Interrupted)
            }
            followed = to_the_end(found, ui) => followed,
        }
    })?
}

async fn to_the_end(found: &Found, ui: &Ui) -> Result<Exit, Error> {
    let mut reading = Reading::open(&found.store, found.run())?;
    let mut state = State::new(Arc::clone(reading.graph()));
    let watched = Watched::follow(ui, &found.info, &state);
    // Its past in lines; a live view begins where it is now.
    let mut begun = HashSet::new();
    read(found, &mut reading, &mut state, watched.as_ref(), &mut begun)?;
    let mut driven = is_driven(&found.store, found.run()) && state.ended().is_none();
    // Dropped where the looking ends, with the picture.
    let watched = watched.map(|watched| match driven {
        true => watched.with_live(ui, &found.info, &state),
        false => watched,
    });
    begun.clear();
    while driven {
        // What is out and waits for nothing has begun, as far as the journal tells.
        begin(&state, watched.as_ref(), &mut begun);
        tokio::time::sleep(LOOK).await;
        // What a driver that has gone left behind is read below.
        driven = is_driven(&found.store, found.run());
        read(found, &mut reading, &mut state, watched.as_ref(), &mut begun)?;
        driven &= state.ended().is_none();
    }
    if let Some(watched) = watched {
        watched.close(ui, false);
    }
    let graph = graph_of(&found.store, &found.info)?;
    let warnings = RunOptions::stored(&found.info.options).warnings;
    let report = Report {
        run: found.run(),
        state: &state,
        scripted: found.info.scripted,
        warnings: &warnings,
        graph: &graph,
        store: &found.store,
        driven,
        warned: true,
        now: Some(SystemClock.now_ms()),
    };
    Ok(report.conclude(ui))
}

/// Tells what is new, event by event.
fn read(
    found: &Found,
    reading: &mut Reading,
    state: &mut State,
    watched: Option<&Watched>,
    begun: &mut HashSet<EffectId>,
) -> Result<(), Error> {
    for entry in found.store.journal(found.run(), state.events() + 1)? {
        let entry = entry?;
        let record = Record { at: entry.at_ms, event: reading.event(&entry)? };
        state.apply_record(&record);
        if let Some(watched) = watched {
            watched.events(state, &[record]);
        }
    }
    begun.retain(|effect| state.pending().contains_key(effect));
    Ok(())
}

fn begin(state: &State, watched: Option<&Watched>, begun: &mut HashSet<EffectId>) {
    let Some(watched) = watched else { return };
    let now = SystemClock.now_ms();
    for (effect, pending) in state.pending() {
        if pending.wait().left_ms(now) == 0 && begun.insert(effect.clone()) {
            watched.began(effect);
        }
    }
}
