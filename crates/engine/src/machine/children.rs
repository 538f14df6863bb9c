//! Frames that a leaf opens (E-34): what they begin with, and what comes of them.

use super::frame::Frame;
use super::inputs::Inputs;
use super::node::{LeafPhase, Left, NodePhase, Visit};
use super::opened::{Children, Ended, Outputs, SubPhase};
use super::state::State;
use crate::effect::EffectId;
use crate::event::Event;
use crate::fault::{Fault, FaultKind, Warning};
use crate::graph::{Act, Sub};
use crate::ids::{FrameIx, GraphIx, Ix, LeafIx, NodeIx, NodeRef, ThreadIx};
use crate::message::Thread;
use crate::place::{FrameStep, Instance};
use crate::template::{JsonTemplate, kind};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// A frame that is to be opened.
pub(super) struct Opening<'a> {
    /// Which it is of those of its node.
    pub(super) at: u32,
    pub(super) instance: Instance<'a>,
    pub(super) inputs: Option<Arc<Inputs>>,
    /// The slot of its element, if that is not its number (E-29).
    pub(super) slot: Option<u32>,
}

/// Frames, to look at and to open.
impl State {
    /// The next event of a leaf that opens frames.
    pub(super) fn derive_children(&self, node: NodeRef, visit: &Visit, leaf: LeafIx) -> Option<Event> {
        let act = &self.leaf(node, leaf).act;
        if matches!(visit.phase, LeafPhase::Enter)
            && let Some(fault) = self.too_deep(node)
        {
            return Some(self.failed(node, fault));
        }
        match (act, &visit.phase) {
            (Act::Fork(paths), LeafPhase::Frames(children)) => match &**children {
                Children::Fork(phase) => self.derive_join(node, paths, phase),
                _ => None,
            },
            (Act::Fork(paths), _) => Some(self.derive_fork(node, paths)),
            (Act::Loop(times), LeafPhase::Frames(children)) => match &**children {
                Children::Loop(phase) => Some(self.derive_loop(node, times, Some(phase))),
                _ => None,
            },
            (Act::Loop(times), _) => Some(self.derive_loop(node, times, None)),
            (Act::Sub(sub), LeafPhase::Frames(children)) => match &**children {
                Children::Sub(SubPhase { late: Some(under_way), .. }) => {
                    Some(self.failed(node, self.too_late(node, ("subgraph", under_way), sub.timeout_s)))
                }
                Children::Sub(SubPhase { ended: Some(Ended { fault, .. }), .. }) => Some(match fault {
                    Some(fault) => self.failed(node, Fault::clone(fault)),
                    None => Event::Left { node: self.name(node), joined: None },
                }),
                _ => None,
            },
            (Act::Sub(sub), _) => {
                Some(match self.resolved_all(node, &sub.inputs).and_then(|_| self.due(node)) {
                    Ok(due) => Event::Entered { node: self.name(node), paths: None, iteration: None, due },
                    Err(fault) => self.failed(node, fault),
                })
            }
            _ => None,
        }
    }

    /// Why a node may not open frames where it is (E-12).
    fn too_deep(&self, node: NodeRef) -> Option<Fault> {
        let limit = self.start.limits.subgraph_depth;
        (self.of(node).depth >= limit).then(|| {
            let message = format!(
                "`{}` is {limit} levels deep, and what it opens would be deeper than is allowed (`subgraph_depth` in [limits])",
                self.def(node).id
            );
            Fault::new(FaultKind::LimitExceeded, message)
        })
    }

    fn resolved_all(
        &self,
        node: NodeRef,
        named: &[(Arc<str>, JsonTemplate)],
    ) -> Result<Option<Arc<Inputs>>, Fault> {
        let values = named.iter().map(|(name, value)| Ok((name.clone(), self.resolved(node, value)?)));
        Ok(Inputs::new(values.collect::<Result<_, Fault>>()?))
    }

