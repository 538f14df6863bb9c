//! What is sent to the outside, and what it says.

use super::{Said, Sim, first_attempt};
use crate::canon::{self, Msg};
use crate::watch::valid_conversation;
use crate::world::{Answer, Asker, World};
use selvedge_engine::{
    AskPlace, EffectId, Effects, Failure, Fault, FaultKind, Input, Message, ModelReply, ModelRequest,
    Outcome, Request, Role, RunStatus, State, ToolCall, done as done_with,
};
use serde_json::{Value, json};
use std::sync::Arc;

impl Sim<'_> {
    /// Lets the outside do one thing.
    pub(super) fn outside(&mut self) -> Result<(), String> {
        let ready: Vec<EffectId> = self.state.pending().keys().cloned().collect();
        let open: Vec<Arc<str>> = self.state.asks().keys().cloned().collect();
        if ready.is_empty() && open.is_empty() {
            if self.state.step().is_some() {
                return Ok(());
            }
            let (retired, all) = self.state.progress();
            return Err(format!("the run is stuck with {retired} of {all} nodes retired"));
        }
        if ready.is_empty() && self.state.step().is_none() && self.state.status() != RunStatus::Waiting {
            return Err("E-21: only a person can go on, and the status is not `waiting`".into());
        }
        for effect in &ready {
            self.send(effect)?;
        }
        self.now += self.rng.within(0, 40);
        if !open.is_empty() && (ready.is_empty() || self.rng.chance(40)) {
            let Some(ask) = self.rng.pick(&open).cloned() else { return Ok(()) };
            let said = self.said(&ask);
            return self.input(Input::Answer(ask, said));
        }
        let Some(effect) = self.rng.pick(&ready).cloned() else { return Ok(()) };
        let not_before = self.state.pending().get(&effect).map_or(0, |pending| pending.wait().until);
        self.now = self.now.max(not_before);
        let outcome = self.outcome(&effect)?;
        let jitter = u32::try_from(self.rng.below(1_000_000)).unwrap_or(0);
        let printed = crate::world::printed(&effect);
        self.input(Input::Complete(effect, outcome, jitter, printed, None))
    }

    fn said(&mut self, ask: &str) -> Value {
        let done = match self.schedule.lost {
            _ if !self.asked_lost.contains(ask) => {
                return json!(if self.approves(ask) { "yes" } else { "no" });
            }
            Said::No => return json!("no"),
            Said::Again => None,
            Said::Done => self.what_came_back(ask),
        };
        done.map_or_else(|| json!("yes"), |output| done_with(&output))
    }

    /// What a lost write gave, if it succeeded.
    pub(crate) fn what_came_back(&mut self, ask: &str) -> Option<Value> {
        let effect = EffectId(ask.into());
        let (at, content) = self.contents.get(&effect)?.clone();
        let def = self.plan.nodes.get(at)?;
        let content = content.strip_prefix(&format!("{} tool ", def.id))?;
        let first = first_attempt(&effect);
        let lost = self.lost.get(&first).copied().unwrap_or(1) - 1;
        let asker = Asker { node: &def.id, attempt: effect.place()?.attempt - lost };
        match self.world.tool(asker, &first.0, content, Effects::Write) {
            Answer::Output(output) => Some(output),
            _ => None,
        }
    }

    fn approves(&self, ask: &str) -> bool {
        approves(&self.world, &self.state, ask)
    }

    /// E-04: what is sent stands in the journal; E-10: what a model is sent is a conversation.
    fn send(&mut self, effect: &EffectId) -> Result<(), String> {
        if !self.sent.insert(effect.clone()) {
            return Ok(());
        }
        let Some(request) = self.state.request(effect) else {
            return Err(format!("{effect} is pending and has no request"));
        };
        let Some(pending) = self.state.pending().get(effect) else { return Ok(()) };
        if pending.effects == Effects::Write && !self.world.sent_writes.insert(effect.to_string()) {
            return Err(format!("E-05: the write {effect} is sent twice"));
        }
        match request {
            Request::Model(request) => {
                let sent: Vec<Msg> = request.messages.iter().map(|m| Msg::from(m.as_ref())).collect();
                valid_conversation(&sent).map_err(|error| format!("{effect}: {error}"))
            }
            Request::Tool(_) | Request::Operation(_) => Ok(()),
        }
    }

    /// What the outside says to an effect that is pending.
    pub(super) fn outcome(&mut self, effect: &EffectId) -> Result<Outcome, String> {
        let request = self.state.request(effect).ok_or_else(|| format!("{effect} has no request"))?;
        let first = first_attempt(effect);
        let attempt =
            effect.place().map_or(1, |place| place.attempt) - self.lost.get(&first).copied().unwrap_or(0);
        let answer = match &request {
            Request::Model(request) => {
                let asker = Asker { node: &request.node, attempt };
                let tools: Vec<String> = request.tools.iter().map(|tool| tool.name.to_string()).collect();
                let schema = request.schema.as_ref().map(|schema| &schema.schema);
                self.world.model(asker, &self.model_content(request), &tools, schema)
            }
            Request::Tool(request) | Request::Operation(request) => {
                let asker = Asker { node: &request.node, attempt };
                let (_, def) = self.plan.node(&request.node).ok_or("a request of no node")?;
                let effects = self.plan.effects(def, &request.tool.name);
                let content = canon::tool_content(&request.tool.name, &request.args);
                self.world.tool(asker, &first.0, &content, effects)
            }
        };
        Ok(said(answer).unwrap_or_else(|failure| Outcome::from(*failure)))
    }

    /// A request's content; the engine's own words when it asks again are left out.
    pub(super) fn model_content(&self, request: &ModelRequest) -> String {
        content_of(&self.state, request)
    }
}

