//! Model calls: asking, asking again, giving up (E-14, E-27, E-33).

use super::node::{LeafPhase, Visit};
use super::phase::{Got, ModelPhase};
use super::state::State;
use crate::effect::{EffectId, ModelReply, Wait};
use crate::event::{Body, Event};
use crate::fault::{Fault, FaultKind, Warning};
use crate::graph::{Act, Infer, OnEmpty};
use crate::ids::{LeafIx, NodeRef};
use crate::schema::Refusal;
use std::sync::Arc;

/// How often a model that answers with nothing is asked again (E-27).
const EMPTY_AGAIN: u32 = 2;

impl State {
    /// The next event of a node whose live leaf asks a model.
    pub(crate) fn derive_model(&self, node: NodeRef, visit: &Visit, leaf: LeafIx, infer: &Infer) -> Event {
        let phase = match &visit.phase {
            LeafPhase::Model(phase) => phase,
            _ => return self.ask_model(node, visit, leaf, 1),
        };
        match &phase.got {
            Some(Got::Reply(reply)) => self.judge_reply(node, visit, leaf, infer, phase, reply),
            Some(Got::Failed(failure, jitter)) => {
                let again = self.model_again(failure, phase, *jitter);
                // While it had failed, others may have used up what was left (E-20).
                if let (Some(_), Some(over)) = (again, self.over_budget(node)) {
                    return self.after_failure(over, &failure.fault);
                }
                match again {
                    Some(after_ms) => Event::Retried {
                        effect: self.effect_id(node, visit, leaf, None, phase.attempt() + 1),
                        after_ms,
                        reason: failure.fault.message.clone(),
                    },
                    None => self.failed(node, failure.fault.clone()),
                }
            }
            None => self.ask_model(node, visit, leaf, phase.attempt()),
        }
    }

    /// The end of a node whose budget allows no other attempt: it tells why another one would be needed.
    fn after_failure(&self, mut over: Event, failed: &Fault) -> Event {
        if let Event::NodeFinished { fault: Some(fault), .. }
        | Event::Caught { fault, .. }
        | Event::Unrouted { fault, .. } = &mut over
            && self.counts_sent()
        {
            fault.message.push_str(&format!("; the last attempt failed: {}", failed.message));
        }
        over
    }

    fn judge_reply(
        &self,
        node: NodeRef,
        visit: &Visit,
        leaf: LeafIx,
        infer: &Infer,
        phase: &ModelPhase,
        reply: &ModelReply,
    ) -> Event {
        if infer.says_nothing(reply) {
            let before = match infer.on_empty {
                OnEmpty::AskAgain if phase.empties() < EMPTY_AGAIN => {
                    return self.ask_model(node, visit, leaf, phase.attempt() + 1);
                }
                OnEmpty::RollBack(times) if visit.rolled_back() < times => {
                    return self.roll_back_round(node, visit);
                }
                OnEmpty::AskAgain => phase.empties(),
                OnEmpty::RollBack(_) => visit.rolled_back(),
            };
            let message =
                format!("the model answered {} times with neither text nor calls{}", before + 1, also(reply));
            return self.failed(node, Fault::new(FaultKind::EmptyResponse, message));
        }
        if let Some(limit) = self.start.limits.calls_per_reply
            && reply.calls.len() as u64 > limit
        {
            let message = format!(
                "the reply calls tools {} times, and none of them was run: the limit is {limit} calls of one reply \
                 (setting: limits.calls_per_reply)",
                reply.calls.len()
            );
            return self.failed(node, Fault::new(FaultKind::LimitExceeded, message));
        }
        if let Some(refusal) = self.schema_refusal(node, leaf, infer, reply) {
            let error = match refusal {
                Refusal::Violates(error) => error,
                Refusal::OverLimit(limit) => {
                    let message =
                        format!("nobody knows whether the reply fits the node's output_schema: {limit}");
                    let cause = serde_json::json!({ "reply": reply.text });
                    return self.failed(node, Fault::new(FaultKind::LimitExceeded, message).because(cause));
                }
            };
            if phase.refused().is_none() {
                return self.ask_model(node, visit, leaf, phase.attempt() + 1);
            }
            let begins = if self.start.edition < 7 || reply.text.trim().is_empty() {
                String::new()
            } else {
                format!("; the reply begins {}", crate::json::beginning(&reply.text))
            };
            let message = format!(
                "the reply does not fit the node's output_schema, also when asked again: {error}{begins}{}",
                also(reply)
            );
            let cause = serde_json::json!({ "reply": reply.text });
            return self.failed(node, Fault::new(FaultKind::MalformedResponse, message).because(cause));
        }
        Event::Appended {
            node: self.name(node),
            thread: self.own_thread(node),
            body: Body::Reply(phase.effect.clone()),
        }
    }

    /// What is wrong with a reply by the leaf's schema; a reply with calls is not an answer yet, unless no tools were
    /// offered (D-17).
    pub(crate) fn schema_refusal(
        &self,
        node: NodeRef,
        leaf: LeafIx,
        infer: &Infer,
        reply: &ModelReply,
    ) -> Option<Refusal> {
        if infer.judged {
            return None;
        }
        self.unfit(node, leaf, infer, reply)
    }

    /// The same of any reply, whoever judges it.
    pub(crate) fn unfit(
        &self,
        node: NodeRef,
        leaf: LeafIx,
        infer: &Infer,
        reply: &ModelReply,
    ) -> Option<Refusal> {
        let schema = infer.schema.as_ref()?;
        let calls = !reply.calls.is_empty();
        if calls && !self.only_answers(node, infer) {
            return None;
        }
        if calls && reply.text.trim().is_empty() {
            return Some(Refusal::Violates("it calls tools, and there are none to call".to_owned()));
        }
        match self.reply_json(&reply.text) {
            Ok(value) => {
                let (owner, steps) = (self.schema_owner(node, leaf), self.start.limits.schema_steps);
                self.checks.refusal(owner, &schema.schema, &value, steps)
            }
            Err(error) => Some(Refusal::Violates(format!("it is not JSON: {error}"))),
        }
    }

