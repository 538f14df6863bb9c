//! The frames that a leaf opened: those that are open, and those that were cut off or have ended.

use super::frame::{Frame, Frames};
use super::inputs::Bindings;
use super::paths::ForkPhase;
use super::slots::Slots;
use crate::fault::Fault;
use crate::graph::Act;
use crate::ids::FrameIx;
use crate::place::Instance;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The frames of a leaf.
#[derive(Clone, Debug)]
pub(crate) enum Children {
    Fork(ForkPhase),
    Loop(LoopPhase),
    Sub(SubPhase),
}

/// Variables that a subgraph sets around it, and what they come to.
pub(super) type Outputs = Vec<(Arc<str>, Value)>;

/// The one frame of a subgraph.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubPhase {
    pub(super) open: Option<FrameIx>,
    /// It was cut off.
    pub(super) suspended: Option<Box<Frame>>,
    pub(super) ended: Option<Ended>,
    /// Its time is up: what was under way then ([`super::State::under_way`]).
    pub(super) late: Option<String>,
    /// What its outputs came to.
    pub(super) outputs: Outputs,
}

impl SubPhase {
    /// Whether its frame is there, or was.
    pub(super) fn has_begun(&self) -> bool {
        self.open.is_some() || self.suspended.is_some() || self.ended.is_some()
    }
}

/// A frame that is no more.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) frame: Box<Frame>,
    pub(crate) fault: Option<Box<Fault>>,
}

/// How it stands with one of the frames of a leaf, when it goes on.
pub(super) enum FrameStatus<'s> {
    /// It has ended for good.
    Ended,
    /// It is under way, or was cut off, or failed and goes on.
    Alive(&'s Frame),
    /// It has not begun.
    NotBegun,
}

impl<'s> FrameStatus<'s> {
    pub(super) fn of(ended: &'s Ended) -> Self {
        if ended.fault.is_none() { Self::Ended } else { Self::Alive(&ended.frame) }
    }
}

