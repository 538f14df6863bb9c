//! The critical path: the chain of nodes and waits that set how long a run took.

use super::Explained;
use super::figures;
use super::story::{At, Story};
use crate::inspect::page::{BOLD, DIM, Page, Table, clean, cut};
use crate::progress::seconds;
use selvedge_host::timeline::{Durations, Which, intervals};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Columns of a node's id at most, and rows.
const NODE: usize = 28;
const ROWS: usize = 100;
/// So many steps of one loop all have their rows; of more, so many of the longest.
const ALL: usize = 12;
const LONGEST: usize = 5;

/// A part of the path: one node, from when the one before it on the path had ended.
pub(super) struct Step {
    node: At,
    /// The node before it, and why this one waited for it.
    after: Option<(At, String)>,
    /// When it begins on the line of time, and what it went into.
    from: i64,
    sums: Durations,
}

/// The path of a run, from its first node on: back from the node that ended last, each time to the one that ended last of
/// those that it waited for, into the frames that it opened. Their parts follow each other without a gap.
pub(super) fn path(explained: &Explained<'_>) -> Vec<Step> {
    let story = &explained.story;
    let mut steps: Vec<Step> = Vec::new();
    let mut next = story.root().max_by_key(|at| end(story, *at)).map(|at| innermost(story, at));
    while let Some(node) = next.take()
        && let Some((_, to)) = story.extent(node)
    {
        let before = explained.waits(node).iter().filter_map(|waited| Some((end(story, waited.at)?, waited)));
        let before = before.filter(|(n, _)| Some(*n) < end(story, node)).max_by_key(|(n, _)| *n);
        let after = before.map(|(_, waited)| (innermost(story, waited.at), waited.why.clone()));
        let ended = after.as_ref().and_then(|(before, _)| story.extent(*before)).map(|(_, ended)| ended);
        let from = ended.or(story.begun()).unwrap_or(to).min(to);
        let spans = story.node(node).map(|node| story.timeline.spans(node, story.until)).unwrap_or_default();
        let parts = intervals(&spans, from, to, |at| story.timeline.line(at));
        next = after.as_ref().map(|(before, _)| *before);
        steps.push(Step { node, after, from, sums: Durations::of(&parts) });
    }
    steps.reverse();
    steps
}

/// The event with which an instance that has started ended; one that goes on ends after all that have.
fn end(story: &Story, at: At) -> Option<u64> {
    story.started(at).map(|_| story.ended(at).map_or(story.until.n + 1, |ended| ended.n))
}

/// The instance that ended last in what one has opened, as far in as there is something: of a join that was decided, none that was
/// cut off.
fn innermost(story: &Story, at: At) -> At {
    let mut at = at;
    loop {
        let frames = story.opened(at).iter().filter_map(|frame| story.frame_at(*frame));
        let inner = frames.flat_map(|frame| story.within(frame));
        let stayed = |at: &At| story.visit(*at).is_some_and(|visit| !visit.cancelled);
        let last = inner.filter(stayed).filter_map(|inner| Some((end(story, inner)?, inner))).max();
        match last {
            Some((_, inner)) => at = inner,
            None => return at,
        }
    }
}

/// C-15's list.
pub(super) fn json(explained: &Explained<'_>, steps: &[Step]) -> Value {
    let step = |step: &Step| {
        let mut object = json!({
            "node": explained.name(step.node),
            "after": step.after.as_ref().map(|(node, _)| explained.name(*node)),
            "why": step.after.as_ref().map(|(_, why)| why),
        });
        if let (Some(object), Value::Object(figures)) = (object.as_object_mut(), figures(&step.sums)) {
            object.extend(figures);
        }
        object
    };
    steps.iter().map(step).collect()
}

/// Prints it as a table.
pub(super) fn print(page: &mut Page, explained: &Explained<'_>, steps: &[Step]) {
    page.gap();
    let sum = |of: &dyn Fn(&Durations) -> i64| steps.iter().map(|step| of(&step.sums)).sum::<i64>();
    let nodes = if steps.len() == 1 { "1 node".to_owned() } else { format!("{} nodes", steps.len()) };
    let (all, work) = (seconds(sum(&Durations::total)), seconds(sum(&Durations::worked)));
    let mut text = format!("{nodes}, {all}: {work} work");
    for (ms, what) in [(sum(&Durations::queued), "queued"), (sum(&Durations::waited), "waiting")] {
        if ms >= 10 {
            text.push_str(&format!(", {} {what}", seconds(ms)));
        }
    }
    page.labelled("CRITICAL PATH", DIM, 15, &text, 3);
    let mut table = Table::new(&["NODE", "FROM", "TOOK", "QUEUED", "WAITED", "AFTER"], 5);
    (table.spare, table.whole) = (vec![1], vec![1, 2, 3, 4]);
    table.optional = vec![3, 4];
    let begun = explained.story.begun().unwrap_or(0);
    let parts = folded(explained, steps);
    for part in parts.iter().take(ROWS) {
        let time = |ms: i64| if ms >= 10 { seconds(ms) } else { String::new() };
        table.row([
            (cut(&clean(&part.name), NODE), if part.many { DIM } else { BOLD }),
            (seconds(part.from - begun), DIM),
            (seconds(part.sums.worked()), ""),
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
fn looped(story: &Story, at: At) -> Option<At> {
    let around = story.node(at).map(|node| story.timeline.around(node));
    let loops = around.into_iter().flatten().filter(|frame| matches!(frame.which, Some(Which::Iteration(_))));
    loops.last().and_then(|frame| story.opener(frame))
}
