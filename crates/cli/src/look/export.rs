//! `selvedge export`: the journal as JSON lines (C-14).

use super::args::ExportArgs;
use super::events::with_head;
use super::out::Out;
use super::{Found, guarded};
use crate::args::Common;
use crate::failure::{Exit, Failure};
use crate::ui::Ui;
use selvedge_runtime::Reading;

/// Prints a run's journal, one event a line, as it is read. One that is damaged is told of before anything is printed.
pub(crate) fn export(args: &ExportArgs, common: &Common, ui: &Ui) -> Result<Exit, Failure> {
    let found = Found::new(common, &args.run)?;
    let ui = guarded(ui);
    let mut events = Reading::open(&found.store, found.run())?;
    for entry in found.store.journal(found.run(), 1)? {
        events.event(&entry?)?;
    }
    let mut out = Out::new(&ui);
    for entry in found.store.journal(found.run(), 1)? {
        if !out.json("", &with_head(&entry?), "\n")? {
            break;
        }
    }
    out.finish()?;
    Ok(Exit::Completed)
}
