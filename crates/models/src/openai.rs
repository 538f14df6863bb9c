//! OpenAI-compatible chat completions at any base URL: OpenAI, vLLM, llama.cpp, Ollama, OpenRouter and others.
//!
//! A refusal (400 or 422) that names `stream_options`, `stream`, `max_tokens`, a setting that only some servers know,
//! `tools`, or the ids, names or arguments of calls is followed by a request without it, or with others in their place.

mod reply;
mod request;

use super::protocol::{
    Assembler, ModelPage, NameRule, Protocol, WireQuirks, below, extras, refusal_words, refuses_streaming,
};
use super::target::Target;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::{StatusCode, Url};
use selvedge_engine::{Failure, ModelRequest, ModelSettings, Role};
use serde::Deserialize;
use serde_json::Value;

/// The endpoint does not take `stream_options`.
const NO_STREAM_OPTIONS: u16 = 1;
/// The endpoint does not stream.
const NO_STREAM: u16 = 2;
/// The endpoint calls `max_tokens` `max_completion_tokens`.
const COMPLETION_TOKENS: u16 = 4;

/// The endpoint wants ids of calls to be short: OpenAI takes 40 characters, Mistral just nine letters and digits.
const SHORT_IDS: u16 = 8;
/// The endpoint wants names of tools to be plain ([`NameRule::Plain`]).
const PLAIN_NAMES: u16 = 16;
/// The endpoint wants the arguments of every call to be an object.
const OBJECT_ARGUMENTS: u16 = 32;
/// The endpoint is of before there were tools: calls are `function_call`, and their results messages of `function`.
const FUNCTION_MESSAGES: u16 = 256;
/// And so are definitions: they are `functions`.
const FUNCTIONS: u16 = 512;
/// The first of the bits that say that one of [`EXTRAS`] is not taken.
const NO_EXTRA: u16 = 64;
/// The settings that only some servers know (P-26).
const EXTRAS: [&str; 2] = ["enable_search", "enable_thinking"];

/// The bit of a setting that the endpoint does not take; 0 for one that is not known here.
fn no_extra(name: &str) -> u16 {
    EXTRAS.iter().position(|known| *known == name).map_or(0, |at| NO_EXTRA << at)
}

/// Chat completions.
#[derive(Debug)]
pub(crate) struct Chat {
    extras: bool,
    own: bool,
}

impl Chat {
    /// The protocol at an address; OpenAI's own gets no settings that it does not know, unless `extras` says so.
    pub(crate) fn new(base: &Url, extras: Option<bool>) -> Self {
        let own = base.host_str() == Some("api.openai.com");
        Self { extras: extras.unwrap_or(!own), own }
    }
}

impl Protocol for Chat {
    fn url(&self, base: &Url, _model: &str, _quirks: WireQuirks) -> Url {
        below(base, "chat/completions")
    }

    fn sign(&self, headers: &mut HeaderMap, target: &Target) -> Result<(), Failure> {
        bearer(headers, target)
    }

