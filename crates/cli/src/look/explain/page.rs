//! `explain` for people: a line of time for each node, or one node in full.

use super::story::Moment;
use super::{Explained, Schedule};
use crate::hints::command;
use crate::look::page::{BOLD, CYAN, DIM, GREEN, Page, RED, Table, YELLOW, clean, cut, pad};
use crate::look::{Found, runs, time};
use crate::printed::parts;
use crate::progress::seconds;
use crate::recovery::{Rung, What};
use crate::ui::Ui;
use selvedge_engine::{Ix, NodeIx, RunStatus};
use unicode_width::UnicodeWidthStr;

/// Columns of a node's id at most, and of its line of time.
const NODE: usize = 20;
const BAR: (usize, usize) = (16, 60);
/// Rows of the page; `--json` has all.
const ROWS: usize = 1_000;
/// Waits that one node's page lists, lines of its lists.
const WAITS: usize = 40;
const LINES: usize = 12;
/// Lines of one step of the ladder among those of all nodes.
const TOLD: usize = 4;

/// Prints all nodes.
pub(super) fn all(explained: &Explained, found: &Found, status: RunStatus, ui: &Ui) {
    let mut page = Page::new();
    let room = page.width.saturating_sub(found.run().len() + 6).max(20);
    let name = cut(&clean(&found.info.name), room);
    page.line(&format!("{}  {name}", page.paint(BOLD, &format!("run {}", found.run()))));
    head(&mut page, explained, found, status);
    if explained.graph.nodes.is_empty() {
        return page.print(ui);
    }
    page.gap();
    let scale = Scale::new(explained, bar_width(page.width));
    page.table(&table(explained, &scale, (page.width / 5).min(NODE)));
    let more = explained.graph.nodes.len().saturating_sub(ROWS);
    if more > 0 {
        page.line(&page.paint(DIM, &format!("… {more} more nodes: --json has all")));
    }
    failures(&mut page, explained, found);
    ladder(&mut page, &explained.story.rungs, found);
    legend(&mut page, explained, found, &scale);
    page.print(ui);
}

fn head(page: &mut Page, explained: &Explained, found: &Found, status: RunStatus) {
    let (status, style) = runs::status(runs::stored(status), found.driven);
    let nodes = explained.story.nodes.len();
    let started = explained.story.nodes.iter().filter(|told| told.started.is_some()).count();
    let ended = explained.story.nodes.iter().filter(|told| told.ended.is_some() && !told.failed).count();
    let mut counts = format!("{ended} of {nodes} nodes done");
    let failed = explained.story.nodes.iter().filter(|told| told.failed).count();
    if failed > 0 {
        counts.push_str(&format!(", {failed} failed"));
    }
    let skipped = explained.story.nodes.iter().filter(|told| told.skipped.is_some()).count();
    if skipped > 0 {
        counts.push_str(&format!(", {skipped} skipped"));
    }
    if started + skipped < nodes {
        counts.push_str(&format!(", {} not started", nodes - started - skipped));
    }
    // As in `show`: a fork's time is its own.
    let ended = found.info.ended_ms;
    let took = ended.map(|to| format!(", {}", seconds(to.saturating_sub(found.info.started_ms))));
    let took = took.unwrap_or_default();
    page.line(&format!("  {}, {counts}{took}", page.paint(style, status)));
}

/// Columns of the lines of time: a third of the page, less of a narrow one.
fn bar_width(page: usize) -> usize {
    (if page < 100 { page / 4 } else { page / 3 }).clamp(BAR.0, BAR.1)
}

/// The time in which any node ran, on so many columns. Time in which none did, between a failure and its resume
/// for example, takes no room.
struct Scale {
    /// Times when nodes ran, merged, each with the milliseconds before it.
    busy: Vec<(i64, i64, i64)>,
    total: i64,
    width: usize,
    now: i64,
}

impl Scale {
    fn new(explained: &Explained, width: usize) -> Self {
        let now = explained.story.from_to.map_or(0, |(_, to)| to);
        let told = explained.story.nodes.iter();
        let mut times: Vec<(i64, i64)> = told
            .filter_map(|told| {
                let started = told.started?.at;
                Some((started, told.ended.map_or(now, |ended| ended.at).max(started)))
            })
            .collect();
        times.sort_unstable();
        let (mut busy, mut total): (Vec<(i64, i64, i64)>, i64) = (Vec::new(), 0);
        for (from, to) in times {
            match busy.last_mut() {
                Some((_, end, _)) if from <= *end => {
                    total += (to - *end).max(0);
                    *end = to.max(*end);
                }
                _ => {
                    busy.push((from, to, total));
                    total += to - from;
                }
            }
        }
        Self { busy, total, width, now }
    }

