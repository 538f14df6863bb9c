//! What a person can do about a provider's refusal, said behind the provider's own words: only what is configured
//! here knows it.

use crate::ways::WayOut;
use selvedge_engine::{Failure, FaultKind, ModelReply, ModelRequest};
use selvedge_runtime::{CallContext, Model, Pending};
use std::sync::Arc;

/// A model whose refusals say what to do.
pub(super) struct Advised {
    /// The model.
    pub(super) model: Arc<dyn Model>,
    /// `context_tokens` of its configuration.
    pub(super) context_tokens: Option<u64>,
    /// Its address, where that is not configured.
    pub(super) address: Option<String>,
}

impl Model for Advised {
    fn call(&self, request: ModelRequest, context: CallContext) -> Pending<ModelReply> {
        let reply = self.model.call(request, context);
        let (context_tokens, address) = (self.context_tokens, self.address.clone());
        Box::pin(async move {
            reply.await.map_err(|mut failure| {
                if let Some(advice) = advice(&failure, context_tokens, address.as_deref()) {
                    failure.fault.message.push_str("; ");
                    failure.fault.message.push_str(&advice);
                }
                failure
            })
        })
    }

    fn counts(&self) -> bool {
        self.model.counts()
    }

    fn recorded(&self, request: &ModelRequest, run: &str) {
        self.model.recorded(request, run);
    }
}

fn advice(failure: &Failure, context_tokens: Option<u64>, address: Option<&str>) -> Option<String> {
    let cause = failure.fault.cause.as_ref()?;
    let status = cause.get("status").and_then(serde_json::Value::as_u64);
    match status {
        _ if failure.fault.kind != FaultKind::ProviderError => None,
        Some(404) => Some(format!("`{}` lists what there is", WayOut::Models(address))),
        Some(400 | 413 | 422) if is_about_context(&failure.fault.message) => Some(match context_tokens {
            Some(tokens) => format!(
                "the conversation does not fit into the model's context (context_tokens = {tokens}): shorten the \
                 thread, or take a model with a larger one"
            ),
            None => {
                "the conversation does not fit into the model's context: shorten the thread, or take a model \
                     with a larger one"
                    .to_owned()
            }
        }),
        _ => None,
    }
}

/// Whether a provider's words say that a request is too long for the model.
fn is_about_context(message: &str) -> bool {
    let words = message.to_ascii_lowercase();
    let named = ["context length", "context window", "context_length", "context size", "exceed_context"];
    named.iter().any(|name| words.contains(name))
        || ["prompt is too long", "input token count", "maximum number of tokens"]
            .iter()
            .any(|name| words.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_engine::Fault;
    use serde_json::json;

    fn told(status: u16, message: &str) -> Option<String> {
        let fault = Fault::new(FaultKind::ProviderError, message).because(json!({"status": status}));
        let failure = Failure::of(fault);
        advice(&failure, Some(8192), Some("http://h/v1"))
    }

    #[test]
    fn a_model_that_is_not_there_and_a_conversation_that_is_too_long() {
        let listed = told(404, "model `x` does not exist").unwrap();
        assert!(listed.contains("`list models of http://h/v1` lists what there is"), "{listed}");
        for words in [
            "This model's maximum context length is 8192 tokens",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "The input token count (9000) exceeds the maximum number of tokens allowed (8192)",
            "the request exceeds the available context size",
        ] {
            assert!(told(400, words).unwrap().contains("context_tokens = 8192"), "{words}");
        }
        assert_eq!(told(400, "temperature must be below 2"), None);
        assert_eq!(told(500, "context window"), None);
    }
}
