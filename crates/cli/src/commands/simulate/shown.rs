//! What a simulation found, for people and as JSON.

use super::args::SimulateArgs;
use crate::failure::Exit;
use crate::inspect::page::{BOLD, DIM, GREEN, Page, RED};
use crate::inspect::{events, explain};
use crate::names;
use crate::ui::Ui;
use selvedge_engine::{Event, Outcome, Record, RunStatus, State};
use selvedge_host::text::counted;
use selvedge_host::timeline::Followed;
use selvedge_store::RunInfo;
use selvedge_world::{Finding, Hit, Report, Stop, Trial};
use serde_json::{Value, json};

/// Columns before the texts of a finding.
const INDENT: usize = 12;
/// Events of a finding that people are shown.
const EVENTS: usize = 12;
/// Names of a list that people are shown.
const NAMES: usize = 20;

/// What counts as a finding.
const FINDINGS: &str = "a run that only fails of injected faults is no finding; findings are \
    joins that are never met, questions that nobody answers and that nothing ends, runs that reach a limit, results \
    that depend on the order of calls, writes that are repeated, cut off or of unknown outcome, and bugs of Selvedge";
/// What is said of the run of one seed that failed and shows no finding.
const FAILS: &str = "nothing: that a run fails of injected faults is no finding";

/// Prints what a search found.
pub(super) fn report(report: &Report, args: &SimulateArgs, ui: &Ui) -> Exit {
    if ui.json {
        let unreached = &report.unreached;
        let edges = |edges: &[(String, String)]| -> Vec<Value> {
            edges.iter().map(|(from, to)| json!({"from": from, "to": to})).collect()
        };
        let failures = report.calm.iter().map(
            |((node, kind), (count, seed))| json!({"node": node, "kind": kind, "runs": count, "seed": seed}),
        );
        let object = json!({
            "seeds": report.seeds,
            "runs": report.runs,
            "completed": report.completed,
            "failed": report.failed,
            "waiting": report.waiting,
            "findings": report.findings.iter().map(object).collect::<Vec<_>>(),
            "unreached": {
                "nodes": unreached.nodes,
                "edges": edges(&unreached.edges),
                "handlers": edges(&unreached.handlers),
            },
            "failures": failures.collect::<Vec<_>>(),
        });
        ui.result(&format!("{object}\n"));
    } else {
        let mut page = Page::new();
        summary(&mut page, report, args);
        for finding in &report.findings {
            shown(&mut page, finding, args);
        }
        covered(&mut page, report);
        page.print(ui);
    }
    match (report.findings.is_empty(), report.interrupted && args.time_limit.is_none()) {
        (false, _) => Exit::Failed,
        (true, true) => Exit::Interrupted,
        (true, false) => Exit::Completed,
    }
}

/// Prints the run of one seed.
pub(super) fn seed(seed: u64, trial: &Trial, findings: &[Finding], args: &SimulateArgs, ui: &Ui) -> Exit {
    let exit = if findings.is_empty() { Exit::Completed } else { Exit::Failed };
    if ui.json {
        let object = json!({
            "seeds": 1,
            "seed": seed,
            "status": trial.state.status(),
            "faults": hits(&trial.state, &trial.hits),
            "findings": findings.iter().map(object).collect::<Vec<_>>(),
            "trace": selvedge_host::report::events(&trial.state, &trial.records),
        });
        ui.result(&format!("{object}\n"));
        return exit;
    }
    let mut page = Page::new();
    page.line(&page.paint(BOLD, &format!("seed {seed} of {}", args.file.display())));
    // Where it finds something, the run is shown that takes no more bad luck than that.
    let (state, records, luck) = match findings.first() {
        Some(Finding { state, records, hits, .. }) => (state, records, hits),
        None => (&trial.state, &trial.records, &trial.hits),
    };
    if findings.is_empty() {
        luck_of(&mut page, "  bad luck", &hits(state, luck));
        let ends = match trial.stop {
            Stop::Waiting => "nothing: the run waits for a person",
            _ if trial.state.status() == RunStatus::Failed => FAILS,
            _ => "nothing",
        };
        page.labelled("  finds", DIM, INDENT, ends, 3);
    }
    findings.iter().for_each(|finding| shown(&mut page, finding, args));
    page.gap();
    ui.page(&page.take());
    let mut run = Followed::new(state.graph());
    records.iter().for_each(|record| run.take(record));
    explain::simulated(run_info(seed, state, records, args), &run, ui);
    exit
}

/// What bad luck a run had.
fn luck_of(page: &mut Page, label: &str, luck: &[String]) {
    if luck.is_empty() {
        page.labelled(label, DIM, INDENT, "no fault at all", 1);
    }
    for (at, hit) in luck.iter().enumerate().take(NAMES) {
        page.labelled(if at == 0 { label } else { "" }, DIM, INDENT, hit, 2);
    }
    let left_out = luck.len().saturating_sub(NAMES);
    if left_out > 0 {
        page.labelled("", DIM, INDENT, &format!("… {left_out} more: --json has all"), 1);
    }
}

