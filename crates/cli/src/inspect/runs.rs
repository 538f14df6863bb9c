//! `selvedge runs`: the recorded runs, newest first (C-12, C-15).

use super::args::RunsArgs;
use super::page::{BOLD, CYAN, DIM, GREEN, MAGENTA, Page, RED, Table, YELLOW};
use super::time;
use crate::args::Common;
use crate::asks;
use crate::durations::duration_cell;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_engine::{Asking, Fault, State};
use selvedge_host::Error;
use selvedge_host::places;
use selvedge_host::report::{self, failed_of};
use selvedge_runtime::{Clock, SystemClock};
use selvedge_store::{RunFilter, RunInfo, RunStatus, Store};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Columns of a run's name, where reasons of failures stand behind it; where there is room, and where there is not.
const NAME: usize = 24;
const SHORT_NAME: usize = 14;
/// Columns from which on there is room for whole times and names.
const ROOMY: usize = 100;
/// Runs that people are shown unasked: each row of the index is proved before it is listed (E-44), and nobody reads on.
const UNASKED: usize = 1_000;

/// A run of the list.
struct Row {
    info: RunInfo,
    /// False for a run that goes on by itself while no live process drives it (C-12).
    driven: bool,
    /// Why it has failed.
    fault: Option<Fault>,
    /// What it asks, where that is listed.
    asks: Vec<Question>,
}

/// An open ask of a run.
struct Question {
    /// As C-02 has it.
    object: Map<String, Value>,
    /// What answers it.
    command: String,
}

/// Lists runs.
pub(crate) fn runs(args: &RunsArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let dir = places::state_dir(&ui.environment, common.state_dir.as_deref())?;
    let status = if args.waiting { Some(RunStatus::Waiting) } else { args.status };
    let mut damaged = Vec::new();
    // One more, to know whether there are more.
    let unasked = !ui.json && !args.waiting && args.limit.is_none();
    let most = if unasked { UNASKED + 1 } else { args.limit.map_or(usize::MAX, |limit| limit as usize) };
    let mut rows = match selvedge_host::stores::open(&dir)? {
        Some(store) if args.waiting => waiting(&store, args, most, &mut damaged)?,
        Some(store) => rows(&store, status, args, most, &mut damaged)?,
        None => Vec::new(),
    };
    let ui = super::guarded(ui);
    if unasked && rows.len() > UNASKED {
        rows.truncate(UNASKED);
        ui.note(&format!("the latest {UNASKED} runs; `--limit N` lists more"));
    }
    if ui.json {
        let runs: Vec<Value> = rows.iter().map(object).collect();
        ui.result(&format!("{}\n", json!({"runs": runs})));
        return told(damaged, &ui);
    }
    if rows.is_empty() && damaged.is_empty() {
        let what = status.map(|status| format!("{status} ")).unwrap_or_default();
        let named =
            args.name.as_ref().map(|name| format!(" with {name:?} in their names")).unwrap_or_default();
        ui.note(&format!("no {what}runs{named} in {}", dir.display()));
        return Ok(Exit::Completed);
    }
    let mut page = Page::new();
    page.table(&table(&page, &rows));
    rows.iter().for_each(|row| questions(&mut page, row));
    page.print(&ui);
    told(damaged, &ui)
}

/// The runs that can be listed are; those that are damaged are an error all the same (E-44).
fn told(damaged: Vec<Error>, ui: &Ui) -> Result<Exit, Error> {
    let mut damaged = damaged.into_iter();
    let Some(first) = damaged.next() else { return Ok(Exit::Completed) };
    for other in damaged {
        crate::failure::print(&other, &Ui { json: false, ..ui.clone() });
    }
    Err(first)
}

fn rows(
    store: &Store,
    status: Option<RunStatus>,
    args: &RunsArgs,
    most: usize,
    damaged: &mut Vec<Error>,
) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    // Some that are listed as running may turn out to have ended.
    let limit = u32::try_from(most).ok().filter(|_| status != Some(RunStatus::Running));
    let runs = store.runs(&RunFilter { status, name: args.name.clone(), limit, children: args.children })?;
    damaged.extend(runs.damaged.into_iter().map(Error::from));
    for mut info in runs.sound {
        if rows.len() == most {
            break;
        }
        let mut driven = true;
        if info.status == RunStatus::Running {
            driven = super::is_driven(store, &info.id);
            // Read once more: it may have ended since it was listed.
            info = store.run(&info.id)?;
            driven |= info.status != RunStatus::Running;
            if status.is_some_and(|status| status != info.status) {
                continue;
            }
            if info.status == RunStatus::Running {
                match used(store, &info) {
                    Ok(used) => info.usage = used,
                    Err(failure) => damaged.push(failure),
                }
            }
        }
        let fault = failed_of(store, &info).unwrap_or_else(|error| {
            damaged.push(error.into());
            None
        });
        rows.push(Row { info, driven, fault, asks: Vec::new() });
    }
    Ok(rows)
}

/// Runs that ask somebody something, each with what it asks: those that wait for it, and those that go on meanwhile.
fn waiting(store: &Store, args: &RunsArgs, most: usize, damaged: &mut Vec<Error>) -> Result<Vec<Row>, Error> {
    let mut all = rows(store, Some(RunStatus::Waiting), args, most, damaged)?;
    all.extend(rows(store, Some(RunStatus::Running), args, most, damaged)?);
    all.sort_by_key(|row| std::cmp::Reverse(row.info.started_ms));
    for row in &mut all {
        match selvedge_runtime::load(store, &row.info.id, None, None) {
            Ok(loaded) => row.asks = asked(&loaded.state, &row.info.id),
            Err(error) => damaged.push(error.into()),
        }
    }
    all.retain(|row| row.info.status == RunStatus::Waiting || !row.asks.is_empty());
    all.truncate(most);
    Ok(all)
}