    /// A leaf opens its frames, or the next one.
    pub(super) fn entered(&mut self, node: NodeRef, iteration: Option<u32>, due: Option<i64>) {
        let Some(leaf) = self.visit(node).and_then(|visit| visit.leaf) else { return };
        let graph = Arc::clone(&self.of(node).graph);
        match &graph.leaf(node.node, leaf).act {
            Act::Fork(paths) => self.open_paths(node, paths, due),
            Act::Loop(times) => {
                self.open_iteration(node, times, iteration.unwrap_or(0));
                self.set_timer(node, due);
            }
            Act::Sub(sub) => {
                self.open_sub(node, sub);
                self.set_timer(node, due);
            }
            _ => {}
        }
    }

    fn open_sub(&mut self, node: NodeRef, sub: &Sub) {
        let inputs = self.resolved_all(node, &sub.inputs).unwrap_or_default();
        let opening = Opening { at: 0, instance: Instance::Sub, inputs, slot: None };
        let open = self.open_frame(node, sub.graph, opening);
        let phase = SubPhase { open: Some(open), ..SubPhase::default() };
        self.set_children(node, Children::Sub(phase));
        self.begin_frame(open);
    }

    /// A frame of an inner graph. Its threads begin as those of the frame around it are, unless it is a subgraph.
    pub(super) fn open_frame(
        &mut self,
        node: NodeRef,
        graph: GraphIx,
        Opening { at, instance, inputs, slot }: Opening<'_>,
    ) -> FrameIx {
        let shares = instance != Instance::Sub;
        let step =
            FrameStep { node: Cow::Borrowed(&*self.def(node).id), visit: self.frames[node].visit, instance };
        let path = self.of(node).path.with(&step);
        let ix = self.frames.open(graph, path, (node, at));
        self.note_slot(node, ix, slot);
        self.note_going_on(node, ix);
        let bindings = self.of(node).bindings().cloned();
        self.frames[ix].set_bindings(bindings);
        if shares {
            let names: Vec<Arc<str>> =
                self.frames[ix].graph.threads.values().map(|def| def.name.clone()).collect();
            for (at, name) in names.iter().enumerate() {
                let Some(thread) = self.thread_around(node, name) else { continue };
                self.frames[ix].threads.set(Ix::new(at), thread);
            }
        }
        self.frames[ix].inputs = inputs;
        ix
    }

    /// The thread of that name as the leaf of a node has it that opens a frame: a node of a dataflow has its own only.
    fn thread_around(&self, node: NodeRef, name: &str) -> Option<Thread> {
        let (frame, visit) = (self.of(node), self.visit(node)?);
        let ix = frame.schedule.thread_by_name.get(name).copied()?;
        match self.def(node).body.thread {
            Some(own) if own == ix => Some(visit.thread.clone()),
            _ => frame.flow.as_ref().map(|_| frame.threads.base(ix).clone()),
        }
    }

    /// The frame's nodes begin.
    pub(super) fn begin_frame(&mut self, ix: FrameIx) {
        self.frames[ix].skip_unseeded();
        self.note_seeding(ix);
        if self.frames[ix].flow.is_some() {
            self.begin_flow(ix);
        } else {
            self.await_from(NodeRef { frame: ix, node: NodeIx(0) }, None);
        }
    }

    pub(super) fn set_children(&mut self, node: NodeRef, children: Children) {
        if let Some(visit) = self.visit_mut(node) {
            visit.phase = LeafPhase::Frames(Box::new(children));
        }
    }

    pub(super) fn children_mut(&mut self, node: NodeRef) -> Option<&mut Children> {
        match &mut self.visit_mut(node)?.phase {
            LeafPhase::Frames(children) => Some(children),
            _ => None,
        }
    }
}

