//! The page that `show RUN` prints for people.

use super::{Moment, advice::advice, joins, threads};
use crate::afresh;
use crate::asks::{self, SAME_QUESTION, answers, called, prompt};
use crate::durations::duration;
use crate::inspect::events::of_fork;
use crate::inspect::page::{BOLD, CYAN, DIM, GREEN, MAGENTA, Page, RED, Table, YELLOW, clean};
use crate::inspect::{Found, runs, time};
use crate::live::text::cut;
use crate::nodes::told;
use crate::output::Report;
use crate::printed;
use crate::ui::Ui;
use crate::ways::{self, KEPT, listed};
use crate::words::command;
use selvedge_engine::{Event, RunStatus, State, StepResult, View};
use selvedge_host::report::{Said, is_imported};
use selvedge_host::text::counted;
use selvedge_host::timeline::Timeline;
use selvedge_runtime::{Clock, SystemClock};
use selvedge_store::RunStatus as Stored;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

/// Where values stand behind their names.
const INDENT: usize = 12;
/// Rows of the table of results, lines of the output and of a fault.
const RESULTS: usize = 50;
/// Characters of a result in that table.
const RESULT: usize = 400;
const OUTPUT: usize = 20;
const FAULT: usize = 12;
const WARNINGS: usize = 20;
const ANSWERS: usize = 20;

