//! Fixed calls: the ones that the graph names, not a model's reply (P-13, D-14): a node's own, the one that its
//! recovery decided on, and the compiler's.

use super::node::{LeafPhase, Visit};
use super::outcomes::call_id;
use super::phase::{AskPhase, CallsPhase, Slot, SlotState};
use super::scope::Scope;
use super::state::{Asking, State};
use crate::effect::{EffectId, Effects, Failure, Outcome};
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::graph::{Act, AskKind, Graph, is_operation};
use crate::ids::{LeafIx, NodeRef};
use crate::message::ToolCall;
use crate::template::{JsonTemplate, OnMissing};
use serde_json::Value;
use std::sync::Arc;

impl State {
    /// The tool that the leaf calls, if it is a fixed call.
    pub(crate) fn fixed_tool(&self, node: NodeRef, visit: &Visit, leaf: LeafIx) -> Option<Arc<str>> {
        let flow = &self.def(node).body;
        match &self.leaf(node, leaf).act {
            Act::Call(call) => Some(call.tool.clone()),
            Act::Retry => self.tool_to_try(node, visit),
            Act::Compile { .. } => flow.compiler.clone(),
            _ => None,
        }
    }

    /// Until when a fixed call that has not begun is held back; `None`: it may begin.
    pub(crate) fn fixed_gate(
        &self,
        node: NodeRef,
        visit: &Visit,
        leaf: LeafIx,
    ) -> Option<crate::schedule::Until> {
        let effects = match &self.leaf(node, leaf).act {
            Act::Call(call) => self.effects(node, &call.tool),
            _ => self.effects(node, &self.fixed_tool(node, visit, leaf)?),
        };
        self.side_effect_gate(node, effects)
    }

    /// Resolves a fixed call's arguments and requests it, refuses it, or fails (P-13).
    pub(crate) fn begin_fixed(&self, node: NodeRef, visit: &Visit, leaf: LeafIx) -> Event {
        let Some(tool) = self.fixed_tool(node, visit, leaf) else {
            return self.failed(node, Fault::new(FaultKind::UnknownTool, "there is nothing to call"));
        };
        let arguments = match self.fixed_arguments(node, visit, leaf) {
            Ok(arguments) => self.with_digest(node, leaf, arguments),
            Err(fault) => return self.failed(node, fault),
        };
        let effect = self.effect_id(node, visit, leaf, None, 1);
        let effects = self.effects(node, &tool);
        let call = ToolCall { id: call_id(self.of(node), &effect, None).into(), name: tool, arguments };
        let mut slot = Slot::new(call, effect.clone(), effects);
        slot.approved = visit.approved;
        let args = Some(Box::new(slot.call.arguments.clone()));
        let said = if let LeafPhase::Ask(AskPhase::Said(said)) = &visit.phase { Some(said) } else { None };
        slot.declined = said.is_some();
        let denied = said.and_then(|said| self.refused_by_person(node, &slot, said));
        let over = self.over_limit(node, &slot.call.name);
        match denied.or(over).or_else(|| self.input_error(node, &slot.call)) {
            Some(fault) => Event::Refused { effect, fault: Box::new(fault), args },
            None => self.request_call(node, &slot, args),
        }
    }

    /// The fixed call that `ask` is about, where that is asked before the call is requested: the tool, and the arguments
    /// or why there are none (E-21).
    pub fn asked_call(&self, ask: &Asking) -> Option<(Arc<str>, Result<Value, Fault>)> {
        let visit = self.visit(ask.node).filter(|_| ask.kind == AskKind::Approve && ask.slot.is_none())?;
        let (flow, leaf) = (&self.def(ask.node).body, visit.leaf?);
        let edge = self.leaf(ask.node, leaf).next.first()?;
        let next = Graph::target(flow, leaf, edge)?;
        match &self.leaf(ask.node, next).act {
            Act::Call(call) => Some((call.tool.clone(), self.fixed_arguments(ask.node, visit, next))),
            _ => None,
        }
    }

    pub(super) fn fixed_arguments(&self, node: NodeRef, visit: &Visit, leaf: LeafIx) -> Result<Value, Fault> {
        let args = match &self.leaf(node, leaf).act {
            Act::Call(call) => &call.args,
            Act::Compile { context, .. } => return self.compile_arguments(node, visit, context),
            _ => match self.args_to_try(node, visit) {
                Some(args) => args.map_err(Clone::clone)?,
                None => return Ok(Value::Object(serde_json::Map::new())),
            },
        };
        self.resolved(node, args)
    }

    pub(super) fn resolved(&self, node: NodeRef, args: &JsonTemplate) -> Result<Value, Fault> {
        self.resolved_at(node, args, self.def(node).on_missing)
    }

    /// The same as `at` sees it.
    pub(super) fn resolved_at(
        &self,
        at: NodeRef,
        args: &JsonTemplate,
        missing: OnMissing,
    ) -> Result<Value, Fault> {
        let scope = Scope { state: self, at };
        let limit = self.start.limits.message_bytes;
        if args.measure(&scope, missing, limit)? > limit {
            return Err(self.too_long("the text of the arguments"));
        }
        Ok(args.resolve(&scope, missing)?)
    }

