//! The run in one line: how far it has come, and what it has used.

use super::{BOLD, CYAN, Line, MAGENTA, PLAIN, RED, View, YELLOW};
use crate::durations::elapsed;
use crate::live::text::{by_role, calm, cut, of_tools, short, width};
use crate::nodes::told;
use crate::status::Words as _;
use selvedge_engine::Tokens;
use selvedge_host::timeline::NodeStatus;

/// The run in one line; what matters least goes first where there is no room.
pub(super) fn header(view: &View, now: i64, columns: usize) -> Line {
    let (used, progress) = (&view.usage, view.progress());
    let mut parts = vec![
        (3, BOLD, format!("run {}", cut(&calm(&view.run), 24))),
        (9, PLAIN, elapsed(now - view.begun)),
        (8, PLAIN, format!("{}/{} nodes", progress.done, progress.of)),
    ];
    let mut stands = |rank: u8, style: &'static str, fate: NodeStatus| {
        let number = view.standing(fate);
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
    count(6, RED, progress.failed as u64, "failed", "failed");
    count(2, PLAIN, used.model_calls + used.tool_calls, "call", "calls");
    count(1, YELLOW, view.retries, "retry", "retries");
    count(6, YELLOW, view.recoveries, "recovery", "recoveries");
    count(6, YELLOW, progress.skipped as u64, "skipped", "skipped");
    if let Some(tokens) = tokens(&used.tokens) {
        parts.push((5, PLAIN, tokens));
    }
    if used.tokens.cost > 0.0 {
        parts.push((4, PLAIN, cost(used.tokens.cost)));
    }
    parts.extend(of_tools(view.timeline.made()).into_iter().map(|told| (3, PLAIN, told)));
    parts.extend(by_role(view.timeline.roles()).into_iter().map(|told| (0, PLAIN, told)));
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

/// The run in one line when it no longer goes on, for the record.
pub(in crate::live) fn summary(view: &View) -> String {
    let used = &view.usage;
    let last = view.timeline.last().map_or(0, |last| last.at);
    let mut parts = vec![told(&view.timeline.tally(last, false))];
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

/// `1203+456 tokens`.
pub(super) fn tokens(tokens: &Tokens) -> Option<String> {
    let used = tokens.input > 0 || tokens.output > 0;
    used.then(|| format!("{}+{} tokens", short(tokens.input), short(tokens.output)))
}

/// `cost 0.0123`, in the price table's currency.
pub(super) fn cost(cost: f64) -> String {
    if cost >= 100.0 { format!("cost {cost:.0}") } else { format!("cost {cost:.4}") }
}
