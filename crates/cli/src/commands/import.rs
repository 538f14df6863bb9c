//! `selvedge import`: takes in a run that was exported elsewhere (C-14). Nothing of it is run.

use crate::args::Common;
use crate::failure::Exit;
use crate::inspect::args::ImportArgs;
use crate::inspect::export::SHOWN;
use crate::inspect::page::{Page, clean};
use crate::ui::Ui;
use crate::words::command;
use selvedge_host::archive::{Found, Imported, import as take_in};
use selvedge_host::text::counted;
use selvedge_host::{Error, places};
use serde_json::{Value, json};

/// Takes in an archive.
pub(crate) fn import(args: &ImportArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let state = places::state_dir(&ui.environment, common.state_dir.as_deref())?;
    let imported = take_in(&ui.environment, &state, &args.archive)?;
    let ui = ui.guarded();
    if ui.json {
        ui.result(&format!("{}\n", object(&imported)));
    } else {
        page(&imported).print(&ui);
    }
    Ok(Exit::Completed)
}

fn word(found: Found) -> &'static str {
    match found {
        Found::New => "new",
        Found::Same => "unchanged",
        Found::Further => "further",
        Found::Extended => "extended",
    }
}

/// `{run_id, result, runs: [{run_id, events, result}], tools: [{name, version}]}`, sources first.
fn object(imported: &Imported) -> Value {
    let row = |(run, found): &(selvedge_store::archive::ArchivedRun, Found)| json!({"run_id": run.id, "events": run.events, "result": word(*found)});
    let tool = |(name, version): (&String, &String)| json!({"name": name, "version": version});
    json!({
        "run_id": imported.run().map(|(run, _)| &run.id),
        "result": imported.run().map(|(_, found)| word(*found)),
        "runs": imported.runs.iter().map(row).collect::<Vec<_>>(),
        "tools": imported.tools.iter().map(tool).collect::<Vec<_>>(),
    })
}

fn page(imported: &Imported) -> Page {
    let mut page = Page::new();
    let Some((run, found)) = imported.run() else { return page };
    let (id, events) = (&run.id, counted(run.events, "event"));
    page.line(&match found {
        Found::New => format!("imported run {id}: {events}; nothing of it was run"),
        Found::Same => format!("run {id} is here already, the same: {events}"),
        Found::Further => {
            format!("run {id} is here already, and has gone on since the {events} of the archive")
        }
        Found::Extended => {
            format!("run {id} was imported before; it has gone on since: {events} now; nothing of it was run")
        }
    });
    let sources = imported.runs.iter().rev().skip(1);
    for (source, found) in sources.clone().take(SHOWN) {
        let here = match found {
            Found::New => "",
            Found::Extended => ", of which fewer were here",
            Found::Same | Found::Further => ", which is here already",
        };
        page.line(&format!("  with its source {}{here}: {}", source.id, counted(source.events, "event")));
    }
    if sources.len() > SHOWN {
        page.line(&format!("  and {} more sources", sources.len() - SHOWN));
    }
    if !imported.tools.is_empty() {
        let names: Vec<&str> = imported.tools.keys().map(String::as_str).collect();
        let names = clean(&names.join(", "));
        page.labelled("  tools", "", 9, &format!("{names}: they came along, and run only with --trust"), 4);
    }
    page.line(&format!("  look at it: {}", command(&["show", id])));
    page
}
