//! Effects under way: asked for, answered, tried again, refused, reused (E-05, E-13, E-14, E-29).

use super::doubt::Word;
use super::frame::Frame;
use super::node::{LeafPhase, Visit};
use super::phase::{AskPhase, CallsPhase, Got, SlotState};
use super::reuse::unknown_outcome;
use super::state::{Asking, PendingEffect, State};
use crate::effect::{EffectId, Effects, Failure, Outcome, Tokens, Unread, Wait};
use crate::event::Asked;
use crate::fault::{Fault, FaultKind, Warning};
use crate::graph::{Act, AskKind};
use crate::ids::{LeafIx, NodeRef};
use crate::place::{AskPlace, CallPlace, Place};
use serde_json::Value;
use std::sync::Arc;

impl State {
    pub(super) fn asked(&mut self, node: NodeRef, asked: &Asked) {
        let Asked { ask, ask_kind, prompt, value, due, .. } = asked;
        let may_ask = self.live_act(node).is_some_and(|act| act.is_fixed() || matches!(act, Act::Ask(..)));
        let Some(visit) = self.visit_mut(node) else { return };
        let mut slot = None;
        match &mut visit.phase {
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
            LeafPhase::Enter | LeafPhase::Ask(_) if may_ask => {
                visit.phase = LeafPhase::Ask(AskPhase::Open);
            }
            _ => return self.misfit(ask),
        }
        let (kind, value, due) = (*ask_kind, value.clone(), *due);
        let asking = Asking { node, kind, prompt: prompt.clone(), value, due, slot };
        self.asks.insert(ask.clone(), asking);
        self.set_timer(node, due);
    }

    pub(super) fn answered(&mut self, ask: &Arc<str>, value: &Value) {
        let word = Word::of(value);
        let Some(asking) = self.asks.get(ask) else { return self.answered_anew(ask, &word) };
        let doubted = self.doubted_call(asking);
        let Some(asking) = self.asks.remove(ask) else { return };
        self.timers.remove(ask);
        let (node, yes) = (asking.node, matches!(word, Word::Yes));
        if let Some(call) = &doubted {
            self.note_word(ask, &asking, call, &word);
            self.happened(ask, &asking, call, &word);
        }
        match asking.slot {
            _ if matches!(word, Word::Done(_)) && doubted.is_some() => {}
            None if asking.kind == AskKind::Approve && yes => {
                if let Some(Visit { leaf: Some(leaf), .. }) = self.visit(node)
                    && self.leaf(node, *leaf).act.is_fixed()
                {
                    // A fixed call that asked before it had a slot: it now may run.
                    if let Some(visit) = self.visit_mut(node) {
                        visit.approved = true;
                        visit.phase = LeafPhase::Enter;
                    }
                } else {
                    self.move_on(node);
                }
            }
            None if asking.kind != AskKind::Approve => self.take_answer(node, value),
            None => {
                if let Some(visit) = self.visit_mut(node) {
                    visit.phase = LeafPhase::Ask(AskPhase::Said(Box::new(value.clone())));
                }
            }
            Some(at) => self.answer_slot(node, at, (yes, value)),
        }
        self.gate_calls(node);
        self.wake(node);
    }

    pub(super) fn answer_slot(&mut self, node: NodeRef, at: usize, (yes, said): (bool, &Value)) {
        let Some(slot) = self.calls(node).and_then(|phase| phase.slots.get(at)) else { return };
        let no = self.refused_by_person(node, slot, said);
        let unknown = self.with_reason(unknown_outcome(&slot.call.name), said);
        let Some(phase) = self.calls_mut(node) else { return };
        let Some(slot) = phase.slots.get_mut(at) else { return };
        match (&slot.state, yes) {
            (SlotState::Lost(_), true) => phase.unsettled.push_back(at),
            (SlotState::Lost(_), false) => {
                slot.state = SlotState::Done(Err(Box::new(unknown.clone())));
                let effects = slot.effects;
                phase.closed(effects);
                // Nobody knows about it in a later visit or a fork either.
                let failure = Failure::of(unknown);
                self.record_call(node, at, failure.into());
                if self.start.edition >= 7 {
                    self.note_unknown_write(node, at);
                }
            }
            (_, true) => {
                slot.approved = true;
                slot.state = SlotState::Todo;
            }
            (_, false) => match no {
                Some(no) => {
                    slot.state = SlotState::Done(Err(Box::new(no)));
                    phase.next += 1;
                }
                None => {
                    slot.declined = true;
                    slot.state = SlotState::Todo;
                }
            },
        }
    }

