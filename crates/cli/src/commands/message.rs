//! `selvedge message`: what a person says to a run that answers no question (C-13, E-43).

use crate::args::{Common, MessageArgs};
use crate::asks;
use crate::block_on::block_on;
use crate::commands::resume::go_on;
use crate::failure::Exit;
use crate::output::print_run;
use crate::ui::Ui;
use selvedge_engine::PersonMessage;
use selvedge_host::{Error, Given};

/// Records a message, and goes on with the run unless another process does.
pub(crate) fn message(args: &MessageArgs, common: &Common, ui: Ui) -> Result<Exit, Error> {
    let over = crate::options::for_resume(&ui.environment, &args.exec)?;
    let host = ui.host(common)?;
    let text = asks::read_text(&args.text).map_err(|why| Error::usage("C-13", "bad-message", &why))?;
    let message = PersonMessage {
        text: text.into(),
        to: args.to.as_deref().map(Into::into),
        by: args.by.as_deref().map(Into::into),
    };
    match block_on(0, host.message(&args.run, &message))?? {
        Given::Driven(run) => {
            let driven = run.store.is_driven(run.id())?;
            print_run(&run, driven, &ui)?;
            Ok(Exit::Completed)
        }
        Given::Alone(locked) if args.no_continue => {
            let run = block_on(0, locked.record())??;
            ui.note("the message is recorded");
            print_run(&run, false, &ui)?;
            Ok(Exit::Completed)
        }
        Given::Alone(locked) => go_on(&host, locked, &args.exec, &over, ui),
    }
}
