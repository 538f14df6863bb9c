//! `explain` for people: a line of time for each node, or one node in full.

use super::Subject;
use super::again;
use super::bars::{self, Scale};
use super::critical;
use super::statuses::reuse_words;
use super::table::table;
use super::tree::{self, Row, What as Shown};
use crate::durations::{duration, duration_cell, offset};
use crate::inspect::page::{BOLD, CYAN, DIM, GREEN, MAGENTA, Page, RED, Table, YELLOW, clean, cut, pad};
use crate::inspect::{runs, time};
use crate::live::text::{by_role, of_tools};
use crate::nodes::told;
use crate::printed::{message, parts};
use crate::recovery::Words as _;
use crate::ui::Ui;
use crate::words::command;
use selvedge_engine::RunStatus;
use selvedge_engine::graph::Control;
use selvedge_host::explain::{At, Explained, Saw, Seen, Shown as Models, Step};
use selvedge_host::text::counted;
use selvedge_host::timeline::{Activity, Durations, Moment, Rung, What};
use selvedge_runtime::{Clock, SystemClock};
use unicode_width::UnicodeWidthStr;

/// Columns of a node's id at most, also where it stands behind the paths that it is in.
const NODE: usize = 20;
const DEEP: usize = 28;
/// The column of the lines of time.
pub(super) const BARS: &str = "TIME";
/// Rows of the page; `--json` has all.
const ROWS: usize = 1_000;
/// Waits that one node's page lists, lines of its lists.
const WAITS: usize = 40;
pub(super) const LINES: usize = 12;
/// Lines of one step of the ladder among those of all nodes.
const TOLD: usize = 4;

/// Prints these nodes, or all, and the critical path if it is given.
pub(super) fn all(
    explained: &Explained<'_>,
    found: &Subject,
    nodes: Option<&[At]>,
    critical: Option<&[Step]>,
    ui: &Ui,
) {
    let mut page = Page::new();
    let room = page.width.saturating_sub(found.run().len() + 6).max(20);
    let name = page.short(&found.info.name, room);
    page.line(&format!("{}  {name}", page.paint(BOLD, &found.title())));
    head(&mut page, explained, found);
    if explained.graph.nodes.is_empty() {
        return page.print(ui);
    }
    page.gap();
    let times = explained.story.root().filter_map(|at| explained.story.extent(at));
    let scale = Scale::new(times.collect(), bars::width(page.width));
    let rows = match nodes {
        Some(nodes) => nodes.iter().map(|at| Row { depth: 0, what: Shown::Node(*at, None) }).collect(),
        None => tree::rows(&explained.story),
    };
    let deep = rows.iter().any(|row| row.depth > 0) || nodes.is_some();
    let short = |text: &str| page.short(text, (page.width / 5).min(if deep { DEEP } else { NODE }));
    let (table, bars) = table(explained, &scale, rows.get(..ROWS).unwrap_or(&rows), short);
    let left_out = page.table(&table);
    let more = rows.len().saturating_sub(ROWS);
    if more > 0 {
        page.line(&page.paint(DIM, &format!("… {more} more nodes: --json has all")));
    }
    if let Some(steps) = critical {
        critical::print(&mut page, explained, steps);
    }
    answers(&mut page, explained);
    failures(&mut page, explained);
    ladder(&mut page, explained, found);
    let shown = (!left_out.contains(&BARS)).then_some((&scale, bars.as_str()));
    legend(&mut page, explained, found, shown);
    tell_cut(&mut page, found);
    page.print(ui);
}

/// Says how all of the texts is seen, if one was cut. Of a simulated run there is no more to see.
fn tell_cut(page: &mut Page, found: &Subject) {
    if !found.simulated {
        page.tell_cut(&[command(&["show", found.run(), "--json"])]);
    }
}

