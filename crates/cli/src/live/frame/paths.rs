//! The lanes of a workflow: what it is at, and below that what that has opened: each path of a fork in a lane that ends in its join,
//! the iteration of a loop, a subgraph. A thousand paths take no more room than there is, and looking at them costs what is shown.

use super::header::tokens;
use super::row::{Row, activity, aligned, most_marks};
use super::{CYAN, DIM, GREEN, Line, MAGENTA, PLAIN, RED, View, YELLOW, title};
use crate::durations::elapsed;
use crate::frames::{counts, listed};
use crate::live::text::calm;
use crate::status::Words as _;
use selvedge_engine::Tokens;
use selvedge_engine::graph::Act;
use selvedge_host::timeline::{FrameStatus, FrameTimeline, Inner, NodeStatus, NodeTimeline, Visit, Which};
use std::collections::{BTreeMap, BTreeSet};

/// What the lane of the document itself is called.
const MAIN: &str = "main";

/// A line of the picture, with what stands before its name.
struct Branch {
    before: String,
    what: Lane,
}

enum Lane {
    /// A frame, by its place in the timeline.
    Frame(usize),
    /// So many paths that have no room: of which kind, in words.
    More(String),
    /// Where the paths of a node come together.
    Join(usize),
}

/// As many lines as there is room for.
pub(super) fn lines(view: &View, now: i64, columns: usize, room: usize) -> Vec<Line> {
    if room == 0 {
        return Vec::new();
    }
    let mut all = vec![Branch { before: String::new(), what: Lane::Frame(0) }];
    branches(view, 0, "", room - 1, &mut all);
    let (mut rows, mut whole) = (Vec::new(), Vec::new());
    for branch in all {
        match row(view, now, branch, most_marks(columns)) {
            Some(Shown::Row(row)) => {
                rows.push(row);
                whole.push(None);
            }
            Some(Shown::Line(line)) => whole.push(Some(line)),
            None => {}
        }
    }
    let mut rows = aligned(rows, columns).into_iter();
    whole.into_iter().filter_map(|line| line.or_else(|| rows.next())).collect()
}

/// What stands in columns with others, or by itself.
enum Shown {
    Row(Row),
    Line(Line),
}

/// The visit of the node that a frame is at, if it has opened frames.
fn opener(view: &View, frame: usize) -> Option<(usize, &Visit)> {
    let at = view.timeline.frames().get(frame)?.at?;
    let visit = view.visit(at)?;
    (!visit.frames.is_empty() && view.active.contains_key(&at)).then_some((at, visit))
}

/// Adds what a frame has opened, within so many lines: those next to it first, then what these have opened, in equal shares.
fn branches(view: &View, frame: usize, before: &str, room: usize, all: &mut Vec<Branch>) {
    let Some((row, visit)) = opener(view, frame).filter(|_| room > 0) else { return };
    let inner = &visit.frames;
    let forks = inner.paths.is_some();
    let room = room - usize::from(forks && room > 1);
    let shown = chosen(view, row, inner, room);
    let left_out =
        (forks && shown.len() < inner.began()).then(|| more(inner, view.working.get(&row), &shown));
    let mut left = room.saturating_sub(shown.len() + usize::from(left_out.is_some()));
    let mut sharing = shown.iter().filter(|frame| opener(view, **frame).is_some()).count();
    let tail = usize::from(forks && room > 0) + usize::from(left_out.is_some());
    for (at, frame) in shown.iter().enumerate() {
        let last = at + 1 == shown.len() && tail == 0;
        let (turn, below) = if last { ("└ ", "  ") } else { ("├ ", "│ ") };
        all.push(Branch { before: format!("{before}{turn}"), what: Lane::Frame(*frame) });
        if opener(view, *frame).is_some() {
            let (share, count) = (left.div_ceil(sharing.max(1)), all.len());
            branches(view, *frame, &format!("{before}{below}"), share, all);
            left = left.saturating_sub(all.len() - count);
            sharing = sharing.saturating_sub(1);
        }
    }
    if let Some(words) = left_out {
        all.push(Branch { before: format!("{before}├ "), what: Lane::More(words) });
    }
    if forks && room > 0 {
        all.push(Branch { before: format!("{before}└ "), what: Lane::Join(row) });
    }
}

/// The frames for which there is room, in the order in which they began: first those that ask, then those where something
/// happens, then others that go on, then what failed, what has completed, and what was cut off.
fn chosen(view: &View, row: usize, inner: &Inner, room: usize) -> Vec<usize> {
    if inner.paths.is_none() {
        // One iteration after the other: the last.
        let last = inner.open.last().or(inner.failed.last()).or(inner.completed.last());
        return last.copied().into_iter().take(room).collect();
    }
    let most = if inner.began() <= room { room } else { room.saturating_sub(1) };
    let mut chosen: BTreeSet<usize> = BTreeSet::new();
    let working = view.working.get(&row).into_iter().flat_map(|working| working.keys());
    let ranked = inner.asking.keys().chain(working).chain(&inner.open).chain(&inner.failed);
    for frame in ranked.chain(inner.completed.iter().rev()).chain(&inner.cancelled) {
        if chosen.len() >= most {
            break;
        }
        chosen.insert(*frame);
    }
    chosen.into_iter().collect()
}

