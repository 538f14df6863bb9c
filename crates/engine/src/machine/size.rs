//! How much a model request is (E-28): from sums that threads keep, without looking at what was said.

use super::node::Visit;
use super::phase::ModelPhase;
use super::state::State;
use crate::fault::{Fault, FaultKind, Warning};
use crate::graph::Infer;
use crate::ids::NodeRef;
use crate::message::{Message, Role};
use std::sync::Arc;

/// Bytes of a tool's output from which on it is very large for a model: about 65,000 tokens.
pub(crate) const LARGE_OUTPUT: u64 = 256 << 10;

/// Bytes of a token of most texts, roughly.
const TOKEN: u64 = 4;

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
        let tools = self.offered(node).filter(|_| infer.offer_tools).map(|tool| self.sizes.of(tool));
        let system = infer.system.as_ref().and_then(|system| self.text(node, system).ok());
        let again = phase.and_then(ModelPhase::refused);
        let again = again.map_or(0, |(reply, error)| reply.text.len() + error.len());
        let texts = system.map_or(0, |text| text.len()) + again;
        let bytes = tools.fold(visit.thread.bytes(), u64::saturating_add).saturating_add(texts as u64);
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
