//! What node instances waited for: in a graph whose order comes from what nodes observe, what the schedule says (P-20); in a flow,
//! what came before, also across the frames that paths and iterations are in.

use super::story::{At, Story};
use super::waits;
use crate::timeline::{FrameTimeline, Which};
use selvedge_engine::NodeIx;
use selvedge_engine::graph::{Act, Control};
use selvedge_engine::schedule::Schedule;
use std::collections::HashMap;

/// A node instance that another one waited for.
#[derive(Clone, Debug)]
pub struct Waited {
    /// The instance.
    pub at: At,
    /// Why, in words.
    pub why: String,
}

/// Of each instance, what it waited for. `schedule` is that of the run's own graph.
pub(super) fn all(story: &Story<'_>, schedule: &Schedule) -> Vec<Vec<Waited>> {
    let mut known: HashMap<usize, HashMap<NodeIx, At>> = HashMap::new();
    for at in story.all() {
        if let Some(instance) = story.instances.get(at) {
            known.entry(instance.frame).or_default().insert(instance.node, at);
        }
    }
    let mut all: Vec<Vec<Waited>> = vec![Vec::new(); story.instances.len()];
    for (frame, nodes) in &known {
        let Some(graph) = story.timeline.nodes_of(*frame).map(|nodes| nodes.graph()) else { continue };
        if graph.control == Control::Flow {
            continue;
        }
        let inner = (*frame > 0).then(|| Schedule::derive(graph, false));
        let schedule = inner.as_ref().unwrap_or(schedule);
        let effects = |node: NodeIx| nodes.get(&node).and_then(|at| story.effects(*at));
        for (node, waited) in graph.nodes.indices().zip(waits::all(graph, schedule, effects)) {
            let waited = waited
                .into_iter()
                .filter_map(|waits::Waited { node, why }| Some(Waited { at: *nodes.get(&node)?, why }));
            if let Some(row) = nodes.get(&node).and_then(|at| all.get_mut(*at)) {
                row.extend(waited);
            }
        }
    }
    for (at, waited) in all.iter_mut().enumerate() {
        if waited.is_empty() {
            waited.extend(before(story, at));
        }
    }
    all
}

/// What came last before an instance that has started: in its frame, or before that began.
fn before(story: &Story<'_>, at: At) -> Option<Waited> {
    let started = story.started(at)?.n;
    let frame = story.frame(at)?;
    let flows = story.graph_of(at)?.control == Control::Flow;
    if flows && let Some(before) = last(story, frame, started, at) {
        return Some(Waited { at: before, why: "comes after it".to_owned() });
    }
    let opener = story.opener(frame)?;
    let name = story.name(opener);
    match one_before(story, opener, frame) {
        Some((earlier, why)) => {
            let before = last(story, earlier, started, at)?;
            Some(Waited { at: before, why: format!("{why} of {name} comes after it") })
        }
        None => {
            let Waited { at, why } = before(story, opener)?;
            let why = if why.starts_with("comes") { format!("{name} comes after it") } else { why };
            Some(Waited { at, why })
        }
    }
}

/// The frame that one waits for: the iteration before it, the path before it where they run one after the other.
fn one_before<'s>(
    story: &'s Story<'_>,
    opener: At,
    frame: &FrameTimeline,
) -> Option<(&'s FrameTimeline, &'static str)> {
    let serial = |act: &Act| matches!(act, Act::Fork(paths) if paths.serial);
    let why = match &frame.which {
        Some(Which::Iteration(_)) => "the next iteration",
        Some(Which::Path(_)) if story.def(opener)?.body.leaves.values().any(|leaf| serial(&leaf.act)) => {
            "the next path"
        }
        _ => return None,
    };
    let earlier = *story.opened(opener).get(frame.nth.checked_sub(1)?)?;
    Some((story.frame_at(earlier)?, why))
}

/// The instance of a frame that ended last before an event.
fn last(story: &Story<'_>, frame: &FrameTimeline, n: u64, but: At) -> Option<At> {
    let began = |at: &At| story.started(*at).is_some_and(|started| started.n < n);
    let rows = &frame.nodes;
    let began = |row: &usize| story.of_row(*row).is_some_and(|at| began(&at));
    let before = rows.get(..rows.partition_point(began)).unwrap_or_default();
    let mut before = before.iter().rev().filter_map(|row| story.of_row(*row)).filter(|at| *at != but);
    before.find(|at| story.ended(*at).is_some_and(|ended| ended.n < n))
}