    /// How long no node ran between the first and the last that did.
    fn idle(&self) -> i64 {
        let whole = self.busy.first().zip(self.busy.last()).map(|(first, last)| last.1 - first.0);
        whole.unwrap_or_default() - self.total
    }

    /// The column in which a time stands.
    fn column(&self, at: i64) -> usize {
        let part = self.busy.iter().rev().find(|(from, ..)| *from <= at);
        let since = part.map_or(0, |(from, to, before)| before + (at.min(*to) - from));
        let total = usize::try_from(self.total.max(1)).unwrap_or(1);
        usize::try_from(since).unwrap_or_default().saturating_mul(self.width) / total
    }

    /// A bar from `from` to `to`, at least one column long.
    fn bar(&self, from: i64, to: Option<i64>) -> String {
        let start = self.column(from).min(self.width.saturating_sub(1));
        let end = self.column(to.unwrap_or(self.now)).clamp(start + 1, self.width.max(start + 1));
        let drawn = if to.is_some() { "█" } else { "▒" };
        // Shorter than a column.
        let instant = to.is_some() && self.column(from) == self.column(to.unwrap_or(from));
        let drawn = if instant { "▏".to_owned() } else { drawn.repeat(end - start) };
        pad(&format!("{}{drawn}", " ".repeat(start)), self.width)
    }
}

fn table(explained: &Explained, scale: &Scale, id: usize) -> Table {
    let mut table = Table::new(&["NODE", " ", "NAME", "TIME", "TOOK", "WAITED FOR"], 5);
    table.spare = Some(2);
    for (node, def) in explained.graph.nodes.iter().take(ROWS) {
        let told = explained.story.nodes.get(node.get());
        let started = told.and_then(|told| told.started);
        let ended = told.and_then(|told| told.ended);
        let ahead = explained.story.ran_ahead(node);
        let bar = started.map(|started| scale.bar(started.at, ended.map(|ended| ended.at)));
        let skipped = told.is_some_and(|told| told.skipped.is_some());
        let (took, style) = match (started, ended, told.is_some_and(|told| told.failed)) {
            (None, ..) if skipped => ("skipped".to_owned(), YELLOW),
            (None, ..) => ("not started".to_owned(), DIM),
            (Some(_), None, _) => ("not ended".to_owned(), YELLOW),
            (Some(from), Some(to), false) => (seconds(to.at.saturating_sub(from.at)), ""),
            (Some(from), Some(to), true) => {
                (format!("failed {}", seconds(to.at.saturating_sub(from.at))), RED)
            }
        };
        let bar_style = if style == RED {
            RED
        } else if ended.is_some() {
            GREEN
        } else {
            YELLOW
        };
        table.row([
            (cut(&clean(&def.id), id), BOLD),
            (if ahead { "»" } else { "" }.to_owned(), CYAN),
            (if def.name == def.id { String::new() } else { cut(&clean(&def.name), id) }, ""),
            (bar.unwrap_or_else(|| " ".repeat(scale.width)), bar_style),
            (took, style),
            (waited(explained, node), ""),
        ]);
    }
    table
}