/// Frames that end.
impl State {
    /// Nothing is left to do in a frame: the leaf that opened it learns what came of it.
    pub(super) fn frame_over(&mut self, ix: FrameIx) {
        let Some((node, at)) = self.frames[ix].opened_by else { return };
        let fault = self.frames[ix].failure();
        let outputs = self.outputs_of(ix, node).filter(|_| fault.is_none());
        let (outputs, fault) = match outputs {
            Some(Err(fault)) => (Vec::new(), Some(Box::new(fault))),
            Some(Ok(outputs)) => (outputs, fault),
            None => (Vec::new(), fault),
        };
        let until = if fault.is_none() { self.until(ix, node) } else { None };
        let Some(frame) = self.take_frame(ix) else { return };
        let ended = Ended { frame, fault };
        match self.children_mut(node) {
            Some(Children::Fork(_)) => self.path_over(node, at as usize, ended),
            Some(Children::Loop(phase)) => {
                phase.until = until;
                self.iteration_over(node, ended);
            }
            Some(Children::Sub(phase)) => {
                *phase = SubPhase { ended: Some(ended), outputs, ..SubPhase::default() };
                self.stop_timer(node);
            }
            None => {}
        }
        self.wake(node);
    }

    /// What a subgraph hands out, as its last placeholders would see it.
    fn outputs_of(&self, ix: FrameIx, node: NodeRef) -> Option<Result<Outputs, Fault>> {
        let Act::Sub(sub) = self.live_act(node)? else { return None };
        let (at, missing) = (self.end_of(ix), self.def(node).on_missing);
        let outputs = sub.outputs.iter();
        Some(outputs.map(|(name, value)| Ok((name.clone(), self.resolved_at(at, value, missing)?))).collect())
    }

    /// Behind the last node of a frame: what is said there sees all of them.
    pub(super) fn end_of(&self, ix: FrameIx) -> NodeRef {
        NodeRef { frame: ix, node: NodeIx::new(self.frames[ix].graph.nodes.len()) }
    }

    /// A subgraph that had failed goes on inside (E-36).
    pub(super) fn restart_sub(&mut self, node: NodeRef) {
        let Some(Children::Sub(phase)) = self.children_mut(node) else { return };
        phase.late = None;
        let failed = phase.ended.take_if(|ended| ended.fault.is_some()).map(|ended| ended.frame);
        let Some(frame) = phase.suspended.take().or(failed) else { return };
        let open = self.reopen(node, 0, frame);
        if let Some(Children::Sub(phase)) = self.children_mut(node) {
            phase.open = Some(open);
        }
        self.set_timer_anew(node);
        self.restart(open);
    }

    /// A leaf that opened frames goes on: what they leave to the frame around them is adopted.
    pub(super) fn leave_children(&mut self, node: NodeRef) {
        let children = self.visit_mut(node).and_then(|visit| {
            match std::mem::replace(&mut visit.phase, LeafPhase::Enter) {
                LeafPhase::Frames(children) => Some(children),
                _ => None,
            }
        });
        match children.as_deref() {
            Some(Children::Sub(SubPhase { ended: Some(ended), outputs, .. })) => {
                let value = ended.frame.output().clone();
                for (name, value) in outputs {
                    self.set_variable(node.frame, name, value.clone());
                }
                self.give_value(node, value);
            }
            Some(Children::Fork(phase)) => self.joined(node, phase),
            other => {
                let last = match other {
                    Some(Children::Loop(phase)) => phase.output(),
                    _ => None,
                };
                if matches!(self.live_act(node), Some(Act::Loop(each)) if !each.times.is_aside()) {
                    // One that did not go round has the result of the node before it.
                    let before = || self.of(node).flow.is_some().then(|| self.of(node).output().clone());
                    let value = last.or_else(before).unwrap_or_default();
                    self.give_value(node, value);
                }
            }
        }
        self.keep_left(node, children);
        self.move_on(node);
    }

    /// What was in the frames can be looked at as long as the run is known (W-03); of a loop beside a model's rounds, which comes to
    /// nothing, it can't.
    fn keep_left(&mut self, node: NodeRef, children: Option<Box<Children>>) {
        let aside = matches!(self.live_act(node), Some(Act::Loop(times)) if times.times.is_aside());
        let Some(visit) = self.visit_mut(node).filter(|_| !aside) else { return };
        if let (Some(leaf), Some(mut children)) = (visit.leaf, children) {
            if let Children::Fork(phase) = &mut *children {
                phase.forget_items();
            }
            visit.extra_mut().left = Some(Box::new(Left { leaf, children: *children }));
        }
    }

