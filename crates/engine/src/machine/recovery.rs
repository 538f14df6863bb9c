//! Recovery from a fault: what is done about it, by whom, and within which limits (D-16 … D-19, D-22).
//!
//! A fault of a leaf that has a `Fault` edge is caught; from there on the flow itself is the recovery, and everything
//! it does is in the journal. Here is what such a flow remembers, which nobody else changes; [`decide`] is what its `Decide` leaf decides,
//! [`prompt`] what a model is told.

mod decide;
pub(super) mod memory;
mod prompt;

use super::node::Visit;
use super::recovery::memory::RecoveryState;
use super::state::State;
use crate::effect::{EffectId, Outcome};
use crate::event::{Chooser, Recovered};
use crate::fault::{Fault, FaultKind};
use crate::graph::{Act, Action, Call, Guard};
use crate::ids::{LeafIx, MessageIx, NodeRef};
use crate::template::JsonTemplate;
use memory::Attempt;
use serde_json::{Map, Value};
use std::sync::Arc;

impl Visit {
    /// What the flow remembers of its recovery, from here on.
    fn recovery_mut(&mut self) -> &mut RecoveryState {
        self.extra_mut().recovery.get_or_insert_default()
    }

    /// A call succeeded: whatever failed before is made good.
    pub(crate) fn call_succeeded(&mut self) {
        self.set_fault(None);
        if self.recovery().is_some() {
            self.recovery_mut().recovery_fault = None;
        }
    }

    /// What the recovery itself ran into since the node's last turn.
    pub(crate) fn recovery_fault(&self) -> Option<&Fault> {
        self.recovery()?.recovery_fault.as_ref()
    }

    /// The tool of the call that was decided on last.
    pub(crate) fn tried_tool(&self) -> Option<&Arc<str>> {
        Some(&self.attempt()?.tool)
    }

    /// Seconds that this call may take, if it was said with it.
    pub(crate) fn tried_timeout(&self) -> Option<f64> {
        self.attempt()?.timeout_s
    }

    fn attempt(&self) -> Option<&Attempt> {
        self.recovery()?.attempt.as_ref()
    }

    /// The model's last reply on the scratch thread is this.
    pub(crate) fn note_scratch_reply(&mut self, reply: MessageIx) {
        self.recovery_mut().reply = Some(reply);
    }

    /// The nodes that steps were compiled to, by the effect that did.
    pub(crate) fn compiled(&self) -> Option<&(EffectId, Arc<Value>)> {
        self.recovery()?.compiled.as_ref()
    }

    /// Steps were compiled.
    pub(crate) fn note_compiled(&mut self, effect: EffectId, nodes: Arc<Value>) {
        let recovery = self.recovery_mut();
        recovery.recovery_fault = None;
        recovery.compiled = Some((effect, nodes));
    }

    /// What a replan is meant to do.
    pub(crate) fn strategy(&self) -> Option<&str> {
        self.recovery()?.strategy.as_deref()
    }

    /// Lists of steps that were refused since it was decided to ask for some.
    pub(crate) fn refused_steps(&self) -> u32 {
        self.recovery().map_or(0, |recovery| recovery.refused)
    }

    /// Whether an edge holds that asks for the last decision.
    pub(crate) fn recovery_holds(&self, guard: Guard) -> bool {
        let decision = self.recovery().and_then(|recovery| recovery.decision);
        match guard {
            Guard::Act(action) => decision.is_some_and(|(chosen, _)| chosen == action),
            Guard::Steps => decision == Some((Action::Replan, true)),
            Guard::Always
            | Guard::Calls
            | Guard::Exhausted
            | Guard::Fault
            | Guard::Every(_)
            | Guard::Messages
            | Guard::Over(_)
            | Guard::Outgrown(_) => false,
        }
    }
}

