//! Loops: one frame after the other, on the threads and variables of the frame around them.

use super::children::{Opening, list};
use super::flow::Flow;
use super::inputs::{INDEX, Inputs};
use super::node::Visit;
use super::opened::{Children, Ended, LoopPhase};
use super::state::State;
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::graph::{Act, Loop, Times};
use crate::ids::{FrameIx, NodeRef};
use crate::place::Instance;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

impl State {
    /// The next iteration, or the end.
    pub(super) fn derive_loop(&self, node: NodeRef, times: &Loop, phase: Option<&LoopPhase>) -> Event {
        if let Some(fault) =
            phase.and_then(|phase| phase.last.as_ref()).and_then(|ended| ended.fault.as_deref())
        {
            return self.failed(node, fault.clone());
        }
        if let Some(under_way) = phase.and_then(|phase| phase.late.as_deref()) {
            return self.failed(node, self.too_late(node, ("loop", under_way), times.timeout_s));
        }
        match phase.and_then(|phase| phase.until.as_ref()) {
            Some(Err(fault)) => return self.failed(node, Fault::clone(fault)),
            Some(Ok(true)) => return Event::Left { node: self.name(node), joined: None },
            Some(Ok(false)) | None => {}
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
            let (limit, advice) = self.limit_of(times);
            let message = format!(
                "the loop `{}` has gone round {done} times, which is {limit}, and its condition still holds: {advice}",
                self.def(node).id,
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

    /// Which limit that is, and what to do about it.
    fn limit_of(&self, times: &Loop) -> (&'static str, &'static str) {
        if u64::from(times.limit) <= self.start.limits.loop_iterations {
            ("its limit", "raise its `limit` if it needs more")
        } else {
            ("the limit of all loops", "raise `loop_iterations` in [limits] if it needs more")
        }
    }

    /// Whether a loop ends after an iteration that has just ended well: its `until` sees what is there at the iteration's end (W-16).
    pub(super) fn until(&self, ix: FrameIx, node: NodeRef) -> Option<Result<bool, Box<Fault>>> {
        let Act::Loop(times) = self.live_act(node)? else { return None };
        let what = format!("`until` of the loop `{}`", self.def(node).id);
        Some(self.holds(self.end_of(ix), times.until.as_ref()?, &what).map_err(Box::new))
    }

    /// How often a loop goes round that does not ask each time, and over what.
    fn rounds(&self, node: NodeRef, times: &Loop) -> Result<(u32, Vec<Value>), Fault> {
        let id = &self.def(node).id;
        let too_many = |count: String| {
            let ((limit, advice), most) = (self.limit_of(times), self.most_rounds(times));
            let message =
                format!("the loop `{id}` is to go round {count} times, over {limit} of {most}: {advice}");
            Fault::new(FaultKind::LimitExceeded, message)
        };
        match &times.times {
            Times::While(_) => Ok((0, Vec::new())),
            Times::Aside { .. } => Ok((1, Vec::new())),
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
            let over = matches!(times.times, Times::Over(..));
            // Other loops of the visit would have the same slots.
            let slots = if over && iteration == 0 { self.slots_of(node, &items) } else { None };
            let phase = LoopPhase { items, slots, total, first: iteration, ..LoopPhase::default() };
            self.set_children(node, Children::Loop(phase));
        }
        if let Some(visit) = self.visit_mut(node) {
            visit.extra_mut().iterations = iteration + 1;
        }
        let (mut inputs, mut slot) = (Vec::new(), None);
        if let Some(Children::Loop(phase)) = self.children_mut(node) {
            let at = iteration - phase.first;
            slot = phase.slots.as_ref().and_then(|slots| slots.get(at as usize).copied());
            inputs.push((Arc::clone(&INDEX), Value::from(at)));
            if let Times::Over(_, name) = &times.times {
                let item = phase.items.get_mut(at as usize).map(Value::take).unwrap_or_default();
                inputs.push((name.clone(), item));
            }
        }
        if let Times::Aside { last } = times.times {
            inputs.extend(self.between_rounds(node, last));
        }
        let (instance, inputs) = (Instance::Iteration(iteration), Inputs::new(inputs));
        let open = self.open_frame(node, times.graph, Opening { at: 0, instance, inputs, slot });
        let mut carried = BTreeMap::new();
        if let Some(Children::Loop(phase)) = self.children_mut(node) {
            phase.open = Some(open);
            carried = std::mem::take(&mut phase.carried);
            if let Some(bindings) = phase.bindings.take() {
                self.frames[open].set_bindings(Some(bindings));
            }
        }
        for (name, value) in carried {
            // What the iteration is given hides what earlier ones have set, as it does in a flow.
            if !self.frames[open].is_given(&name) {
                self.set_variable(open, &name, value);
            }
        }
        self.begin_frame(open);
    }

    /// A loop that had failed goes on within the iteration in which it did (E-36).
    pub(super) fn restart_loop(&mut self, node: NodeRef) {
        let Some(Children::Loop(phase)) = self.children_mut(node) else { return };
        phase.late = None;
        let suspended = phase.take_suspended();
        self.set_timer_anew(node);
        let Some(frame) = suspended else { return };
        let open = self.reopen(node, 0, frame);
        if let Some(Children::Loop(phase)) = self.children_mut(node) {
            phase.open = Some(open);
        }
        self.restart(open);
    }

    /// An iteration has ended: what it said and set is that of the frame around it.
    pub(super) fn iteration_over(&mut self, node: NodeRef, mut ended: Ended) {
        let mut carried = BTreeMap::new();
        let aside = matches!(self.live_act(node), Some(Act::Loop(times)) if times.times.is_aside());
        if ended.fault.is_none() {
            self.adopt(node, &ended.frame);
        }
        if ended.fault.is_none() && !aside {
            carried = ended.frame.flow.as_mut().map(Flow::take_variables).unwrap_or_default();
            if self.of(node).flow.is_some() {
                for (name, value) in std::mem::take(&mut carried) {
                    self.set_variable(node.frame, &name, value);
                }
            }
        }
        if let Some(Children::Loop(phase)) = self.children_mut(node) {
            phase.carried = carried;
            phase.bindings = ended.frame.bindings().cloned();
            phase.open = None;
            phase.done += 1;
            phase.last = Some(ended);
        }
    }
}
