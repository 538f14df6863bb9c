//! The only mutation: [`State::apply`] (E-02). It cannot fail; an event that does not fit the state is a
//! bug or a foreign journal, and changes nothing.

use super::state::{
    Asking, CallsPhase, Frame, Got, LeafPhase, NodePhase, PendingEffect, Publication, Slot, SlotState, State,
    Status,
};
use crate::effect::{EffectId, Effects, Outcome};
use crate::event::{Body, End, Event, Start};
use crate::fault::{Fault, FaultKind};
use crate::graph::{Act, AskKind, Guard};
use crate::ids::{LeafIx, MessageIx, NodeIx};
use crate::message::{Message, Role, Slice, ToolCall};
use crate::schedule::Schedule;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

impl State {
    /// Applies one event.
    pub fn apply(&mut self, event: &Event) {
        self.events += 1;
        match event {
            Event::Started(start) => self.started(start),
            Event::Completed { effect, outcome, jitter } => self.completed(effect, outcome, *jitter),
            Event::Lost { effect } => self.lost(effect),
            Event::Answered { ask, value } => self.answered(ask, value),
            Event::CancelRequested => {
                let fault = Fault::new(FaultKind::Cancelled, "the run was cancelled");
                self.status = Status::Ending(End::Cancelled, Some(fault));
            }
            Event::Expired { seconds } => {
                let message = format!("the run took longer than its limit of {seconds} s (--timeout)");
                self.status = Status::Ending(End::Failed, Some(Fault::new(FaultKind::Timeout, message)));
            }
            Event::Resumed { tools } => self.resumed(tools),
            Event::Poisoned { message } => {
                let message = format!("internal error, only this run is affected: {message}");
                self.end(End::Failed, Some(Fault::new(FaultKind::ExecutionFailure, message)));
            }
            Event::NodeStarted { node } => self.at_node(node, Self::node_started),
            Event::Opened { node, thread, from, start, end } => {
                self.at_node(node, |state, ix| state.opened(ix, thread, from, *start, *end));
            }
            Event::Appended { node, thread, body } if node.is_empty() => self.seed(thread, body),
            Event::Appended { node, body, .. } => self.at_node(node, |state, ix| state.appended(ix, body)),
            Event::Requested { effect, args, warnings } => {
                self.warnings.extend(warnings.iter().cloned());
                self.requested(effect, args.as_ref());
            }
            Event::Retried { effect, after_ms, .. } => self.retried(effect, *after_ms),
            Event::Reused { effect, from, args } => self.reused(effect, from, args.as_ref()),
            Event::Refused { effect, fault, args } => self.refused(effect, fault, args.as_ref()),
            Event::Asked { ask, node, ask_kind, prompt } => {
                self.at_node(node, |state, ix| state.asked(ix, ask, *ask_kind, prompt));
            }
            Event::Published { node, description, .. } => {
                self.at_node(node, |state, ix| state.published(ix, description));
            }
            Event::NodeFinished { node, fault, warnings } => {
                self.warnings.extend(warnings.iter().cloned());
                self.at_node(node, |state, ix| state.apply_finished(ix, fault.clone()));
            }
            Event::Ended { status, fault } => self.end(*status, fault.clone()),
        }
    }

    fn at_node(&mut self, id: &Arc<str>, change: impl FnOnce(&mut Self, NodeIx)) {
        if let Some(&node) = self.schedule.by_id.get(id) {
            change(self, node);
            self.gate_calls(node);
            self.settle_agenda(node);
        }
    }

    fn started(&mut self, start: &Start) {
        self.start = start.clone();
        self.status = Status::Running;
        if start.sequential {
            self.schedule = Schedule::derive(&self.graph, true);
        }
        self.skip_unseeded();
        self.await_from(NodeIx(0));
    }

    /// Threads without a first message exist only once a node opens them.
    fn skip_unseeded(&mut self) {
        let rest = self.graph.threads.values().skip(self.seeded);
        self.seeded += rest.take_while(|def| def.first.is_none()).count();
    }