    /// The JSON that a reply is, or why it is none (E-33).
    pub(crate) fn reply_json(&self, text: &str) -> Result<serde_json::Value, String> {
        if self.start.edition < 7 {
            return crate::json::read(text).map_err(|error| error.to_string());
        }
        crate::json::reply(text)
    }

    /// Whether the leaf asks a question of which only the answer counts: it says so, or is on a scratch thread and without tools.
    pub(crate) fn only_answers(&self, node: NodeRef, infer: &Infer) -> bool {
        let scratch = self.def(node).body.thread.is_none();
        infer.only_words || scratch && (!infer.offer_tools || self.offered(node).next().is_none())
    }

    fn ask_model(&self, node: NodeRef, visit: &Visit, leaf: LeafIx, attempt: u32) -> Event {
        let effect = self.effect_id(node, visit, leaf, None, attempt);
        // What was paid for before is not paid for again (E-20).
        if attempt == 1
            && self.reuse.has(self.spot(node))
            && let Ok(from) = self.reusable_model(node, visit, leaf)
        {
            return Event::Reused { effect, from, args: None };
        }
        let Act::Infer(infer) = &self.leaf(node, leaf).act else {
            return self.failed(node, Fault::new(FaultKind::InputError, "there is nobody to ask"));
        };
        let phase = match &visit.phase {
            LeafPhase::Model(phase) => Some(phase),
            _ => None,
        };
        let too_much = self.too_much(node, visit, infer, phase).map(|fault| self.failed(node, fault));
        if let Some(stop) = too_much.or_else(|| self.over_budget(node)) {
            return stop;
        }
        let first = attempt == 1 && visit.visits.are_first();
        let mut warnings =
            if first && visit.thread.is_cut() { self.orphan_warnings(node, visit) } else { Vec::new() };
        if attempt == 1 && visit.exhausted {
            warnings.push(self.limit_warning(node, visit));
        }
        if attempt == 1 {
            warnings.append(&mut self.large_outputs(node, visit));
        }
        Event::Requested { effect, args: None, warnings }
    }

    /// A question was sent, or sent again because the last reply was empty or refused.
    pub(crate) fn model_requested(&mut self, node: NodeRef, leaf: LeafIx, effect: EffectId) {
        let graph = Arc::clone(&self.of(node).graph);
        let previous = self.visit_mut(node).map(|f| std::mem::replace(&mut f.phase, LeafPhase::Enter));
        let mut phase = ModelPhase::first(effect.clone());
        if let Some(LeafPhase::Model(before)) = previous {
            let count = before.attempt();
            // What failed on the way counts for each question anew.
            let (empties, refused) =
                before.earlier.map(|before| (before.empties, before.refused)).unwrap_or_default();
            let earlier = phase.earlier_mut();
            (earlier.count, earlier.empties, earlier.refused) = (count, empties, refused);
            if let Some(Got::Reply(reply)) = before.got {
                let Act::Infer(infer) = &graph.leaf(node.node, leaf).act else { return };
                if infer.says_nothing(&reply) {
                    earlier.empties += 1;
                } else {
                    let error = self.schema_refusal(node, leaf, infer, &reply);
                    earlier.refused = Some((reply, error.map(Refusal::into_text).unwrap_or_default()));
                }
            }
        }
        if let Some(visit) = self.visit_mut(node) {
            visit.phase = LeafPhase::Model(phase);
        }
        self.add_pending(effect, node, 0, Wait::default(), crate::Effects::Idempotent, true);
    }

    /// A limit of the node was reached, and the model concludes instead (P-14, E-12).
    fn limit_warning(&self, node: NodeRef, visit: &Visit) -> Warning {
        let def = self.def(node);
        let max = def.body.max_rounds;
        let message = if visit.rounds >= max {
            format!(
                "the tool loop reached its limit of {max} rounds (max_rounds); the model concludes without tools"
            )
        } else {
            "the limits of all tools are used up (tools_limit); the model concludes without tools".to_owned()
        };
        Warning::at("tool-limit", &self.name(node), message)
    }

    pub(crate) fn orphan_warnings(&self, node: NodeRef, visit: &Visit) -> Vec<Warning> {
        let id = &self.name(node);
        let (results, calls) = self.orphans(&visit.thread);
        let mut warnings = Vec::new();
        if results > 0 {
            let message = format!(
                "{results} tool message(s) whose call the slice cut off are sent as user messages; \
                 take the call in too (data_in_slice)"
            );
            warnings.push(Warning::at("orphan-tool-message", id, message));
        }
        if calls > 0 {
            let message = format!(
                "{calls} tool call(s) whose result the slice cut off are sent with the result \
                 `(not available in this thread)`"
            );
            warnings.push(Warning::at("orphan-tool-call", id, message));
        }
        warnings
    }
}

/// What a fault says more of a reply that is not whole (E-27).
fn also(reply: &ModelReply) -> String {
    reply.cut_words().map(|words| format!("; {words}")).unwrap_or_default()
}

impl Infer {
    /// Whether a reply has no text, and no calls that anybody would make (E-27).
    pub(crate) fn says_nothing(&self, reply: &ModelReply) -> bool {
        reply.text.trim().is_empty() && (self.only_words || reply.calls.is_empty())
    }
}
