//! `selvedge tools list --run`: what the tasks of a run have made.

use super::history::{author, why};
use super::list::style;
use crate::failure::Exit;
use crate::inspect::page::{BOLD, DIM, GREEN, Page, Table};
use crate::ui::Ui;
use selvedge_engine::library::{Library, Life, Place, Version};
use selvedge_host::library::short;
use selvedge_host::{Error, stores};
use selvedge_store::Store;
use serde_json::{Value, json};
use std::sync::Arc;

/// A version in the place of a task.
struct Made<'l> {
    /// The frame that the task is in its run; empty for the run itself.
    task: &'l str,
    life: &'l Life,
    version: &'l Version,
    name: Arc<str>,
}

/// Lists them, oldest first.
pub(super) fn list(run: &str, store: Option<&Store>, library: &Library, ui: &Ui) -> Result<Exit, Error> {
    let Some(store) = store else {
        let message = format!("there is no run \"{run}\": the state folder holds no runs");
        return Err(Error::usage("C-12", "unknown-run", &message).help("check --state-dir"));
    };
    let run = stores::find_run(store, run)?;
    let mut made = made(library, &run);
    made.sort_by_key(|made| (made.version.drafted, Arc::clone(&made.version.hash)));
    if ui.json {
        let tools: Vec<Value> = made.iter().map(object).collect();
        ui.result(&format!("{}\n", json!({"run": run, "tools": tools})));
        return Ok(Exit::Completed);
    }
    if made.is_empty() {
        ui.note(&format!("run {run} has made no tools"));
        return Ok(Exit::Completed);
    }
    let header = ["NAME", "STATE", "PROVEN", "VERSION", "FROM", "BY", "CALLS", "TASK", "WHY"];
    let mut table = Table::new(&header, 8);
    (table.spare, table.whole) = (vec![7, 5, 4], vec![2, 6]);
    for made in &made {
        let (calls, failing) = super::list::counted(made.version);
        let calls = if failing > 0 { format!("{calls}, {failing} failed") } else { calls.to_string() };
        let state = made.life.stage.name();
        let parents: Vec<&str> = made.version.parents.iter().map(|parent| short(parent)).collect();
        let reason = if made.life.reason.is_empty() { why(made.version) } else { made.life.reason.clone() };
        table.row([
            (made.name.to_string(), BOLD),
            (state.to_owned(), style(Some(state))),
            (
                if made.life.proven { "yes" } else { "no" }.to_owned(),
                if made.life.proven { GREEN } else { DIM },
            ),
            (short(&made.version.hash).to_owned(), DIM),
            (parents.join(", "), DIM),
            (author(&made.version.author), ""),
            (calls, ""),
            (made.task.to_owned(), DIM),
            (reason, ""),
        ]);
    }
    let mut page = Page::new();
    page.table(&table);
    page.print(ui);
    Ok(Exit::Completed)
}

fn made<'l>(library: &'l Library, run: &str) -> Vec<Made<'l>> {
    let mut found = Vec::new();
    for version in library.versions() {
        for (place, life) in &version.lives {
            let Place::Task(task) = place else { continue };
            let rest = task.strip_prefix(run);
            if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
                let name = Arc::clone(&version.name);
                found.push(Made { task: rest.trim_start_matches('/'), life, version, name });
            }
        }
    }
    found
}

fn object(made: &Made<'_>) -> Value {
    let (calls, failing) = super::list::counted(made.version);
    json!({
        "name": made.name,
        "version": made.version.hash,
        "task": made.task,
        "state": made.life.stage.name(),
        "proven": made.life.proven,
        "reason": made.life.reason,
        "author": made.version.author,
        "parents": made.version.parents,
        "request": made.version.request,
        "calls": {"recorded": calls, "failing": failing},
    })
}