/// "… 987 more: 40 running, 800 queued, 147 done".
fn more(inner: &Inner, working: Option<&BTreeMap<usize, u32>>, shown: &[usize]) -> String {
    let hidden =
        |all: usize, has: &dyn Fn(&usize) -> bool| all - shown.iter().filter(|frame| has(frame)).count();
    let among = |set: &BTreeSet<usize>| hidden(set.len(), &|frame| set.contains(frame));
    let asking = hidden(inner.asking.len(), &|frame| inner.asking.contains_key(frame));
    let working = working.map_or(0, |working| hidden(working.len(), &|frame| working.contains_key(frame)));
    let waiting = among(&inner.open).saturating_sub(asking + working);
    let parts = [
        (asking, NodeStatus::Asking.counted(asking)),
        (working, NodeStatus::Running.counted(working)),
        (waiting, NodeStatus::Queued.counted(waiting)),
        (among(&inner.failed), NodeStatus::Failed.counted(among(&inner.failed))),
        (among(&inner.completed), format!("{} done", among(&inner.completed))),
        (among(&inner.cancelled), format!("{} cut off", among(&inner.cancelled))),
    ];
    format!("… {} more: {}", inner.began() - shown.len(), listed(parts))
}

fn row(view: &View, now: i64, branch: Branch, most: usize) -> Option<Shown> {
    let named = |name: &str| format!("{}{}", branch.before, calm(name));
    match branch.what {
        Lane::Frame(frame) => {
            let frame = view.timeline.frames().get(frame)?;
            let name = match &frame.which {
                None => MAIN.to_owned(),
                Some(Which::Path(id)) => id.to_string(),
                Some(Which::Iteration(n)) => format!("index {n}"),
                Some(Which::Sub) => "inside".to_owned(),
            };
            let node = frame.at.and_then(|at| view.timeline.nodes().get(at));
            let title = node
                .filter(|_| frame.status == FrameStatus::Open)
                .map(|node| calm(&title(view, node, &node.node)));
            let over = frame.status != FrameStatus::Open;
            Some(Shown::Row(Row {
                name: named(&name),
                strip: strip(view, frame, most),
                count: String::new(),
                title: title.unwrap_or_default(),
                state: standing(view, frame, node, now),
                style: if over { DIM } else { PLAIN },
            }))
        }
        Lane::More(words) => {
            Some(Shown::Line(Line::default().with(DIM, format!("{}{words}", branch.before))))
        }
        Lane::Join(row) => {
            let node = view.timeline.nodes().get(row)?;
            let def = view.timeline.def(node)?;
            let inner = &view.visit(row)?.frames;
            let strategy = def.body.leaves.values().find_map(|leaf| match &leaf.act {
                Act::Fork(paths) => Some(paths.join.strategy.to_string()),
                _ => None,
            });
            let paths = inner.paths.unwrap_or(0);
            let text = format!("{} of {paths} done  {}", inner.completed.len(), strategy.unwrap_or_default());
            Some(Shown::Line(
                Line::default().with(PLAIN, named(def.shown_id())).with(DIM, format!("  {text}")),
            ))
        }
    }
}

/// The marks of the last nodes that a frame has come to.
fn strip(view: &View, frame: &FrameTimeline, most: usize) -> Vec<(&'static str, char)> {
    let from = frame.nodes.len().saturating_sub(most);
    let mark = |row: &usize| {
        let node = view.timeline.nodes().get(*row);
        match node.and_then(NodeTimeline::current) {
            Some(visit) if visit.cancelled => (DIM, '⊘'),
            Some(visit) if visit.fault.is_some() => (RED, '✗'),
            Some(visit) if visit.ended.is_some() => (GREEN, '✓'),
            Some(visit) if visit.open_questions().next().is_some() || !visit.frames.asking.is_empty() => {
                (MAGENTA, '?')
            }
            Some(_) => (CYAN, '▸'),
            None => (DIM, '◦'),
        }
    };
    frame.nodes.iter().skip(from).map(mark).collect()
}

/// What happens in a frame, or what came of it.
fn standing(view: &View, frame: &FrameTimeline, node: Option<&NodeTimeline>, now: i64) -> Line {
    let line = Line::default();
    let took = || {
        let (from, to) = (frame.began.map_or(0, |began| began.at), frame.ended.map_or(0, |ended| ended.at));
        elapsed(to.saturating_sub(from))
    };
    match frame.status {
        FrameStatus::Open => {}
        FrameStatus::Completed => {
            return line.with(DIM, format!("done {}", took())).with(DIM, used(view, frame));
        }
        FrameStatus::Failed => {
            let fault = node.and_then(|node| node.current()?.fault.as_deref());
            let why = fault.map(|fault| format!(": {}: {}", fault.kind.name(), fault.message));
            return line.with(RED, format!("failed{}", calm(&why.unwrap_or_default())));
        }
        FrameStatus::Cancelled => return line.with(YELLOW, format!("cut off after {}", took())),
    }
    let Some((row, active)) = frame.at.and_then(|at| Some((at, view.active.get(&at)?))) else { return line };
    let Some(visit) = view.visit(row) else { return line };
    let inner = &visit.frames;
    match counts(inner, active.rounds) {
        Some(told) => line.with(PLAIN, elapsed(now - active.started)).with(PLAIN, format!("  {told}")),
        None if !inner.is_empty() => line.with(PLAIN, elapsed(now - active.started)),
        None => activity(view, active, &visit.tokens, now),
    }
}

/// What was used in a frame by its own nodes.
fn used(view: &View, frame: &FrameTimeline) -> String {
    let mut sum = Tokens::default();
    let nodes = frame.nodes.iter().filter_map(|row| view.visit(*row));
    nodes.for_each(|visit| sum.add(&visit.tokens));
    tokens(&sum).map(|told| format!("  {told}")).unwrap_or_default()
}