impl Children {
    /// How it stands with the frame of an instance.
    pub(super) fn frame_status<'s>(
        &'s self,
        instance: &Instance<'_>,
        act: &Act,
        frames: &'s Frames,
    ) -> FrameStatus<'s> {
        match (self, instance, act) {
            (Self::Fork(phase), Instance::Path(id), Act::Fork(paths)) => {
                paths.of.position(id).map_or(FrameStatus::NotBegun, |at| phase.frame_status(at, frames))
            }
            (Self::Loop(phase), Instance::Iteration(at), _) => phase.frame_status(*at, frames),
            (Self::Sub(phase), Instance::Sub, _) => match (phase.open, &phase.suspended, &phase.ended) {
                (Some(open), ..) => FrameStatus::Alive(&frames[open]),
                (_, Some(frame), _) => FrameStatus::Alive(frame),
                (.., Some(ended)) => FrameStatus::of(ended),
                _ => FrameStatus::NotBegun,
            },
            _ => FrameStatus::NotBegun,
        }
    }
    /// Whether there is something to derive.
    pub(super) fn are_due(&self) -> bool {
        match self {
            Self::Fork(phase) => phase.is_decided(),
            Self::Loop(phase) => phase.is_due(),
            Self::Sub(phase) => phase.late.is_some() || phase.ended.is_some(),
        }
    }
    /// The time for all of them is up, and this was under way. What is decided stays so.
    pub(super) fn be_late(&mut self, under_way: String) {
        match self {
            Self::Fork(phase) => phase.be_late(under_way),
            Self::Loop(phase) => phase.late = Some(under_way),
            Self::Sub(phase) => phase.late = phase.ended.is_none().then_some(under_way),
        }
    }
    /// A frame that was open is so no more.
    pub(super) fn suspend(&mut self, frame: Box<Frame>) {
        match self {
            Self::Fork(phase) => phase.suspend(frame),
            Self::Loop(phase) => phase.suspend(frame),
            Self::Sub(phase) => (phase.open, phase.suspended) = (None, Some(frame)),
        }
    }
    /// The open frame that stands for an instance.
    pub(super) fn find(&self, instance: &Instance<'_>, act: &Act) -> Option<FrameIx> {
        match (self, instance, act) {
            (Self::Fork(phase), Instance::Path(id), Act::Fork(paths)) => {
                phase.open_at(paths.of.position(id)?)
            }
            (Self::Loop(phase), Instance::Iteration(at), _) => phase.open().filter(|_| phase.is_at(*at)),
            (Self::Sub(phase), Instance::Sub, _) => phase.open,
            _ => None,
        }
    }
    /// The frame that stands for an instance: of a loop, that of the last iteration.
    pub(super) fn frame<'s>(
        &'s self,
        instance: &Instance<'_>,
        act: &Act,
        open: &'s Frames,
    ) -> Option<&'s Frame> {
        match (self, instance, act) {
            (Self::Fork(phase), Instance::Path(id), Act::Fork(paths)) => {
                phase.frame(paths.of.position(id)?, open)
            }
            _ => {
                self.known(act, open).into_iter().find(|(known, _)| known == instance).map(|(_, frame)| frame)
            }
        }
    }
    /// How many iterations there are, of a loop that knows.
    pub(super) fn iterations(&self) -> Option<u32> {
        match self {
            Self::Loop(phase) => phase.total(),
            _ => None,
        }
    }
    /// How many paths there are, of a fork.
    pub(super) fn paths(&self) -> Option<u32> {
        match self {
            Self::Fork(phase) => Some(phase.count()),
            _ => None,
        }
    }
    /// The frames that are known, each with what it is to the node, in order. Of a loop, that of the last iteration.
    pub(super) fn known<'s>(&'s self, act: &Act, open: &'s Frames) -> Vec<(Instance<'static>, &'s Frame)> {
        match (self, act) {
            (Self::Fork(phase), Act::Fork(paths)) => {
                let frames = phase.frames(open).enumerate();
                let known = frames.filter_map(|(at, frame)| Some((at, frame?)));
                known.map(|(at, frame)| (Instance::Path(paths.of.id(at).to_string().into()), frame)).collect()
            }
            (Self::Loop(_), Act::Loop(times)) if times.times.is_aside() => Vec::new(),
            (Self::Loop(phase), _) => phase.last_frame(open).into_iter().collect(),
            (Self::Sub(phase), _) => {
                let ended = phase.ended.as_ref().map(|ended| &*ended.frame);
                let known = phase.open.map(|open_| &open[open_]).or(phase.suspended.as_deref()).or(ended);
                known.map(|frame| (Instance::Sub, frame)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
    /// The frames that have not ended.
    pub(super) fn open(&self) -> Vec<FrameIx> {
        match self {
            Self::Fork(phase) => phase.open(),
            Self::Loop(phase) => phase.open().into_iter().collect(),
            Self::Sub(phase) => phase.open.into_iter().collect(),
        }
    }
}

/// How far a loop has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopPhase {
    /// The elements that it goes over, if it does.
    pub(super) items: Vec<Value>,
    pub(super) slots: Slots,
    /// How often it goes round, if that is known.
    pub(super) total: Option<u32>,
    /// The number of the first iteration: those of other loops of the visit come before it.
    pub(super) first: u32,
    /// Iterations that have ended.
    pub(super) done: u32,
    pub(super) open: Option<FrameIx>,
    /// The iteration that was cut off.
    pub(super) suspended: Option<Box<Frame>>,
    pub(super) last: Option<Ended>,
    /// The time of all iterations is up: what was under way then.
    pub(super) late: Option<String>,
    /// Whether the loop ends after the last iteration, or why that can't be told (W-16).
    pub(super) until: Option<Result<bool, Box<Fault>>>,
    /// Variables for the next iteration, where the frame around it, a dataflow, can't hold them.
    pub(super) carried: BTreeMap<Arc<str>, Value>,
    /// The bindings of the last iteration, for the next (E-41).
    pub(super) bindings: Option<Arc<Bindings>>,
}

impl LoopPhase {
    pub(super) fn is_due(&self) -> bool {
        self.open.is_none()
    }
    pub(super) fn is_at(&self, iteration: u32) -> bool {
        self.first + self.done == iteration
    }
    /// How it stands with an iteration.
    pub(super) fn frame_status<'s>(&'s self, iteration: u32, frames: &'s Frames) -> FrameStatus<'s> {
        let next = self.first + self.done;
        let failed = self.last.as_ref().filter(|_| iteration + 1 == next);
        match (self.open, &self.suspended, failed) {
            (Some(open), ..) if iteration == next => FrameStatus::Alive(&frames[open]),
            (_, Some(frame), _) if iteration == next => FrameStatus::Alive(frame),
            (.., Some(last)) => FrameStatus::of(last),
            _ if iteration < next => FrameStatus::Ended,
            _ => FrameStatus::NotBegun,
        }
    }
    pub(super) fn open(&self) -> Option<FrameIx> {
        self.open
    }
    /// The frame of the iteration that is under way, or of the last.
    pub(super) fn last_frame<'s>(&'s self, open: &'s Frames) -> Option<(Instance<'static>, &'s Frame)> {
        let next = self.first + self.done;
        match (self.open, &self.suspended, &self.last) {
            (Some(ix), ..) => Some((Instance::Iteration(next), &open[ix])),
            (_, Some(frame), _) => Some((Instance::Iteration(next), &**frame)),
            (.., Some(last)) => Some((Instance::Iteration(next.saturating_sub(1)), &*last.frame)),
            _ => None,
        }
    }
    /// The frame whose threads those around it begin with: of an iteration that is under way, was cut off or has failed.
    pub(super) fn unfinished<'s>(&'s self, open: &'s Frames) -> Option<&'s Frame> {
        let failed = || self.last.as_ref().filter(|last| last.fault.is_some()).map(|last| &*last.frame);
        self.open.map(|ix| &open[ix]).or(self.suspended.as_deref()).or_else(failed)
    }
    /// The open iteration is so no more.
    pub(super) fn suspend(&mut self, frame: Box<Frame>) {
        (self.open, self.suspended) = (None, Some(frame));
    }
    /// The iteration that is to go on: one that was cut off, or that failed.
    pub(super) fn take_suspended(&mut self) -> Option<Box<Frame>> {
        let failed = self.last.take_if(|ended| ended.fault.is_some()).map(|ended| {
            self.done = self.done.saturating_sub(1);
            ended.frame
        });
        self.suspended.take().or(failed)
    }
    /// How often it goes round in all, if that is known.
    pub(super) fn total(&self) -> Option<u32> {
        Some(self.first + self.total?)
    }
    /// What the last iteration came to.
    pub(super) fn output(&self) -> Option<Value> {
        self.last.as_ref().map(|ended| ended.frame.output().clone())
    }
}
