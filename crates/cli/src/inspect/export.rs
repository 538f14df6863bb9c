//! `selvedge export`: the journal as JSON lines, or the whole run as a file (C-14).

use super::args::ExportArgs;
use super::out::Out;
use super::page::{Page, clean};
use super::{find, guarded, unreadable};
use crate::args::Common;
use crate::failure::Exit;
use crate::how_far::HowFar;
use crate::ui::Ui;
use selvedge_host::archive::{self, Exported};
use selvedge_host::report::with_head;
use selvedge_host::text::counted;
use selvedge_host::{Config, Error, NewFile};
use selvedge_store::Store;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// Sources that are named.
pub(crate) const SHOWN: usize = 5;

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
    if let Some(file) = &args.archive {
        return archived(&store, &run, file, ui);
    }
    if let Some(file) = &args.html {
        return page(store, &run, file, common, ui);
    }
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

/// Writes a page with the run inside (S-31).
fn page(store: Store, run: &str, file: &Path, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let new = NewFile::at(file)?.shared();
    let far = HowFar::new(ui.clone());
    let page = selvedge_server::sealed(&ui.host(common)?, store, run, &|step, done, of| {
        far.at(|_| format!("export: {step}, {done} of {of}"));
    })?;
    let html = page.html.as_bytes();
    let bytes = new.write(|new, out| out.write_all(html).map_err(|error| new.unwritable(&error)))?;
    let ui = guarded(ui);
    if ui.json {
        let object = json!({"run_id": page.run, "file": file, "bytes": bytes, "events": page.events});
        ui.result(&format!("{object}\n"));
        return Ok(Exit::Completed);
    }
    let events = counted(page.events, "event");
    ui.result(&format!("wrote run {} to {}: {events}, {}\n", page.run, file.display(), size(bytes)));
    Ok(Exit::Completed)
}

/// Writes the whole run to a file.
fn archived(store: &Store, run: &str, file: &Path, ui: &Ui) -> Result<Exit, Error> {
    let config = Config::of_keys(&ui.environment);
    let Exported { runs, tools, bytes } = archive::export(store, &config, run, file)?;
    let ui = ui.guarded_by(&config);
    let rows = || runs.iter().map(|run| json!({"run_id": run.id, "events": run.events}));
    if ui.json {
        let rows: Vec<Value> = rows().collect();
        ui.result(&format!(
            "{}\n",
            json!({"run_id": run, "file": file, "bytes": bytes, "runs": rows, "tools": tools})
        ));
        return Ok(Exit::Completed);
    }
    let mut page = Page::new();
    let events = runs.last().map_or(0, |run| run.events);
    page.line(&format!(
        "wrote run {run} to {}: {}, {}",
        file.display(),
        counted(events, "event"),
        size(bytes)
    ));
    let sources = runs.iter().rev().skip(1);
    for source in sources.clone().take(SHOWN) {
        page.line(&format!("  with its source {}: {}", source.id, counted(source.events, "event")));
    }
    if sources.len() > SHOWN {
        page.line(&format!("  and {}", counted(sources.len() - SHOWN, "more source")));
    }
    if !tools.is_empty() {
        page.labelled("  with the tools", "", 17, &clean(&tools.join(", ")), 4);
    }
    page.line("  take it in elsewhere: selvedge import FILE");
    page.print(&ui);
    Ok(Exit::Completed)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => counted(bytes, "byte"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
