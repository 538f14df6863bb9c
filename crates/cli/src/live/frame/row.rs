//! A lane in columns, and what a node in it does.

use super::header::{cost, tokens};
use super::{CYAN, DIM, Line, MAGENTA, PLAIN, ROOMY, View, YELLOW};
use crate::durations::elapsed;
use crate::live::text::{calm, cut, pad, width};
use crate::live::view::{Active, Flying};
use crate::recovery::again;
use crate::status::Words as _;
use selvedge_engine::Tokens;
use selvedge_host::timeline::NodeStatus;

/// A lane before it is set in columns.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) strip: Vec<(&'static str, char)>,
    /// How many nodes have ended, of how many, where the strip can't show them all.
    pub(super) count: String,
    pub(super) title: String,
    pub(super) state: Line,
    pub(super) style: &'static str,
}

/// Sets rows in columns: name, marks, count, title, state.
pub(super) fn aligned(rows: Vec<Row>, columns: usize) -> Vec<Line> {
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

/// The most marks that a lane has room for.
pub(super) fn most_marks(columns: usize) -> usize {
    if columns < ROOMY { 1 } else { (columns / 8).min(24) }
}

/// What a running node does, or waits for.
pub(super) fn activity(view: &View, active: &Active, used: &Tokens, now: i64) -> Line {
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
