//! What node instances waited for: in a graph whose order comes from what nodes observe, what the schedule says (P-20); in a flow,
//! what came before, also across the frames that paths and iterations are in.

use super::story::{At, Story};
use super::{Explained, waits};
use crate::timeline::{FrameTimeline, Which};
use selvedge_engine::graph::{Act, Control};
use selvedge_engine::schedule::Schedule;
use selvedge_engine::{Ix, NodeIx};
use std::cell::OnceCell;
use std::collections::HashMap;

/// A node instance that another one waited for.
#[derive(Clone, Debug)]
pub struct Waited {
    /// The instance.
    pub at: At,
    /// Why, in words.
    pub why: String,
}

/// Of each instance, what it waited for, found where somebody asks.
pub(super) struct Waits {
    frames: HashMap<usize, InFrame>,
    each: Vec<OnceCell<Vec<Waited>>>,
}

/// The instances of a frame.
#[derive(Default)]
struct InFrame {
    nodes: HashMap<NodeIx, At>,
    /// What the schedule says of all nodes: none of them is known without those before it.
    scheduled: OnceCell<Vec<Vec<waits::Waited>>>,
}

impl Waits {
    pub(super) fn new(story: &Story<'_>) -> Self {
        let mut frames: HashMap<usize, InFrame> = HashMap::new();
        for (at, instance) in story.instances.iter().enumerate() {
            frames.entry(instance.frame).or_default().nodes.insert(instance.node, at);
        }
        Self { frames, each: vec![OnceCell::new(); story.instances.len()] }
    }

    /// What one of them waited for.
    pub(super) fn of(&self, explained: &Explained<'_>, at: At) -> &[Waited] {
        let find = || {
            let waited = self.scheduled(explained, at);
            if waited.is_empty() { before(&explained.story, at).into_iter().collect() } else { waited }
        };
        self.each.get(at).map_or(&[], |waited| waited.get_or_init(find))
    }

    /// What the schedule of its frame says that it waited for.
    fn scheduled(&self, explained: &Explained<'_>, at: At) -> Vec<Waited> {
        let story = &explained.story;
        let Some(instance) = story.instances.get(at) else { return Vec::new() };
        let graph = story.graph_of(at).filter(|graph| graph.control != Control::Flow);
        let Some((graph, frame)) = graph.zip(self.frames.get(&instance.frame)) else { return Vec::new() };
        let all = frame.scheduled.get_or_init(|| {
            let sequential = instance.frame == 0 && explained.state.start().sequential;
            let effects = |node: NodeIx| frame.nodes.get(&node).and_then(|at| story.effects(*at));
            waits::all(graph, &Schedule::derive(graph, sequential), effects)
        });
        let waited = all.get(instance.node.get()).into_iter().flatten();
        let known = waited.filter_map(|waited| Some((*frame.nodes.get(&waited.node)?, waited.why.clone())));
        known.map(|(at, why)| Waited { at, why }).collect()
    }
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
