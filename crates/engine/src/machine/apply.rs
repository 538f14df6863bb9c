//! The only mutation: [`State::apply`] (E-02). It cannot fail; an event that does not fit the state is a
//! bug or a foreign journal, and ends the run (E-17).

use super::node::{LeafPhase, NodePhase, Visit};
use super::phase::{CallsPhase, Slot};
use super::state::{State, Status};
use crate::effect::EffectId;
use crate::event::{Body, End, Event, PersonMessage, Start};
use crate::fault::{Fault, FaultKind, Warning};
use crate::graph::{Act, Graph, Guard, Leaf};
use crate::ids::{FrameIx, LeafIx, NodeRef, ROOT};
use crate::message::{Kind, Message, Slice, ToolCall};
use crate::place::FramePathRef;
use serde_json::Value;
use std::sync::Arc;

impl State {
    /// Applies one event.
    pub fn apply(&mut self, event: &Event) {
        self.events += 1;
        if event.begins_turn() {
            self.last_input = self.events;
        }
        let ended_early = std::mem::take(&mut self.ended_early);
        match event {
            Event::Unsent { effects } => self.uncount(effects, &ended_early),
            event => self.change(event),
        }
        self.hold_back_requests();
    }

    fn change(&mut self, event: &Event) {
        match event {
            Event::Started(start) => self.started(start),
            Event::Completed { effect, outcome, jitter, took, .. } => {
                self.worked_ms = took.map_or(0, |took| took.worked_ms);
                self.completed(effect, outcome, *jitter);
            }
            Event::Lost { effect } => self.lost(effect),
            Event::Answered { ask, value } => self.answered(ask, value),
            Event::PersonMessage(message) => self.people.push(PersonMessage::clone(message)),
            Event::Fired { timer } => self.fired(timer),
            Event::CancelRequested => {
                let fault = Fault::new(FaultKind::Cancelled, "the run was cancelled");
                self.status = Status::Ending(End::Cancelled, Some(Box::new(fault)));
            }
            Event::Expired { seconds } => {
                let message = format!(
                    "the run took longer than its limit of {seconds} s (`run_timeout_s` in [limits], or --timeout){}",
                    self.under_way(None)
                );
                self.status =
                    Status::Ending(End::Failed, Some(Box::new(Fault::new(FaultKind::Timeout, message))));
            }
            Event::BudgetSet { budget } => {
                let caps = &mut self.start.budget;
                caps.calls = budget.calls.or(caps.calls);
                caps.tokens = budget.tokens.or(caps.tokens);
                caps.cost = budget.cost.or(caps.cost);
            }
            Event::LimitsSet { limits } => self.start.limits = **limits,
            Event::ModelsSet { models } => {
                self.start.models.extend(models.iter().map(|(role, name)| (role.clone(), name.clone())));
            }
            Event::Resumed { tools } => self.resumed(tools),
            Event::Forked(fork) => self.forked(fork),
            Event::Unsent { .. } => {}
            Event::Poisoned { message } => self.poison(message),
            Event::NodeStarted { node, warnings } => {
                self.warnings.extend(warnings.iter().cloned());
                self.at_node(node, Self::node_started);
            }
            Event::Opened { node, thread, from, start, end } => {
                self.at_running(node, |state, ix| state.opened(ix, thread, from, *start, *end));
            }
            Event::Appended { node, thread, body } if self.is_frame(node) => {
                self.seed(node, thread, body);
            }
            Event::Appended { node, body, .. } => self.at_running(node, |state, ix| state.appended(ix, body)),
            Event::Edited { node, replaced, .. } => {
                self.at_running(node, |state, ix| state.edited(ix, replaced));
            }
            Event::Requested { effect, args, warnings } => {
                self.warnings.extend(warnings.iter().cloned());
                self.requested(effect, args.as_deref());
            }
            Event::Retried { effect, after_ms, reason } => self.retried(effect, *after_ms, reason),
            Event::Reused { effect, from, args } => self.reused(effect, from, args.as_deref()),
            Event::Refused { effect, fault, args } => self.refused(effect, fault, args.as_deref()),
            Event::Asked(asked) => self.at_running(&asked.node, |state, ix| state.asked(ix, asked)),
            Event::Published { node, description, .. } => {
                self.at_running(node, |state, ix| state.published(ix, description));
            }
            Event::NodeFinished { node, fault, warnings } => {
                self.warnings.extend(warnings.iter().cloned());
                self.at_running(node, |state, ix| state.apply_finished(ix, fault.clone()));
            }
            Event::Caught { node, fault } => self.at_running(node, |state, ix| state.caught(ix, fault)),
            Event::Recovered(recovered) => {
                self.at_running(&recovered.node, |state, ix| state.recovered(ix, recovered));
            }
            Event::Spliced { node, effect, warnings } => {
                match self.node_named(node) {
                    Some(node) => self.spliced(node, effect),
                    None => self.misfit(node),
                }
                self.warnings.extend(warnings.iter().cloned());
            }
            Event::NodeSkipped { node, .. } => self.at_node(node, Self::skipped),
            Event::Entered { node, iteration, due, .. } => {
                self.at_running(node, |state, ix| state.entered(ix, *iteration, *due));
            }
            Event::Left { node, .. } => self.at_running(node, Self::leave_children),
            Event::Unrouted { node, fault } if self.is_frame(node) => self.frame_stopped(node, fault),
            Event::Unrouted { node, fault } => self.at_node(node, |state, ix| state.unrouted(ix, fault)),
            Event::Set { node, name, value } => {
                self.at_running(node, |state, ix| {
                    state.set_variable(ix.frame, name, Value::clone(value));
                    state.move_on(ix);
                });
            }
            Event::Given { node, value } => self.at_running(node, |state, ix| {
                state.give_value(ix, Value::clone(value));
                state.move_on(ix);
            }),
            Event::Warned { node, warning } => {
                self.warnings.push(Warning::clone(warning));
                self.at_running(node, |state, ix| state.move_on(ix));
            }
            Event::Bound { node, tools } => self.at_running(node, |state, ix| state.bind(ix, tools)),
            Event::Ended { status, fault } => self.end(*status, fault.clone()),
        }
    }

