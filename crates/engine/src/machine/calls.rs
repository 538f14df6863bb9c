//! Tool calls of one leaf: they begin in order and overlap as far as their effects allow (E-22, P-20).

use super::node::{LeafPhase, Visit};
use super::phase::{CallsPhase, Slot, SlotState};
use super::reuse::unknown::{UnknownWrite, shown};
use super::reuse::{Reuse, any_version};
use super::state::State;
use crate::effect::{Cut, Effects, ToolDef};
use crate::event::{Asked, Body, Event};
use crate::fault::{Fault, FaultKind};
use crate::graph::Act;
use crate::ids::{LeafIx, NodeRef};
use crate::message::ToolCall;
use crate::schedule::Until;
use crate::schema::{Owner, Refusal};
use serde_json::Value;
use std::sync::Arc;

impl State {
    /// Whether a leaf with calls has something to derive.
    pub(crate) fn calls_actionable(&self, node: NodeRef, phase: &CallsPhase) -> bool {
        if !phase.unsettled.is_empty() {
            return true;
        }
        match phase.slots.get(phase.next) {
            Some(slot) => matches!(slot.state, SlotState::Todo) && self.slot_gate(node, phase, slot).is_ok(),
            None => phase.open == 0,
        }
    }

    /// Whether the slot may begin now. `Err(Some(_))` says which wait outside the leaf would change it.
    fn slot_gate(&self, node: NodeRef, phase: &CallsPhase, slot: &Slot) -> Result<(), Option<Until>> {
        if self.refusal(node, &slot.call).is_some() {
            return Ok(());
        }
        let inside = match slot.effects {
            Effects::Pure => false,
            Effects::Read => phase.open_writes > 0,
            Effects::Idempotent | Effects::Write => phase.open_impure > 0,
        };
        if inside {
            return Err(None);
        }
        self.side_effect_gate(node, slot.effects).map_or(Ok(()), |until| Err(Some(until)))
    }

    /// Makes a node whose next call is held back look again when that may change.
    pub(crate) fn gate_calls(&mut self, node: NodeRef) {
        if let Some((_, until)) = self.held_back(node) {
            self.wait_for_world(node, until);
        }
    }

    /// The tool that a running node may not call yet because of earlier nodes, and until when (P-20, E-22).
    pub fn held_back(&self, node: NodeRef) -> Option<(&Arc<str>, Until)> {
        match self.visit(node)? {
            Visit { phase: LeafPhase::Calls(phase), .. } => {
                let slot = phase.slots.get(phase.next)?;
                Some((&slot.call.name, self.slot_gate(node, phase, slot).err()??))
            }
            visit @ Visit { phase: LeafPhase::Enter, leaf: Some(leaf), .. } => {
                // Other fixed calls begin when it is the node's turn.
                let Act::Call(call) = &self.leaf(node, *leaf).act else { return None };
                Some((&call.tool, self.fixed_gate(node, visit, *leaf)?))
            }
            _ => None,
        }
    }

    /// Why a call of a reply is not to run, by what the node allows (P-14, P-15, E-10).
    fn refusal(&self, node: NodeRef, call: &ToolCall) -> Option<Fault> {
        let visit = self.visit(node)?;
        let run = match &self.leaf(node, visit.leaf?).act {
            Act::Answer { run, .. } => *run,
            _ => return None,
        };
        if !run {
            let message = "the limits of this node's tool calls are used up; conclude without tools";
            return Some(Fault::new(FaultKind::LimitExceeded, message));
        }
        if !self.offers(node, &call.name) {
            let names = self.offered(node).map(|tool| &*tool.name).collect::<Vec<_>>().join(", ");
            let may = if names.is_empty() { "there are none".to_owned() } else { format!("use {names}") };
            let message = format!("`{}` is not one of this node's tools: {may}", call.name);
            return Some(Fault::new(FaultKind::UnknownTool, message));
        }
        self.over_limit(node, &call.name)
    }

    /// The limit of one tool in this node, if it is used up (P-14).
    pub(crate) fn over_limit(&self, node: NodeRef, tool: &Arc<str>) -> Option<Fault> {
        let limit = *self.def(node).body.call_limits.get(tool)?;
        let used = self.visit(node)?.calls_of(tool);
        (used >= limit).then(|| {
            let message = format!("the limit of {limit} call(s) of `{tool}` is used up in this node");
            Fault::new(FaultKind::LimitExceeded, message)
        })
    }