/// Prints a run for people.
pub(super) fn print(
    found: &Found,
    (report, timeline): (&Report<'_>, &Timeline),
    said: &[Said],
    moment: Moment,
    ui: &Ui,
) {
    let view = report.state.view();
    let mut page = Page::new();
    head(&mut page, found, (report, timeline), view, moment);
    fault(&mut page, found, report, view);
    open_asks(&mut page, report, view.status());
    answered(&mut page, report.state, said);
    threads::summary(&mut page, view, report.run);
    results(&mut page, report.state, view);
    joins::table(&mut page, view);
    output(&mut page, view.output());
    warnings(&mut page, report);
    page.tell_cut(&[
        command(&["show", report.run, "--json"]),
        command(&["show", report.run, "--thread", "NAME"]),
    ]);
    page.print(ui);
}

fn head(
    page: &mut Page,
    found: &Found,
    (report, timeline): (&Report<'_>, &Timeline),
    view: View<'_>,
    moment: Moment,
) {
    let info = &found.info;
    let room = page.width.saturating_sub(info.id.len() + 6).max(20);
    let name = page.short(&info.name, room);
    page.line(&format!("{}  {name}", page.paint(BOLD, &format!("run {}", info.id))));
    let (status, style) = runs::status(runs::stored(view.status()), report.driven);
    page.line(&format!("  {}{}", page.paint(DIM, "status    "), page.paint(style, status)));
    if moment.at < moment.of {
        page.labelled("  as of", DIM, INDENT, &format!("event {} of {}", moment.at, moment.of), 1);
    }
    let took =
        info.ended_ms.map(|ended| format!(", took {}", duration(ended.saturating_sub(info.started_ms))));
    let started = time::plain(info.started_ms);
    page.labelled("  started", DIM, INDENT, &format!("{started} UTC{}", took.unwrap_or_default()), 2);
    let tally = timeline.tally(SystemClock.now_ms(), report.driven);
    page.labelled("  nodes", DIM, INDENT, &format!("{}, {} dialect", told(&tally), info.dialect), 2);
    let used = report.state.usage();
    let mut usage = format!(
        "{}, {}, {} input and {} output tokens",
        counted(used.model_calls, "model call"),
        counted(used.tool_calls, "tool call"),
        used.tokens.input,
        used.tokens.output
    );
    if used.tokens.cost > 0.0 {
        usage.push_str(&format!(", cost {}", used.tokens.shown_cost()));
    }
    page.labelled("  usage", DIM, INDENT, &usage, 3);
    let saved = afresh::saved(&report.state.saved());
    if !saved.is_empty() {
        let text = format!("{saved}, which stand or were taken from what is recorded");
        page.labelled("  saved", DIM, INDENT, &text, 3);
    }
    if report.scripted {
        page.labelled("  model", DIM, INDENT, "scripted: replies come from a file of rules", 2);
    }
    if is_imported(info) {
        page.labelled("  imported", DIM, INDENT, "it was recorded elsewhere; a fork of it is your own", 2);
    }
    if let Some(fork) = &info.fork {
        // Its own first event knows how long the source was; before it there was no fork.
        let journal = || found.store.journal(found.run(), fork.events + 1).ok();
        let first = (moment.at > fork.events).then(journal).flatten();
        let first = first.and_then(|mut own| own.next()?.ok());
        let text = match first.and_then(|entry| selvedge_runtime::recorded(entry.json.as_bytes()).ok()) {
            Some(Event::Forked(own)) => of_fork(&fork.run, fork.events, own.events),
            _ => format!("{} at event {}", fork.run, fork.events),
        };
        page.labelled("  fork of", DIM, INDENT, &text, 2);
    }
}

/// Why the run did not complete, and what to do (C-04).
fn fault(page: &mut Page, found: &Found, report: &Report<'_>, view: View<'_>) {
    let run = report.run;
    if view.status() == RunStatus::Running && !report.driven {
        page.gap();
        let text = "no process drives it any more; it goes on where it was with:";
        page.labelled("", "", 0, text, 3);
        page.line(&format!("  {}", command(&["resume", run])));
    }
    let Some(fault) = view.fault() else { return };
    page.gap();
    let node = fault.node.as_deref().map(|node| report.state.told_name(node));
    let place = node.map(|node| format!(" at node {}", clean(&node))).unwrap_or_default();
    page.line(&format!("{}{place}", page.paint(RED, &format!("fault[{}]", fault.kind.name()))));
    let said = printed::of_fault(&found.store, run, fault);
    page.labelled("", "", 2, printed::message(fault, said.as_ref()), FAULT);
    if let Some(cause) = printed::cause(fault) {
        page.labelled("  cause", DIM, INDENT, &cause.to_string(), FAULT);
    }
    page.printed(INDENT, &printed::parts(Some(fault), said.as_ref(), FAULT), YELLOW);
    page.labelled("  do", CYAN, INDENT, advice(fault), 4);
    // What is shown may be a moment before a resume; the advice is about the present.
    if view.status() == RunStatus::Failed && found.info.status == Stored::Failed {
        let (said, ways) = match report.state.declined() {
            Some((ask, _)) => (SAME_QUESTION.to_owned(), asks::ways(run, ask)),
            None => (format!("{KEPT}; to go on:"), ways::ways(report.store, run, report.state)),
        };
        page.labelled("", "", INDENT, &said, 3);
        listed(&ways, INDENT, page.width).iter().for_each(|line| page.line(line));
    }
}

/// Open asks, each with the command that answers it (E-21).
fn open_asks(page: &mut Page, report: &Report<'_>, status: RunStatus) {
    let state = report.state;
    if state.ended().is_some() || state.asks().is_empty() {
        return;
    }
    page.gap();
    let text = match status {
        RunStatus::Waiting => "waits for a person",
        _ if report.driven => "asks a person meanwhile",
        _ => "also waits for a person",
    };
    page.line(&page.paint(MAGENTA, text));
    for (id, ask) in state.asks() {
        page.labelled("", "", 2, &prompt(state, ask), FAULT);
        if let Some(until) = asks::until(state, id, report.now) {
            page.line(&format!("    {until}"));
        }
        // In one line, so that it can be copied.
        if !asks::is_expired(state, id, report.now) {
            page.line(&format!("    {}", answers(state, report.run, id)));
        }
    }
    if let Some(next) =
        asks::next_timer(state, report.run, report.now).filter(|_| status == RunStatus::Waiting)
    {
        page.labelled("", "", 2, &next, 2);
    }
}

/// What people said, with who said it and why (E-21); a word that was taken back stands before the one that did.
fn answered(page: &mut Page, state: &State, said: &[Said]) {
    for (at, answer) in said.iter().take(ANSWERS).enumerate() {
        if at == 0 {
            page.gap();
            page.line(&page.paint(MAGENTA, "answers"));
        }
        let label = format!("  {}  ", clean(&called(state, answer.ask())));
        page.labelled(&label, DIM, label.width().max(INDENT), &answer.told(), FAULT);
    }
    if said.len() > ANSWERS {
        let text = format!("… {} more: show --events has all", said.len() - ANSWERS);
        page.line(&page.paint(DIM, &text));
    }
}

fn results(page: &mut Page, state: &State, view: View<'_>) {
    let shown = view.results().count();
    let ahead = state.live_view().results().count().saturating_sub(shown);
    if shown == 0 && ahead == 0 {
        return;
    }
    page.gap();
    let mut table = Table::new(&["NODE", "NAME", "TOOL", "TRIES", "RESULT"], 4);
    (table.spare, table.whole) = (vec![1, 2], vec![3]);
    for result in view.results().take(RESULTS) {
        let (text, style) = outcome(&result);
        let short = |text: &str| page.short(text, 20);
        table.row([
            (short(&result.name), BOLD),
            (short(if result.step_name == result.step_id { "" } else { result.step_name }), ""),
            (short(result.tool_id.unwrap_or("")), DIM),
            (result.attempts.to_string(), DIM),
            (text, style),
        ]);
    }
    page.table(&table);
    if shown > RESULTS {
        page.line(&page.paint(DIM, &format!("… {} more: --json has all", shown - RESULTS)));
    }
    if ahead > 0 {
        let text = format!(
            "… {ahead} more ran ahead of what comes before: kept, and shown once the run has come to it"
        );
        page.labelled("", "", 0, &text, 2);
    }
}

fn outcome(result: &StepResult<'_>) -> (String, &'static str) {
    match result.error {
        Some(fault) => (cut(&format!("{}: {}", fault.kind.name(), fault.message), RESULT), RED),
        None => (short_value(result.output), ""),
    }
}

/// The beginning of a value: more would not fit into a line.
fn short_value(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    cut(&text, RESULT)
}

fn output(page: &mut Page, output: &Value) {
    let text = match output {
        Value::Null => return,
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    };
    page.gap();
    page.line(&page.paint(GREEN, "output"));
    page.labelled("", "", 2, &text, OUTPUT);
}

fn warnings(page: &mut Page, report: &Report<'_>) {
    let mut warnings = report.reported().warnings();
    // Said above, with the command.
    warnings.retain(|warning| &*warning.code != "not_driven");
    if warnings.is_empty() {
        return;
    }
    page.gap();
    for warning in warnings.iter().take(WARNINGS) {
        let node = warning.node.as_deref().map(|node| format!("{node}: ")).unwrap_or_default();
        page.labelled("warning", YELLOW, 9, &format!("{node}{} [{}]", warning.message, warning.code), 6);
    }
    if warnings.len() > WARNINGS {
        page.line(&page.paint(DIM, &format!("… {} more: --json has all", warnings.len() - WARNINGS)));
    }
}
