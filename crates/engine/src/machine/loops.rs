//! Loops: one frame after the other, on the threads and variables of the frame around them.

use super::bindings::Bindings;
use super::children::{Children, Ended, FrameStatus, list};
use super::flow::Flow;
use super::frame::{Frame, Frames};
use super::inputs::{INDEX, Inputs};
use super::state::{State, Visit};
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::graph::{Loop, Times};
use crate::ids::{FrameIx, NodeRef};
use crate::place::Instance;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How far a loop has come.
#[derive(Debug, Default)]
pub(crate) struct LoopPhase {
    /// The elements that it goes over, if it does.
    items: Vec<Value>,
    /// How often it goes round, if that is known.
    total: Option<u32>,
    /// The number of the first iteration: those of other loops of the visit come before it.
    first: u32,
    /// Iterations that have ended.
    done: u32,
    open: Option<FrameIx>,
    /// The iteration that was cut off.
    suspended: Option<Box<Frame>>,
    last: Option<Ended>,
    /// The time of all iterations is up.
    late: bool,
    /// Variables for the next iteration, where the frame around it, a dataflow, can't hold them.
    carried: BTreeMap<Arc<str>, Value>,
    /// The bindings of the last iteration, for the next (E-41).
    bindings: Option<Arc<Bindings>>,
}