    fn seed(&mut self, thread: &Arc<str>, body: &Body) {
        let (Body::Text(role, text), Some(&ix)) = (body, self.schedule.thread_by_name.get(thread)) else {
            return;
        };
        let message = self.messages.push(Arc::new(Message::text(*role, Arc::clone(text))));
        self.threads[ix].base.push(message);
        self.threads[ix].exists = true;
        self.seeded += 1;
        self.skip_unseeded();
    }

    fn end(&mut self, status: End, fault: Option<Fault>) {
        self.status = Status::Ended(status, fault);
        self.pending.clear();
        self.asks.clear();
        while let Some(node) = self.agenda.pop_front() {
            self.nodes[node].queued = false;
        }
    }

    fn node_started(&mut self, node: NodeIx) {
        let flow = &self.graph.nodes[node].body;
        let entry = flow.leaves.indices().next();
        let thread = flow.thread.map(|thread| {
            let order = crate::ids::OrderIx(thread.0);
            self.thread_after(thread, self.schedule.before(order, node))
        });
        let state = &mut self.nodes[node];
        state.visit += 1;
        state.started_at = self.at;
        state.phase = NodePhase::Running(Box::new(Frame::new(entry, thread.unwrap_or_default())));
    }

    fn opened(&mut self, node: NodeIx, thread: &Arc<str>, from: &Arc<str>, start: usize, end: usize) {
        let names = &self.schedule.thread_by_name;
        let (Some(&thread), Some(&from)) = (names.get(thread), names.get(from)) else { return };
        let bound = |at: usize| Some(i64::try_from(at).unwrap_or(i64::MAX));
        let source = self.thread_after(from, self.schedule.open_at[node]);
        let taken = source.slice(Slice(bound(start), bound(end)));
        self.threads[thread].exists = true;
        if let Some(frame) = self.frame_mut(node) {
            frame.thread.extend(&taken);
        }
        self.move_on(node);
    }

    /// Leaves the live leaf by the first edge that holds.
    fn move_on(&mut self, node: NodeIx) {
        let flow = &self.graph.nodes[node].body;
        let Some(frame) = self.frame(node) else { return };
        let Some(leaf) = frame.leaf else { return };
        let holds = |guard: Guard| match guard {
            Guard::Always => true,
            Guard::Calls => !frame.reply_calls.is_empty(),
            Guard::Exhausted => {
                let spent = |tool: &Arc<str>| match flow.call_limits.get(tool) {
                    Some(limit) => frame.calls.get(tool).copied().unwrap_or(0) >= *limit,
                    None => false,
                };
                frame.rounds >= flow.max_rounds || (!flow.tools.is_empty() && flow.tools.iter().all(spent))
            }
        };
        let next = flow.leaves[leaf].next.iter().find(|edge| holds(edge.when)).and_then(|edge| edge.to);
        self.enter(node, next);
    }

    fn enter(&mut self, node: NodeIx, leaf: Option<LeafIx>) {
        let Some(frame) = self.frame_mut(node) else { return };
        frame.leaf = leaf;
        frame.phase = LeafPhase::Enter;
        let Some(leaf) = leaf else { return };
        *frame.visits.entry(leaf).or_insert(0) += 1;
        if matches!(self.graph.nodes[node].body.leaves[leaf].act, Act::Answer { .. }) {
            let calls = self.frame_mut(node).map(|f| std::mem::take(&mut f.reply_calls)).unwrap_or_default();
            let slots = self.slots(node, leaf, calls);
            if slots.is_empty() {
                return self.move_on(node);
            }
            if let Some(frame) = self.frame_mut(node) {
                frame.rounds += 1;
                frame.phase = LeafPhase::Calls(Box::new(CallsPhase {
                    slots,
                    call_appended: true,
                    ..CallsPhase::default()
                }));
            }
        }
    }

    fn slots(&self, node: NodeIx, leaf: LeafIx, calls: Vec<ToolCall>) -> Vec<Slot> {
        let def = &self.graph.nodes[node];
        let Some(frame) = self.frame(node) else { return Vec::new() };
        let calls = calls.into_iter().enumerate();
        calls
            .map(|(at, call)| {
                let effects = self.graph.effects(def, &call.name);
                Slot::new(call, self.effect_id(node, frame, leaf, Some(at), 1), effects)
            })
            .collect()
    }

