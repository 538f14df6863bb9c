//! `selvedge tools import`: files become tools of the library, all of them or none (A-08, A-17, V-12).

use super::args::ImportArgs;
use crate::args::{Common, Grants, Sources};
use crate::block_on::block_on;
use crate::commands::check;
use crate::failure::Exit;
use crate::signals::Signals;
use crate::ui::Ui;
use selvedge_host::Error;
use selvedge_host::library::import::{Imported, Meeting};
use selvedge_host::library::short;
use selvedge_host::text::{counted, harmless};
use serde_json::{Value, json};
use std::path::Path;

/// Imports tools.
pub(super) fn import(args: &ImportArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let ui = &ui.guarded();
    let meeting = if args.replace { Meeting::Replaces } else { Meeting::Refused };
    print(&imported(&args.path, meeting, &args.grants, common, ui)?, ui);
    Ok(Exit::Completed)
}

/// Makes sure that the library has the tools of a folder before anything begins (V-12). It may have them already, and be ahead of them.
///
/// # Errors
/// Those of an import; then nothing is imported.
pub(crate) fn warm(folder: &Path, grants: &Grants, common: &Common, ui: &Ui) -> Result<(), Error> {
    let tools = imported(folder, Meeting::GoesOn, grants, common, &ui.guarded())?;
    let new = tools.iter().filter(|tool| tool.result == "new").count();
    ui.note(&format!(
        "library {}: {}, {new} of them new here",
        folder.display(),
        counted(tools.len(), "tool")
    ));
    Ok(())
}

fn imported(
    path: &Path,
    meeting: Meeting,
    grants: &Grants,
    common: &Common,
    ui: &Ui,
) -> Result<Vec<Imported>, Error> {
    let from = Sources { grants: grants.clone(), ..Sources::default() };
    let check = check::of_tools(&from, common, ui)?;
    block_on(0, async {
        let signals = Signals::listen(ui);
        tokio::select! {
            biased;
            () = signals.came() => Err(Error::interrupted()),
            imported = check.import(path, meeting) => imported,
        }
    })?
}

fn print(imported: &[Imported], ui: &Ui) {
    if ui.json {
        let tools: Vec<Value> = imported
            .iter()
            .map(|tool| json!({"name": tool.name, "version": tool.version, "result": tool.result, "calls": tool.calls}))
            .collect();
        ui.result(&format!("{}\n", json!({ "tools": tools })));
        return;
    }
    if imported.is_empty() {
        ui.note("the library that was exported there is empty: nothing is imported");
    }
    let width = imported.iter().map(|tool| tool.name.chars().count()).max().unwrap_or_default();
    for Imported { name, version, result, calls } in imported {
        let calls = counted(calls, "recorded call");
        let line = format!("{name:width$}  {}  {result:9}  {calls}", short(version));
        ui.result(&format!("{}\n", harmless(&line)));
    }
}
