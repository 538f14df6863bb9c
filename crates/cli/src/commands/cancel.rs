//! `selvedge cancel`: ends a run (C-12, C-30, E-13), also one that another process drives (E-43).

use crate::args::{CancelArgs, Common};
use crate::block_on::block_on;
use crate::drive::Drive;
use crate::failure::Exit;
use crate::output::print_run;
use crate::signals::Signals;
use crate::ui::Ui;
use selvedge_host::text::counted;
use selvedge_host::{Error, Given, RecordedRun};

/// Asks whether a run is to end, with what is lost by it; whether somebody says so.
fn is_meant(run: &RecordedRun, ui: &Ui) -> bool {
    let (calls, questions) = (run.state.pending().len(), run.state.asks().len());
    let calls = (calls > 0).then(|| format!("{} under way", counted(calls, "call")));
    let questions = (questions > 0).then(|| counted(questions, "open question"));
    let lost: Vec<String> = calls.into_iter().chain(questions).collect();
    let lost = if lost.is_empty() { String::new() } else { format!(" loses {} and", lost.join(", ")) };
    ui.note(&format!("Run {}{lost} can't be resumed once it is cancelled, only forked.", run.id()));
    ui.is_confirmed("Cancel it? [y/N] ")
}

/// Cancels a run; one that has ended is printed, with its own exit code.
pub(crate) fn cancel(args: &CancelArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let host = ui.host(common)?;
    if ui.may_ask && !args.yes {
        let run = host.load(&args.run)?;
        if run.state.ended().is_none() && !is_meant(&run, ui) {
            ui.note("it was not cancelled");
            return Ok(Exit::Interrupted);
        }
    }
    let run = match block_on(0, host.cancel(&args.run))?? {
        Given::Driven(run) => {
            let driven = run.store.is_driven(run.id())?;
            print_run(&run, driven, ui)?;
            return Ok(Exit::Completed);
        }
        Given::Alone(locked) if locked.run.state.ended().is_some() => {
            return print_run(&locked.run, true, ui);
        }
        Given::Alone(locked) => locked.cancel()?,
    };
    block_on(0, async {
        let signals = Signals::listen(ui);
        match (Drive { ui, run }).go(&signals).await {
            // The run's own code says that it was cancelled; the command did what it was asked to (C-12).
            Exit::Failed => Ok(Exit::Completed),
            other => Ok(other),
        }
    })?
}
