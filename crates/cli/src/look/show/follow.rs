//! `show RUN --follow`: what a run does that another process drives, until that comes to an end (C-15).

use super::super::{Found, is_driven};
use crate::block_on::block_on;
use crate::failure::Exit;
use crate::live::Live;
use crate::output::Report;
use crate::progress::Progress;
use crate::signals::Signals;
use crate::ui::Ui;
use selvedge_engine::{EffectId, Record, State};
use selvedge_host::Error;
use selvedge_host::hints::command;
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
    let lines = Progress::follow(ui, &state, &found.info, ui.live);
    // Its past in lines; a live view begins where it is now.
    let mut begun = HashSet::new();
    read(found, &mut reading, &mut state, lines.as_ref().map(|lines| lines as &dyn Watcher), &mut begun)?;
    let mut driven = is_driven(&found.store, found.run()) && state.ended().is_none();
    // Dropped where the looking ends, with the picture.
    let live = driven.then(|| Live::follow(ui, &found.info, &state)).flatten();
    let watcher: Option<Arc<dyn Watcher>> = lines.map(|lines| match &live {
        Some(live) => live.watcher(lines),
        None => Arc::new(lines) as Arc<dyn Watcher>,
    });
    begun.clear();
    while driven {
        // What is out and waits for nothing has begun, as far as the journal tells.
        begin(&state, watcher.as_deref(), &mut begun);
        tokio::time::sleep(LOOK).await;
        // What a driver that has gone left behind is read below.
        driven = is_driven(&found.store, found.run());
        read(found, &mut reading, &mut state, watcher.as_deref(), &mut begun)?;
        driven &= state.ended().is_none();
    }
    if let Some(live) = live {
        live.end(ui);
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
    };
    Ok(report.conclude(ui))
}

/// Tells what is new, event by event.
fn read(
    found: &Found,
    reading: &mut Reading,
    state: &mut State,
    watcher: Option<&dyn Watcher>,
    begun: &mut HashSet<EffectId>,
) -> Result<(), Error> {
    for entry in found.store.journal(found.run(), state.events() + 1)? {
        let entry = entry?;
        let record = Record { at: entry.at_ms, event: reading.event(&entry)? };
        state.apply_record(&record);
        if let Some(watcher) = watcher {
            watcher.events(state, &[record]);
        }
    }
    begun.retain(|effect| state.pending().contains_key(effect));
    Ok(())
}

fn begin(state: &State, watcher: Option<&dyn Watcher>, begun: &mut HashSet<EffectId>) {
    let Some(watcher) = watcher else { return };
    let now = SystemClock.now_ms();
    for (effect, pending) in state.pending() {
        if pending.wait.left_ms(now) == 0 && begun.insert(effect.clone()) {
            watcher.began(effect);
        }
    }
}