impl State {
    /// Whether a fault of the leaf is caught.
    pub(crate) fn catches(&self, node: NodeRef, leaf: LeafIx) -> bool {
        let leaf = &self.leaf(node, leaf);
        leaf.next.iter().any(|edge| edge.when == Guard::Fault)
    }

    /// The node's own fixed call.
    pub(crate) fn own_call(&self, node: NodeRef) -> Option<&Call> {
        self.def(node).body.leaves.values().find_map(|leaf| match &leaf.act {
            Act::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The tool of the call that is decided on, or else of the node's own.
    pub(crate) fn tool_to_try(&self, node: NodeRef, visit: &Visit) -> Option<Arc<str>> {
        visit.tried_tool().or_else(|| self.own_call(node).map(|call| &call.tool)).cloned()
    }

    /// Its arguments, as they are written.
    pub(crate) fn args_to_try<'a>(
        &'a self,
        node: NodeRef,
        visit: &'a Visit,
    ) -> Option<Result<&'a JsonTemplate, &'a Fault>> {
        match visit.attempt().and_then(|attempt| attempt.args.as_ref()) {
            Some(args) => Some(args.as_ref()),
            None => self.own_call(node).map(|call| Ok(&call.args)),
        }
    }

    /// The model's last reply on the scratch thread, if it is a JSON object.
    pub(crate) fn last_reply(&self, visit: &Visit) -> Option<Map<String, Value>> {
        match self.reply_json(self.last_reply_text(visit)?) {
            Ok(Value::Object(reply)) => Some(reply),
            _ => None,
        }
    }

    /// The model's last reply on the scratch thread.
    pub(crate) fn last_reply_text(&self, visit: &Visit) -> Option<&str> {
        Some(&self.messages[visit.recovery()?.reply?].content)
    }

    /// A fault was caught: it stays the node's until a call succeeds. One of the recovery itself is kept apart.
    pub(super) fn caught(&mut self, node: NodeRef, fault: &Fault) {
        let Some(Visit { leaf: Some(leaf), .. }) = self.visit(node) else { return };
        let leaf = *leaf;
        self.cut_children(node);
        let act = &self.leaf(node, leaf).act;
        let (call, compiles) =
            (matches!(act, Act::Call(_) | Act::Retry), matches!(act, Act::Compile { .. } | Act::Splice));
        let failed = call.then(|| self.failed_call(node, leaf)).flatten();
        if matches!(act, Act::Infer(_)) && fault.kind == FaultKind::ProviderError {
            self.unasked.push(fault.clone());
        }
        self.count_unsent(node);
        if compiles {
            self.forget_reply(node);
        }
        let Some(visit) = self.visit_mut(node) else { return };
        let recovery = visit.recovery_mut();
        if call {
            recovery.failed = failed;
            recovery.recovery_fault = None;
            visit.set_fault(Some(Box::new(fault.clone())));
        } else {
            if compiles {
                let said = fault.cause.clone().unwrap_or_else(|| Value::from(fault.message.as_str()));
                recovery.diagnostics = Some(said);
                recovery.refused += 1;
            }
            recovery.recovery_fault = Some(fault.clone());
        }
        self.leave(node, true);
    }

    /// The call of the live leaf: what was sent, or what could not be resolved.
    fn failed_call(&self, node: NodeRef, leaf: LeafIx) -> Option<(Arc<str>, Value)> {
        if let Some(slot) = self.calls(node).and_then(|phase| phase.slots.first()) {
            return Some((slot.call.name.clone(), slot.call.arguments.clone()));
        }
        let visit = self.visit(node)?;
        let args = match &self.leaf(node, leaf).act {
            Act::Call(call) => Some(call.args.source()),
            _ => self.args_to_try(node, visit).and_then(Result::ok).map(JsonTemplate::source),
        };
        Some((self.fixed_tool(node, visit, leaf)?, args.cloned().unwrap_or_default()))
    }

    /// Whether the last fault of a call that is caught may pass (D-17).
    pub(super) fn note_transient(&mut self, node: NodeRef, leaf: LeafIx, outcome: &Outcome) {
        if let Outcome::Failed(failure) = outcome
            && self.catches(node, leaf)
            && let Some(visit) = self.visit_mut(node)
        {
            visit.recovery_mut().transient = failure.transient;
        }
    }

    /// It is decided what is done (D-22).
    pub(super) fn recovered(&mut self, node: NodeRef, recovered: &Recovered) {
        let Recovered { action, by, tool, parameters, step, strategy, steps, .. } = recovered;
        let edition = self.start.edition;
        let Some(visit) = self.visit_mut(node) else { return };
        if matches!(action, Action::RetryWithParams | Action::RetryWithTool | Action::RepairStep) {
            let recovery = visit.recovery_mut();
            // The ladder climbs from the step as it is written, a model from what was tried last.
            let previous = recovery.attempt.take().filter(|_| *by != Chooser::Ladder);
            let (args, timeout_s) =
                previous.map_or((None, None), |attempt| (attempt.args, attempt.timeout_s));
            let repaired = step.as_ref().and_then(|step| step.get("timeout")).and_then(Value::as_f64);
            recovery.attempt = Some(Attempt {
                tool: tool.clone().unwrap_or_default(),
                args: parameters.as_ref().map(|parameters| parsed(parameters, edition)).or(args),
                timeout_s: repaired.filter(|seconds| *seconds > 0.0).or(timeout_s),
            });
            // That the last call's fault could pass says nothing of this one's.
            recovery.transient = false;
            match (by, action) {
                (Chooser::Ladder, _) => recovery.rungs += 1,
                (_, Action::RepairStep) => recovery.repairs += 1,
                _ => recovery.retries += 1,
            }
        }
        let recovery = visit.recovery_mut();
        recovery.decision = Some((*action, steps.is_some()));
        recovery.strategy.clone_from(strategy);
        if *action == Action::Replan {
            recovery.refused = 0;
            if let Some(dataflow) = &mut self.frames[node.frame].dataflow {
                *dataflow.replans.entry(node.node).or_insert(0) += 1;
            }
        }
        self.leave(node, false);
    }

    /// The node has come to a `Turn` leaf: it goes on when all before it have retired (D-16).
    pub(super) fn await_turn(&mut self, node: NodeRef) {
        let frame = &mut self.frames[node.frame];
        if frame.is_turn(node.node) {
            self.take_turn(node);
        } else if let Some(dataflow) = &mut frame.dataflow {
            dataflow.on_retired.entry(node.node.0).or_default().push(node.node);
        }
    }

    /// A running node whose turn it may be goes on if it waits for that.
    pub(super) fn take_turn(&mut self, node: NodeRef) {
        let Some(Visit { leaf: Some(leaf), .. }) =
            self.visit(node).filter(|_| self.of(node).is_turn(node.node))
        else {
            return;
        };
        if !matches!(self.leaf(node, *leaf).act, Act::AwaitRetirement) {
            return;
        }
        if let Some(visit) = self.visit_mut(node) {
            let recovery = visit.recovery_mut();
            (recovery.reply, recovery.recovery_fault) = (None, None);
        }
        self.leave(node, false);
        if let Some(visit) = self.visit_mut(node).filter(|visit| !visit.exhausted) {
            visit.recovery_mut().reflections += 1;
        }
    }
}

/// Parameters as a template; a text is JSON (D-12).
fn parsed(parameters: &Value, edition: u32) -> Result<JsonTemplate, Fault> {
    let input_error = |error: String| Fault::new(FaultKind::InputError, format!("the parameters: {error}"));
    let read: Value;
    let parameters = match parameters {
        Value::String(text) => {
            read = crate::json::read(text).map_err(|error| input_error(format!("not JSON: {error}")))?;
            &read
        }
        parameters => parameters,
    };
    JsonTemplate::of_edition(edition, parameters).map_err(|error| input_error(error.to_string()))
}
