//! Commands to a run that another process drives (E-43, C-13).

use crate::args::Common;
use crate::block_on::block_on;
use crate::commands::resume::LockedRun;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_engine::State;
use selvedge_host::{Error, stores};
use selvedge_runtime::{Command, Refusal, load, send_command};
use std::sync::Arc;
use std::time::Duration;

/// After so long it is said that a driver takes its time.
const SILENCE: Duration = Duration::from_secs(2);
/// How often it is tried to take a run from a driver that is about to end; each takes a tenth of a second.
const TRIES: u32 = 20;

/// Gives a command to a run: to the process that drives it, as long as one does, or else with `alone`.
///
/// `command` is the command to the run as it stands, `refused` the error where the driver would not have it. A run that
/// nobody drives, and one that has nothing left to be told, are `alone`'s.
pub(crate) fn give(
    run: &str,
    common: &Common,
    ui: &Ui,
    command: impl Fn(&str, &State) -> Result<Option<Command>, Error>,
    refused: impl Fn(&str, &State, &Refusal) -> Error,
    alone: impl Fn() -> Result<Exit, Error>,
) -> Result<Exit, Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        let (dir, store) = stores::open_existing(&ui.environment, common.state_dir.as_deref(), run)?;
        let (run, store) = (stores::find_run(&store, run)?, Arc::new(store));
        let state = match store.is_driven(&run)? {
            true => load(&store, &run, None, None)?.state,
            false => match alone() {
                // Another process was faster: it is told.
                Err(failure) if failure.is("run-driven") && tries < TRIES => continue,
                done => return done,
            },
        };
        let Some(command) = command(&run, &state)? else {
            match alone() {
                // Its driver is about to end.
                Err(failure) if failure.is("run-driven") && tries < TRIES => continue,
                done => return done,
            }
        };
        let given = block_on(0, async {
            let mut reply = std::pin::pin!(send_command(&store, &run, &command));
            tokio::select! {
                reply = &mut reply => reply,
                () = tokio::time::sleep(SILENCE) => {
                    ui.note("the process that drives the run has not taken it yet");
                    reply.await
                }
            }
        })??;
        let state = load(&store, &run, None, None)?.state;
        match given {
            Ok(()) => {
                let info = store.run(&run)?;
                let locked_run = LockedRun { dir, store, run, info, lock: None };
                let driven = locked_run.store.is_driven(&locked_run.run)?;
                locked_run.print(&state, driven, ui)?;
                return Ok(Exit::Completed);
            }
            Err(Refusal::NotDriven | Refusal::Ended) => {}
            Err(refusal) => return Err(refused(&run, &state, &refusal)),
        }
    }
}
