//! `selvedge resume`: a run goes on where its journal ends (E-05, P-21).

use crate::args::{Common, Exec, ResumeArgs};
use crate::block_on::block_on;
use crate::drive;
use crate::failure::Exit;
use crate::output::print_run;
use crate::ui::Ui;
use crate::words::command;
use selvedge_host::text::counted;
use selvedge_host::{Error, Given, Host, LockedRun, RunOptions};

/// Goes on with a run; one that can't is printed.
pub(crate) fn resume(args: &ResumeArgs, common: &Common, ui: Ui) -> Result<Exit, Error> {
    let over = crate::options::for_resume(&ui.environment, &args.exec)?;
    let host = ui.host(common)?;
    let locked = host.lock(&args.run)?;
    if locked.run.can_go_on() {
        return go_on(&host, locked, &args.exec, &over, ui);
    }
    if locked.run.state.declined().is_none() {
        tell_unused(&args.exec, locked.run.id(), &ui);
    }
    print_run(&locked.run, true, &ui)
}

/// Goes on with a run, and with what it was told.
fn go_on(host: &Host, locked: LockedRun, exec: &Exec, over: &RunOptions, ui: Ui) -> Result<Exit, Error> {
    if exec.sequential {
        ui.notice("note: `--sequential` has no effect: it was fixed when the run began");
    }
    let asked = host.take_up(locked, over)?;
    drive::begin(host, asked, ui, |run, ui| {
        ui.note(&format!("run {}: goes on after {}", run.id, counted(run.state.events(), "event")));
    })
}

/// What becomes of a run that was told something: whoever drives it goes on; else it goes on here, or only records `what` it was told.
pub(super) fn go_on_or_record(
    host: &Host,
    given: Given,
    what: &str,
    (no_continue, exec, over): (bool, &Exec, &RunOptions),
    ui: Ui,
) -> Result<Exit, Error> {
    match given {
        Given::Driven(run) => {
            let driven = run.store.is_driven(run.id())?;
            print_run(&run, driven, &ui)?;
            Ok(Exit::Completed)
        }
        Given::Alone(locked) if no_continue => {
            let run = block_on(0, locked.record())??;
            ui.note(&format!("the {what} is recorded"));
            print_run(&run, false, &ui)?;
            Ok(Exit::Completed)
        }
        Given::Alone(locked) => go_on(host, locked, exec, over, ui),
    }
}

/// Says that options change nothing where nothing is left to run (C-10, C-12).
fn tell_unused(exec: &Exec, run: &str, ui: &Ui) {
    let given = exec.given();
    if given.is_empty() {
        return;
    }
    let fork = command(&["fork", run]);
    let (has, them) = if given.len() == 1 { ("has", "it") } else { ("have", "them") };
    let given = given.join(", ");
    ui.notice(&format!("note: the run has ended: {given} {has} no effect; {fork} takes {them}"));
}