    fn at_node(&mut self, name: &Arc<str>, change: impl FnOnce(&mut Self, NodeRef)) {
        self.at_found(name, self.node_named(name), change);
    }

    /// The same of an event that only a running node can have.
    fn at_running(&mut self, name: &Arc<str>, change: impl FnOnce(&mut Self, NodeRef)) {
        let running = self.node_named(name).filter(|node| self.visit(*node).is_some());
        self.at_found(name, running, change);
    }

    fn at_found(&mut self, name: &str, node: Option<NodeRef>, change: impl FnOnce(&mut Self, NodeRef)) {
        let Some(node) = node else { return self.misfit(name) };
        change(self, node);
        self.gate_calls(node);
        self.settle_agenda(node);
        if node.frame != ROOT && self.of(node).is_over() {
            self.frame_over(node.frame);
        }
    }

    /// Whether an event is about a frame and not about a node: of the root it names none. Ids that may end as others do are
    /// escaped where there are frames.
    fn is_frame(&self, name: &str) -> bool {
        name.is_empty() || (!self.frames.are_flat() && name.ends_with('/'))
    }

    /// An event that does not fit the state is a bug, or a journal that is none of this run's: it poisons the run (E-17).
    pub(super) fn misfit(&mut self, about: &str) {
        self.poison(format!("an event about `{about}` does not fit the run's state"));
    }

    pub(super) fn poison(&mut self, why: impl std::fmt::Display) {
        let message = format!("internal error, only this run is affected: {why}");
        self.end(End::Failed, Some(Box::new(Fault::new(FaultKind::ExecutionFailure, message))));
    }

    fn started(&mut self, start: &Start) {
        self.start = start.clone();
        self.status = Status::Running;
        if start.sequential {
            self.frames.reschedule(true);
        }
        self.begin_frame(ROOT);
    }

