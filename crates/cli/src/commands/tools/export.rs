//! `selvedge tools export`: the library as a folder of files (V-12).

use super::args::ExportArgs;
use crate::args::Common;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_host::library::{self, export, manifest::Tool};
use selvedge_host::text::counted;
use selvedge_host::{Error, places};
use serde_json::json;

/// Writes the library into a folder: all of it or nothing.
pub(super) fn export(args: &ExportArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let (store, library) = library::open(&places::state_dir(&ui.environment, common.state_dir.as_deref())?)?;
    let target = ui.environment.absolute(&args.dir);
    let manifest = export::export(&target, store.as_ref(), &library)?;
    let (current, retired): (Vec<_>, Vec<_>) = manifest.tools.iter().partition(|tool| tool.current.is_some());
    if ui.json {
        let names = |tools: &[&Tool]| tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        let (tools, retired) = (names(&current), names(&retired));
        ui.result(&format!("{}\n", json!({"dir": target, "tools": tools, "retired": retired})));
    } else {
        let tools = counted(current.len(), "tool");
        let retired = match retired.len() {
            0 => String::new(),
            retired => format!(" and {}", counted(retired, "retired tool")),
        };
        ui.result(&format!("wrote {tools}{retired} to {}\n", args.dir.display()));
    }
    Ok(Exit::Completed)
}
