//! The lanes of a plan or a step task: a thread each, or a step.

use super::header::tokens;
use super::row::{Row, activity, aligned, most_marks};
use super::{CYAN, DIM, GREEN, Line, MAGENTA, PLAIN, RED, ROOMY, View, YELLOW};
use crate::frames::listed;
use crate::live::text::calm;
use crate::live::track::{Lane, Phase};
use crate::status::Words as _;
use selvedge_engine::NodeIx;
use selvedge_host::text::counted;
use selvedge_host::timeline::NodeStatus;
use std::collections::BTreeSet;

/// As many lanes as there is room for: those that ask, then those where something happens, then those that wait, then
/// the others; in the order of the document.
pub(super) fn lines(view: &View, now: i64, columns: usize, room: usize) -> Vec<Line> {
    let all = view.track.lanes().len();
    let shown = if all <= room { all } else { room.saturating_sub(1) };
    // A person who is asked sees it, however much runs.
    let busy = [NodeStatus::Asking, NodeStatus::Running, NodeStatus::Retrying, NodeStatus::Queued];
    let busy = busy.into_iter().filter_map(|status| Some((status, view.busy(status)?)));
    let others = [(NodeStatus::NotStarted, &view.idle), (NodeStatus::Done, &view.over)];
    let ranked: Vec<(NodeStatus, &BTreeSet<usize>)> = busy.chain(others).collect();
    let mut chosen: Vec<usize> = ranked.iter().flat_map(|(_, lanes)| *lanes).copied().take(shown).collect();
    chosen.sort_unstable();
    let rows: Vec<Row> = chosen.into_iter().filter_map(|lane| row(view, now, lane, columns)).collect();
    let mut lines = aligned(rows, columns);
    if shown < all && room > 0 {
        lines.push(Line::default().with(DIM, more(view, &ranked, shown)));
    }
    lines
}

/// "… and 87 more threads: 3 running, 80 not started, 4 done".
fn more(view: &View, ranked: &[(NodeStatus, &BTreeSet<usize>)], shown: usize) -> String {
    let mut left = shown;
    let hidden = ranked.iter().map(|(status, lanes)| {
        let hidden = lanes.len().saturating_sub(left);
        left = left.saturating_sub(lanes.len());
        // Nodes of a lane that is over need not have ended well.
        let words = match status {
            NodeStatus::Done => format!("{hidden} done"),
            status => status.counted(hidden),
        };
        (hidden, words)
    });
    let hidden: Vec<(usize, String)> = hidden.collect();
    let all: usize = hidden.iter().map(|(count, _)| count).sum();
    let threaded = view.track.lanes().iter().any(|lane| lane.threaded);
    let word = if threaded { "thread" } else { "step" };
    format!("… and {}: {}", counted(all, &format!("more {word}")), listed(hidden))
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
            let spent = view.spent.get(&lane.name).and_then(tokens).map(|spent| format!("  {spent}"));
            let (style, word) = over(view, lane);
            (DIM, Line::default().with(style, format!("{word}{}", spent.unwrap_or_default())))
        }
    };
    let (strip, whole) = strip(view, lane, node, most_marks(columns));
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
