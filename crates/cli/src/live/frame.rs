//! One picture of a run: a header, a lane for each thread, the text of the node in focus. No input, no output.

mod paths;

use super::text::{calm, cut, elapsed, last_lines, pad, short, width};
use super::track::{Lane, Phase};
use super::view::{Active, Flying, View};
use crate::recovery::again;
use crate::status::Words as _;
use selvedge_engine::{NodeIx, Tokens};
use selvedge_host::timeline::{NodeStatus, NodeTimeline};
use std::borrow::Cow;

/// The most rows of a picture.
const ROWS: usize = 20;
/// The most rows of streamed text.
const TEXT_ROWS: usize = 6;
/// Columns from which a lane shows more than one mark, and from which it shows a title.
const ROOMY: usize = 40;

const PLAIN: &str = "";
const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";
const MAGENTA: &str = "35";

/// Takes secrets out of a text.
pub(super) type Redact<'a> = &'a dyn Fn(&str) -> Cow<'_, str>;

/// A line in pieces, each in a style (an SGR code, or nothing).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Line(pub(super) Vec<(&'static str, String)>);

impl Line {
    /// Adds a piece.
    fn with(mut self, style: &'static str, text: impl Into<String>) -> Self {
        self.0.push((style, text.into()));
        self
    }

    /// Columns.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| width(text)).sum()
    }

    fn redacted(mut self, redact: Redact<'_>) -> Self {
        for (_, text) in &mut self.0 {
            if let Cow::Owned(clean) = redact(text) {
                *text = clean;
            }
        }
        self
    }

    /// The line without what does not fit into `most` columns.
    fn cut(self, most: usize) -> Self {
        let mut left = most;
        let mut line = Self::default();
        for (style, text) in self.0 {
            let text = cut(&text, left);
            left = left.saturating_sub(width(&text));
            if !text.is_empty() {
                line.0.push((style, text));
            }
        }
        line
    }
}

/// The run at the time `now` (by the view's clock) for a terminal of `width` columns and `height` rows. At
/// most `height - 1` lines, each narrower than the terminal. `redact` takes secrets out of a text (C-06).
pub(super) fn frame(view: &View, now: i64, width: usize, height: usize, redact: Redact<'_>) -> Vec<Line> {
    let columns = width.saturating_sub(1);
    let rows = height.saturating_sub(1).min(ROWS);
    if rows == 0 || columns == 0 {
        return Vec::new();
    }
    let mut lines = vec![header(view, now, columns)];
    lines.extend(stopping(view, now));
    let most = TEXT_ROWS.min(rows / 3);
    let text = text(view, columns, most, redact);
    // Room for text is kept even while there is none, so that lanes do not come and go with it.
    let kept = if view.streamed { most + 1 } else { 0 };
    let room = rows.saturating_sub(lines.len() + kept);
    lines.extend(match view.flows() {
        true => paths::lines(view, now, columns, room),
        false => lanes(view, now, columns, room),
    });
    lines.extend(text);
    lines.truncate(rows);
    lines.into_iter().map(|line| line.redacted(redact).cut(columns)).collect()
}

/// The run in one line; what matters least goes first where there is no room.
fn header(view: &View, now: i64, columns: usize) -> Line {
    let (used, tally) = (&view.usage, view.tally());
    let mut parts = vec![
        (3, BOLD, format!("run {}", cut(&calm(&view.run), 24))),
        (9, PLAIN, elapsed(now - view.begun)),
        (8, PLAIN, format!("{}/{} nodes", tally.done, tally.of)),
    ];
    let mut stands = |rank: u8, style: &'static str, fate: NodeStatus| {
        let number = view.standing(fate, now);
        if number > 0 {
            parts.push((rank, style, fate.counted(number)));
        }
    };
    stands(7, CYAN, NodeStatus::Running);
    // What has had no turn when a run winds down has none any more.
    if view.stopping.is_none() {
        stands(6, YELLOW, NodeStatus::Retrying);
        stands(6, PLAIN, NodeStatus::Queued);
    }
    stands(6, MAGENTA, NodeStatus::Asking);
    let mut count = |rank: u8, style: &'static str, number: u64, one: &str, many: &str| {
        if number > 0 {
            parts.push((rank, style, format!("{number} {}", if number == 1 { one } else { many })));
        }
    };
    count(6, RED, tally.failed as u64, "failed", "failed");
    count(2, PLAIN, used.model_calls + used.tool_calls, "call", "calls");
    count(1, YELLOW, view.retries, "retry", "retries");
    count(6, YELLOW, view.recoveries, "recovery", "recoveries");
    count(6, YELLOW, view.skipped, "skipped", "skipped");
    if let Some(tokens) = tokens(&used.tokens) {
        parts.push((5, PLAIN, tokens));
    }
    if used.tokens.cost > 0.0 {
        parts.push((4, PLAIN, cost(used.tokens.cost)));
    }
    let total =
        |parts: &[(u8, &str, String)]| parts.iter().map(|(_, _, text)| width(text) + 2).sum::<usize>();
    while total(&parts) > columns + 2
        && parts.len() > 1
        && let Some(least) = (0..parts.len()).min_by_key(|at| parts.get(*at).map(|(rank, ..)| *rank))
    {
        parts.remove(least);
    }
    let mut line = Line::default();
    for (at, (_, style, text)) in parts.into_iter().enumerate() {
        line = if at > 0 { line.with(PLAIN, "  ") } else { line };
        line = line.with(style, text);
    }
    line
}