    /// Why a call is not to run that did not come whole, since its reply was cut (E-10, E-27).
    fn cut_off(&self, node: NodeRef, call: &ToolCall) -> Option<Fault> {
        let text = call.arguments.as_str()?;
        let reply = self.visit(node)?.cut()?;
        reply.calls.iter().find(|cut| cut.name == call.name && cut.arguments == call.arguments)?;
        let why = match reply.cut? {
            Cut::Limit => "the reply was cut off before this call was whole",
            Cut::Withheld => "the provider held back the rest of the reply that this call is part of",
        };
        let stop = reply.stop.as_deref().unwrap_or("unknown");
        let came = if text.is_empty() { "no arguments came".to_owned() } else { shorten(text) };
        Some(not_run(call, &format!("{why} (stop reason `{stop}`): {came}")))
    }

    /// What the tool's schema says against the arguments (D-15).
    pub(crate) fn input_error(&self, node: NodeRef, call: &ToolCall) -> Option<Fault> {
        let tool = self.tool(node, &call.name)?;
        let arguments = match &call.arguments {
            // Not with the parser's words: they are another's, and a replay has to find the same ones (E-18).
            Value::String(text) => {
                let twice = crate::json::read(text).err().filter(crate::json::is_duplicate_key);
                let why = match twice.filter(|_| self.start.edition >= 7) {
                    Some(twice) => format!("{twice}: {}", shorten(text)),
                    None => format!("the arguments are not a JSON object: {}", shorten(text)),
                };
                return Some(not_run(call, &why));
            }
            arguments => arguments,
        };
        let (owner, steps) = (Owner::Tool(tool.version.clone()), self.start.limits.schema_steps);
        match self.checks.refusal(owner, &tool.input_schema, arguments, steps)? {
            Refusal::Violates(error) => Some(not_run(call, &error)),
            Refusal::OverLimit(limit) => {
                let message = format!("`{}` was not run: {limit}", call.name);
                Some(Fault::new(FaultKind::LimitExceeded, message))
            }
        }
    }

    /// The next event of a leaf whose calls exist.
    pub(crate) fn derive_calls(&self, node: NodeRef, visit: &Visit, phase: &CallsPhase) -> Event {
        if let Some(&at) = phase.unsettled.front()
            && let Some(slot) = phase.slots.get(at)
        {
            return self.settle(node, visit, at, slot);
        }
        match phase.slots.get(phase.next) {
            Some(slot) => self.begin(node, slot),
            None => match visit.leaf.and_then(|leaf| self.fixed_fault(node, leaf, phase)) {
                Some(fault) => self.failed(node, fault),
                None => self.append_result(node, phase),
            },
        }
    }

    fn settle(&self, node: NodeRef, visit: &Visit, at: usize, slot: &Slot) -> Event {
        let leaf = visit.leaf.unwrap_or(LeafIx(0));
        let fixed = self.leaf(node, leaf).act.is_fixed();
        let index = (!fixed).then_some(at);
        let effect = self.effect_id(node, visit, leaf, index, slot.attempt + 1);
        match &slot.state {
            SlotState::Failed(failure, jitter) => {
                let retry = self.retry(node, leaf, failure.unsent);
                let after = self.tool_again(failure, slot, retry, *jitter).unwrap_or(0);
                Event::Retried { effect, after_ms: after, reason: failure.fault.message.clone() }
            }
            SlotState::Lost(true) => {
                Event::Retried { effect, after_ms: 0, reason: "a person asked to run it again".into() }
            }
            _ => {
                let prompt = format!(
                    "`{}` may or may not have run before the process ended, and running it twice may do harm. \
                     Run it again? Arguments: {}",
                    slot.call.name,
                    shown(&slot.call.arguments)
                );
                Asked::approval(slot.effect.0.clone(), self.name(node), prompt)
            }
        }
    }

    fn begin(&self, node: NodeRef, slot: &Slot) -> Event {
        let fault = self.refusal(node, &slot.call).or_else(|| self.cut_off(node, &slot.call));
        let fault = fault.or_else(|| self.input_error(node, &slot.call));
        if let Some(fault) = fault {
            return Event::Refused { effect: slot.effect.clone(), fault: Box::new(fault), args: None };
        }
        self.request_call(node, slot, None)
    }