fn run_info(seed: u64, state: &State, records: &[Record], args: &SimulateArgs) -> RunInfo {
    let at = |record: Option<&Record>| record.map_or(0, |record| record.at);
    let ended = state.ended().map(|_| at(records.last()));
    RunInfo {
        id: format!("seed {seed}"),
        name: args.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
        dialect: String::new(),
        status: crate::inspect::stored(state.status()),
        started_ms: at(records.first()),
        ended_ms: ended,
        usage: String::new(),
        graph: None,
        scripted: true,
        options: String::new(),
        fork: None,
        parent: None,
    }
}

fn summary(page: &mut Page, report: &Report, args: &SimulateArgs) {
    let seeds = counted(report.seeds, "seed");
    let file = args.file.display();
    page.line(&page.paint(BOLD, &format!("{file}: {seeds}, {}", counted(report.runs, "run"))));
    let Report { completed, failed, waiting, .. } = report;
    let open = report.seeds.saturating_sub(completed + failed + waiting);
    let open = if open > 0 { format!(", {open} did not end") } else { String::new() };
    page.line(&format!(
        "  of the seeds' own runs {completed} completed, {failed} failed, {waiting} waited for a person{open}"
    ));
    if report.endless {
        page.line("  the search ended early: too many runs do not end");
    }
    if report.interrupted {
        page.line("  the search was ended before all seeds were looked at");
    }
    match report.findings.len() {
        0 => {
            page.line(&page.paint(GREEN, "no findings"));
            page.labelled("", "", 2, FINDINGS, 4);
        }
        count => page.line(&page.paint(RED, &counted(count as u64, "finding"))),
    }
}

fn shown(page: &mut Page, finding: &Finding, args: &SimulateArgs) {
    page.gap();
    let Finding { seed, kind, message, hits: luck, records, state, .. } = finding;
    page.labelled(&format!("{}  ", kind.name()), RED, kind.name().len() + 2, message, 6);
    if args.seed.is_none() {
        page.labelled("  seed", DIM, INDENT, &seed.to_string(), 1);
    }
    luck_of(page, "  it takes", &hits(state, luck));
    page.labelled("  way out", DIM, INDENT, kind.way_out(), 4);
    if args.seed.is_none() {
        trace(page, state, records);
        let all = format!("the same command with --seed {seed} shows the run");
        page.labelled("  all of it", DIM, INDENT, &all, 2);
    }
}

/// The last events of a run that say what went wrong.
fn trace(page: &mut Page, state: &State, records: &[Record]) {
    let telling = |event: &Event| {
        matches!(
            event,
            Event::Completed { outcome: Outcome::Failed(_), .. }
                | Event::NodeFinished { fault: Some(_), .. }
                | Event::Left { joined: Some(_), .. }
                | Event::Lost { .. }
                | Event::Asked(_)
                | Event::Answered { .. }
                | Event::Fired { .. }
                | Event::Retried { .. }
                | Event::Entered { .. }
                | Event::Ended { .. }
        )
    };
    let count = records.iter().filter(|record| telling(&record.event)).count();
    let from = records.iter().enumerate().filter(|(_, record)| telling(&record.event));
    let from = from.map(|(at, _)| at).nth(count.saturating_sub(EVENTS)).unwrap_or(0);
    if count == 0 {
        return;
    }
    events::lines(page, state, records, from, telling);
}

fn covered(page: &mut Page, report: &Report) {
    let unreached = &report.unreached;
    let edges =
        |edges: &[(String, String)]| edges.iter().map(|(from, to)| format!("{from} → {to}")).collect();
    let lists: [(&str, Vec<String>); 3] = [
        ("  nodes", unreached.nodes.clone()),
        ("  edges", edges(&unreached.edges)),
        ("  on error", edges(&unreached.handlers)),
    ];
    if lists.iter().any(|(_, names)| !names.is_empty()) {
        page.gap();
        page.line(&page.paint(DIM, "NEVER REACHED"));
        for (label, names) in lists.iter().filter(|(_, names)| !names.is_empty()) {
            let left_out = names.len().saturating_sub(NAMES);
            let more = if left_out > 0 { format!(", … {left_out} more") } else { String::new() };
            let names = names.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
            page.labelled(label, "", INDENT, &format!("{names}{more}"), 4);
        }
    }
    if !report.calm.is_empty() {
        page.gap();
        page.line(&page.paint(DIM, "FAILED THOUGH NOTHING WENT WRONG"));
        for ((node, kind), (count, seed)) in report.calm.iter().take(NAMES) {
            page.labelled("", "", 2, &format!("{node}: {kind}, {} (seed {seed})", counted(*count, "run")), 2);
        }
    }
}

/// C-18's object of a finding.
fn object(finding: &Finding) -> Value {
    let Finding { seed, kind, node, message, hits: luck, records, state } = finding;
    json!({
        "seed": seed,
        "kind": kind.name(),
        "node": node,
        "message": message,
        "help": kind.way_out(),
        "faults": hits(state, luck),
        "trace": selvedge_host::report::events(state, records),
    })
}

/// Bad luck in words.
fn hits(state: &State, hits: &[Hit]) -> Vec<String> {
    let word = |hit: &Hit| match hit {
        Hit::Fault(effect, kind) => format!("{} fails: {}", names::effect(state, effect), kind.name()),
        Hit::Silence(ask) => format!("nobody answers {}", names::call(state, ask)),
        Hit::Crash(events) => format!("the process dies after event {events}"),
    };
    hits.iter().map(word).collect()
}
