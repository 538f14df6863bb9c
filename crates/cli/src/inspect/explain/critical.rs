//! The critical path: the chain of nodes and waits that set how long a run took.

use super::Explained;
use super::figures;
use crate::inspect::page::{BOLD, DIM, Page, Table, clean, cut};
use crate::progress::seconds;
use selvedge_engine::{Ix, NodeIx};
use selvedge_host::timeline::{Durations, intervals};
use serde_json::{Value, json};

/// Columns of a node's id at most, and rows.
const NODE: usize = 20;
const ROWS: usize = 100;

/// A part of the path: one node, from when the one before it on the path had ended.
pub(super) struct Step {
    node: NodeIx,
    /// The node before it, and why this one waited for it.
    after: Option<(NodeIx, String)>,
    /// When it begins on the line of time, and what it went into.
    from: i64,
    sums: Durations,
}

/// The path of a run, from its first node on: back from the node that ended last, each time to the one that ended last of
/// those that it waited for. Their parts follow each other without a gap.
pub(super) fn path(explained: &Explained) -> Vec<Step> {
    let story = &explained.story;
    let last = story.until.n + 1;
    // A node that goes on ends after all that have ended.
    let end = |node: NodeIx| story.started(node).map(|_| story.ended(node).map_or(last, |ended| ended.n));
    let mut steps = Vec::new();
    let mut next = explained.graph.nodes.indices().max_by_key(|node| end(*node));
    while let Some(node) = next.take()
        && let Some((_, to)) = story.extent(node)
    {
        let waits = explained.waits.get(node.get()).into_iter().flatten();
        let before = waits.filter_map(|waited| Some((end(waited.node)?, waited)));
        let before = before.filter(|(n, _)| Some(*n) < end(node)).max_by_key(|(n, _)| *n);
        let after = before.map(|(_, waited)| (waited.node, waited.why.clone()));
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

/// C-15's list.
pub(super) fn json(explained: &Explained, steps: &[Step]) -> Value {
    let step = |step: &Step| {
        let mut object = json!({
            "node": explained.id(step.node),
            "after": step.after.as_ref().map(|(node, _)| explained.id(*node)),
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
        let after = after.map_or_else(String::new, |(node, why)| format!("{} ({why})", explained.id(*node)));
        table.row([
            (cut(&clean(explained.id(step.node)), NODE), BOLD),
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
