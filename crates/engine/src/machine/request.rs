//! Building the request that an effect stands for: pure, from references (E-23).

use super::node::{LeafPhase, Visit};
use super::phase::ModelPhase;
use super::state::State;
use crate::effect::{EffectId, ModelRequest, Request, ToolRequest};
use crate::graph::{Act, is_operation};
use crate::ids::NodeRef;
use crate::message::{Message, Role, Thread};
use crate::messages::Messages;
use std::collections::HashSet;
use std::sync::Arc;

/// What stands for a result that a slice cut off (E-23).
const MISSING_RESULT: &str = "(not available in this thread)";
/// The role of a node that names none.
pub(crate) const DEFAULT_ROLE: &str = "basic";

impl State {
    /// The request of a pending effect, or `None` if it is not pending.
    pub fn request(&self, effect: &EffectId) -> Option<Request> {
        let pending = self.pending.get(effect)?;
        let visit = self.visit(pending.node)?;
        match &visit.phase {
            LeafPhase::Model(phase) => {
                self.model_request(pending.node, visit, Some(phase), effect.clone()).map(Request::Model)
            }
            LeafPhase::Calls(phase) => {
                let slot = phase.slots.get(pending.slot as usize)?;
                let def = self.def(pending.node);
                let timeout_s = self.call_timeout(pending.node, visit);
                let request = ToolRequest {
                    effect: effect.clone(),
                    node: def.id.clone(),
                    tool: Arc::clone(self.tool(pending.node, &slot.call.name)?),
                    args: self.with_told(pending.node, visit.leaf?, slot.call.arguments.clone()),
                    timeout_s,
                };
                Some(match is_operation(&slot.call.name) {
                    true => Request::Operation(request),
                    false => Request::Tool(request),
                })
            }
            LeafPhase::Enter | LeafPhase::Ask(_) | LeafPhase::Frames(_) => None,
        }
    }

    /// What the live leaf of a node asks a model.
    pub(crate) fn model_request(
        &self,
        node: NodeRef,
        visit: &Visit,
        phase: Option<&ModelPhase>,
        effect: EffectId,
    ) -> Option<ModelRequest> {
        let def = self.def(node);
        let Act::Infer(infer) = &self.leaf(node, visit.leaf?).act else { return None };
        let system = infer.system.as_ref().and_then(|system| self.text(node, system).ok());
        let system = system.map(|text| Arc::new(Message::text(Role::System, text)));
        let mut again = Vec::new();
        if let Some((reply, error)) = phase.and_then(ModelPhase::refused) {
            // Of a reply that only called tools there is nothing to repeat.
            if !reply.text.trim().is_empty() {
                again.push(Arc::new(Message::text(Role::Assistant, reply.text.as_str())));
            }
            let text = format!(
                "The reply does not fit the required JSON Schema: {error}. Answer again with JSON only."
            );
            again.push(Arc::new(Message::text(Role::User, text)));
        }
        let messages = if visit.thread.is_cut() {
            let mut messages: Vec<Arc<Message>> = system.into_iter().collect();
            self.push_mended(&visit.thread, &mut messages);
            messages.append(&mut again);
            Messages::from(messages)
        } else {
            Messages::of(&self.messages, system, &visit.thread, again)
        };
        let tools: Vec<_> = self.offered(node).filter(|_| infer.offer_tools).cloned().collect();
        let known = self.of(node).graph.offered().filter(|_| tools.is_empty());
        Some(ModelRequest {
            effect,
            node: def.id.clone(),
            thread: self.own_thread(node),
            role: infer.model.clone().unwrap_or_else(|| Arc::from(DEFAULT_ROLE)),
            messages,
            known: known.cloned().collect(),
            tools,
            schema: infer.schema.clone(),
            settings: infer.settings.clone(),
            timeout_s: infer.timeout_s,
        })
    }

    /// The messages of a thread with orphans made sendable: a result without its call becomes a user
    /// message, a call without its result gets one that says so (E-23).
    fn push_mended(&self, thread: &Thread, out: &mut Vec<Arc<Message>>) {
        let mut open: Vec<crate::ToolCall> = Vec::new();
        let close = |open: &mut Vec<crate::ToolCall>, out: &mut Vec<Arc<Message>>| {
            out.extend(open.drain(..).map(|call| Arc::new(Message::tool(&call, MISSING_RESULT))));
        };
        for ix in thread.iter() {
            let message = &self.messages[ix];
            if message.role == Role::Tool {
                let id = message.tool_call_id.as_ref();
                match open.iter().position(|call| Some(&call.id) == id) {
                    Some(at) => {
                        open.remove(at);
                        out.push(Arc::clone(message));
                    }
                    None => out.push(Arc::new(Message::text(Role::User, Arc::clone(&message.content)))),
                }
                continue;
            }
            close(&mut open, out);
            out.push(Arc::clone(message));
            open.extend(message.tool_calls.iter().cloned());
        }
        close(&mut open, out);
    }

    /// How many tool messages of a thread have no call, and how many calls no result.
    pub(crate) fn orphans(&self, thread: &Thread) -> (usize, usize) {
        let mut open: HashSet<&Arc<str>> = HashSet::new();
        let mut results = 0;
        for ix in thread.iter() {
            let message = &self.messages[ix];
            match &message.tool_call_id {
                Some(id) if message.role == Role::Tool => results += usize::from(!open.remove(id)),
                _ => open.extend(message.tool_calls.iter().map(|call| &call.id)),
            }
        }
        (results, open.len())
    }
}
