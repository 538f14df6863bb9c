//! Recovery from a fault: what is done about it, by whom, and within which limits (D-16 … D-19, D-22).
//!
//! A fault of a leaf that has a `Fault` edge is caught; from there on the flow itself is the recovery, and everything
//! it does is in the journal. Here is what such a flow remembers, and what its `Decide` leaf decides.

use super::state::{Frame, State};
use crate::effect::{EffectId, Outcome};
use crate::event::{Chooser, Event};
use crate::fault::{Fault, FaultKind};
use crate::graph::{Act, Action, Alternative, Call, Guard, Recovery};
use crate::ids::{LeafIx, MessageIx, NodeIx};
use crate::template::JsonTemplate;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a recovering flow remembers. Flows that never fail have none.
#[derive(Debug, Default)]
pub(crate) struct Mending {
    /// What the recovery itself ran into since the node's last turn: the model, the compiler.
    pub(crate) trouble: Option<Fault>,
    /// Whether trying again may mend the last fault of a call (D-17).
    pub(crate) transient: bool,
    /// The call that failed last: its tool, and its arguments as far as they were resolved.
    pub(crate) failed: Option<(Arc<str>, Value)>,
    /// The call to try, as it was decided last.
    pub(crate) attempt: Option<Attempt>,
    /// The last decision, and whether steps came along.
    pub(crate) decision: Option<(Action, bool)>,
    /// What a replan is meant to do.
    pub(crate) strategy: Option<Arc<str>>,
    /// The model's last reply on the scratch thread.
    pub(crate) reply: Option<MessageIx>,
    /// Decisions of a model to call again.
    pub(crate) retries: u32,
    /// Decisions of a model to change the definition.
    pub(crate) repairs: u32,
    /// Rounds of reflection that began.
    pub(crate) reflections: u32,
    /// Alternatives that the ladder has used.
    pub(crate) rungs: usize,
    /// What the compiler said against the last steps.
    pub(crate) diagnostics: Option<Value>,
    /// The compiled nodes, by the effect that compiled them.
    pub(crate) compiled: Option<(EffectId, Arc<Value>)>,
}

/// A call that was decided on.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) tool: Arc<str>,
    /// `None`: those of the node's own call.
    pub(crate) args: Option<Result<JsonTemplate, Fault>>,
    pub(crate) timeout_s: Option<f64>,
}

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

impl Frame {
    /// What the flow remembers of its recovery, from here on.
    pub(crate) fn mend(&mut self) -> &mut Mending {
        self.mending.get_or_insert_default()
    }

    /// A call succeeded: whatever failed before is made good.
    pub(crate) fn mended(&mut self) {
        self.fault = None;
        if let Some(mending) = &mut self.mending {
            mending.trouble = None;
        }
    }

    /// Whether an edge holds that asks for the last decision.
    pub(crate) fn recovery_holds(&self, guard: Guard) -> bool {
        let decision = self.mending.as_deref().and_then(|mending| mending.decision);
        match guard {
            Guard::Act(action) => decision.is_some_and(|(chosen, _)| chosen == action),
            Guard::Steps => decision == Some((Action::Replan, true)),
            Guard::Always | Guard::Calls | Guard::Exhausted | Guard::Fault => false,
        }
    }
}

impl State {
    /// Whether a fault of the leaf is caught.
    pub(crate) fn catches(&self, node: NodeIx, leaf: LeafIx) -> bool {
        let leaf = &self.graph.leaf(node, leaf);
        leaf.next.iter().any(|edge| edge.when == Guard::Fault)
    }