/// A request's content to a run that stands so.
pub(crate) fn content_of(state: &State, request: &ModelRequest) -> String {
    let mut sent: Vec<Msg> = request.messages.iter().map(|m| Msg::from(m.as_ref())).collect();
    let thread = state.thread_of(&request.node);
    let foreign =
        |m: &Arc<Message>| !thread.iter().flat_map(|thread| thread.iter()).any(|known| Arc::ptr_eq(known, m));
    if let [.., reply, again] = request.messages.as_slice()
        && reply.role == Role::Assistant
        && again.role == Role::User
        && foreign(reply)
        && let Some(last) = sent.last_mut()
    {
        *last = Msg::text("user", canon::ASKED_AGAIN);
    }
    let tools: Vec<String> = request.tools.iter().map(|tool| tool.name.to_string()).collect();
    canon::model_content(&sent, &tools, request.schema.as_ref().map(|schema| &schema.schema))
}

/// An answer of the world as an outcome, or as why there is none.
pub(crate) fn said(answer: Answer) -> Result<Outcome, Box<Failure>> {
    match answer {
        Answer::Reply(text, calls) => {
            let calls = calls.into_iter().map(|call| ToolCall {
                id: call.id.into(),
                name: call.name.into(),
                arguments: call.args,
            });
            Ok(Outcome::Reply(Arc::new(ModelReply { text, calls: calls.collect(), ..ModelReply::default() })))
        }
        Answer::Output(output) => Ok(Outcome::Output(Arc::new(output))),
        Answer::Failed(broken) => Err(Box::new(Failure {
            transient: broken.transient,
            retry_after_ms: broken.retry_after_ms,
            ..Failure::of(Fault::new(kind(broken.kind), broken.message))
        })),
    }
}

/// Whether a person of that world says yes to an open ask.
pub(crate) fn approves(world: &World, state: &State, ask: &str) -> bool {
    let node = state.asks().get(ask).map_or("", |asking| state.node_id(asking.node));
    let of_call = matches!(AskPlace::parse(ask), Some(AskPlace::Call(_)));
    world.approves(node, if of_call { "tool" } else { "node" })
}

fn kind(name: &str) -> FaultKind {
    match name {
        "timeout" => FaultKind::Timeout,
        "provider_error" => FaultKind::ProviderError,
        _ => FaultKind::ExecutionFailure,
    }
}