    fn appended(&mut self, node: NodeIx, body: &Body) {
        match body {
            Body::Text(role, text) => {
                self.push_message(node, Message::text(*role, Arc::clone(text)));
                self.move_on(node);
            }
            Body::Reply(_) => self.append_reply(node),
            Body::Call(_) => {
                let call = self.calls_mut(node).and_then(|phase| {
                    phase.call_appended = true;
                    phase.slots.first().map(|slot| slot.call.clone())
                });
                if let Some(call) = call {
                    let mut message = Message::text(Role::Assistant, "");
                    message.tool_calls = vec![call];
                    self.push_message(node, message);
                }
            }
            Body::Output(_) => self.append_output(node),
        }
    }

    fn push_message(&mut self, node: NodeIx, message: Message) -> MessageIx {
        let ix = self.messages.push(Arc::new(message));
        if let Some(frame) = self.frame_mut(node) {
            frame.thread.push(ix);
        }
        ix
    }

    /// Appends the model's reply, with ids that are present and unused (E-10).
    fn append_reply(&mut self, node: NodeIx) {
        let Some(frame) = self.frame_mut(node) else { return };
        let LeafPhase::Model(phase) = &mut frame.phase else { return };
        let Some(Got::Reply(reply)) = phase.got.take() else { return };
        let effect = phase.effect.clone();
        let mut calls = reply.calls.clone();
        let mut used = self.ids_in_use(node, &calls);
        for (at, call) in calls.iter_mut().enumerate() {
            if call.id.is_empty() || !used.insert(Arc::clone(&call.id)) {
                call.id = format!("{effect}.{at}").into();
            }
        }
        let mut message = Message::text(Role::Assistant, reply.text.as_str());
        message.tool_calls = calls.clone();
        let ix = self.push_message(node, message);
        if let Some(frame) = self.frame_mut(node) {
            if !reply.text.is_empty() {
                frame.last_text = Some(ix);
            }
            frame.reply_calls = calls;
        }
        self.move_on(node);
    }

    /// Call ids in use where the node stands: on its thread only, since what other threads hold depends on
    /// who finished first (E-07, E-10).
    fn ids_in_use(&self, node: NodeIx, calls: &[ToolCall]) -> HashSet<Arc<str>> {
        let Some(frame) = self.frame(node).filter(|_| !calls.is_empty()) else { return HashSet::new() };
        let messages = frame.thread.iter().map(|ix| &self.messages[ix]);
        let ids = |m: &Arc<Message>| {
            m.tool_calls.iter().map(|call| &call.id).chain(&m.tool_call_id).cloned().collect::<Vec<_>>()
        };
        messages.flat_map(ids).collect()
    }

    /// Appends the next result in order; after the last one the leaf ends.
    fn append_output(&mut self, node: NodeIx) {
        let leaf = self.frame(node).and_then(|frame| frame.leaf);
        let Some(leaf) = leaf else { return };
        let fixed = matches!(self.graph.nodes[node].body.leaves[leaf].act, Act::Call(_));
        let Some(phase) = self.calls_mut(node) else { return };
        let Some(slot) = phase.slots.get(phase.appended) else { return };
        let SlotState::Done(result) = &slot.state else { return };
        let (call, result) = (slot.call.clone(), result.clone());
        phase.appended += 1;
        let last = phase.appended == phase.slots.len();
        let text = match &result {
            Ok(output) => super::finish::tool_text(output),
            Err(fault) => fault.tool_text(),
        };
        self.push_message(node, Message::tool(&call, text));
        let Some(frame) = self.frame_mut(node) else { return };
        match result {
            Ok(output) => frame.outputs.push((call.name, output)),
            Err(fault) if fixed => {
                frame.fault = Some(fault);
                frame.leaf = None;
                return;
            }
            Err(_) => {}
        }
        if last {
            self.move_on(node);
        }
    }

