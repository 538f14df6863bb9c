//! The critical path: the chain of nodes and waits that set how long a run took.

use super::story::{At, Story};
use super::{Explained, figures};
use crate::timeline::{Durations, intervals};
use serde_json::{Value, json};

/// A part of the path: one node, from when the one before it on the path had ended.
pub struct Step {
    /// The node.
    pub node: At,
    /// The node before it, and why this one waited for it.
    pub after: Option<(At, String)>,
    /// When it begins on the line of time.
    pub from: i64,
    /// What it went into.
    pub sums: Durations,
}

/// The path of a run, from its first node on: back from the node that ended last, each time to the one that ended last of
/// those that it waited for, into the frames that it opened. Their parts follow each other without a gap.
pub fn path(explained: &Explained<'_>) -> Vec<Step> {
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
fn end(story: &Story<'_>, at: At) -> Option<u64> {
    story.started(at).map(|_| story.ended(at).map_or(story.until.n + 1, |ended| ended.n))
}

/// The instance that ended last in what one has opened, as far in as there is something: of a join that was decided, none that was
/// cut off.
fn innermost(story: &Story<'_>, at: At) -> At {
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

/// C-15's list of it.
pub fn critical(explained: &Explained<'_>, steps: &[Step]) -> Value {
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