/// What happens after a Ctrl-C (C-05).
fn stopping(view: &View, now: i64) -> Option<Line> {
    let grace = view.grace(now)?;
    let text = match view.under_way() {
        0 => "stopping".to_owned(),
        1 => format!("stopping: 1 call may end within {grace} s; Ctrl-C stops at once"),
        calls => format!("stopping: {calls} calls may end within {grace} s; Ctrl-C stops at once"),
    };
    Some(Line::default().with(YELLOW, text))
}

/// The text of the node in focus: its last lines, under the node's name.
fn text(view: &View, columns: usize, rows: usize, redact: Redact<'_>) -> Vec<Line> {
    let focus =
        view.focus.and_then(|(row, _)| Some((view.timeline.nodes().get(row)?, view.active.get(&row)?)));
    let Some((node, active)) = focus else { return Vec::new() };
    let rows = last_lines(&redact(&active.text), columns.saturating_sub(2), rows);
    if rows.iter().all(String::is_empty) {
        return Vec::new();
    }
    let title = Line::default().with(DIM, format!("{}:", calm(&title(view, node))));
    let text = rows.into_iter().map(|row| Line::default().with(PLAIN, format!("  {row}")));
    std::iter::once(title).chain(text).collect()
}

/// As many lanes as there is room for: those that ask, then those where something happens, then those that wait, then
/// the others; in the order of the document.
fn lanes(view: &View, now: i64, columns: usize, room: usize) -> Vec<Line> {
    let all = view.track.lanes().len();
    let shown = if all <= room { all } else { room.saturating_sub(1) };
    // A person who is asked sees it, however much runs.
    let busy = [NodeStatus::Asking, NodeStatus::Running, NodeStatus::Retrying, NodeStatus::Queued];
    let mut ranked: Vec<(Vec<usize>, NodeStatus)> = busy.map(|fate| (view.busy(fate, now), fate)).into();
    ranked.push((view.idle.iter().copied().collect(), NodeStatus::NotStarted));
    ranked.push((view.over.iter().copied().collect(), NodeStatus::Done));
    let mut chosen: Vec<usize> = ranked.iter().flat_map(|(lanes, _)| lanes).copied().take(shown).collect();
    chosen.sort_unstable();
    let rows: Vec<Row> = chosen.into_iter().filter_map(|lane| row(view, now, lane, columns)).collect();
    let mut lines = aligned(rows, columns);
    if shown < all && room > 0 {
        lines.push(Line::default().with(DIM, more(view, &ranked, shown)));
    }
    lines
}

/// "… and 87 more threads: 3 running, 80 not started, 4 done".
fn more(view: &View, ranked: &[(Vec<usize>, NodeStatus)], shown: usize) -> String {
    let (mut left, mut all) = (shown, 0);
    let mut parts = Vec::new();
    for (lanes, fate) in ranked {
        let hidden = lanes.len().saturating_sub(left);
        left = left.saturating_sub(lanes.len());
        all += hidden;
        if hidden > 0 {
            // Nodes of a lane that is over need not have ended well.
            parts.push(if *fate == NodeStatus::Done {
                format!("{hidden} done")
            } else {
                fate.counted(hidden)
            });
        }
    }
    let threaded = view.track.lanes().iter().any(|lane| lane.threaded);
    let word = if threaded { "thread" } else { "step" };
    let plural = if all == 1 { "" } else { "s" };
    format!("… and {all} more {word}{plural}: {}", parts.join(", "))
}