    pub(super) fn completed(&mut self, effect: &EffectId, outcome: &Outcome, jitter: u32) {
        let Some(pending) = self.take_pending(effect) else { return self.misfit(&effect.0) };
        if pending.model {
            self.model_completed(pending.node, effect, outcome, jitter);
        } else {
            // C-02: tool calls that were sent.
            let slot = pending.slot as usize;
            let own = self.is_operation(pending.node, slot);
            if !own && outcome.is_sent() {
                self.charge_tool(pending.node);
            }
            self.note_operated(pending.node, outcome);
            self.call_completed(pending.node, slot, outcome, Some(jitter));
        }
        self.gate_calls(pending.node);
        self.wake(pending.node);
    }

    pub(super) fn model_completed(
        &mut self,
        node: NodeRef,
        effect: &EffectId,
        outcome: &Outcome,
        jitter: u32,
    ) {
        // A request that was sent counts, whatever came of it (E-20).
        match outcome.tokens() {
            Some(tokens) => self.charge(node, tokens),
            None if outcome.is_sent() && self.counts_sent() => self.charge(node, &Tokens::default()),
            None => {}
        }
        match outcome {
            Outcome::Reply(reply) => {
                let said = reply.tokens.input > 0 || reply.tokens.output > 0;
                self.note_uncounted(node, said, reply.unread);
                self.record_model(node, effect, reply);
            }
            // One that says nothing of tokens may have taken none.
            Outcome::Failed(failure) => self.note_uncounted(node, true, failure.unread),
            Outcome::Output(_) | Outcome::Operated(_) => {}
        }
        self.give_model(node, outcome, jitter);
    }

    /// What an operation used counts like what the run's own calls do (E-40, E-20).
    fn note_operated(&mut self, node: NodeRef, outcome: &Outcome) {
        if let Some(tokens) = outcome.tokens() {
            self.charge_operation(node, tokens);
        }
        match outcome {
            Outcome::Operated(operated) => self.note_uncounted(node, true, operated.unread),
            Outcome::Failed(failure) => self.note_uncounted(node, true, failure.unread),
            Outcome::Output(_) | Outcome::Reply(_) => {}
        }
    }

    /// E-20: a reply without figures, or with one that is none, counts for less than it took against the cap on tokens, which
    /// is told once.
    fn note_uncounted(&mut self, node: NodeRef, said: bool, unread: Unread) {
        const CODE: &str = "no-usage";
        let counted = said && unread.is_empty();
        let is_told = || self.warnings.iter().any(|warning| &*warning.code == CODE);
        if counted || !self.caps_tokens(node) || is_told() {
            return;
        }
        let of = match (unread.input, unread.output) {
            (false, false) => None,
            (true, false) => Some("of the prompt"),
            (false, true) => Some("of the reply"),
            (true, true) => Some("of the prompt and those of the reply"),
        };
        let what = match of {
            None => "the server does not say how many tokens its replies took, or some of them".to_owned(),
            Some(of) => format!(
                "what the server says of the tokens {of} is no number of tokens (below 0, above 10^12, or no number) and \
                 was not taken"
            ),
        };
        let message = format!(
            "{what}: the budget's tokens are not counted for these; cap the calls, too (`calls` of the budget, or --budget)"
        );
        self.warnings.push(Warning { code: CODE.into(), message, node: None });
    }