fn head(page: &mut Page, explained: &Explained<'_>, found: &Subject) {
    let (status, style) = runs::status(runs::stored(explained.state.status()), found.driven);
    let story = &explained.story;
    let counts = told(&story.timeline.tally(story.until.at, explained.driven));
    // As in `show`: a fork's time is its own.
    let since = |to: i64| duration(to.saturating_sub(found.info.started_ms));
    let last = explained.story.timeline.first().map_or(found.info.started_ms, |_| explained.story.until.at);
    let lost = explained.state.status() == RunStatus::Running && !found.driven && !found.simulated;
    let took = match found.info.ended_ms {
        Some(to) => format!(", {}", since(to)),
        None if lost => String::new(),
        None => format!(", {} so far", since(last)),
    };
    page.labelled(&format!("  {status},"), style, status.len() + 4, &format!("{counts}{took}"), 3);
    let roles = by_role(explained.story.timeline.roles());
    if !roles.is_empty() {
        page.labelled("", "", 2, &format!("tokens by role: {}", roles.join(", ")), 4);
    }
    let tools = of_tools(explained.story.timeline.made());
    if !tools.is_empty() {
        page.labelled("", "", 2, &format!("tools: {}", tools.join("; ")), 4);
    }
    if lost {
        let text = format!(
            "no process drives it any more; its last event is of {} UTC, {} ago, and times end with it. It goes on with:",
            time::plain(last),
            duration(SystemClock.now_ms().saturating_sub(last))
        );
        page.labelled("", "", 2, &text, 4);
        page.line(&format!("  {}", command(&["resume", found.run()])));
    }
}

/// What people said, of the first few.
fn answers(page: &mut Page, explained: &Explained<'_>) {
    const ANSWERS: usize = 20;
    const INDENT: usize = 12;
    let nodes = explained.story.all();
    let said = nodes.flat_map(|node| explained.story.answers(node).map(move |answer| (node, answer)));
    for (at, (node, answer)) in said.take(ANSWERS).enumerate() {
        if at == 0 {
            page.gap();
            page.line(&page.paint(DIM, "ANSWERS"));
        }
        let id = cut(&clean(explained.name(node)), DEEP);
        let label = if id.width() + 2 > INDENT { format!("{id}  ") } else { pad(&id, INDENT) };
        page.labelled(&label, MAGENTA, label.width().max(INDENT), &answer.told(), LINES);
    }
}

/// Why nodes failed, with tracebacks and what was printed, of the first few.
fn failures(page: &mut Page, explained: &Explained<'_>) {
    const FAILURES: usize = 5;
    let failed = explained.story.all().filter(|node| explained.story.fault(*node).is_some());
    for (at, node) in failed.take(FAILURES).enumerate() {
        if at == 0 {
            page.gap();
            page.line(&page.paint(DIM, "FAILED"));
        }
        failure(page, explained, node);
    }
}

/// Why a node failed.
fn failure(page: &mut Page, explained: &Explained<'_>, node: At) {
    const INDENT: usize = 12;
    let Some((fault, printed)) = explained.story.fault(node) else { return };
    let printed = printed.map(|printed| &**printed);
    let id = cut(&clean(explained.name(node)), DEEP);
    let label = if id.len() + 2 > INDENT { format!("{id}  ") } else { pad(&id, INDENT) };
    let text = format!("{}: {}", fault.kind.name(), message(fault, printed));
    page.labelled(&label, RED, label.width().max(INDENT), &text, LINES);
    page.printed(INDENT, &parts(Some(fault), printed, LINES), YELLOW);
}

/// The ladder as it was climbed (D-22): what failed, what was decided by whom and at what cost, what came of it.
fn ladder(page: &mut Page, explained: &Explained<'_>, found: &Subject) {
    let rungs = explained.story.rungs();
    if rungs.is_empty() {
        return;
    }
    page.gap();
    page.line(&page.paint(DIM, heading(rungs.iter())));
    let shown = rungs.iter().take(ROWS);
    let most = if page.width == usize::MAX { usize::MAX } else { NODE };
    let cell = |rung: &Rung| {
        let since = offset(explained.story.line(rung).saturating_sub(found.info.started_ms));
        (cut(&clean(&rung.node), most), since)
    };
    let width = |of: &dyn Fn(&Rung) -> String| shown.clone().map(|rung| of(rung).width()).max().unwrap_or(0);
    let (node, since) = (width(&|rung| cell(rung).0), width(&|rung| cell(rung).1));
    for rung in shown {
        let (id, at) = cell(rung);
        let label = format!("{}  {at:>since$}  {:<7}  ", pad(&id, node), rung.what.word());
        page.labelled(&label, style(&rung.what), label.width(), &rung.what.told(), TOLD);
    }
    if rungs.len() > ROWS {
        page.line(&page.paint(DIM, &format!("… {} more: --json has all", rungs.len() - ROWS)));
    }
}

/// What stands above rungs of the ladder.
fn heading<'r>(mut rungs: impl Iterator<Item = &'r Rung>) -> &'static str {
    if rungs.all(|rung| matches!(rung.what, What::Planned { .. })) { "PLANNED" } else { "RECOVERY" }
}