    fn published(&mut self, node: NodeIx, description: &str) {
        let (Some(frame), Some(key)) = (self.frame(node), self.graph.nodes[node].body.thread) else { return };
        let Some(leaf) = frame.leaf else { return };
        let Act::Publish { to, label, .. } = &self.graph.nodes[node].body.leaves[leaf].act else { return };
        let (to, label, content) = (*to, label.clone(), self.result(node, frame).text);
        let to = (to != key).then(|| {
            let text = if description.is_empty() {
                Arc::clone(&content)
            } else {
                Arc::from(format!("{description}{content}"))
            };
            (to, self.messages.push(Arc::new(Message::text(Role::Assistant, text))))
        });
        if let Some(frame) = self.frame_mut(node) {
            frame.published = Some(Publication { to, key, label, description: description.into(), content });
        }
        self.move_on(node);
    }

    fn asked(&mut self, node: NodeIx, ask: &Arc<str>, kind: AskKind, prompt: &str) {
        let Some(frame) = self.frame_mut(node) else { return };
        let mut slot = None;
        match &mut frame.phase {
            LeafPhase::Calls(phase) => {
                let at = phase.unsettled.pop_front().unwrap_or(phase.next);
                if let Some(row) = phase.slots.get_mut(at) {
                    row.state = match row.state {
                        SlotState::Lost(_) => SlotState::Lost(true),
                        _ => SlotState::Asked,
                    };
                }
                slot = Some(at);
            }
            phase => *phase = LeafPhase::Ask(None),
        }
        self.asks.insert(ask.clone(), Asking { node, kind, prompt: prompt.into(), slot });
    }

    fn answered(&mut self, ask: &Arc<str>, value: &Value) {
        let Some(asking) = self.asks.remove(ask) else { return };
        let yes = value == &Value::Bool(true) || value.as_str() == Some("yes");
        let node = asking.node;
        match asking.slot {
            None if asking.kind == AskKind::Approve && yes => {
                if let Some(Frame { leaf: Some(leaf), .. }) = self.frame(node)
                    && matches!(self.graph.nodes[node].body.leaves[*leaf].act, Act::Call(_))
                {
                    // A fixed call that asked before it had a slot: it now may run.
                    if let Some(frame) = self.frame_mut(node) {
                        frame.approved = true;
                        frame.phase = LeafPhase::Enter;
                    }
                } else {
                    self.move_on(node);
                }
            }
            None => {
                if let Some(frame) = self.frame_mut(node) {
                    frame.phase = LeafPhase::Ask(Some(value.clone()));
                }
            }
            Some(at) => self.answer_slot(node, at, yes),
        }
        self.gate_calls(node);
        self.wake(node);
    }

    fn answer_slot(&mut self, node: NodeIx, at: usize, yes: bool) {
        let Some(phase) = self.calls_mut(node) else { return };
        let Some(slot) = phase.slots.get_mut(at) else { return };
        match (&slot.state, yes) {
            (SlotState::Lost(_), true) => phase.unsettled.push_back(at),
            (SlotState::Lost(_), false) => {
                let message =
                    format!("nobody knows whether `{}` ran before the process ended", slot.call.name);
                let fault = Fault::new(FaultKind::UnknownOutcome, message);
                slot.state = SlotState::Done(Err(fault));
                let effects = slot.effects;
                phase.closed(effects);
            }
            (_, true) => {
                slot.approved = true;
                slot.state = SlotState::Todo;
            }
            (_, false) => {
                slot.state = SlotState::Done(Err(super::calls::denied(&slot.call.name)));
                phase.next += 1;
            }
        }
    }

    fn completed(&mut self, effect: &EffectId, outcome: &Outcome, jitter: u32) {
        let Some(pending) = self.pending.remove(effect) else { return };
        if pending.model {
            self.model_completed(pending.node, effect, outcome, jitter);
        } else {
            self.usage.tool_calls += 1;
            self.call_completed(pending.node, pending.slot, outcome, jitter);
        }
        self.gate_calls(pending.node);
        self.wake(pending.node);
    }

    fn model_completed(&mut self, node: NodeIx, effect: &EffectId, outcome: &Outcome, jitter: u32) {
        if let Outcome::Reply(reply) = outcome {
            self.usage.model_calls += 1;
            self.usage.tokens.input += reply.tokens.input;
            self.usage.tokens.output += reply.tokens.output;
            self.usage.tokens.cost += reply.tokens.cost;
            self.record_model(node, effect, reply);
        }
        self.give_model(node, outcome, jitter);
    }

