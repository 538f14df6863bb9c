//! Writes in doubt: nobody knows whether they happened, and a person says (E-05, E-21, E-29).

use super::asks::given;
use super::node::{LeafPhase, NodePhase, Visit};
use super::phase::{AskPhase, Slot, SlotState};
use super::reuse::outcome::RecordedOutcome;
use super::reuse::said::Key;
use super::reuse::unknown::{UnknownWrite, is_unknown};
use super::reuse::{any_version, tool_key};
use super::state::{Asking, Declined, State, Status};
use crate::effect::{EffectId, Effects, Outcome};
use crate::event::End;
use crate::fault::FaultKind;
use crate::graph::{Act, AskKind, is_operation};
use crate::ids::{LeafIx, NodeRef};
use crate::message::ToolCall;
use crate::schema::{STEPS, Schema, Unusable};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::sync::Arc;

/// What a person says to an ask for approval.
pub(super) enum Word<'v> {
    Yes,
    No,
    /// It happened, and this came back.
    Done(&'v Value),
}

impl<'v> Word<'v> {
    pub(super) fn of(value: &'v Value) -> Self {
        match value {
            Value::Bool(true) => Self::Yes,
            Value::String(word) if word == "yes" => Self::Yes,
            Value::Object(fields) => match (fields.get(DONE), fields.get(ANSWER)) {
                (Some(output), _) => Self::Done(output),
                (None, Some(Value::String(word))) if word == "yes" => Self::Yes,
                _ => Self::No,
            },
            _ => Self::No,
        }
    }
}

const DONE: &str = "done";
/// Where an answer stands that comes with who gave it, or why.
pub(super) const ANSWER: &str = "answer";

/// The answer that a write in doubt happened, and what came back.
pub fn done(output: &Value) -> Value {
    json!({ DONE: output })
}

/// An answer with who gave it and why, as far as that is known: what is journaled (E-21).
pub fn reasoned(answer: Value, by: Option<&str>, why: Option<&str>) -> Value {
    if by.is_none() && why.is_none() {
        return answer;
    }
    let mut fields = match answer {
        Value::Object(fields) => fields,
        word => serde_json::Map::from_iter([(ANSWER.to_owned(), word)]),
    };
    for (name, said) in [("by", by), ("why", why)] {
        fields.extend(said.map(|said| (name.to_owned(), Value::from(said))));
    }
    Value::Object(fields)
}

impl Declined {
    fn is_of(&self, node: &str, key: Key) -> bool {
        *self.node == *node && key_of(&self.call) == key
    }
}

fn key_of(call: &ToolCall) -> Key {
    any_version(&call.name, &call.arguments)
}

impl State {
    /// The call that an open ask is about, if nobody knows whether it happened: only then may the answer be [`done`].
    pub fn doubted_call(&self, ask: &Asking) -> Option<ToolCall> {
        let call = self.call_to_approve(ask)?;
        let lost = self.asking_slot(ask).is_some_and(|slot| matches!(slot.state, SlotState::Lost(_)));
        (lost || self.reuse.is_unknown(self.spot(ask.node), key_of(&call))).then_some(call)
    }

    fn asking_slot(&self, ask: &Asking) -> Option<&Slot> {
        self.calls(ask.node)?.slots.get(ask.slot?)
    }

    /// The call that an open ask lets run; `None` where it lets a node begin.
    pub fn call_to_approve(&self, ask: &Asking) -> Option<ToolCall> {
        let visit = self.visit(ask.node).filter(|_| ask.kind == AskKind::Approve)?;
        match (&visit.phase, ask.slot) {
            (LeafPhase::Calls(_), Some(_)) => self.asking_slot(ask).map(|slot| slot.call.clone()),
            // A fixed call that asks before it has a slot.
            (LeafPhase::Ask(AskPhase::Open), None) => {
                let leaf = visit.leaf.filter(|leaf| self.leaf(ask.node, *leaf).act.is_fixed())?;
                let name = self.fixed_tool(ask.node, visit, leaf)?;
                let arguments = self.fixed_arguments(ask.node, visit, leaf).ok()?;
                Some(ToolCall { id: Arc::from(""), name, arguments })
            }
            _ => None,
        }
    }

