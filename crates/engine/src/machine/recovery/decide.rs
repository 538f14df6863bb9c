//! What is done about a fault: what the model said, within the limits, or else the ladder (D-17 … D-19).

use crate::event::{Chooser, Event, Recovered};
use crate::fault::FaultKind;
use crate::graph::{Action, Alternative, Recovery};
use crate::ids::NodeRef;
use crate::machine::node::Visit;
use crate::machine::recovery::memory::RecoveryState;
use crate::machine::state::State;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a `Decide` leaf comes to, before it is an event.
struct Decision {
    action: Action,
    by: Chooser,
    reason: String,
    tool: Option<Arc<str>>,
    parameters: Option<Value>,
    step: Option<Value>,
    strategy: Option<Arc<str>>,
    steps: Option<Value>,
}

impl Decision {
    fn new(action: Action, by: Chooser, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { action, by, reason, tool: None, parameters: None, step: None, strategy: None, steps: None }
    }
}

impl State {
    fn rules(&self, node: NodeRef) -> Arc<Recovery> {
        self.def(node).recovery.clone().unwrap_or_default()
    }

    /// What the limits leave of an action, and the setting's name (D-19).
    fn remaining(&self, node: NodeRef, visit: &Visit, action: Action) -> Option<(u32, u32, &'static str)> {
        let rules = self.rules(node);
        let used = |of: fn(&RecoveryState) -> u32| visit.recovery().map_or(0, of);
        Some(match action {
            Action::RetryWithParams | Action::RetryWithTool => {
                (rules.retries.saturating_sub(used(|m| m.retries)), rules.retries, "retries")
            }
            Action::RepairStep => {
                (rules.repairs.saturating_sub(used(|m| m.repairs)), rules.repairs, "repairs")
            }
            Action::Replan => {
                let used = self.of(node).dataflow.as_ref().map_or(0, |dataflow| dataflow.replans_so_far());
                (rules.replans.saturating_sub(used), rules.replans, "replans")
            }
            Action::GiveUp => return None,
        })
    }

    /// What the limits leave, for a model (D-19).
    pub(crate) fn limits_left(&self, node: NodeRef, visit: &Visit) -> Value {
        let left = |action| self.remaining(node, visit, action).map_or(0, |(left, ..)| left);
        let asked = visit.recovery().map_or(0, |m| m.reflections);
        serde_json::json!({
            "retries": left(Action::RetryWithParams),
            "repairs": left(Action::RepairStep),
            "replans": left(Action::Replan),
            "reflections": self.rules(node).reflections.saturating_sub(asked),
        })
    }

    /// Whether no model may be asked any more what to do about the node (D-19).
    pub(crate) fn no_more_reflection(&self, node: NodeRef, visit: &Visit) -> bool {
        let Some(rules) = &self.def(node).recovery else { return true };
        !rules.model || visit.recovery().is_some_and(|m| m.reflections >= rules.reflections)
    }

    /// The event of a `Decide` leaf (D-17, D-18).
    pub(crate) fn decide(&self, node: NodeRef, visit: &Visit) -> Event {
        let chosen = self.chosen(node, visit);
        let decision = chosen.unwrap_or_else(|why| self.ladder(node, visit, why));
        let Decision { action, by, reason, tool, parameters, step, strategy, steps } = decision;
        let node = self.name(node);
        let recovered = Recovered { node, action, by, reason, tool, parameters, step, strategy, steps };
        Event::Recovered(Box::new(recovered))
    }