    /// The node's own fixed call.
    pub(crate) fn own_call(&self, node: NodeIx) -> Option<&Call> {
        self.graph.nodes[node].body.leaves.values().find_map(|leaf| match &leaf.act {
            Act::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The tool of the call that is decided on, or else of the node's own.
    pub(crate) fn tool_to_try(&self, node: NodeIx, frame: &Frame) -> Option<Arc<str>> {
        let attempt = frame.mending.as_ref().and_then(|mending| mending.attempt.as_ref());
        attempt.map(|attempt| &attempt.tool).or_else(|| self.own_call(node).map(|call| &call.tool)).cloned()
    }

    /// Its arguments, as they are written.
    pub(crate) fn args_to_try<'a>(
        &'a self,
        node: NodeIx,
        frame: &'a Frame,
    ) -> Option<Result<&'a JsonTemplate, &'a Fault>> {
        let attempt = frame.mending.as_ref().and_then(|mending| mending.attempt.as_ref());
        match attempt.and_then(|attempt| attempt.args.as_ref()) {
            Some(args) => Some(args.as_ref()),
            None => self.own_call(node).map(|call| Ok(&call.args)),
        }
    }

    /// The model's last reply on the scratch thread, if it is a JSON object.
    pub(crate) fn last_reply(&self, frame: &Frame) -> Option<Map<String, Value>> {
        let reply = frame.mending.as_ref()?.reply?;
        match serde_json::from_str(self.messages[reply].content.trim()) {
            Ok(Value::Object(reply)) => Some(reply),
            _ => None,
        }
    }

    fn rules(&self, node: NodeIx) -> Recovery {
        self.graph.nodes[node].recovery.as_deref().cloned().unwrap_or_default()
    }

    /// What the limits leave of an action, and the setting's name (D-19).
    fn left(&self, node: NodeIx, frame: &Frame, action: Action) -> Option<(u32, u32, &'static str)> {
        let rules = self.rules(node);
        let used = |of: fn(&Mending) -> u32| frame.mending.as_deref().map_or(0, of);
        Some(match action {
            Action::RetryWithParams | Action::RetryWithTool => {
                (rules.retries.saturating_sub(used(|m| m.retries)), rules.retries, "retries")
            }
            Action::RepairStep => {
                (rules.repairs.saturating_sub(used(|m| m.repairs)), rules.repairs, "repairs")
            }
            Action::Replan => {
                let used = self.replanned + self.replans.values().sum::<u32>();
                (rules.replans.saturating_sub(used), rules.replans, "replans")
            }
            Action::GiveUp => return None,
        })
    }

    /// What the limits leave, for a model (D-19).
    pub(crate) fn limits_left(&self, node: NodeIx, frame: &Frame) -> Value {
        let left = |action| self.left(node, frame, action).map_or(0, |(left, ..)| left);
        let asked = frame.mending.as_deref().map_or(0, |m| m.reflections);
        serde_json::json!({
            "retries": left(Action::RetryWithParams),
            "repairs": left(Action::RepairStep),
            "replans": left(Action::Replan),
            "reflections": self.rules(node).reflections.saturating_sub(asked),
        })
    }

    /// Whether no model may be asked any more what to do about the node (D-19).
    pub(crate) fn no_more_reflection(&self, node: NodeIx, frame: &Frame) -> bool {
        let Some(rules) = &self.graph.nodes[node].recovery else { return true };
        !rules.model || frame.mending.as_deref().is_some_and(|m| m.reflections >= rules.reflections)
    }

    /// The event of a `Decide` leaf (D-17, D-18).
    pub(crate) fn decide(&self, node: NodeIx, frame: &Frame) -> Event {
        let chosen = self.chosen(node, frame);
        let decision = chosen.unwrap_or_else(|why| self.ladder(node, frame, why));
        let Decision { action, by, reason, tool, parameters, step, strategy, steps } = decision;
        let node = self.graph.nodes[node].id.clone();
        Event::Recovered { node, action, by, reason, tool, parameters, step, strategy, steps }
    }

    /// What the model chose, or what counts as its choice; else why the ladder decides.
    fn chosen(&self, node: NodeIx, frame: &Frame) -> Result<Decision, String> {
        let rules = self.rules(node);
        let Some(mending) = frame.mending.as_deref().filter(|_| rules.model) else {
            return Err("no model decides".into());
        };
        if frame.exhausted {
            return Err(match &mending.trouble {
                Some(trouble) => trouble.message.clone(),
                None => format!(
                    "the limit of {} rounds of reflection is reached (`reflections` in [recovery])",
                    rules.reflections
                ),
            });
        }
        let decision = match &mending.trouble {
            // D-17: an answer that does not parse, also when asked again.
            Some(trouble)
                if matches!(trouble.kind, FaultKind::MalformedResponse | FaultKind::EmptyResponse) =>
            {
                let action = if mending.transient { Action::RetryWithParams } else { Action::Replan };
                let mut decision = Decision::new(action, Chooser::Default, trouble.message.clone());
                if action == Action::RetryWithParams {
                    decision.tool = self.tool_to_try(node, frame);
                }
                decision
            }
            Some(trouble) => return Err(format!("no model could be asked: {}", trouble.message)),
            None => self.read_reply(node, frame)?,
        };
        if let Some((0, limit, setting)) = self.left(node, frame, decision.action) {
            let name = decision.action.name();
            return Err(format!(
                "the limit of {limit} is reached for `{name}` (`{setting}` in [recovery]), which was chosen \
                 because: {}",
                decision.reason
            ));
        }
        if decision.action == Action::Replan && self.graph.nodes[node].body.compiler.is_none() {
            return Err("other steps were chosen, and nothing here can compile them".into());
        }
        Ok(decision)
    }

    /// The decision that the last reply states.
    fn read_reply(&self, node: NodeIx, frame: &Frame) -> Result<Decision, String> {
        let reply = self.last_reply(frame).ok_or("no model has answered")?;
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
                decision.tool = self.tool_to_try(node, frame);
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
                decision.tool = text(step, "tool_id").or_else(|| self.tool_to_try(node, frame));
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
            Some(tool) if !self.graph.is_offered(tool) => {
                Err(format!("the model chose `{tool}`: no such tool"))
            }
            _ => Ok(decision),
        }
    }

    /// D-18: the next alternative, or the end. `why` says why nobody else decides.
    fn ladder(&self, node: NodeIx, frame: &Frame, why: String) -> Decision {
        let used = frame.mending.as_deref().map_or(0, |m| m.rungs);
        let rules = self.graph.nodes[node].recovery.as_deref();
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

    /// A fault was caught: it stays the node's until a call succeeds. One of the recovery itself is only its trouble.
    pub(super) fn caught(&mut self, node: NodeIx, fault: &Fault) {
        let Some(Frame { leaf: Some(leaf), .. }) = self.frame(node) else { return };
        let leaf = *leaf;
        let act = &self.graph.leaf(node, leaf).act;
        let (call, compiles) =
            (matches!(act, Act::Call(_) | Act::Try), matches!(act, Act::Compile { .. } | Act::Splice));
        let failed = call.then(|| self.failed_call(node, leaf)).flatten();
        if matches!(act, Act::Infer(_)) && fault.kind == FaultKind::ProviderError {
            self.unasked.push(fault.clone());
        }
        self.count_unsent(node);
        if compiles {
            self.forget_reply(node);
        }
        let Some(frame) = self.frame_mut(node) else { return };
        let mending = frame.mend();
        if call {
            mending.failed = failed;
            mending.trouble = None;
            frame.fault = Some(fault.clone());
        } else {
            if compiles {
                let said = fault.cause.clone().unwrap_or_else(|| Value::from(fault.message.as_str()));
                mending.diagnostics = Some(said);
            }
            mending.trouble = Some(fault.clone());
        }
        self.leave(node, true);
    }

    /// The call of the live leaf: what was sent, or what could not be resolved.
    fn failed_call(&self, node: NodeIx, leaf: LeafIx) -> Option<(Arc<str>, Value)> {
        if let Some(slot) = self.calls(node).and_then(|phase| phase.slots.first()) {
            return Some((slot.call.name.clone(), slot.call.arguments.clone()));
        }
        let frame = self.frame(node)?;
        let args = match &self.graph.leaf(node, leaf).act {
            Act::Call(call) => Some(call.args.source()),
            _ => self.args_to_try(node, frame).and_then(Result::ok).map(JsonTemplate::source),
        };
        Some((self.fixed_tool(node, frame, leaf)?, args.cloned().unwrap_or_default()))
    }

    /// Whether the last fault of a call that is caught may pass (D-17).
    pub(super) fn note_transient(&mut self, node: NodeIx, leaf: LeafIx, outcome: &Outcome) {
        if let Outcome::Failed(failure) = outcome
            && self.catches(node, leaf)
            && let Some(frame) = self.frame_mut(node)
        {
            frame.mend().transient = failure.transient;
        }
    }

    /// It is decided what is done (D-22).
    pub(super) fn recovered(&mut self, node: NodeIx, event: &Event) {
        let Event::Recovered { action, by, tool, parameters, step, strategy, steps, .. } = event else {
            return;
        };
        let Some(frame) = self.frame_mut(node) else { return };
        if matches!(action, Action::RetryWithParams | Action::RetryWithTool | Action::RepairStep) {
            let mending = frame.mend();
            let previous = mending.attempt.take().and_then(|attempt| attempt.args);
            mending.attempt = Some(Attempt {
                tool: tool.clone().unwrap_or_default(),
                args: match (parameters, by) {
                    (Some(parameters), _) => Some(parsed(parameters)),
                    (None, Chooser::Ladder) => None,
                    (None, _) => previous,
                },
                timeout_s: step.as_ref().and_then(|step| step.get("timeout")).and_then(Value::as_f64),
            });
            match (by, action) {
                (Chooser::Ladder, _) => mending.rungs += 1,
                (_, Action::RepairStep) => mending.repairs += 1,
                _ => mending.retries += 1,
            }
        }
        let mending = frame.mend();
        mending.decision = Some((*action, steps.is_some()));
        mending.strategy.clone_from(strategy);
        if *action == Action::Replan {
            *self.replans.entry(node).or_insert(0) += 1;
        }
        self.leave(node, false);
    }

    /// The node has come to a `Turn` leaf: it goes on when all before it have retired (D-16).
    pub(super) fn await_turn(&mut self, node: NodeIx) {
        if self.retired >= node.0 {
            self.take_turn(node);
        } else {
            self.on_retired.entry(node.0).or_default().push(node);
        }
    }

    /// A running node whose turn it may be goes on if it waits for that.
    pub(super) fn take_turn(&mut self, node: NodeIx) {
        let Some(Frame { leaf: Some(leaf), .. }) = self.frame(node).filter(|_| self.retired >= node.0) else {
            return;
        };
        if !matches!(self.graph.leaf(node, *leaf).act, Act::Turn) {
            return;
        }
        if let Some(frame) = self.frame_mut(node) {
            let mending = frame.mend();
            (mending.reply, mending.trouble) = (None, None);
        }
        self.leave(node, false);
        if let Some(frame) = self.frame_mut(node).filter(|frame| !frame.exhausted) {
            frame.mend().reflections += 1;
        }
    }
}

/// Parameters as a template; a text is JSON (D-12).
fn parsed(parameters: &Value) -> Result<JsonTemplate, Fault> {
    let input_error = |error: String| Fault::new(FaultKind::InputError, format!("the parameters: {error}"));
    let read: Value;
    let parameters = match parameters {
        Value::String(text) => {
            read = serde_json::from_str(text).map_err(|error| input_error(format!("not JSON: {error}")))?;
            &read
        }
        parameters => parameters,
    };
    JsonTemplate::parse(parameters).map_err(|error| input_error(error.to_string()))
}
