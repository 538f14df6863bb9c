//! What `evolve --workers` starts: a process that drives the tasks it is given (V-01).

use crate::args::Common;
use crate::block_on::block_on;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_host::Error;
use selvedge_host::workers::{Launcher, work};

/// The name of the command.
pub(crate) const WORKER: &str = "__worker";

/// Drives tasks until nobody asks for any.
pub(super) fn worker(common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let host = ui.host(common)?;
    block_on(0, async { work(&host, tokio::io::stdin(), tokio::io::stdout()).await })??;
    Ok(Exit::Completed)
}

/// How such processes are started, and how many there are; nothing for none.
pub(super) fn workers(most: u16, common: &Common, ui: &Ui) -> Result<Option<(Launcher, usize)>, Error> {
    if most == 0 {
        return Ok(None);
    }
    let Some(launcher) = ui.environment.launcher() else {
        let message = "it is not known where the program is, so no process of it can be started";
        return Err(Error::environment("V-01", "no-worker", message).help("leave out --workers"));
    };
    // An evaluation has a state folder for each arm: whoever starts a process says which.
    let mut args = vec![WORKER.to_owned(), "--quiet".to_owned()];
    args.extend(common.trust.then(|| "--trust".to_owned()));
    Ok(Some((Launcher { program: launcher.program.clone(), args }, most.into())))
}
