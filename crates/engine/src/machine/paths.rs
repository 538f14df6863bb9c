//! The paths of a fork, and how far they have come.

use super::frame::{Frame, Frames};
use super::inputs::Inputs;
use super::opened::{Ended, FrameStatus};
use super::slots::Slots;
use crate::event::JoinOutcome;
use crate::fault::Fault;
use crate::graph::{Paths, PathsOf, Strategy};
use crate::ids::{FrameIx, GraphIx};
use serde_json::{Value, json};
use std::sync::Arc;

/// How far the paths of a fork have come.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForkPhase {
    pub(super) paths: Vec<Path>,
    /// What the paths go over.
    pub(super) elements: Option<Arc<Inputs>>,
    pub(super) slots: Slots,
    pub(super) completed: usize,
    pub(super) failed: usize,
    pub(super) outcome: Option<JoinOutcome>,
    /// Of one whose time was up: what was under way then.
    pub(super) under_way: String,
}

/// A path of a fork.
#[derive(Clone, Debug)]
pub(super) enum Path {
    /// It has not begun.
    Waiting,
    Open(FrameIx),
    /// It was cut off as the join was decided, or waits to go on where it stood (E-36).
    Suspended(Box<Frame>),
    Ended(Box<Ended>),
}

/// There may be thousands of them.
const _: () = assert!(size_of::<Path>() <= 16);

impl Path {
    /// The frame that it left, or why it failed, if it has ended.
    pub(super) fn end(&self) -> Option<Result<&Frame, &Fault>> {
        match self {
            Self::Ended(ended) => Some(ended.fault.as_deref().map_or(Ok(&*ended.frame), Err)),
            _ => None,
        }
    }
    pub(super) fn completed(&self) -> Option<&Ended> {
        match self {
            Self::Ended(ended) if ended.fault.is_none() => Some(ended),
            _ => None,
        }
    }
}