    fn seed(&mut self, frame: &str, thread: &Arc<str>, body: &Body) {
        let Body::Text(role, text) = body else { return };
        let entry = self.keep_message(None, Message::text(*role, Arc::clone(text)), Kind::Other);
        match self.seeding_frame(frame) {
            Some(ix) => {
                self.frames[ix].seed(thread, entry);
                self.note_seeding(ix);
            }
            None => self.misfit(frame),
        }
    }

    /// The frame whose threads get their first messages, if that is its path.
    fn seeding_frame(&self, path: &str) -> Option<FrameIx> {
        let frame = self.seeding.last().copied()?;
        (self.frames[frame].path.frames().as_str() == path.trim_end_matches('/')).then_some(frame)
    }

    /// Whether a frame still waits for first messages of its threads.
    pub(super) fn note_seeding(&mut self, ix: FrameIx) {
        let frame = &self.frames[ix];
        let seeded = frame.next_seed().is_none();
        match self.seeding.last() == Some(&ix) {
            true if seeded => drop(self.seeding.pop()),
            false if !seeded => self.seeding.push(ix),
            _ => {}
        }
    }

    /// An inner frame can't go on: the first message of a thread does not resolve, or its budget is used up (E-20).
    fn frame_stopped(&mut self, frame: &str, fault: &Fault) {
        let path = FramePathRef::parse(frame.trim_end_matches('/')).filter(|path| !path.is_root());
        let Some(ix) = path.and_then(|path| self.frames.at(path)) else { return self.misfit(frame) };
        self.frames[ix].set_fault(Box::new(fault.clone()));
        self.frame_over(ix);
    }

    pub(super) fn end(&mut self, status: End, fault: Option<Box<Fault>>) {
        self.status = Status::Ended(status, fault);
        self.forget_in_flight();
    }

    /// Nothing is under way any more; late outcomes and answers change nothing (E-13).
    pub(super) fn forget_in_flight(&mut self) {
        self.for_room.clear();
        while let Some((effect, row)) = self.pending.pop_first() {
            self.end_early(&effect, row);
        }
        self.asks.clear();
        self.timers.clear();
        while let Some(node) = self.agenda.pop_front() {
            self.frames[node].queued = false;
        }
    }

    /// The same of one frame and those opened from it, but for nodes before `first`.
    pub(super) fn forget_from(&mut self, first: NodeRef) {
        self.for_room.retain(|node| node.frame != first.frame || node.node < first.node);
        for node in self.of(first).nodes_from(first.node) {
            for child in self.of(first).visit(node).map(Visit::open_children).unwrap_or_default() {
                self.take_frame(child);
            }
            self.stop_timer(first.sibling(node));
        }
        let gone = |node: NodeRef| node.frame == first.frame && node.node >= first.node;
        let effects: Vec<EffectId> =
            self.pending.iter().filter(|(_, p)| gone(p.node)).map(|(id, _)| id.clone()).collect();
        for effect in effects {
            self.drop_pending(&effect);
        }
        self.asks.retain(|_, ask| ask.node.frame != first.frame);
        let (gone, stay): (Vec<NodeRef>, Vec<NodeRef>) =
            std::mem::take(&mut self.agenda).into_iter().partition(|node| node.frame == first.frame);
        for node in gone {
            self.frames[node].queued = false;
        }
        self.agenda = stay.into();
    }

    fn node_started(&mut self, node: NodeRef) {
        self.way_taken(node);
        let (now, prior) = (self.now, self.come_to_recorded(node));
        let frame = self.of(node);
        let flow = &self.def(node).body;
        let entry = flow.leaves.indices().next();
        let thread = flow.thread.map(|thread| frame.thread_at(thread, node.node));
        let state = &mut self.frames[node];
        state.visit = state.visit.max(prior) + 1;
        state.started_at = now;
        state.phase = NodePhase::Running(Box::new(Visit::new(entry, thread.unwrap_or_default())));
        self.keep_visit(node);
    }