fn asked(state: &State, run: &str) -> Vec<Question> {
    let open = state.asks().iter().filter(|_| state.ended().is_none());
    let question = |(id, ask): (&Arc<str>, &Asking)| Question {
        object: asks::object(state, id, ask, Some(SystemClock.now_ms())),
        command: asks::answers(state, run, id),
    };
    open.map(question).collect()
}

/// What a run asks, each with the command that answers it.
fn questions(page: &mut Page, row: &Row) {
    if row.asks.is_empty() {
        return;
    }
    page.gap();
    page.line(&page.paint(BOLD, &row.info.id));
    for Question { object, command } in &row.asks {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        page.labelled(&format!("  {}", text("kind")), MAGENTA, 11, text("prompt"), 6);
        if let Some(until) = object.get("until").and_then(Value::as_str) {
            let label = if object.contains_key("expired") { "  expired" } else { "  until" };
            page.labelled(label, DIM, 11, until, 1);
        }
        if !object.contains_key("expired") {
            page.line(&format!("{:11}{command}", ""));
        }
    }
}

/// What a run has used that goes on: its row is written when it ends or waits, its journal knows.
fn used(store: &Store, info: &RunInfo) -> Result<String, Error> {
    let loaded = selvedge_runtime::load(store, &info.id, None, None)?;
    Ok(selvedge_runtime::usage(&loaded.state).to_string())
}

/// C-15's object.
fn object(row: &Row) -> Value {
    let mut fields = report::row(&row.info, row.driven, row.fault.as_ref());
    if !row.asks.is_empty() {
        let asks = row.asks.iter().map(|asked| {
            let mut ask = asked.object.clone();
            ask.insert("command".to_owned(), asked.command.as_str().into());
            Value::Object(ask)
        });
        fields.insert("asks".to_owned(), asks.collect());
    }
    Value::Object(fields)
}

fn table(page: &Page, rows: &[Row]) -> Table {
    let mut table =
        Table::new(&["RUN", "STATUS", "STARTED (UTC)", "TOOK", "COST", "DIALECT", "NAME", "WHY"], 7);
    // What names a run and says where it stands comes first, then what it cost.
    (table.spare, table.whole) = (vec![5, 3, 2, 4], vec![0, 2, 3, 4]);
    table.optional = vec![4, 7];
    let failed = rows.iter().any(|row| row.fault.is_some());
    if !failed {
        table.flexible = 6;
    }
    let tight = page.width < ROOMY;
    let name = if tight { SHORT_NAME } else { NAME };
    let times: Vec<String> = rows.iter().map(|row| time::plain(row.info.started_ms)).collect();
    // Of runs of one year nobody misses it where there is no room.
    let year = |time: &String| time.get(..5).map(str::to_owned);
    let same = tight && times.iter().all(|time| year(time) == times.first().and_then(year));
    let started = if same { 5..16 } else { 0..16 };
    for (Row { info, driven, fault, .. }, time) in rows.iter().zip(&times) {
        let (status, style) = status(info.status, *driven);
        let took = info.ended_ms.map(|ended| duration_cell(ended.saturating_sub(info.started_ms)));
        table.row([
            (info.id.clone(), BOLD),
            (status.to_owned(), style),
            (time.get(started.clone()).unwrap_or(time).to_owned(), ""),
            (took.unwrap_or_default(), DIM),
            (cost(&info.usage), DIM),
            (info.dialect.clone(), DIM),
            (if failed { page.short(&info.name, name) } else { info.name.clone() }, ""),
            (fault.as_ref().map(why).unwrap_or_default(), RED),
        ]);
    }
    table
}

/// What a run cost; nothing where no price is known.
fn cost(stored: &str) -> String {
    let usage: Map<String, Value> = serde_json::from_str(stored).unwrap_or_default();
    let cost = usage.get("cost").and_then(Value::as_f64).filter(|cost| *cost > 0.0);
    cost.map(|cost| format!("{:.4}", cost).trim_end_matches('0').trim_end_matches('.').to_owned())
        .map(|shown| if shown == "0" { "<0.0001".to_owned() } else { shown })
        .unwrap_or_default()
}

/// A fault in short: its kind, where, and what it said.
fn why(fault: &Fault) -> String {
    let at = fault.node.as_deref().map(|node| format!(" at {node}")).unwrap_or_default();
    format!("{}{at}: {}", fault.kind.name(), fault.message)
}

/// A folded run's status as the index has it.
pub(crate) fn stored(status: selvedge_engine::RunStatus) -> RunStatus {
    match status {
        selvedge_engine::RunStatus::Running => RunStatus::Running,
        selvedge_engine::RunStatus::Waiting => RunStatus::Waiting,
        selvedge_engine::RunStatus::Completed => RunStatus::Completed,
        selvedge_engine::RunStatus::Failed => RunStatus::Failed,
        selvedge_engine::RunStatus::Cancelled => RunStatus::Cancelled,
    }
}

/// A status for people, and its style.
pub(super) fn status(status: RunStatus, driven: bool) -> (&'static str, &'static str) {
    match status {
        RunStatus::Running if driven => ("running", CYAN),
        RunStatus::Running => ("running (not driven)", YELLOW),
        RunStatus::Waiting => ("waiting", MAGENTA),
        RunStatus::Completed => ("completed", GREEN),
        RunStatus::Failed => ("failed", RED),
        RunStatus::Cancelled => ("cancelled", YELLOW),
    }
}