fn style(what: &What) -> &'static str {
    match what {
        What::Fault { .. } | What::Ended { fault: Some(_) } => RED,
        What::Ended { fault: None } => GREEN,
        What::Planned { .. } => CYAN,
        What::Retry { .. } | What::Action { .. } | What::Skipped { .. } => YELLOW,
    }
}

fn legend(page: &mut Page, explained: &Explained<'_>, found: &Subject, shown: Option<(&Scale, &str)>) {
    page.gap();
    if let Some(text) = shown.and_then(|(_, bars)| bars::legend(bars)) {
        page.labelled("", "", 0, &text, 3);
    }
    let reused = explained.story.all().filter_map(|node| explained.story.reused(node));
    let reused: Vec<_> = reused.filter(|reused| reused.whole()).collect();
    if let Some(first) = reused.first() {
        page.labelled("", "", 0, &format!("{} {}", reused.len(), reuse_words(first)), 2);
    }
    let ahead = explained.story.all().filter(|node| explained.story.ran_ahead(*node)).count();
    if ahead > 0 {
        let text = format!("» {ahead} started before an earlier node of the list had finished");
        page.labelled("", "", 0, &text, 3);
    }
    if let Some((scale, _)) = shown.filter(|(scale, _)| scale.idle() > scale.total / 20) {
        let text = format!("the bars leave out {} in which no node ran", duration(scale.idle()));
        page.labelled("", "", 0, &text, 3);
    }
    let first = explained.story.all().find(|at| !explained.waits(*at).is_empty());
    if let Some(node) = first.filter(|_| !found.simulated) {
        // Steps work on no thread, and see no messages.
        let threads = explained.graph.nodes.values().any(|node| node.body.thread.is_some());
        let text = if threads { "reasons, and whose messages a node saw:" } else { "reasons:" };
        page.labelled("", DIM, 0, text, 3);
        page.line(&format!("  {}", command(&["explain", found.run(), "--node", explained.name(node)])));
    }
}

/// Prints one node.
pub(super) fn one((explained, shown): (&Explained<'_>, &Models), found: &Subject, node: At, ui: &Ui) {
    const INDENT: usize = 12;
    let mut page = Page::new();
    let name = explained.story.def(node).filter(|def| def.name != def.id).map_or("", |def| &def.name);
    let heading = format!("node {}", clean(explained.name(node)));
    page.line(&format!("{}  {}", page.paint(BOLD, &heading), clean(name)));
    let story = &explained.story;
    let after = |Moment { n, at }: Moment| match &found.info.fork {
        Some(fork) if n <= fork.events => format!("{} UTC, in run {}", time::plain(at), fork.run),
        _ => {
            let since = offset(at.saturating_sub(found.info.started_ms));
            format!("{} UTC, {since} after the run began", time::plain(at))
        }
    };
    let (started, ended) = (story.started(node), story.ended(node));
    let text = match (started, story.skipped(node)) {
        (Some(began), _) => after(began),
        (None, Some(because)) => format!("not at all: may depend on {because}, which has no result"),
        (None, None) => "not yet".to_owned(),
    };
    page.labelled("  started", DIM, INDENT, &text, 3);
    let sums = story.durations(node);
    if started.is_some() && ended.is_some() {
        let failed = if story.fault(node).is_some() { ", and failed" } else { "" };
        let (worked, total) = (duration(sums.worked()), duration(sums.total()));
        let text = if worked == total {
            worked
        } else {
            format!("{worked} of the {total} from its start to its end")
        };
        page.labelled("  took", DIM, INDENT, &format!("{text}{failed}"), 2);
    }
    for (label, text) in shares(&sums) {
        page.labelled(&format!("  {label}"), DIM, INDENT, &text, 2);
    }
    for answer in story.answers(node) {
        page.labelled("  answer", MAGENTA, INDENT, &answer.told(), LINES);
    }
    if let Some(reused) = explained.story.reused(node) {
        let edited = if explained.edited(node) { ", with an edited message" } else { "" };
        page.labelled("  result", DIM, INDENT, &format!("{}{edited}", reuse_words(&reused)), 2);
    }
    if started.is_some() && explained.graph.control == Control::Dataflow {
        let text = match explained.story.ran_ahead(node) {
            true => "yes: an earlier node of the list had not finished",
            false => "no: all earlier nodes of the list had finished",
        };
        page.labelled("  ahead", DIM, INDENT, text, 2);
    }
    if story.fault(node).is_some() {
        page.gap();
        failure(&mut page, explained, node);
    }
    waits(&mut page, explained, node, started.map_or(i64::MAX, |started| story.timeline.line(started)));
    again::show(&mut page, explained, node);
    saw(&mut page, explained, shown, node);
    each(&mut page, explained, node, found.info.started_ms);
    tell_cut(&mut page, found);
    page.print(ui);
}

/// Whose messages a node showed to a model, call by call.
fn saw(page: &mut Page, explained: &Explained<'_>, shown: &Models, node: At) {
    if explained.story.def(node).is_none_or(|def| def.body.thread.is_none()) {
        return;
    }
    let saw = Seen::new(&explained.story, explained.state, shown).calls(node);
    page.gap();
    page.line(&page.paint(DIM, "SAW MESSAGES OF"));
    let told = |saw: &Saw<'_>| match saw.from.len() {
        0 => "no other node".to_owned(),
        1..=10 => saw.from.join(", "),
        many => format!("{many} nodes: {}", saw.from.join(", ")),
    };
    let Some(last) = saw.last() else { return page.labelled("", "", 0, "no other node", LINES) };
    page.labelled("", "", 0, &told(last), LINES);
    // Mostly each saw what the others did, and more of its own.
    if saw.iter().any(|other| other.from != last.from) {
        for (at, saw) in saw.iter().enumerate().take(ROWS) {
            let text = format!("{}: {}", counted(saw.messages, "message"), told(saw));
            page.labelled(&format!("call {}", at + 1), DIM, 10, &text, LINES);
        }
    }
}