    fn opened(&mut self, node: NodeRef, thread: &Arc<str>, from: &Arc<str>, start: u32, end: u32) {
        let frame = &mut self.frames[node.frame];
        let names = &frame.schedule.thread_by_name;
        let (Some(&thread), Some(&from)) = (names.get(thread), names.get(from)) else { return };
        let bound = |at: u32| Some(i64::from(at));
        let source = frame.thread_after(from, frame.schedule.open_at[node.node]);
        let taken = source.slice(Slice(bound(start), bound(end)));
        frame.threads.open(thread);
        if let Some(visit) = self.visit_mut(node) {
            visit.thread.extend(&taken);
        }
        self.move_on(node);
    }

    /// Leaves the live leaf by the first edge that holds.
    pub(super) fn move_on(&mut self, node: NodeRef) {
        self.leave(node, false);
    }

    /// Leaves the live leaf, which ended in a fault or not.
    pub(super) fn leave(&mut self, node: NodeRef, caught: bool) {
        self.stop_timer(node);
        let flow = &self.def(node).body;
        let Some(visit) = self.visit(node) else { return };
        let Some(leaf) = visit.leaf else { return };
        let Leaf { act, next, .. } = self.leaf(node, leaf);
        let holds = |guard: Guard| match guard {
            Guard::Always => true,
            Guard::Calls => visit.has_reply_calls(),
            Guard::Fault => caught,
            Guard::Act(_) | Guard::Steps => visit.recovery_holds(guard),
            Guard::Every(rounds) => visit.rounds.checked_rem(rounds.into()) == Some(0),
            Guard::Messages => self.next_message(node).is_some(),
            Guard::Over(bytes) => visit.thread.bytes() > u64::from(bytes),
            Guard::Outgrown(over) => Self::has_outgrown(visit, over),
            Guard::Exhausted => match act {
                Act::AwaitRetirement => self.no_more_reflection(node, visit),
                Act::Compile { tries, .. } => caught && visit.refused_steps() >= *tries,
                _ => {
                    let spent = |tool: &Arc<str>| match flow.call_limits.get(tool) {
                        Some(limit) => visit.calls_of(tool) >= *limit,
                        None => false,
                    };
                    let mut offered = self.offered(node).map(|tool| &tool.name).peekable();
                    let none_left = offered.peek().is_some() && offered.all(spent);
                    visit.rounds >= flow.max_rounds || none_left
                }
            },
        };
        let edge = next.iter().find(|edge| holds(edge.when));
        let next = edge.and_then(|edge| Graph::target(flow, leaf, edge));
        let exhausted = edge.is_some_and(|edge| edge.when == Guard::Exhausted);
        if let Some(visit) = self.visit_mut(node) {
            visit.exhausted = exhausted;
        }
        self.enter(node, next);
    }

    pub(super) fn enter(&mut self, node: NodeRef, leaf: Option<LeafIx>) {
        let Some(visit) = self.visit_mut(node) else { return };
        visit.leaf = leaf;
        visit.phase = LeafPhase::Enter;
        // Who approved one call has not seen the next (E-21).
        visit.approved = false;
        let Some(leaf) = leaf else { return };
        visit.visits.count(leaf);
        let act = &self.leaf(node, leaf).act;
        if matches!(act, Act::AwaitRetirement) {
            self.await_turn(node);
        } else if matches!(act, Act::TakeMessages) && self.next_message(node).is_none() {
            self.move_on(node);
        } else if matches!(act, Act::Answer { .. }) {
            let calls = self.visit_mut(node).map(Visit::take_reply_calls).unwrap_or_default();
            let slots = self.slots(node, leaf, calls);
            if slots.is_empty() {
                return self.move_on(node);
            }
            if let Some(visit) = self.visit_mut(node) {
                visit.rounds += 1;
                visit.phase = LeafPhase::Calls(Box::new(CallsPhase {
                    slots,
                    call_appended: true,
                    ..CallsPhase::default()
                }));
            }
        }
    }

    fn slots(&self, node: NodeRef, leaf: LeafIx, calls: Vec<ToolCall>) -> Vec<Slot> {
        let Some(visit) = self.visit(node) else { return Vec::new() };
        let calls = calls.into_iter().enumerate();
        calls
            .map(|(at, call)| {
                let effects = self.effects(node, &call.name);
                Slot::new(call, self.effect_id(node, visit, leaf, Some(at), 1), effects)
            })
            .collect()
    }
}