/// A node's id and, where it says more, its name.
fn title(view: &View, node: &NodeTimeline) -> String {
    match view.timeline.def(node) {
        Some(def) if def.name != def.id => format!("{} {}", def.id, def.name),
        _ => node.node.to_string(),
    }
}

/// A lane before it is set in columns.
struct Row {
    name: String,
    strip: Vec<(&'static str, char)>,
    /// How many nodes have ended, of how many, where the strip can't show them all.
    count: String,
    title: String,
    state: Line,
    style: &'static str,
}

fn row(view: &View, now: i64, at: usize, columns: usize) -> Option<Row> {
    let lane = view.track.lanes().get(at)?;
    let running = view.runs(at);
    let node = running.or_else(|| view.track.head(at));
    let (style, state) = match (running.and_then(|node| view.active_at(node)), node) {
        (Some((active, visit)), _) => (PLAIN, activity(view, active, &visit.tokens, now)),
        (None, Some(_)) if view.stopping.is_some() => (DIM, Line::default()),
        (None, Some(node)) => (DIM, Line::default().with(DIM, calm(&view.track.waits(node)))),
        (None, None) => {
            let spent = view.spent.get(at).and_then(tokens).map(|spent| format!("  {spent}"));
            let (style, word) = over(view, lane);
            (DIM, Line::default().with(style, format!("{word}{}", spent.unwrap_or_default())))
        }
    };
    let most = if columns < ROOMY { 1 } else { (columns / 8).min(24) };
    let (strip, whole) = strip(view, lane, node, most);
    let count = match whole || columns < ROOMY {
        true => String::new(),
        false => format!("{}/{}", lane.ended, lane.nodes.len()),
    };
    let title = match lane.threaded {
        true => node.map(|node| calm(&view.track.title(node))),
        // The lane has the node's id for its name.
        false => lane.nodes.first().map(|node| calm(view.track.name(*node))),
    };
    let title = title.unwrap_or_default();
    Some(Row { name: calm(&lane.name), strip, count, title, state, style })
}

/// How a lane ended whose nodes have all ended: a step by itself, a thread in any way.
fn over(view: &View, lane: &Lane) -> (&'static str, String) {
    match lane.nodes.first().filter(|_| !lane.threaded).map(|node| view.track.phase(*node)) {
        Some(Phase::Failed) => (RED, NodeStatus::Failed.words().to_owned()),
        Some(Phase::Skipped) => (YELLOW, NodeStatus::Skipped.words().to_owned()),
        _ if lane.nodes.iter().all(|node| view.is_reused(*node)) => {
            (DIM, format!("reused from {}", view.source.as_deref().map_or("an earlier visit".into(), calm)))
        }
        _ => (DIM, "done".to_owned()),
    }
}

/// The marks of a lane's nodes, as many as fit around the current one, and whether those are all.
fn strip(view: &View, lane: &Lane, node: Option<NodeIx>, most: usize) -> (Vec<(&'static str, char)>, bool) {
    let mark = |node: &NodeIx| match view.track.phase(*node) {
        Phase::Done => (GREEN, '✓'),
        Phase::Failed => (RED, '✗'),
        Phase::Skipped => (YELLOW, '–'),
        Phase::Running if view.active_at(*node).is_some_and(|(active, _)| !active.asking.is_empty()) => {
            (MAGENTA, '?')
        }
        Phase::Running => (CYAN, '▸'),
        Phase::Waiting => (DIM, '◦'),
    };
    let current = node.and_then(|node| lane.nodes.binary_search(&node).ok());
    let current = current.unwrap_or(lane.nodes.len().saturating_sub(1));
    let last = lane.nodes.len().saturating_sub(most);
    let from = current.saturating_sub(most / 2).min(last);
    let strip = lane.nodes.iter().skip(from).take(most).map(mark).collect();
    (strip, lane.nodes.len() <= most)
}

/// What a running node does, or waits for.
fn activity(view: &View, active: &Active, used: &Tokens, now: i64) -> Line {
    let mut line = Line::default().with(PLAIN, elapsed(now - active.started));
    let doing = match (active.asking.first(), active.flying.as_slice()) {
        (Some((_, prompt)), _) => {
            Some((MAGENTA, format!("{}: {}", NodeStatus::Asking.words(), calm(prompt))))
        }
        (None, []) if active.held.is_empty() => None,
        (None, []) if view.stopping.is_some() => None,
        (None, []) => Some((YELLOW, calm(&active.held))),
        (None, flying) if view.stopping.is_some() && flying.iter().all(|call| !call.began) => None,
        (None, flying) => Some(in_flight(flying, &active.note, now)),
    };
    if let Some((style, text)) = doing {
        line = line.with(PLAIN, "  ").with(style, text);
    }
    if !active.recovery.is_empty() && view.stopping.is_none() {
        line = line.with(PLAIN, "  ").with(YELLOW, calm(&active.recovery));
    }
    if let Some(tokens) = tokens(used) {
        line = line.with(DIM, format!("  {tokens}"));
    }
    if used.cost > 0.0 {
        line = line.with(DIM, format!("  {}", cost(used.cost)));
    }
    line
}

/// Calls in flight: the first that really runs, and how many more.
fn in_flight(flying: &[Flying], note: &str, now: i64) -> (&'static str, String) {
    let first = flying.iter().find(|call| call.began).or(flying.first());
    let Some(first) = first else { return (PLAIN, String::new()) };
    let name = first.tool.as_deref().map_or_else(|| "model".to_owned(), calm);
    let (style, mut text) = match &first.again {
        _ if first.began && note.is_empty() => (CYAN, name),
        _ if first.began => (CYAN, format!("{name}: {}", calm(note))),
        Some((at, reason)) if *at > now => {
            // Up, so that it never says 0 while it waits.
            let left = (at - now).saturating_add(999).div_euclid(1000);
            (YELLOW, calm(&again(&name, &format!("{left} s"), reason)))
        }
        _ => (YELLOW, format!("{name} {}", NodeStatus::Queued.words())),
    };
    if flying.len() > 1 {
        text.push_str(&format!(" and {} more", flying.len() - 1));
    }
    (style, text)
}

/// Sets rows in columns: name, marks, count, title, state.
fn aligned(rows: Vec<Row>, columns: usize) -> Vec<Line> {
    let most = |width_of: &dyn Fn(&Row) -> usize| rows.iter().map(width_of).max().unwrap_or_default();
    let name = most(&|row| width(&row.name)).min((columns / 4).max(6));
    let (marks, count) = (most(&|row| row.strip.len()), most(&|row| width(&row.count)));
    let gap = |width: usize| if width > 0 { width + 1 } else { 0 };
    let rest = columns.saturating_sub(name + 1 + gap(marks) + gap(count) + 1);
    // The state matters more than a long title.
    let title = most(&|row| width(&row.title)).min((rest / 2).min(48));
    let title = if columns < ROOMY { 0 } else { title };
    let line = |row: Row| {
        let mut line = Line::default().with(row.style, pad(&cut(&row.name, name), name)).with(PLAIN, " ");
        let missing = marks.saturating_sub(row.strip.len());
        for (style, mark) in row.strip {
            line = line.with(style, mark);
        }
        line = line.with(PLAIN, " ".repeat(missing + 1));
        if count > 0 {
            line =
                line.with(DIM, format!("{}{} ", " ".repeat(count - width(&row.count).min(count)), row.count));
        }
        if title > 0 {
            line = line.with(row.style, pad(&cut(&row.title, title), title + 2));
        }
        line.0.extend(row.state.0);
        line
    };
    rows.into_iter().map(line).collect()
}

/// `1203+456 tokens`.
fn tokens(tokens: &Tokens) -> Option<String> {
    let used = tokens.input > 0 || tokens.output > 0;
    used.then(|| format!("{}+{} tokens", short(tokens.input), short(tokens.output)))
}

/// `cost 0.0123`, in the price table's currency.
fn cost(cost: f64) -> String {
    if cost >= 100.0 { format!("cost {cost:.0}") } else { format!("cost {cost:.4}") }
}

/// The run in one line when it no longer goes on, for the record.
pub(super) fn summary(view: &View) -> String {
    let used = &view.usage;
    let mut parts = vec![view.tally().told(" nodes")];
    for (number, one, many) in [
        (used.model_calls, "model call", "model calls"),
        (used.tool_calls, "tool call", "tool calls"),
        (view.retries, "retry", "retries"),
        (view.recoveries, "recovery", "recoveries"),
    ] {
        match number {
            0 => {}
            1 => parts.push(format!("1 {one}")),
            number => parts.push(format!("{number} {many}")),
        }
    }
    parts.extend(tokens(&used.tokens));
    if used.tokens.cost > 0.0 {
        parts.push(cost(used.tokens.cost));
    }
    parts.join(", ")
}
