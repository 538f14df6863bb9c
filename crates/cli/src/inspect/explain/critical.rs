//! The critical path: the chain of nodes and waits that set how long a run took.

use super::Explained;
use super::figures;
use super::story::{At, Story};
use crate::inspect::page::{BOLD, DIM, Page, Table, clean, cut};
use crate::progress::seconds;
use selvedge_host::timeline::{Durations, intervals};
use serde_json::{Value, json};

/// Columns of a node's id at most, and rows.
const NODE: usize = 28;
const ROWS: usize = 100;

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
pub(super) fn path(explained: &Explained) -> Vec<Step> {
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
pub(super) fn json(explained: &Explained, steps: &[Step]) -> Value {
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
pub(super) fn print(page: &mut Page, explained: &Explained, steps: &[Step]) {
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
    for step in steps.iter().take(ROWS) {
        let time = |ms: i64| if ms >= 10 { seconds(ms) } else { String::new() };
        let after = step.after.as_ref();
        let after =
            after.map_or_else(String::new, |(node, why)| format!("{} ({why})", explained.name(*node)));
        table.row([
            (cut(&clean(explained.name(step.node)), NODE), BOLD),
            (seconds(step.from - begun), DIM),
            (seconds(step.sums.worked()), ""),
            (time(step.sums.queued()), ""),
            (time(step.sums.waited()), ""),
            (after, ""),
        ]);
    }
    page.table(&table);
    if steps.len() > ROWS {
        page.line(&page.paint(DIM, &format!("… {} more: --json has all", steps.len() - ROWS)));
    }
}
