//! How much a model request is (E-28): from sums that threads keep, without looking at what was said.

use super::node::{LeafPhase, Visit};
use super::phase::ModelPhase;
use super::state::State;
use crate::fault::{Fault, FaultKind, Warning};
use crate::graph::{Act, Infer};
use crate::ids::NodeRef;
use crate::message::{Message, Role};
use std::sync::Arc;

/// Bytes of a tool's output from which on it is very large for a model: about 65,000 tokens.
pub(crate) const LARGE_OUTPUT: u64 = 256 << 10;

/// Bytes of a token of most texts, roughly.
const TOKEN: u64 = 4;

/// Output tokens that are reserved for a reply without `max_tokens`, unless a reply of the run was larger (E-20).
const USUAL_REPLY: u64 = 1_000;

impl State {
    /// Why a request is not sent: its messages and tools are more than the limit.
    pub(crate) fn too_much(
        &self,
        node: NodeRef,
        visit: &Visit,
        infer: &Infer,
        phase: Option<&ModelPhase>,
    ) -> Option<Fault> {
        let limit = self.start.limits.model_request_bytes;
        if limit == 0 {
            return None;
        }
        let bytes = self.request_bytes(node, visit, infer, phase);
        (bytes > limit).then(|| {
            let message = format!(
                "the messages and tools of the request are {bytes} bytes, {}, over the limit of {limit} bytes{}; nothing was \
                 sent; send less (a slice, a tool that returns less), or see `model_request_bytes` in [limits]",
                tokens(bytes),
                self.largest(visit)
            );
            Fault::new(FaultKind::LimitExceeded, message)
        })
    }

    /// The bytes of a request's messages and tools.
    fn request_bytes(&self, node: NodeRef, visit: &Visit, infer: &Infer, phase: Option<&ModelPhase>) -> u64 {
        let tools = self.offered(node).filter(|_| infer.offer_tools).map(|tool| self.sizes.of(tool));
        let system = infer.system.as_ref().and_then(|system| self.text(node, system).ok());
        let again = phase.and_then(ModelPhase::refused);
        let again = again.map_or(0, |(reply, error)| reply.text.len() + error.len());
        let texts = system.map_or(0, |text| text.len()) + again;
        tools.fold(visit.thread.bytes(), u64::saturating_add).saturating_add(texts as u64)
    }

    /// About how many tokens the model request of a node's live leaf uses, as far as is known before the answer (E-20).
    pub(super) fn estimated_tokens(&self, node: NodeRef) -> u64 {
        let Some(visit) = self.visit(node) else { return 0 };
        let Some(Act::Infer(infer)) = self.live_act(node) else { return 0 };
        let phase = match &visit.phase {
            LeafPhase::Model(phase) => Some(phase),
            _ => None,
        };
        let reply = infer.settings.max_tokens.unwrap_or(self.largest_reply.max(USUAL_REPLY));
        (self.request_bytes(node, visit, infer, phase) / TOKEN).saturating_add(reply)
    }

    /// The message that most of a request is, in words. It looks at all of them: for failures only.
    fn largest(&self, visit: &Visit) -> String {
        let messages = visit.thread.iter().map(|ix| &self.messages[ix]);
        let Some(message) = messages.max_by_key(|message| message.bytes()) else { return String::new() };
        let what = match (&message.name, message.role) {
            (Some(tool), _) => format!("the output of `{tool}`"),
            (None, Role::Assistant) if self.start.edition >= 2 => {
                "a reply or what a node published".to_owned()
            }
            (None, Role::Assistant) => "a reply".to_owned(),
            (None, _) => "a text".to_owned(),
        };
        format!("; the largest message, {what}, is {} bytes", message.bytes())
    }

    /// Very large outputs that a model of this thread is sent for the first time.
    pub(crate) fn large_outputs(&self, node: NodeRef, visit: &Visit) -> Vec<Warning> {
        if self.start.edition < 1 {
            return Vec::new();
        }
        let id = &self.name(node);
        let large = visit.thread.unanswered().into_iter().map(|ix| &self.messages[ix]);
        let warning = |message: &Arc<Message>| {
            let bytes = message.bytes();
            let (code, what) = match (&message.name, message.role) {
                (Some(tool), _) => ("large-tool-output", format!("the output of `{tool}`")),
                (None, Role::Tool) => ("large-tool-output", "the output of `a tool`".to_owned()),
                (None, Role::Assistant) => ("large-message", "what another node published here".to_owned()),
                (None, _) => ("large-message", "a text, most of it from placeholders,".to_owned()),
            };
            let message = format!(
                "{what} is {bytes} bytes, {}: the model is sent all of it, and so it is with each later request of this thread",
                tokens(bytes)
            );
            Warning::at(code, id, message)
        };
        large.map(warning).collect()
    }
}

/// About how many tokens so many bytes are.
fn tokens(bytes: u64) -> String {
    format!("about {} tokens", bytes / TOKEN)
}
