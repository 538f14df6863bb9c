//! `selvedge export`: the journal as JSON lines (C-14).

use super::args::ExportArgs;
use super::events::with_head;
use super::out::Out;
use super::{Found, guarded};
use crate::args::Common;
use crate::failure::{Exit, Failure};
use crate::ui::Ui;

/// Prints a run's journal, one event a line, as it is read.
pub(crate) fn export(args: &ExportArgs, common: &Common, ui: &Ui) -> Result<Exit, Failure> {
    let found = Found::new(common, &args.run)?;
    let ui = guarded(ui);
    let mut out = Out::new(&ui);
    for entry in found.store.journal(found.run(), 1)? {
        let mut line = with_head(&entry?);
        line.push('\n');
        if !out.write(&line)? {
            break;
        }
    }
    out.finish()?;
    Ok(Exit::Completed)
}