    /// Hands the outcome to the waiting leaf.
    fn give_model(&mut self, node: NodeIx, outcome: &Outcome, jitter: u32) {
        let Some(Frame { phase: LeafPhase::Model(phase), .. }) = self.frame_mut(node) else { return };
        phase.got = match outcome {
            Outcome::Reply(reply) => Some(Got::Reply(Arc::clone(reply))),
            Outcome::Failed(failure) => Some(Got::Failed(failure.clone(), jitter)),
            Outcome::Output(_) => None,
        };
    }

    fn call_completed(&mut self, node: NodeIx, at: usize, outcome: &Outcome, jitter: u32) {
        let leaf = self.frame(node).and_then(|frame| frame.leaf).unwrap_or(LeafIx(0));
        let retry = self.retry(node, leaf);
        let again = match (outcome, self.calls(node).and_then(|phase| phase.slots.get(at))) {
            (Outcome::Failed(failure), Some(slot)) => self.tool_again(failure, slot, retry, jitter).is_some(),
            _ => false,
        };
        if let Outcome::Output(output) = outcome {
            self.record_call(node, at, output);
        }
        let Some(phase) = self.calls_mut(node) else { return };
        let Some(slot) = phase.slots.get_mut(at) else { return };
        let effects = slot.effects;
        match outcome {
            Outcome::Output(output) => slot.state = SlotState::Done(Ok(Arc::clone(output))),
            Outcome::Failed(failure) if again => {
                slot.state = SlotState::Failed(failure.clone(), jitter);
                phase.unsettled.push_back(at);
                return;
            }
            Outcome::Failed(failure) => slot.state = SlotState::Done(Err(failure.fault.clone())),
            Outcome::Reply(_) => return,
        }
        phase.closed(effects);
    }

    fn lost(&mut self, effect: &EffectId) {
        let Some(pending) = self.pending.remove(effect) else { return };
        if let Some(phase) = self.calls_mut(pending.node)
            && let Some(slot) = phase.slots.get_mut(pending.slot)
        {
            slot.state = SlotState::Lost(false);
            phase.unsettled.push_back(pending.slot);
        }
        self.wake(pending.node);
    }

    /// The live leaf of the effect's node asked for it.
    fn requested(&mut self, effect: &EffectId, args: Option<&Value>) {
        let Some((node, leaf)) = self.live_leaf(effect) else { return };
        let act = &self.graph.nodes[node].body.leaves[leaf].act;
        if matches!(act, Act::Infer(_)) {
            self.model_requested(node, leaf, effect.clone());
        } else {
            let at = self.begin_slot(node, leaf, effect, args);
            if let Some((at, effects)) = at {
                self.ran_afresh(node, effects);
                self.add_pending(effect.clone(), node, at, 0, effects, false);
            }
        }
        self.gate_calls(node);
        self.settle_agenda(node);
    }

    fn live_leaf(&self, effect: &EffectId) -> Option<(NodeIx, LeafIx)> {
        let node = self.node_of(effect)?;
        Some((node, self.frame(node)?.leaf?))
    }

    /// Starts the next slot, or the only one of a fixed call, and counts it (P-14).
    fn begin_slot(
        &mut self,
        node: NodeIx,
        leaf: LeafIx,
        effect: &EffectId,
        args: Option<&Value>,
    ) -> Option<(usize, Effects)> {
        self.fixed_slot(node, leaf, effect, args);
        let phase = self.calls_mut(node)?;
        let at = phase.next;
        let slot = phase.slots.get_mut(at)?;
        slot.state = SlotState::Running;
        let (effects, name) = (slot.effects, slot.call.name.clone());
        phase.opened(effects);
        phase.next += 1;
        let frame = self.frame_mut(node)?;
        *frame.calls.entry(name).or_insert(0) += 1;
        Some((at, effects))
    }