    /// The write for which the run has failed, as a person did not want it to run again, and the id of the ask: the run
    /// goes on once somebody says otherwise. Beginning anew alone comes to the same question.
    pub fn declined(&self) -> Option<(&Arc<str>, &Declined)> {
        let Status::Ended(End::Failed, Some(fault)) = &self.status else { return None };
        let node = fault.node.as_ref().filter(|_| fault.kind == FaultKind::UnknownOutcome)?;
        self.declined.iter().find(|(_, declined)| declined.node == *node)
    }

    /// Why `output` can't be what a tool gave, by the fields that it declares (D-24).
    pub fn output_misfit(&self, tool: &str, output: &Value) -> Option<String> {
        let declared = self.frames.root().graph.tools.get(tool)?.output_params.as_ref()?;
        let fields = declared.names().iter();
        let said =
            |name: &Arc<str>| (name.to_string(), declared.schema(name).cloned().unwrap_or(json!(true)));
        let properties: serde_json::Map<String, Value> = fields.map(said).collect();
        let schema = json!({"type": "object", "required": declared.names(), "properties": properties});
        match Schema::new(&schema, self.start.limits.schema_steps.unwrap_or(STEPS)) {
            Ok(schema) => match schema.violation(output) {
                Ok(violation) => violation.map(|violation| violation.to_string()),
                Err(excess) => Some(format!("to check it {excess}")),
            },
            Err(Unusable::OverLimit(limit)) => Some(format!("it can't be checked: {limit}")),
            // The tool's own outputs are held against nothing either.
            Err(Unusable::Invalid { .. }) => None,
        }
    }

    /// Whether an answer changes anything: to an open ask, or to one that was answered with no, once the run begins anew.
    pub(super) fn takes_answer(&self, ask: &Arc<str>, value: &Value) -> bool {
        let word = Word::of(value);
        match self.asks.get(ask) {
            Some(asking) if asking.kind != AskKind::Approve => {
                given(value).is_some_and(|answer| self.answer_misfit(asking, answer).is_none())
            }
            Some(asking) => !matches!(word, Word::Done(_)) || self.doubted_call(asking).is_some(),
            None => !matches!(word, Word::No) && self.still_declined(ask).is_some(),
        }
    }

    /// The node and the call of a write that a person said no to, while the node has not begun anew.
    fn still_declined(&self, ask: &Arc<str>) -> Option<(NodeRef, Key)> {
        let declined = self.declined.get(ask)?;
        let (node, key) = (self.node_named(&declined.node)?, key_of(&declined.call));
        let waits = matches!(self.frames[node].phase, NodePhase::Waiting(_));
        (waits && self.reuse.is_unknown(self.spot(node), key)).then_some((node, key))
    }

    /// A person has changed a no: the write is known to have happened, or may run again.
    pub(super) fn answered_anew(&mut self, ask: &Arc<str>, word: &Word<'_>) {
        let Some((node, key)) = self.still_declined(ask) else { return self.misfit(ask) };
        let Some(Declined { call, turn, .. }) = self.declined.remove(ask) else { return };
        self.settle_write(node, key);
        let Word::Done(output) = word else { return };
        let Some(version) = self.tool(node, &call.name).map(|tool| tool.version.clone()) else { return };
        self.charge_tool(node);
        let keys = (tool_key(&call.name, &version, &call.arguments), key);
        let outcome = Outcome::Output(Arc::new((*output).clone()));
        let kept = RecordedOutcome::written(EffectId(ask.clone()), keys, turn, outcome, call.name);
        self.reuse.add(self.spot(node), kept, false);
    }

    /// Remembers that a person said no to a write in doubt, for as long as nobody says otherwise.
    pub(super) fn note_word(&mut self, ask: &Arc<str>, asking: &Asking, call: &ToolCall, word: &Word<'_>) {
        let node = self.name(asking.node);
        let key = key_of(call);
        self.declined.retain(|_, declined| !declined.is_of(&node, key));
        if matches!(word, Word::No) {
            let turn = (Reverse(self.frames[asking.node].visit), u32::MAX);
            self.declined.insert(ask.clone(), Declined { node, call: call.clone(), turn });
        }
    }