impl LoopPhase {
    pub(super) fn is_due(&self) -> bool {
        self.open.is_none()
    }
    pub(super) fn be_late(&mut self) {
        self.late = true;
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
    fn take_suspended(&mut self) -> Option<Box<Frame>> {
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

impl State {
    /// The next iteration, or the end.
    pub(super) fn derive_loop(&self, node: NodeRef, times: &Loop, phase: Option<&LoopPhase>) -> Event {
        if let Some(fault) =
            phase.and_then(|phase| phase.last.as_ref()).and_then(|ended| ended.fault.as_deref())
        {
            return self.failed(node, fault.clone());
        }
        if phase.is_some_and(|phase| phase.late) {
            return self.failed(node, self.too_late(node, "loop", times.timeout_s));
        }
        let done = phase.map_or(0, |phase| phase.done);
        // The time is that of all iterations.
        let due = |first: bool| if first { self.due(node) } else { Ok(None) };
        let more = self.goes_round(node, times, phase, done);
        match more.and_then(|more| Ok(more.then_some(due(phase.is_none())?))) {
            Ok(Some(due)) => {
                let before = || self.visit(node).map_or(0, Visit::iterations);
                let iteration = Some(phase.map_or_else(before, |phase| phase.first + done));
                Event::Entered { node: self.name(node), paths: None, iteration, due }
            }
            Ok(None) => Event::Left { node: self.name(node), joined: None },
            Err(fault) => self.failed(node, fault),
        }
    }

    fn goes_round(
        &self,
        node: NodeRef,
        times: &Loop,
        phase: Option<&LoopPhase>,
        done: u32,
    ) -> Result<bool, Fault> {
        let more = match (&times.times, phase.and_then(|phase| phase.total)) {
            (_, Some(total)) => return Ok(done < total),
            (Times::While(condition), None) => {
                let what = format!("the condition of the loop `{}`", self.def(node).id);
                self.holds(node, condition, &what)?
            }
            _ => return Ok(self.rounds(node, times)?.0 > 0),
        };
        if more && done >= self.most_rounds(times) {
            let message = format!(
                "the loop `{}` has gone round {done} times, which is {}, and its condition still holds",
                self.def(node).id,
                self.limit_of(times)
            );
            return Err(Fault::new(FaultKind::LimitExceeded, message));
        }
        Ok(more)
    }

    /// How often a loop may go round (E-12): what it allows itself, and no more than all loops of the run.
    fn most_rounds(&self, times: &Loop) -> u32 {
        let run = u32::try_from(self.start.limits.loop_iterations).unwrap_or(u32::MAX);
        times.limit.min(run)
    }

    fn limit_of(&self, times: &Loop) -> &'static str {
        match u64::from(times.limit) <= self.start.limits.loop_iterations {
            true => "its limit",
            false => "the limit of all loops (`loop_iterations` in [limits])",
        }
    }

    /// How often a loop goes round that does not ask each time, and over what.
    fn rounds(&self, node: NodeRef, times: &Loop) -> Result<(u32, Vec<Value>), Fault> {
        let id = &self.def(node).id;
        let too_many = |count: String| {
            let (limit, most) = (self.limit_of(times), self.most_rounds(times));
            let message = format!("the loop `{id}` is to go round {count} times, over {limit} of {most}");
            Fault::new(FaultKind::LimitExceeded, message)
        };
        match &times.times {
            Times::While(_) => Ok((0, Vec::new())),
            Times::Aside => Ok((1, Vec::new())),
            Times::Over(items, _) => {
                let items = list(self.resolved(node, items)?, &format!("what the loop `{id}` goes over"))?;
                let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
                if count > self.most_rounds(times) {
                    Err(too_many(count.to_string()))
                } else {
                    Ok((count, items))
                }
            }
            Times::Count(count) => {
                let count = self.resolved(node, count)?;
                let Some(count) = count.as_u64() else {
                    let message =
                        format!("the count of the loop `{id}` is {count}, not a whole number from 0 on");
                    return Err(Fault::new(FaultKind::InputError, message));
                };
                match u32::try_from(count).ok().filter(|count| *count <= self.most_rounds(times)) {
                    Some(count) => Ok((count, Vec::new())),
                    None => Err(too_many(count.to_string())),
                }
            }
        }
    }

    /// An iteration begins.
    pub(super) fn open_iteration(&mut self, node: NodeRef, times: &Loop, iteration: u32) {
        if self.children_mut(node).is_none() {
            let asks = matches!(times.times, Times::While(_));
            let (total, items) = self.rounds(node, times).unwrap_or_default();
            let total = (!asks).then_some(total);
            let phase = LoopPhase { items, total, first: iteration, ..LoopPhase::default() };
            self.set_children(node, Children::Loop(phase));
        }
        if let Some(visit) = self.visit_mut(node) {
            visit.extra_mut().iterations = iteration + 1;
        }
        let mut inputs = Vec::new();
        if let Some(Children::Loop(phase)) = self.children_mut(node) {
            let at = iteration - phase.first;
            inputs.push((Arc::clone(&INDEX), Value::from(at)));
            if let Times::Over(_, name) = &times.times {
                let item = phase.items.get_mut(at as usize).map(Value::take).unwrap_or_default();
                inputs.push((name.clone(), item));
            }
        }
        let open =
            self.open_frame(node, times.graph, 0, Instance::Iteration(iteration), Inputs::new(inputs), true);
        let mut carried = BTreeMap::new();
        if let Some(Children::Loop(phase)) = self.children_mut(node) {
            phase.open = Some(open);
            carried = std::mem::take(&mut phase.carried);
            if let Some(bindings) = phase.bindings.take() {
                self.frames[open].bindings = Some(bindings);
            }
        }
        for (name, value) in carried {
            // What the iteration is given hides what earlier ones have set, as it does in a flow.
            if !self.frames[open].inputs.has(&name) {
                self.set_variable(open, &name, value);
            }
        }
        self.begin_frame(open);
    }

    /// A loop that had failed goes on within the iteration in which it did (E-36).
    pub(super) fn restart_loop(&mut self, node: NodeRef) {
        let Some(Children::Loop(phase)) = self.children_mut(node) else { return };
        phase.late = false;
        let suspended = phase.take_suspended();
        self.set_timer_anew(node);
        let Some(frame) = suspended else { return };
        let open = self.frames.reopen(frame, (node, 0));
        if let Some(Children::Loop(phase)) = self.children_mut(node) {
            phase.open = Some(open);
        }
        self.restart(open);
    }

    /// An iteration has ended: what it said and set is that of the frame around it.
    pub(super) fn iteration_over(&mut self, node: NodeRef, mut ended: Ended) {
        let mut carried = BTreeMap::new();
        if ended.fault.is_none() {
            self.adopt(node, &ended.frame);
            carried = ended.frame.flow.as_mut().map(Flow::take_variables).unwrap_or_default();
            if self.of(node).flow.is_some() {
                for (name, value) in std::mem::take(&mut carried) {
                    self.set_variable(node.frame, &name, value);
                }
            }
        }
        if let Some(Children::Loop(phase)) = self.children_mut(node) {
            phase.carried = carried;
            phase.bindings.clone_from(&ended.frame.bindings);
            phase.open = None;
            phase.done += 1;
            phase.last = Some(ended);
        }
    }
}