    /// Hands the outcome to the waiting leaf.
    pub(super) fn give_model(&mut self, node: NodeRef, outcome: &Outcome, jitter: u32) {
        let Some(Visit { phase: LeafPhase::Model(phase), .. }) = self.visit_mut(node) else { return };
        phase.got = match outcome {
            Outcome::Reply(reply) => Some(Got::Reply(Arc::clone(reply))),
            Outcome::Failed(failure) => Some(Got::Failed(failure.clone(), jitter)),
            Outcome::Output(_) | Outcome::Operated(_) => None,
        };
    }

    /// `jitter`: that of a failure that may be tried again. `None`: it stands as it is.
    pub(super) fn call_completed(
        &mut self,
        node: NodeRef,
        at: usize,
        outcome: &Outcome,
        jitter: Option<u32>,
    ) {
        let leaf = self.visit(node).and_then(|visit| visit.leaf).unwrap_or(LeafIx(0));
        let unknown = self.unknown_write(node, leaf, at, outcome);
        let outcome = unknown.as_ref().unwrap_or(outcome);
        let again = match (outcome, jitter, self.calls(node).and_then(|phase| phase.slots.get(at))) {
            (Outcome::Failed(failure), Some(jitter), Some(slot)) => {
                let retry = self.retry(node, leaf, failure.unsent);
                self.tool_again(failure, slot, retry, jitter).is_some().then_some(jitter)
            }
            _ => None,
        };
        if again.is_none() {
            self.record_call(node, at, outcome.clone());
            if self.is_left_unknown(node, leaf, at, outcome) {
                self.note_unknown_write(node, at);
            }
        }
        let Some(phase) = self.calls_mut(node) else { return };
        let Some(slot) = phase.slots.get_mut(at) else { return };
        let effects = slot.effects;
        match outcome {
            Outcome::Output(output) => slot.state = SlotState::Done(Ok(Arc::clone(output))),
            Outcome::Operated(operated) => slot.state = SlotState::Done(Ok(Arc::clone(&operated.output))),
            Outcome::Failed(failure) => match again {
                Some(jitter) => {
                    slot.state = SlotState::Failed(failure.clone(), jitter);
                    phase.unsettled.push_back(at);
                    return;
                }
                None => slot.state = SlotState::Done(Err(Box::new(failure.fault.clone()))),
            },
            Outcome::Reply(_) => return,
        }
        phase.closed(effects);
        self.note_counted(node, leaf, outcome);
        self.note_transient(node, leaf, outcome);
        self.fixed_ended(node);
    }

    pub(super) fn lost(&mut self, effect: &EffectId) {
        let Some(pending) = self.take_pending(effect) else { return self.misfit(&effect.0) };
        let slot_ix = pending.slot as usize;
        let leaf = self.visit(pending.node).and_then(|visit| visit.leaf);
        // In runs of earlier editions the recovery of a step decided before a person was asked (E-42).
        let recovers = self.start.edition < 7
            && leaf.is_some_and(|leaf| {
                self.catches(pending.node, leaf) && self.leaf(pending.node, leaf).act.is_fixed()
            });
        if let Some(phase) = self.calls_mut(pending.node)
            && let Some(slot) = phase.slots.get_mut(slot_ix)
        {
            if recovers {
                let fault = unknown_outcome(&slot.call.name);
                let failure = Failure::of(fault);
                self.call_completed(pending.node, slot_ix, &failure.into(), None);
            } else {
                slot.state = SlotState::Lost(false);
                phase.unsettled.push_back(slot_ix);
            }
        }
        self.gate_calls(pending.node);
        self.wake(pending.node);
    }