    /// The one slot of a fixed call comes into being with its first event.
    fn fixed_slot(&mut self, node: NodeIx, leaf: LeafIx, effect: &EffectId, args: Option<&Value>) {
        let Act::Call(call) = &self.graph.nodes[node].body.leaves[leaf].act else { return };
        let effects = self.graph.effects(&self.graph.nodes[node], &call.tool);
        let name = call.tool.clone();
        let Some(frame) = self.frame_mut(node) else { return };
        if !matches!(frame.phase, LeafPhase::Calls(_)) {
            let arguments = args.cloned().unwrap_or_default();
            let call = ToolCall { id: Arc::clone(&effect.0), name, arguments };
            let slots = vec![Slot::new(call, effect.clone(), effects)];
            frame.phase = LeafPhase::Calls(Box::new(CallsPhase { slots, ..CallsPhase::default() }));
        }
    }

    fn retried(&mut self, effect: &EffectId, after_ms: u64) {
        let Some((node, _)) = self.live_leaf(effect) else { return };
        let not_before = self.at.saturating_add(i64::try_from(after_ms).unwrap_or(i64::MAX));
        let Some(frame) = self.frame_mut(node) else { return };
        match &mut frame.phase {
            LeafPhase::Model(phase) => {
                phase.effect = effect.clone();
                phase.attempt += 1;
                phase.faults += 1;
                phase.got = None;
                self.add_pending(effect.clone(), node, 0, not_before, Effects::Idempotent, true);
            }
            LeafPhase::Calls(phase) => {
                let Some(at) = phase.unsettled.pop_front() else { return };
                let Some(slot) = phase.slots.get_mut(at) else { return };
                slot.attempt += 1;
                slot.effect = effect.clone();
                slot.state = SlotState::Running;
                let effects = slot.effects;
                frame.attempts += 1;
                self.add_pending(effect.clone(), node, at, not_before, effects, false);
            }
            LeafPhase::Enter | LeafPhase::Ask(_) => {}
        }
        self.settle_agenda(node);
    }

    fn refused(&mut self, effect: &EffectId, fault: &Fault, args: Option<&Value>) {
        let Some((node, leaf)) = self.live_leaf(effect) else { return };
        self.fixed_slot(node, leaf, effect, args);
        if let Some(phase) = self.calls_mut(node)
            && let Some(slot) = phase.slots.get_mut(phase.next)
        {
            slot.state = SlotState::Done(Err(fault.clone()));
            let name = slot.call.name.clone();
            phase.next += 1;
            // A call with unfit arguments is a failed call, and those count (P-14).
            if fault.kind == FaultKind::InputError
                && let Some(frame) = self.frame_mut(node)
            {
                *frame.calls.entry(name).or_insert(0) += 1;
            }
        }
        self.gate_calls(node);
        self.settle_agenda(node);
    }

    fn reused(&mut self, effect: &EffectId, from: &EffectId, args: Option<&Value>) {
        let Some((node, leaf)) = self.live_leaf(effect) else { return };
        let Some(outcome) = self.pool.take(from) else { return };
        match &outcome {
            Outcome::Reply(reply) => {
                self.model_requested(node, leaf, effect.clone());
                self.pending.remove(effect);
                self.record_model(node, effect, reply);
                self.give_model(node, &outcome, 0);
            }
            _ => {
                if let Some((at, _)) = self.begin_slot(node, leaf, effect, args) {
                    self.call_completed(node, at, &outcome, 0);
                }
            }
        }
        self.gate_calls(node);
        self.settle_agenda(node);
    }

    pub(crate) fn add_pending(
        &mut self,
        effect: EffectId,
        node: NodeIx,
        slot: usize,
        not_before: i64,
        effects: Effects,
        model: bool,
    ) {
        self.pending.insert(effect, PendingEffect { node, slot, not_before, effects, model });
    }

    pub(crate) fn calls(&self, node: NodeIx) -> Option<&CallsPhase> {
        match self.frame(node) {
            Some(Frame { phase: LeafPhase::Calls(phase), .. }) => Some(phase),
            _ => None,
        }
    }

    fn calls_mut(&mut self, node: NodeIx) -> Option<&mut CallsPhase> {
        match self.frame_mut(node) {
            Some(Frame { phase: LeafPhase::Calls(phase), .. }) => Some(phase),
            _ => None,
        }
    }
}
