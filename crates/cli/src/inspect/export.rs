//! `selvedge export`: the journal as JSON lines (C-14).

use super::args::ExportArgs;
use super::events::with_head;
use super::out::Out;
use super::{find, guarded, unreadable};
use crate::args::Common;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_host::Error;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// What every event has, of whichever version.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
}

/// Prints a run's journal, one event a line, as it is read. What is no event, or not what was written (E-44), ends it (C-03);
/// events of later versions are printed as they are. The run's row in the index is not needed for it.
pub(crate) fn export(args: &ExportArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let (store, run) = find(common, &args.run, ui)?;
    let ui = guarded(ui);
    let mut out = Out::new(&ui);
    for entry in store.journal(&run, 1)? {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                out.finish()?;
                return Err(error.into());
            }
        };
        if let Err(error) = selvedge_runtime::recorded::<Event>(entry.json.as_bytes()) {
            out.finish()?;
            return Err(unreadable(&run, format!("event {}", entry.n), error.to_string()));
        }
        if !out.json("", &with_head(&entry), "\n")? {
            break;
        }
    }
    out.finish()?;
    Ok(Exit::Completed)
}