    /// The live leaf of the effect's node asked for it.
    pub(super) fn requested(&mut self, effect: &EffectId, args: Option<&Value>) {
        let Some((node, leaf)) = self.live_leaf(effect) else { return self.misfit(&effect.0) };
        let act = &self.leaf(node, leaf).act;
        if matches!(act, Act::Infer(_)) {
            // What is asked again, as the last reply was no use, is the same request.
            let first = self.visit(node).is_some_and(|visit| matches!(visit.phase, LeafPhase::Enter));
            if let Some(unlike) = first.then(|| self.unlike_model(node, leaf)).flatten() {
                self.note_afresh(node, effect, unlike);
            }
            self.model_requested(node, leaf, effect.clone());
            self.count_try(node, leaf, 1);
        } else {
            let at = self.begin_slot(node, leaf, effect, args);
            if let Some((at, effects)) = at {
                if matches!(self.leaf(node, leaf).act, Act::Retry) && self.is_unforeseen(node, effects) {
                    self.squash_behind(node);
                }
                self.re_executed(node, at, effects);
                self.count_try(node, leaf, 1);
                self.add_pending(effect.clone(), node, at, Wait::default(), effects, false);
            }
        }
        self.gate_calls(node);
        self.settle_agenda(node);
    }

    pub(super) fn live_leaf(&self, effect: &EffectId) -> Option<(NodeRef, LeafIx)> {
        let node = self.node_of(effect)?;
        Some((node, self.visit(node)?.leaf?))
    }

    /// Starts the next slot, or the only one of a fixed call, and counts it (P-14).
    pub(super) fn begin_slot(
        &mut self,
        node: NodeRef,
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
        let visit = self.visit_mut(node)?;
        visit.count_call(name);
        visit.requests += 1;
        let order = visit.requests;
        if let Some(slot) = self.calls_mut(node)?.slots.get_mut(at) {
            slot.order = order;
        }
        Some((at, effects))
    }

    pub(super) fn retried(&mut self, effect: &EffectId, after_ms: u64, reason: &str) {
        let Some((node, _)) = self.live_leaf(effect) else { return self.misfit(&effect.0) };
        let until = self.now.saturating_add(i64::try_from(after_ms).unwrap_or(i64::MAX));
        let wait = Wait { ms: after_ms, until };
        let Some(visit) = self.visit_mut(node) else { return };
        match &mut visit.phase {
            LeafPhase::Model(phase) => {
                phase.effect = effect.clone();
                phase.got = None;
                let earlier = phase.earlier_mut();
                earlier.count += 1;
                earlier.faults += 1;
                earlier.last_fault = Some(reason.into());
                earlier.waited_ms = earlier.waited_ms.saturating_add(after_ms);
                self.add_pending(effect.clone(), node, 0, wait, Effects::Idempotent, true);
            }
            LeafPhase::Calls(phase) => {
                let Some(at) = phase.unsettled.pop_front() else { return };
                let Some(slot) = phase.slots.get_mut(at) else { return };
                slot.attempt += 1;
                slot.last_answer = matches!(slot.state, SlotState::Failed(..)).then(|| reason.into());
                slot.waited_ms = slot.waited_ms.saturating_add(after_ms);
                slot.effect = effect.clone();
                slot.state = SlotState::Running;
                let effects = slot.effects;
                visit.calls += 1;
                self.add_pending(effect.clone(), node, at, wait, effects, false);
            }
            LeafPhase::Enter | LeafPhase::Ask(_) | LeafPhase::Frames(_) => {}
        }
        self.settle_agenda(node);
    }

    pub(super) fn refused(&mut self, effect: &EffectId, fault: &Fault, args: Option<&Value>) {
        let Some((node, leaf)) = self.live_leaf(effect) else { return self.misfit(&effect.0) };
        self.fixed_slot(node, leaf, effect, args);
        self.count_try(node, leaf, 1);
        if let Some(phase) = self.calls_mut(node)
            && let Some(slot) = phase.slots.get_mut(phase.next)
        {
            slot.state = SlotState::Done(Err(Box::new(fault.clone())));
            let name = slot.call.name.clone();
            phase.next += 1;
            // A call with unfit arguments is a failed call, and those count (P-14).
            if fault.kind == FaultKind::InputError
                && let Some(visit) = self.visit_mut(node)
            {
                visit.count_call(name);
            }
        }
        self.gate_calls(node);
        self.settle_agenda(node);
    }