/// What a node's time went into, part by part.
fn shares(sums: &Durations) -> Vec<(&'static str, String)> {
    let waits = [
        (Activity::Asking, "for a person"),
        (Activity::Retrying, "for another try"),
        (Activity::Other, "for other nodes, the journal or a process that goes on with the run"),
    ];
    let waits = waits.iter().filter(|(doing, _)| sums.get(*doing) > 0);
    let waits = waits.map(|(doing, what)| ("waited", format!("{} {what}", duration(sums.get(*doing)))));
    let calls = [
        (Activity::InFlight, "calls", " out: work, or waiting for their turn"),
        (Activity::Queued, "queued", " until its calls had their turn"),
    ];
    let calls = calls.iter().filter(|(doing, ..)| sums.get(*doing) > 0);
    calls
        .map(|(doing, word, what)| (*word, format!("{}{what}", duration(sums.get(*doing)))))
        .chain(waits)
        .collect()
}

/// What was done about a node's faults, each in full.
fn each(page: &mut Page, explained: &Explained<'_>, node: At, began: i64) {
    const INDENT: usize = 20;
    for (at, rung) in explained.rungs(node).take(ROWS).enumerate() {
        if at == 0 {
            page.gap();
            page.line(&page.paint(DIM, heading(explained.rungs(node))));
        }
        let label =
            format!("{:<8} {}", rung.what.word(), offset(explained.story.line(rung).saturating_sub(began)));
        page.labelled(&label, style(&rung.what), INDENT, &rung.what.told(), LINES);
        if let What::Action { parameters: Some(parameters), .. } = &rung.what {
            page.labelled("", "", INDENT, &format!("with {parameters}"), LINES);
        }
    }
}

fn waits(page: &mut Page, explained: &Explained<'_>, node: At, started: i64) {
    let waited = explained.waits(node);
    page.gap();
    if waited.is_empty() {
        return page.labelled("waited for", DIM, 12, "no node", 1);
    }
    let mut table = Table::new(&["WAITED FOR", "ENDED", "WHY"], 2);
    let last = waited.iter().filter_map(|waited| explained.story.ended(waited.at));
    let last = last.map(|ended| ended.n).max();
    for waited in waited.iter().take(WAITS) {
        let ended = explained.story.ended(waited.at);
        let line = ended.map_or(0, |ended| explained.story.timeline.line(ended));
        let text = match ended {
            None => "not yet".to_owned(),
            // The node itself has not started, or never will.
            Some(_) if started == i64::MAX => "yes".to_owned(),
            Some(_) if line <= started => format!("{} before", duration_cell(started - line)),
            // Only its calls had to wait.
            Some(_) => format!("{} after", duration_cell(line - started)),
        };
        let style = if ended.map(|ended| ended.n) == last { YELLOW } else { "" };
        let id = page.short(explained.name(waited.at), DEEP);
        table.row([(id, BOLD), (text, style), (waited.why.clone(), "")]);
    }
    page.table(&table);
    if waited.len() > WAITS {
        page.line(&page.paint(DIM, &format!("… {} more: --json has all", waited.len() - WAITS)));
    }
}
