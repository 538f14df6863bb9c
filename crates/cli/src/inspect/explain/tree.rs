//! What `explain` shows of a run's frames: nodes below the paths and iterations that they are in. Of many of these the slowest and the
//! first that failed have rows, and the others one together.

use selvedge_host::explain::{At, Story};
use selvedge_host::timeline::{Durations, FrameStatus, FrameTimeline, Which};
use std::collections::BTreeSet;

/// So many paths or iterations of a node all have their rows; of more, so many of the slowest, and of those that failed.
const ALL: usize = 12;
const SLOWEST: usize = 5;
const FAILED: usize = 5;

/// A row, with how deep it is below the nodes of the run's own graph.
pub(super) struct Row {
    pub(super) depth: usize,
    pub(super) what: What,
}

/// What a row is about.
pub(super) enum What {
    /// A node; with the path or iteration that it is in, where that has no row of its own.
    Node(At, Option<usize>),
    /// A path, an iteration: several nodes.
    Frame(usize),
    /// Paths or iterations that have no rows of their own.
    Rest(Vec<usize>),
}

/// All rows of a run.
pub(super) fn rows(story: &Story<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for at in story.root() {
        node(story, at, None, 0, &mut rows);
    }
    rows
}

fn node(story: &Story<'_>, at: At, frame: Option<usize>, depth: usize, rows: &mut Vec<Row>) {
    rows.push(Row { depth, what: What::Node(at, frame) });
    let frames = story.opened(at);
    let chosen = chosen(story, frames);
    for frame in frames.iter().filter(|frame| chosen.contains(frame)) {
        let Some(known) = story.frame_at(*frame) else { continue };
        let nodes: Vec<At> = story.within(known).collect();
        match (&known.which, nodes.as_slice()) {
            // What a subgraph holds stands below it by itself.
            (Some(Which::Sub), nodes) => {
                nodes.iter().for_each(|at| node(story, *at, None, depth + 1, rows));
            }
            (_, [one]) => node(story, *one, Some(*frame), depth + 1, rows),
            (_, nodes) => {
                rows.push(Row { depth: depth + 1, what: What::Frame(*frame) });
                nodes.iter().for_each(|at| node(story, *at, None, depth + 2, rows));
            }
        }
    }
    let rest: Vec<usize> = frames.iter().filter(|frame| !chosen.contains(frame)).copied().collect();
    if !rest.is_empty() {
        rows.push(Row { depth: depth + 1, what: What::Rest(rest) });
    }
}

/// The frames that have rows of their own.
fn chosen(story: &Story<'_>, frames: &[usize]) -> BTreeSet<usize> {
    if frames.len() <= ALL {
        return frames.iter().copied().collect();
    }
    let worked = |frame: &usize| story.frame_at(*frame).map_or(0, |frame| worked(story, frame));
    let mut slowest: Vec<usize> = frames.to_vec();
    slowest.sort_by_cached_key(|frame| std::cmp::Reverse(worked(frame)));
    let has_failed =
        |frame: &&usize| story.frame_at(**frame).is_some_and(|frame| frame.status == FrameStatus::Failed);
    let failed = frames.iter().filter(has_failed).take(FAILED).copied();
    slowest.into_iter().take(SLOWEST).chain(failed).collect()
}

/// How long something was done in a frame, in milliseconds.
pub(super) fn worked(story: &Story<'_>, frame: &FrameTimeline) -> i64 {
    story.of_frame(frame).map_or(0, |(_, pieces)| Durations::of(&pieces).worked())
}

/// Which of the frames of its node a frame is, in a word: `[pro]`, `#3`.
pub(super) fn word(frame: &FrameTimeline) -> String {
    match &frame.which {
        Some(Which::Path(id)) => format!("[{id}]"),
        Some(Which::Iteration(n)) => format!("#{n}"),
        Some(Which::Sub) | None => String::new(),
    }
}