    /// Requests a call, takes a recorded outcome for it, or asks a person first.
    pub(crate) fn request_call(&self, node: NodeRef, slot: &Slot, args: Option<Box<Value>>) -> Event {
        let Some(tool) = self.tool(node, &slot.call.name) else {
            return self.failed(node, unknown_tool(&slot.call.name));
        };
        if let Some(fault) = self.does_more(node, tool) {
            return self.failed(node, fault);
        }
        let reuse = self.reusable_call(node, tool, &slot.call.arguments, slot.effects);
        let ask = |prompt: String| Asked::approval(slot.effect.0.clone(), self.name(node), prompt);
        // Only who is asked gets to see the arguments: they may be megabytes.
        let shown = || shown(&slot.call.arguments);
        match reuse {
            Reuse::Take(from) => Event::Reused { effect: slot.effect.clone(), from, args },
            Reuse::AskFirst(_, Some(from), _) if slot.declined => {
                Event::Reused { effect: slot.effect.clone(), from, args }
            }
            Reuse::AskUnknown(unknown, _) if !slot.approved => ask(self.unknown_question(&unknown, slot)),
            Reuse::AskFirst(why, known, _) if !slot.approved => {
                let stays = if known.is_some() { " No keeps what it came to." } else { "" };
                ask(format!("`{}` {why}. Run it again?{stays} Arguments: {}", tool.name, shown()))
            }
            _ if tool.approval && !slot.approved => ask(format!("Run `{}` with {}?", tool.name, shown())),
            _ => Event::Requested { effect: slot.effect.clone(), args, warnings: Vec::new() },
        }
    }

    /// The tool of the call that `event`, the next one of the journal, requests or answers with a recorded outcome (E-29).
    pub fn tool_called(&self, event: &Event) -> Option<&Arc<ToolDef>> {
        let (Event::Requested { effect, .. } | Event::Reused { effect, .. }) = event else { return None };
        let (node, leaf) = self.live_leaf(effect)?;
        if let Act::Call(call) = &self.leaf(node, leaf).act {
            return self.tool(node, &call.tool);
        }
        let slot = self.calls(node)?.slots.iter().find(|slot| slot.effect == *effect)?;
        self.tool(node, &slot.call.name)
    }

    /// Asks whether a call may be made though a write of unknown outcome may have done its work already (E-55).
    fn unknown_question(&self, unknown: &UnknownWrite, slot: &Slot) -> String {
        let (tool, arguments) = (&slot.call.name, shown(&slot.call.arguments));
        if unknown.key == any_version(tool, &slot.call.arguments) {
            // Runs of earlier editions say so of calls in flight only (E-42).
            let before = if self.start.edition < 7 { "before the run ended" } else { "before" };
            return format!(
                "`{tool}` may or may not have run {before}, and running it twice may do harm. Run it again? Arguments: \
                 {arguments}"
            );
        }
        format!(
            "`{}` may or may not have run with {}, and doing its work twice may do harm. Run `{tool}` with {arguments}?",
            unknown.tool, unknown.arguments
        )
    }

    fn append_result(&self, node: NodeRef, phase: &CallsPhase) -> Event {
        let thread = self.own_thread(node);
        let fixed = !phase.call_appended;
        let effect = phase.slots.get(phase.appended).map(|slot| slot.effect.clone());
        let effect = effect.unwrap_or_else(|| crate::EffectId(Arc::from("")));
        let body = if fixed { Body::Call(effect) } else { Body::Output(effect) };
        Event::Appended { node: self.name(node), thread, body }
    }
}

impl Slot {
    pub(crate) fn new(call: ToolCall, effect: crate::EffectId, effects: Effects) -> Self {
        Self {
            call,
            effect,
            attempt: 1,
            waited_ms: 0,
            last_answer: None,
            effects,
            approved: false,
            declined: false,
            order: 0,
            state: SlotState::Todo,
        }
    }
}

impl CallsPhase {
    /// The slot is under way.
    pub(crate) fn opened(&mut self, effects: Effects) {
        self.open += 1;
        self.open_impure += usize::from(effects >= Effects::Read);
        self.open_writes += usize::from(effects >= Effects::Idempotent);
    }
    /// The slot is done.
    pub(crate) fn closed(&mut self, effects: Effects) {
        self.open = self.open.saturating_sub(1);
        self.open_impure = self.open_impure.saturating_sub(usize::from(effects >= Effects::Read));
        self.open_writes = self.open_writes.saturating_sub(usize::from(effects >= Effects::Idempotent));
    }
}

fn unknown_tool(name: &str) -> Fault {
    Fault::new(FaultKind::UnknownTool, format!("there is no tool `{name}`"))
}

/// The fault of a call whose arguments are no use.
fn not_run(call: &ToolCall, error: &str) -> Fault {
    let message = format!("`{}` was not run: {error}", call.name);
    let cause = serde_json::json!({"error": {"type": "input_error", "message": error}});
    Fault::new(FaultKind::InputError, message).because(cause)
}

/// At most the first 300 characters, for questions and messages to people.
pub(super) fn shorten(text: &str) -> String {
    const SHOWN: usize = 300;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
