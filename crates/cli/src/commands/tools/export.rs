//! `selvedge tools export`: the library as a folder of files (V-12).

use super::args::ExportArgs;
use crate::args::Common;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_host::library::{self, export};
use selvedge_host::text::counted;
use selvedge_host::{Error, places};
use serde_json::json;

/// Writes the library into a folder: all of it or nothing.
pub(super) fn export(args: &ExportArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let (store, library) = library::open(&places::state_dir(&ui.environment, common.state_dir.as_deref())?)?;
    let target = ui.environment.absolute(&args.dir);
    let manifest = export::export(&target, store.as_ref(), &library)?;
    let tools = manifest.tools.len();
    if ui.json {
        let names: Vec<&str> = manifest.tools.iter().map(|tool| &*tool.name).collect();
        ui.result(&format!("{}\n", json!({"dir": target, "tools": names})));
    } else {
        let tools = counted(tools, "tool");
        ui.result(&format!("wrote {tools} to {}\n", args.dir.display()));
    }
    Ok(Exit::Completed)
}