    pub(super) fn give_value(&mut self, node: NodeRef, value: Value) {
        if let Some(visit) = self.visit_mut(node) {
            visit.extra_mut().value = Some(Box::new(value));
        }
    }

    pub(super) fn set_variable(&mut self, frame: FrameIx, name: &Arc<str>, value: Value) {
        if let Some(flow) = &mut self.frames[frame].flow {
            flow.set_variable(name.clone(), value);
        }
    }

    /// The threads of a frame that has ended take the place of those around it (W-10), and its bindings of theirs (E-41).
    pub(super) fn adopt(&mut self, node: NodeRef, from: &Frame) {
        let around = self.of(node);
        let (own, flows) = (self.def(node).body.thread, around.flow.is_some());
        let threads = from.graph.threads.iter().filter_map(|(ix, def)| {
            let place = around.schedule.thread_by_name.get(&def.name).copied()?;
            Some((place, from.thread_at_end(ix)))
        });
        let threads: Vec<(ThreadIx, Thread)> = threads.collect();
        if flows {
            self.frames[node.frame].set_bindings(from.bindings().cloned());
        }
        for (place, thread) in threads {
            if own == Some(place) {
                if let Some(visit) = self.visit_mut(node) {
                    visit.thread = thread;
                }
            } else if flows {
                self.frames[node.frame].threads.set(place, thread);
            }
        }
    }

    /// A frame that was taken out of the run is in it again.
    pub(super) fn reopen(&mut self, node: NodeRef, at: u32, frame: Box<Frame>) -> FrameIx {
        let open = self.frames.reopen(frame, (node, at));
        self.note_going_on(node, open);
        open
    }

    /// Takes a frame that a node opened out of the run, and keeps it with the node as it stood.
    pub(super) fn suspend(&mut self, node: NodeRef, ix: FrameIx) {
        self.note_cut(node, ix);
        let Some(frame) = self.take_frame(ix) else { return };
        if let Some(children) = self.children_mut(node) {
            children.suspend(frame);
        }
    }

    /// Takes a frame out of the run, with what is under way in it and below (E-38).
    pub(super) fn take_frame(&mut self, ix: FrameIx) -> Option<Box<Frame>> {
        self.for_room.retain(|node| node.frame != ix);
        let before = self.ended_early.len();
        let running = self.frames[ix]
            .nodes
            .iter()
            .filter(|(_, row)| !matches!(row.phase, NodePhase::Done(_)) || row.queued);
        let running: Vec<NodeRef> = running.map(|(node, _)| NodeRef { frame: ix, node }).collect();
        if running.iter().any(|node| std::mem::take(&mut self.frames[*node].queued)) {
            self.agenda.retain(|node| node.frame != ix);
        }
        let mut asks = false;
        for node in running {
            self.keep_unknown(node);
            let Some(visit) = self.visit(node) else { continue };
            let (effects, children, cancelled) = (visit.effects(), visit.open_children(), visit.writes());
            asks |= visit.asks();
            for effect in effects {
                self.drop_pending(&effect);
            }
            self.warn_cancelled(node, &cancelled);
            for child in children {
                self.suspend(node, child);
            }
            self.stop_timer(node);
        }
        self.seeding.retain(|seeding| *seeding != ix);
        if asks {
            self.asks.retain(|_, ask| ask.node.frame != ix);
        }
        self.leave_frame(ix, before);
        self.frames.close(ix)
    }

    /// E-38: nobody knows what became of a write that was cut off.
    fn warn_cancelled(&mut self, node: NodeRef, writes: &[(Arc<str>, EffectId)]) {
        let name = self.name(node);
        self.warnings.extend(writes.iter().map(|(tool, effect)| {
            let message = format!(
                "`{tool}` was under way when its path was cancelled, and may or may not have run ({effect})"
            );
            Warning::at("write-cancelled", &name, message)
        }));
    }
}

/// A list that a template came to.
pub(super) fn list(value: Value, what: &str) -> Result<Vec<Value>, Fault> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(Fault::new(FaultKind::InputError, format!("{what} is {}, not a list", kind(&other)))),
    }
}