    /// The write of an ask that was open, if it happened: what came back is its outcome.
    pub(super) fn happened(&mut self, ask: &Arc<str>, asking: &Asking, call: &ToolCall, word: &Word<'_>) {
        let Word::Done(output) = word else { return };
        let node = asking.node;
        let Some(Visit { leaf: Some(leaf), .. }) = self.visit(node) else { return };
        let leaf = *leaf;
        let lost = |slot: &Slot| matches!(slot.state, SlotState::Lost(_));
        let at = match asking.slot {
            Some(at) if self.calls(node).and_then(|phase| phase.slots.get(at)).is_some_and(lost) => Some(at),
            _ => {
                self.settle_write(node, key_of(call));
                if let Some(visit) = self.visit_mut(node).filter(|_| asking.slot.is_none()) {
                    visit.phase = LeafPhase::Enter;
                }
                let begun = self.begin_slot(node, leaf, &EffectId(ask.clone()), Some(&call.arguments));
                // Its try was that of an earlier visit.
                self.count_try(node, leaf, 0);
                begun.map(|(at, _)| at)
            }
        };
        let Some(at) = at else { return };
        // C-02: it did run.
        self.charge_tool(node);
        self.call_completed(node, at, &Outcome::Output(Arc::new((*output).clone())), None);
    }
}

/// What may not follow a write of unknown outcome without a person's word (E-55).
impl State {
    /// The write of unknown outcome that a call of a node might make a second time: one of the same call, or else one of the same tool.
    /// The recovery of a step does the step's work, so any other tool that writes counts there as well.
    pub(crate) fn repeated_write(
        &self,
        node: NodeRef,
        tool: &str,
        call: Key,
        effects: Effects,
    ) -> Option<&UnknownWrite> {
        let known = || self.reuse.unknown_writes(self.spot(node));
        if let Some((write, _)) = known().find(|(write, own)| *own && write.key == call) {
            return Some(write);
        }
        // Runs of earlier editions ask about equal calls only (E-42).
        if self.start.edition < 7 || effects != Effects::Write || is_operation(tool) {
            return None;
        }
        let leaf = self.visit(node).and_then(|visit| visit.leaf);
        let recovers = leaf.is_some_and(|leaf| matches!(self.leaf(node, leaf).act, Act::Retry));
        let concerns = |(write, own): &(&UnknownWrite, bool)| *write.tool == *tool || *own && recovers;
        known().find(concerns).map(|(write, _)| write)
    }

    /// Whether a call leaves a write of unknown outcome: something was sent, and no answer came back. With a `retry` above 0 its node
    /// says that it may be made again.
    pub(crate) fn is_left_unknown(
        &self,
        node: NodeRef,
        leaf: LeafIx,
        slot: usize,
        outcome: &Outcome,
    ) -> bool {
        let (Outcome::Failed(failure), true) = (outcome, self.start.edition >= 7) else { return false };
        let Some(slot) = self.calls(node).and_then(|phase| phase.slots.get(slot)) else { return false };
        if slot.effects != Effects::Write || is_operation(&slot.call.name) {
            return false;
        }
        let repeatable = || self.retry(node, leaf, false).max.unwrap_or(0) > 0;
        is_unknown(outcome) || failure.transient && !failure.unsent && !repeatable()
    }

    /// Remembers that nobody knows what became of a write, until a person decides about a second call.
    pub(crate) fn note_unknown_write(&mut self, node: NodeRef, slot: usize) {
        let slot = self.calls(node).and_then(|phase| phase.slots.get(slot));
        let Some(write) = slot.map(|slot| UnknownWrite::of(&slot.call)) else { return };
        let spot = self.spot_for(node);
        self.reuse.add_unknown(spot, write.clone());
        self.keep_unknown_writes(node, [write]);
    }
}