impl ForkPhase {
    pub(super) fn is_decided(&self) -> bool {
        self.outcome.is_some()
    }
    /// Its time is up, and this was under way. What is decided stays so.
    pub(super) fn be_late(&mut self, under_way: String) {
        self.outcome.get_or_insert(JoinOutcome::Timeout);
        self.under_way = under_way;
    }
    pub(super) fn open_at(&self, at: usize) -> Option<FrameIx> {
        match self.paths.get(at)? {
            Path::Open(frame) => Some(*frame),
            _ => None,
        }
    }
    /// How it stands with a path.
    pub(super) fn frame_status<'s>(&'s self, at: usize, frames: &'s Frames) -> FrameStatus<'s> {
        match self.paths.get(at) {
            Some(Path::Open(frame)) => FrameStatus::Alive(&frames[*frame]),
            Some(Path::Suspended(frame)) => FrameStatus::Alive(frame),
            Some(Path::Ended(ended)) => FrameStatus::of(ended),
            Some(Path::Waiting) | None => FrameStatus::NotBegun,
        }
    }
    /// The frames of the paths, in order, of those that have begun.
    pub(super) fn frames<'s>(&'s self, open: &'s Frames) -> impl Iterator<Item = Option<&'s Frame>> {
        (0..self.paths.len()).map(|at| self.frame(at, open))
    }
    /// The frame of a path, if it has begun.
    pub(super) fn frame<'s>(&'s self, at: usize, open: &'s Frames) -> Option<&'s Frame> {
        match self.paths.get(at)? {
            Path::Waiting => None,
            Path::Open(frame) => Some(&open[*frame]),
            Path::Suspended(frame) => Some(frame),
            Path::Ended(ended) => Some(&ended.frame),
        }
    }
    /// What the paths go over is not asked for any more.
    pub(super) fn forget_items(&mut self) {
        self.elements = None;
    }
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.paths.len()).unwrap_or(u32::MAX)
    }
    /// How it was decided, if it was.
    pub(super) fn outcome(&self) -> Option<JoinOutcome> {
        self.outcome
    }
    /// Which path's threads are those around the fork now (W-10).
    pub(super) fn adopted(&self, paths: &Paths) -> Option<usize> {
        let met = self.outcome == Some(JoinOutcome::Met);
        let main = paths.join.main.as_ref().filter(|_| met)?;
        let at = paths.of.position(main)?;
        self.paths.get(at)?.completed().map(|_| at)
    }
    /// What came of each path, in order: its frame, if it has begun, and of one that has ended why it failed.
    pub(super) fn ends<'s>(
        &'s self,
        open: &'s Frames,
    ) -> impl Iterator<Item = (Option<&'s Frame>, Option<Result<&'s Value, &'s Fault>>)> {
        self.paths
            .iter()
            .zip(self.frames(open))
            .map(|(path, frame)| (frame, path.end().map(|end| end.map(Frame::output))))
    }
    /// The results of the paths that completed, by path id (W-09).
    pub(super) fn results(&self, of: &PathsOf) -> Value {
        let completed =
            self.paths.iter().enumerate().filter_map(|(at, path)| {
                Some((of.id(at).to_string(), path.completed()?.frame.output().clone()))
            });
        Value::Object(completed.collect())
    }
    /// The faults of the paths that failed, by path id (W-09).
    pub(super) fn errors(&self, of: &PathsOf) -> Value {
        let failed = self.paths.iter().enumerate().filter_map(|(at, path)| {
            let fault = path.end()?.err()?;
            Some((of.id(at).to_string(), json!(fault)))
        });
        Value::Object(failed.collect())
    }
    pub(super) fn open(&self) -> Vec<FrameIx> {
        let open = self.paths.iter().filter_map(|path| match path {
            Path::Open(frame) => Some(*frame),
            _ => None,
        });
        open.collect()
    }
    /// The frame of a path that was cut off.
    pub(super) fn take_suspended(&mut self, at: usize) -> Option<Box<Frame>> {
        let path = self.paths.get_mut(at)?;
        match std::mem::replace(path, Path::Waiting) {
            Path::Suspended(frame) => Some(frame),
            other => {
                *path = other;
                None
            }
        }
    }
    /// A frame that was open is so no more.
    pub(super) fn suspend(&mut self, frame: Box<Frame>) {
        let at = frame.opened_by.map_or(0, |(_, at)| at as usize);
        if let Some(path) = self.paths.get_mut(at) {
            *path = Path::Suspended(frame);
        }
    }
    /// Paths that have failed are to go on.
    pub(super) fn reopen(&mut self) {
        for path in &mut self.paths {
            *path = match std::mem::replace(path, Path::Waiting) {
                Path::Ended(ended) if ended.fault.is_some() => Path::Suspended(ended.frame),
                other => other,
            };
        }
        self.failed = 0;
    }
    /// What the strategy makes of the paths that have ended so far (W-06). `None`: others may still decide.
    pub(super) fn judge(&self, strategy: Strategy) -> Option<JoinOutcome> {
        let (all, completed, failed) = (self.paths.len(), self.completed, self.failed);
        let (met, unmet) = match strategy {
            Strategy::AllCompleted => (completed == all, failed > 0),
            Strategy::AnyCompleted => (completed > 0, failed == all),
            Strategy::AllFailed => (failed == all, completed > 0),
            Strategy::AnyFailed => (failed > 0, completed == all),
            Strategy::Count(count) => (completed >= count as usize, all - failed < count as usize),
            Strategy::AllEnded => (completed + failed == all, false),
        };
        match (met, unmet) {
            (true, _) => Some(JoinOutcome::Met),
            (false, true) => Some(JoinOutcome::Unmet),
            (false, false) => None,
        }
    }
}

impl PathsOf {
    /// The id that people give a path.
    pub(crate) fn id(&self, at: usize) -> Arc<str> {
        match self {
            Self::Listed(paths) => paths.get(at).map_or_else(|| Arc::from(""), |(id, _)| id.clone()),
            Self::Each { .. } => at.to_string().into(),
        }
    }
    /// Which path has that id.
    pub(crate) fn position(&self, id: &str) -> Option<usize> {
        match self {
            Self::Listed(paths) => paths.iter().position(|(known, _)| **known == *id),
            Self::Each { .. } => id.parse().ok(),
        }
    }
    pub(crate) fn graph(&self, at: usize) -> Option<GraphIx> {
        match self {
            Self::Listed(paths) => paths.get(at).map(|(_, graph)| *graph),
            Self::Each { graph, .. } => Some(*graph),
        }
    }
}