    /// Seconds that a call of the live leaf may take, if the node says so.
    pub(crate) fn call_timeout(&self, node: NodeRef, visit: &Visit) -> Option<f64> {
        match &self.leaf(node, visit.leaf?).act {
            Act::Call(call) => call.timeout_s,
            Act::Answer { timeout_s, .. } => *timeout_s,
            Act::Retry => {
                let own = || self.own_call(node).and_then(|call| call.timeout_s);
                visit.tried_timeout().or_else(own)
            }
            _ => None,
        }
    }

    /// The one slot of a fixed call comes into being with its first event.
    pub(super) fn fixed_slot(
        &mut self,
        node: NodeRef,
        leaf: LeafIx,
        effect: &EffectId,
        args: Option<&Value>,
    ) {
        let Some(visit) = self.visit(node).filter(|visit| !matches!(visit.phase, LeafPhase::Calls(_))) else {
            return;
        };
        let Some(name) = self.fixed_tool(node, visit, leaf) else { return };
        let effects = self.effects(node, &name);
        let arguments = args.cloned().unwrap_or_default();
        let call = ToolCall { id: call_id(self.of(node), effect, None).into(), name, arguments };
        let slots = vec![Slot::new(call, effect.clone(), effects)];
        if let Some(visit) = self.visit_mut(node) {
            visit.phase = LeafPhase::Calls(Box::new(CallsPhase { slots, ..CallsPhase::default() }));
        }
    }

    /// Whether a call is one of an operation, which is no tool of the document's (C-02).
    pub(super) fn is_operation(&self, node: NodeRef, slot: usize) -> bool {
        let slot = self.calls(node).and_then(|phase| phase.slots.get(slot));
        slot.is_some_and(|slot| is_operation(&slot.call.name))
    }

    /// Whether a fixed call leaves no message: there is no thread for it, or it is an operation.
    pub(crate) fn is_silent(&self, node: NodeRef, leaf: LeafIx) -> bool {
        let flow = &self.def(node).body;
        match &self.leaf(node, leaf).act {
            Act::Call(call) => flow.thread.is_none() || is_operation(&call.tool),
            Act::Retry => flow.thread.is_none(),
            act => act.is_fixed(),
        }
    }

    /// The fault of a fixed call that has ended in one and has nothing to append any more.
    pub(crate) fn fixed_fault(&self, node: NodeRef, leaf: LeafIx, phase: &CallsPhase) -> Option<Fault> {
        let act = &self.leaf(node, leaf).act;
        if !act.is_fixed() || (phase.appended < phase.slots.len() && !self.is_silent(node, leaf)) {
            return None;
        }
        match &phase.slots.first()?.state {
            SlotState::Done(Err(fault)) => Some(Fault::clone(fault)),
            SlotState::Done(Ok(output)) => self.compiled_fault(node, output),
            _ => None,
        }
    }

    /// A silent call that succeeded goes on at once.
    pub(super) fn fixed_ended(&mut self, node: NodeRef) {
        let Some(Visit { leaf: Some(leaf), phase: LeafPhase::Calls(phase), .. }) = self.visit(node) else {
            return;
        };
        let leaf = *leaf;
        if !self.is_silent(node, leaf) {
            return;
        }
        let Some(Slot { call, effect, state: SlotState::Done(Ok(output)), .. }) = phase.slots.first() else {
            return;
        };
        let (tool, effect, output) = (call.name.clone(), effect.clone(), Arc::clone(output));
        let compiles = matches!(self.leaf(node, leaf).act, Act::Compile { .. });
        if compiles && self.compiled_fault(node, &output).is_some() {
            return;
        }
        let Some(visit) = self.visit_mut(node) else { return };
        if compiles {
            visit.note_compiled(effect, output);
        } else {
            visit.extra_mut().outputs.push((tool, output));
            visit.call_succeeded();
        }
        self.leave(node, false);
    }

    /// D-17: nobody knows what came of a write that timed out or was killed; it is tried again only if the document
    /// says so, and `retry: 0` says that it is not.
    pub(super) fn unknown_write(
        &self,
        node: NodeRef,
        leaf: LeafIx,
        slot: usize,
        outcome: &Outcome,
    ) -> Option<Outcome> {
        let Outcome::Failed(failure) = outcome else { return None };
        let Failure { fault, transient: true, unsent: false, .. } = &**failure else { return None };
        let slot = self.calls(node)?.slots.get(slot)?;
        let once = self.retry(node, leaf, false).max.unwrap_or(0) == 0;
        (once && self.is_silent(node, leaf) && slot.effects == Effects::Write).then(|| {
            let message = format!(
                "nobody knows whether `{}` did its work: {}; a write is tried again only if its step says `retry` with a number above 0",
                slot.call.name, fault.message
            );
            let cause = serde_json::json!({"error": {"type": fault.kind.name(), "message": fault.message}});
            let fault = Fault::new(FaultKind::UnknownOutcome, message).because(cause);
            Failure::of(fault).into()
        })
    }
}
