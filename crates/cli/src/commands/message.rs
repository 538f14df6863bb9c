//! `selvedge message`: what a person says to a run that answers no question (C-13, E-43).

use crate::args::{Common, MessageArgs};
use crate::asks;
use crate::block_on::block_on;
use crate::commands::resume::go_on_or_record;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_engine::PersonMessage;
use selvedge_host::Error;

/// Records a message, and goes on with the run unless another process does.
pub(crate) fn message(args: &MessageArgs, common: &Common, ui: Ui) -> Result<Exit, Error> {
    let over = crate::options::for_resume(&ui.environment, &args.exec)?;
    let host = ui.host(common)?;
    let text = asks::read_text(&args.text).map_err(|why| {
        Error::usage("C-13", "bad-message", &why).help("a text that begins with @ comes on stdin, with -")
    })?;
    let message = PersonMessage {
        text: text.into(),
        to: args.to.as_deref().map(Into::into),
        by: args.by.as_deref().map(Into::into),
    };
    let given = block_on(0, host.message(&args.run, &message))??;
    go_on_or_record(&host, given, "message", (args.no_continue, &args.exec, &over), ui)
}