/// The nodes that a node waited for, with the one first that ended last: that one held it up.
fn waited(explained: &Explained, node: NodeIx) -> String {
    let mut nodes: Vec<NodeIx> =
        explained.waits.get(node.get()).into_iter().flatten().map(|waited| waited.node).collect();
    nodes.sort_by_key(|node| {
        let told = explained.story.nodes.get(node.get());
        std::cmp::Reverse(told.and_then(|told| told.ended).map_or(u64::MAX, |ended| ended.n))
    });
    let names: Vec<&str> = nodes.iter().take(20).map(|node| explained.id(*node)).collect();
    let more = nodes.len().saturating_sub(names.len());
    let more = if more > 0 { format!(", … {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

/// Why nodes failed, with tracebacks and what was printed, of the first few.
fn failures(page: &mut Page, explained: &Explained, found: &Found) {
    const FAILURES: usize = 5;
    let failed = explained
        .graph
        .nodes
        .indices()
        .filter(|node| explained.story.nodes.get(node.get()).is_some_and(|told| told.fault.is_some()));
    for (at, node) in failed.take(FAILURES).enumerate() {
        if at == 0 {
            page.gap();
            page.line(&page.paint(DIM, "FAILED"));
        }
        failure(page, explained, found, node);
    }
}

/// Why a node failed.
fn failure(page: &mut Page, explained: &Explained, found: &Found, node: NodeIx) {
    const INDENT: usize = 12;
    let Some((fault, printed)) = explained.failure(found, node) else { return };
    let id = cut(&clean(explained.id(node)), NODE);
    let label = if id.len() + 2 > INDENT { format!("{id}  ") } else { pad(&id, INDENT) };
    let text = format!("{}: {}", fault.kind.name(), fault.message);
    page.labelled(&label, RED, label.width().max(INDENT), &text, LINES);
    page.printed(INDENT, &parts(Some(fault), printed.as_deref(), LINES), YELLOW);
}

/// The ladder as it was climbed (D-22): what failed, what was decided by whom and at what cost, what came of it.
fn ladder(page: &mut Page, rungs: &[Rung], found: &Found) {
    if rungs.is_empty() {
        return;
    }
    page.gap();
    let planned = rungs.iter().all(|rung| matches!(rung.what, What::Planned { .. }));
    page.line(&page.paint(DIM, if planned { "PLANNED" } else { "RECOVERY" }));
    let shown = rungs.iter().take(ROWS);
    let cell = |rung: &Rung| {
        let since = seconds(rung.at.saturating_sub(found.info.started_ms));
        (cut(&clean(&rung.node), NODE), since)
    };
    let width = |of: &dyn Fn(&Rung) -> String| shown.clone().map(|rung| of(rung).width()).max().unwrap_or(0);
    let (node, since) = (width(&|rung| cell(rung).0), width(&|rung| cell(rung).1));
    for rung in shown {
        let (id, at) = cell(rung);
        let label = format!("{}  {}  {:<7}  ", pad(&id, node), pad(&at, since), rung.what.word());
        page.labelled(&label, style(&rung.what), label.width(), &rung.what.told(), TOLD);
    }
    if rungs.len() > ROWS {
        page.line(&page.paint(DIM, &format!("… {} more: --json has all", rungs.len() - ROWS)));
    }
}

fn style(what: &What) -> &'static str {
    match what {
        What::Fault { .. } | What::Ended { fault: Some(_) } => RED,
        What::Ended { fault: None } => GREEN,
        What::Planned { .. } => CYAN,
        What::Retry { .. } | What::Action { .. } | What::Skipped { .. } => YELLOW,
    }
}

fn legend(page: &mut Page, explained: &Explained, found: &Found, scale: &Scale) {
    page.gap();
    let ahead = explained.graph.nodes.indices().filter(|node| explained.story.ran_ahead(*node)).count();
    if ahead > 0 {
        let text = format!("» {ahead} started before an earlier node of the list had finished");
        page.labelled("", "", 0, &text, 3);
    }
    if scale.idle() > scale.total / 20 {
        let text = format!("the bars leave out {} in which no node ran", seconds(scale.idle()));
        page.labelled("", "", 0, &text, 3);
    }
    let first = explained.waits.iter().position(|waits| !waits.is_empty());
    if let Some(node) = first.and_then(|first| explained.graph.nodes.get(NodeIx::new(first))) {
        // Steps work on no thread, and see no messages.
        let threads = explained.graph.nodes.values().any(|node| node.body.thread.is_some());
        let text = if threads { "reasons, and whose messages a node saw:" } else { "reasons:" };
        page.labelled("", DIM, 0, text, 3);
        page.line(&format!("  {}", command(&["explain", found.run(), "--node", &node.id])));
    }
}

/// Prints one node, with the journal's own time of its start.
pub(super) fn one(
    explained: &Explained,
    found: &Found,
    schedule: &Schedule,
    node: NodeIx,
    began: Option<Moment>,
    ui: &Ui,
) {
    const INDENT: usize = 12;
    let mut page = Page::new();
    let name = explained.graph.nodes.get(node).map_or("", |node| &node.name);
    let heading = format!("node {}", clean(explained.id(node)));
    page.line(&format!("{}  {}", page.paint(BOLD, &heading), clean(name)));
    let told = explained.story.nodes.get(node.get());
    let after = |Moment { n, at }: Moment| match &found.info.fork {
        Some(fork) if n <= fork.events => format!("{} UTC, in run {}", time::plain(at), fork.run),
        _ => {
            let since = seconds(at.saturating_sub(found.info.started_ms));
            format!("{} UTC, {since} after the run began", time::plain(at))
        }
    };
    let (started, ended) = (told.and_then(|told| told.started), told.and_then(|told| told.ended));
    let skipped = told.and_then(|told| told.skipped.as_ref());
    let text = match (began, skipped) {
        (Some(began), _) => after(began),
        (None, Some(because)) => format!("not at all: may depend on {because}, which has no result"),
        (None, None) => "not yet".to_owned(),
    };
    page.labelled("  started", DIM, INDENT, &text, 3);
    if let (Some(started), Some(ended)) = (started, ended) {
        let failed = if told.is_some_and(|told| told.failed) { ", and failed" } else { "" };
        page.labelled("  took", DIM, INDENT, &format!("{}{failed}", seconds(ended.at - started.at)), 2);
    }
    if started.is_some() {
        let text = match explained.story.ran_ahead(node) {
            true => "yes: an earlier node of the list had not finished",
            false => "no: all earlier nodes of the list had finished",
        };
        page.labelled("  ahead", DIM, INDENT, text, 2);
    }
    if explained.failure(found, node).is_some() {
        page.gap();
        failure(&mut page, explained, found, node);
    }
    waits(&mut page, explained, node, started.map_or(i64::MAX, |started| started.at));
    let mut seen = explained.story.seen(&explained.graph, schedule);
    let from = explained.graph.nodes.indices().take(node.get() + 1).map(|node| seen.next(node)).last();
    let from: Vec<&str> = from.iter().flatten().map(|node| explained.id(*node)).collect();
    let text = match from.len() {
        0 => "no other node".to_owned(),
        1..=10 => from.join(", "),
        many => format!("{many} nodes: {}", from.join(", ")),
    };
    if explained.graph.nodes.get(node).is_some_and(|node| node.body.thread.is_some()) {
        page.gap();
        page.labelled("messages of", DIM, INDENT, &text, LINES);
    }
    each(&mut page, explained.rungs(node), found.info.started_ms);
    page.print(ui);
}

/// What was done about a node's faults, each in full.
fn each<'r>(page: &mut Page, rungs: impl Iterator<Item = &'r Rung>, began: i64) {
    const INDENT: usize = 20;
    for (at, rung) in rungs.take(ROWS).enumerate() {
        if at == 0 {
            page.gap();
        }
        let label = format!("{:<8} {}", rung.what.word(), seconds(rung.at.saturating_sub(began)));
        page.labelled(&label, style(&rung.what), INDENT, &rung.what.told(), LINES);
        if let What::Action { parameters: Some(parameters), .. } = &rung.what {
            page.labelled("", "", INDENT, &format!("with {parameters}"), LINES);
        }
    }
}

fn waits(page: &mut Page, explained: &Explained, node: NodeIx, started: i64) {
    let waited = explained.waits.get(node.get()).map_or(&[][..], |waits| waits);
    page.gap();
    if waited.is_empty() {
        return page.labelled("waited for", DIM, 12, "no node", 1);
    }
    let mut table = Table::new(&["WAITED FOR", "ENDED", "WHY"], 2);
    let last = waited.iter().filter_map(|waited| explained.story.nodes.get(waited.node.get())?.ended);
    let last = last.map(|ended| ended.n).max();
    for waited in waited.iter().take(WAITS) {
        let ended = explained.story.nodes.get(waited.node.get()).and_then(|told| told.ended);
        let text = match ended {
            None => "not yet".to_owned(),
            Some(ended) if ended.at <= started => format!("{} before", seconds(started - ended.at)),
            // Only its calls had to wait.
            Some(ended) => format!("{} after", seconds(ended.at - started)),
        };
        let style = if ended.map(|ended| ended.n) == last { YELLOW } else { "" };
        let id = cut(&clean(explained.id(waited.node)), NODE);
        table.row([(id, BOLD), (text, style), (waited.why.clone(), "")]);
    }
    page.table(&table);
    if waited.len() > WAITS {
        page.line(&page.paint(DIM, &format!("… {} more: --json has all", waited.len() - WAITS)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::explain::story::Story;

    fn explained(times: &[(i64, Option<i64>)]) -> Explained {
        Explained::new(Default::default(), Story::of(times), Vec::new())
    }

    #[test]
    fn bars_share_the_width_and_leave_idle_time_out() {
        let scale = Scale::new(&explained(&[(0, Some(10)), (5, Some(20)), (1_000_020, Some(1_000_040))]), 40);
        assert_eq!((scale.total, scale.idle()), (40, 1_000_000));
        assert_eq!(scale.bar(0, Some(10)), pad(&"█".repeat(10), 40));
        assert_eq!(scale.bar(5, Some(20)), pad(&format!("     {}", "█".repeat(15)), 40));
        assert_eq!(scale.bar(1_000_020, Some(1_000_040)), format!("{}{}", " ".repeat(20), "█".repeat(20)));
        assert_eq!(scale.bar(1_000_040, Some(1_000_040)).width(), 40, "an instant at the end still shows");
        assert!(scale.bar(20, Some(20)).contains('▏'));
        let open = Scale::new(&explained(&[(0, Some(10)), (0, None)]), 10);
        assert_eq!(open.bar(0, None), "▒".repeat(10));
        let nothing = Scale::new(&explained(&[(7, Some(7))]), 16);
        assert_eq!(nothing.bar(7, Some(7)).width(), 16);
    }
}