    pub(super) fn reused(&mut self, effect: &EffectId, from: &EffectId, args: Option<&Value>) {
        let Some((node, leaf)) = self.live_leaf(effect) else { return self.misfit(&effect.0) };
        let Some((kept, tries)) = self.take_recorded(node, from, effect) else { return };
        let (saved, edited) = kept.saved();
        self.note_reused(node, effect, saved, edited);
        self.worked_ms = u32::try_from(saved.worked_ms).unwrap_or(u32::MAX);
        let (outcome, tool) = kept.into_parts();
        match &outcome {
            Outcome::Reply(reply) => {
                self.model_requested(node, leaf, effect.clone());
                self.take_pending(effect);
                self.count_try(node, leaf, tries);
                self.record_model(node, effect, reply);
                self.give_model(node, &outcome, 0);
            }
            outcome => {
                if let Some((at, _)) = self.begin_slot(node, leaf, effect, args) {
                    if let Some(slot) = self.calls_mut(node).and_then(|phase| phase.slots.get_mut(at)) {
                        slot.attempt = tries;
                        // A person's no may have left what another tool of the step came to.
                        slot.call.name = tool.unwrap_or_else(|| slot.call.name.clone());
                    }
                    self.count_try(node, leaf, tries);
                    self.call_completed(node, at, outcome, None);
                }
            }
        }
        self.gate_calls(node);
        self.settle_agenda(node);
    }

    pub(crate) fn add_pending(
        &mut self,
        effect: EffectId,
        node: NodeRef,
        slot: usize,
        wait: Wait,
        effects: Effects,
        model: bool,
    ) {
        let wait = (wait != Wait::default()).then(|| Box::new(wait));
        let (event, slot) = (self.events, u32::try_from(slot).unwrap_or(u32::MAX));
        self.keep_pending(effect, PendingEffect { event, node, slot, wait, effects, model });
    }

    pub(crate) fn keep_pending(&mut self, effect: EffectId, row: PendingEffect) {
        if row.model {
            self.reserve(row.node, &effect);
        }
        self.pending.insert(effect, row);
    }

    pub(super) fn take_pending(&mut self, effect: &EffectId) -> Option<PendingEffect> {
        let pending = self.pending.remove(effect)?;
        if pending.model {
            self.release(pending.node, effect);
        }
        Some(pending)
    }

    /// Nobody waits for an effect any more. It counts if it was sent (E-20).
    pub(super) fn drop_pending(&mut self, effect: &EffectId) {
        if let Some(row) = self.pending.remove(effect) {
            self.end_early(effect, row);
        }
    }

    pub(crate) fn calls(&self, node: NodeRef) -> Option<&CallsPhase> {
        match self.visit(node) {
            Some(Visit { phase: LeafPhase::Calls(phase), .. }) => Some(phase),
            _ => None,
        }
    }

    pub(super) fn calls_mut(&mut self, node: NodeRef) -> Option<&mut CallsPhase> {
        match self.visit_mut(node) {
            Some(Visit { phase: LeafPhase::Calls(phase), .. }) => Some(phase),
            _ => None,
        }
    }
}

/// The structural id of a call (E-10): of an effect of a node of `frame`, or the n-th call of a reply that the effect brought.
/// Messages of two visits are never on one thread. A call that never ran, as a person said that it happened, is named by the
/// question about it.
pub(super) fn call_id(frame: &Frame, effect: &EffectId, nth: Option<usize>) -> String {
    match AskPlace::parse_within(&frame.path, &effect.0) {
        Some(AskPlace::Call(effect)) => CallPlace { nth, ..effect.call() }.to_string(),
        Some(AskPlace::Leaf { place, leaf }) => {
            AskPlace::Leaf { place: Place { visit: 1, ..place }, leaf }.to_string()
        }
        None => effect.to_string(),
    }
}