    /// What the model chose, or what counts as its choice; else why the ladder decides.
    fn chosen(&self, node: NodeRef, visit: &Visit) -> Result<Decision, String> {
        let rules = self.rules(node);
        let Some(recovery) = visit.recovery().filter(|_| rules.model) else {
            return Err("no model decides".into());
        };
        if visit.exhausted {
            return Err(match &recovery.recovery_fault {
                Some(recovery_fault) => recovery_fault.message.clone(),
                None => format!(
                    "the limit of {} rounds of reflection is reached (`reflections` in [recovery])",
                    rules.reflections
                ),
            });
        }
        let decision = match &recovery.recovery_fault {
            // D-17: an answer that does not parse, also when asked again.
            Some(recovery_fault)
                if matches!(recovery_fault.kind, FaultKind::MalformedResponse | FaultKind::EmptyResponse) =>
            {
                let action = if recovery.transient { Action::RetryWithParams } else { Action::Replan };
                let mut decision = Decision::new(action, Chooser::Default, recovery_fault.message.clone());
                if action == Action::RetryWithParams {
                    decision.tool = self.tool_to_try(node, visit);
                }
                decision
            }
            Some(recovery_fault) => {
                return Err(format!("no model could be asked: {}", recovery_fault.message));
            }
            None => self.read_reply(node, visit)?,
        };
        if let Some((0, limit, setting)) = self.remaining(node, visit, decision.action) {
            let name = decision.action.name();
            return Err(format!(
                "the limit of {limit} is reached for `{name}` (`{setting}` in [recovery]), which was chosen \
                 because: {}",
                decision.reason
            ));
        }
        if decision.action == Action::Replan && self.def(node).body.compiler.is_none() {
            return Err("other steps were chosen, and nothing here can compile them".into());
        }
        Ok(decision)
    }

    /// The decision that the last reply states.
    fn read_reply(&self, node: NodeRef, visit: &Visit) -> Result<Decision, String> {
        let reply = self.last_reply(visit).ok_or("no model has answered")?;
        let action = reply.get("action").cloned().unwrap_or_default();
        let action: Action = serde_json::from_value(action.clone())
            .map_err(|_| format!("the model's answer names no action: {action}"))?;
        let text =
            |of: &Map<String, Value>, key: &str| of.get(key).and_then(Value::as_str).map(Arc::<str>::from);
        let given = |of: &Map<String, Value>, key: &str| of.get(key).filter(|v| !v.is_null()).cloned();
        let reason = reply.get("reason").and_then(Value::as_str).unwrap_or_default();
        let mut decision = Decision::new(action, Chooser::Model, reason);
        match action {
            Action::RetryWithParams => {
                decision.tool = self.tool_to_try(node, visit);
                decision.parameters = given(&reply, "parameters");
            }
            Action::RetryWithTool => {
                decision.tool =
                    Some(text(&reply, "tool_id").ok_or("the model chose another tool and named none")?);
                decision.parameters = given(&reply, "parameters");
            }
            Action::RepairStep => {
                let Some(Value::Object(step)) = reply.get("step") else {
                    return Err("the model chose to repair the step and gave none".into());
                };
                decision.tool = text(step, "tool_id").or_else(|| self.tool_to_try(node, visit));
                decision.parameters = given(step, "parameters");
                decision.step = Some(Value::Object(step.clone()));
            }
            Action::Replan => {
                decision.strategy = text(&reply, "strategy");
                decision.steps = reply.get("steps").filter(|steps| steps.is_array()).cloned();
            }
            Action::GiveUp => {}
        }
        match &decision.tool {
            Some(tool) if !self.of(node).graph.is_offered(tool) => {
                let withheld = self.of(node).graph.withheld.get(tool);
                let why =
                    withheld.map_or("no such tool".to_owned(), |why| format!("it is not offered: {why}"));
                Err(format!("the model chose `{tool}`: {why}"))
            }
            _ => Ok(decision),
        }
    }

    /// D-18: the next alternative, or the end. `why` says why nobody else decides.
    fn ladder(&self, node: NodeRef, visit: &Visit, why: String) -> Decision {
        let used = visit.recovery().map_or(0, |m| m.rungs);
        let rules = self.def(node).recovery.as_deref();
        match rules.and_then(|rules| rules.alternatives.get(used)) {
            Some(Alternative { tool, args }) => Decision {
                tool: Some(tool.clone()),
                parameters: args.as_ref().map(|args| args.source().clone()),
                ..Decision::new(Action::RetryWithTool, Chooser::Ladder, why)
            },
            None => {
                let left = if used == 0 { "there is no alternative" } else { "no alternative is left" };
                Decision::new(Action::GiveUp, Chooser::Ladder, format!("{why}; {left}"))
            }
        }
    }
}
