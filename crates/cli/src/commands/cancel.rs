//! `selvedge cancel`: ends a run (C-12, E-13), also one that another process drives (E-43).

use crate::args::{CancelArgs, Common};
use crate::block_on::block_on;
use crate::commands::driven;
use crate::commands::resume::LockedRun;
use crate::drive::Drive;
use crate::failure::Exit;
use crate::signals::Signals;
use crate::ui::Ui;
use selvedge_engine::{Input, State};
use selvedge_host::Error;
use selvedge_host::compose::idle_driver;
use selvedge_host::options::RunOptions;
use selvedge_runtime::{Command, Refusal, graph_of, load};
use std::sync::Arc;

/// Cancels a run; one that has ended is printed, with its own exit code.
pub(crate) fn cancel(args: &CancelArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let command = |_: &str, state: &State| Ok(state.ended().is_none().then_some(Command::Cancel {}));
    let refused = |_: &str, _: &State, refusal: &Refusal| Error::internal(&refusal.to_string());
    driven::give(&args.run, common, ui, command, refused, || alone(args, common, ui))
}

/// Cancels a run that nobody drives.
fn alone(args: &CancelArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let mut locked_run = LockedRun::take(&ui.environment, common.state_dir.as_deref(), &args.run)?;
    let state = load(&locked_run.store, &locked_run.run, None, None)?.state;
    let lock = match locked_run.lock.take() {
        Some(lock) if state.ended().is_none() => lock,
        _ => return locked_run.print(&state, true, ui),
    };
    let graph = graph_of(&locked_run.store, &locked_run.info)?;
    let warnings = RunOptions::stored(&locked_run.info.options).warnings;
    block_on(0, async {
        let signals = Signals::listen(ui);
        let (store, run, scripted) =
            (Arc::clone(&locked_run.store), locked_run.run.clone(), locked_run.info.scripted);
        let (driver, inputs) = (idle_driver(), vec![Input::Cancel]);
        let drive =
            Drive { ui, store, run, driver, catalogue: None, inputs, state, graph, scripted, warnings, lock };
        match drive.go(&signals).await {
            // The run's own code says that it was cancelled; the command did what it was asked to (C-12).
            Exit::Failed => Ok(Exit::Completed),
            other => Ok(other),
        }
    })?
}
