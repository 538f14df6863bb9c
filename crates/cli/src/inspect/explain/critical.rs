//! The critical path: the chain of nodes and waits that set how long a run took.

use crate::durations::{duration, duration_cell, offset};
use crate::inspect::page::{BOLD, DIM, Page, Table, clean, cut};
use selvedge_host::explain::{At, Explained, Step, Story};
use selvedge_host::text::counted;
use selvedge_host::timeline::{Durations, Which};
use std::collections::BTreeSet;

/// Columns of a node's id at most, and rows.
const NODE: usize = 28;
const ROWS: usize = 100;
/// So many steps of one loop all have their rows; of more, so many of the longest.
const ALL: usize = 12;
const LONGEST: usize = 5;

/// Prints it as a table.
pub(super) fn print(page: &mut Page, explained: &Explained<'_>, steps: &[Step]) {
    page.gap();
    let sum = |of: &dyn Fn(&Durations) -> i64| steps.iter().map(|step| of(&step.sums)).sum::<i64>();
    let nodes = counted(steps.len(), "node");
    let (all, work) = (duration(sum(&Durations::total)), duration(sum(&Durations::worked)));
    let mut text = format!("{nodes}, {all}: {work} work");
    for (ms, what) in [(sum(&Durations::queued), "queued"), (sum(&Durations::waited), "waiting")] {
        if ms >= 10 {
            text.push_str(&format!(", {} {what}", duration(ms)));
        }
    }
    page.labelled("CRITICAL PATH", DIM, 15, &text, 3);
    let mut table = Table::new(&["NODE", "FROM", "TOOK", "QUEUED", "WAITED", "AFTER"], 5);
    (table.spare, table.whole) = (vec![1], vec![1, 2, 3, 4]);
    table.optional = vec![3, 4];
    let begun = explained.story.begun().unwrap_or(0);
    let parts = folded(explained, steps);
    for part in parts.iter().take(ROWS) {
        let time = |ms: i64| if ms >= 10 { duration_cell(ms) } else { String::new() };
        table.row([
            (cut(&clean(&part.name), NODE), if part.many { DIM } else { BOLD }),
            (format!("{:>6}", offset(part.from - begun)), DIM),
            (duration_cell(part.sums.worked()), ""),
            (time(part.sums.queued()), ""),
            (time(part.sums.waited()), ""),
            (part.after.clone(), ""),
        ]);
    }
    page.table(&table);
    if parts.len() > ROWS {
        page.line(&page.paint(DIM, &format!("… {} more: --json has all", parts.len() - ROWS)));
    }
}

/// A row of the table: a step, or several of one loop together.
struct Part {
    name: String,
    from: i64,
    sums: Durations,
    after: String,
    many: bool,
}

/// The steps, of which those in the iterations of one loop, where there are many, are those that took longest, and the others one.
fn folded(explained: &Explained<'_>, steps: &[Step]) -> Vec<Part> {
    let around = |step: &Step| looped(&explained.story, step.node);
    let mut parts = Vec::new();
    for group in steps.chunk_by(|one, next| around(one).is_some() && around(one) == around(next)) {
        let mut longest: Vec<usize> = (0..group.len()).collect();
        longest.sort_by_key(|at| std::cmp::Reverse(group.get(*at).map(|step| step.sums.total())));
        let all = group.len() <= ALL;
        let shown: BTreeSet<usize> =
            longest.into_iter().take(if all { group.len() } else { LONGEST }).collect();
        let kept = group.iter().enumerate().filter(|(at, _)| shown.contains(at));
        parts.extend(kept.map(|(_, step)| {
            let after = step.after.as_ref();
            let after = after.map(|(node, why)| format!("{} ({why})", explained.name(*node)));
            let (name, after) = (explained.name(step.node).to_owned(), after.unwrap_or_default());
            Part { name, from: step.from, sums: step.sums, after, many: false }
        }));
        let rest = group.iter().enumerate().filter(|(at, _)| !shown.contains(at)).map(|(_, step)| step);
        if let (Some(first), Some(opener)) = (rest.clone().next(), group.first().and_then(around)) {
            let sums = rest.clone().fold(Durations::default(), |sum, step| sum.and(&step.sums));
            let name = format!("… {} more in {}", rest.count(), explained.name(opener));
            parts.push(Part { name, from: first.from, sums, after: String::new(), many: true });
        }
    }
    parts
}

/// The outermost loop that an instance is in.
fn looped(story: &Story<'_>, at: At) -> Option<At> {
    let around = story.node(at).map(|node| story.timeline.around(node));
    let loops = around.into_iter().flatten().filter(|frame| matches!(frame.which, Some(Which::Iteration(_))));
    loops.last().and_then(|frame| story.opener(frame))
}