    fn body(
        &self,
        model: &str,
        request: &ModelRequest,
        quirks: WireQuirks,
    ) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&request::Body { model, request, quirks, extras: self.extras })
    }

    fn after(
        &self,
        quirks: WireQuirks,
        status: StatusCode,
        body: &[u8],
        request: &ModelRequest,
    ) -> Option<WireQuirks> {
        let text = refusal_words(status, body)?;
        let max_tokens = request.settings.max_tokens.is_some();
        if max_tokens && !quirks.has(COMPLETION_TOKENS) && text.contains("max_completion_tokens") {
            return Some(quirks.with(COMPLETION_TOKENS));
        }
        let too_long = text.contains("too long") && (text.contains("].id") || text.contains("tool_call_id"));
        if !quirks.has(SHORT_IDS) && (text.contains("tool call id") || too_long) {
            return Some(quirks.with(SHORT_IDS));
        }
        if let Some(quirks) = self.after_calls(quirks, &text, request) {
            return Some(quirks);
        }
        if let Some(quirks) = after_tools(quirks, &text, request) {
            return Some(quirks);
        }
        let named = |name: &&String| !quirks.has(no_extra(name)) && text.contains(name.as_str());
        let extra = request.settings.extra.keys().filter(|_| self.extras).find(named);
        if let Some(bit) = extra.map(|name| no_extra(name)).filter(|bit| *bit != 0) {
            return Some(quirks.with(bit));
        }
        if quirks.has(NO_STREAM) {
            return None;
        }
        if !quirks.has(NO_STREAM_OPTIONS) && text.contains("stream_options") {
            return Some(quirks.with(NO_STREAM_OPTIONS));
        }
        refuses_streaming(&text).then_some(quirks.with(NO_STREAM))
    }

    fn assembler(&self, _request: &ModelRequest, limit: usize) -> Box<dyn Assembler> {
        Box::new(reply::Reply::new(limit))
    }

    fn models_url(&self, base: &Url, _page: Option<&str>) -> Url {
        below(base, "models")
    }

    fn models(&self, body: &[u8]) -> Result<ModelPage, serde_json::Error> {
        listed(body)
    }

    fn unsent(&self, settings: &ModelSettings) -> Vec<String> {
        if self.extras { Vec::new() } else { extras(settings) }
    }

    /// Most servers take any name, and models know their tools by it.
    fn names(&self, quirks: WireQuirks) -> Option<NameRule> {
        (self.own || quirks.has(PLAIN_NAMES)).then_some(NameRule::Plain)
    }
}

impl Chat {
    /// The next form when a refusal is about what calls in the history say.
    fn after_calls(&self, quirks: WireQuirks, text: &str, request: &ModelRequest) -> Option<WireQuirks> {
        let calls = || request.messages.iter().flat_map(|message| &message.tool_calls);
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if self.names(quirks).is_none() {
            let mut names = calls().map(|call| &call.name).chain(request.tools.iter().map(|tool| &tool.name));
            let words = ["function.name", "function name", "tool name", "name of the tool", "a-za-z0-9"];
            if names.any(|name| !NameRule::Plain.fits(name)) && says(&words) {
                return Some(quirks.with(PLAIN_NAMES));
            }
        }
        let unparsed = || calls().any(|call| matches!(call.arguments, Value::String(_)));
        (!quirks.has(OBJECT_ARGUMENTS) && text.contains("arguments") && unparsed())
            .then(|| quirks.with(OBJECT_ARGUMENTS))
    }
}

/// The next form when a server refuses what is newer than it: `tools`, or messages of `tool`.
fn after_tools(quirks: WireQuirks, text: &str, request: &ModelRequest) -> Option<WireQuirks> {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    // One whose model can't use tools says that it does not support them; it must not seem to be given some.
    let unknown = says(&["unrecognized", "unknown", "unexpected", "not permitted", "extra inputs"]);
    let names_tools = says(&["tools", "tool_choice"]) && !text.contains("support");
    if !quirks.has(FUNCTIONS) && !request.tools.is_empty() && unknown && names_tools {
        return Some(quirks.with(FUNCTIONS).with(FUNCTION_MESSAGES));
    }
    let called = request.messages.iter().any(|message| message.role == Role::Tool);
    let wants_functions = says(&["'function'", "\"function\"", "function_call"])
        && says(&["role", "'assistant'", "\"assistant\""]);
    let no_tools = unknown && says(&["tool_calls", "tool_call_id"]);
    (!quirks.has(FUNCTION_MESSAGES) && called && (wants_functions || no_tools))
        .then(|| quirks.with(FUNCTION_MESSAGES))
}

/// The key as a bearer token.
pub(crate) fn bearer(headers: &mut HeaderMap, target: &Target) -> Result<(), Failure> {
    if let Some(value) = target.secret("Bearer ")? {
        headers.insert(AUTHORIZATION, value);
    }
    Ok(())
}

/// OpenAI's list of models, which comes whole.
pub(crate) fn listed(body: &[u8]) -> Result<ModelPage, serde_json::Error> {
    #[derive(Deserialize)]
    struct Models {
        data: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        id: String,
    }
    let models: Models = serde_json::from_slice(body)?;
    Ok(ModelPage { names: models.data.into_iter().map(|entry| entry.id).collect(), next: None })
}

#[cfg(test)]
mod tests;
