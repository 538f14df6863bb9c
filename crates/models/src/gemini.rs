//! Google's Gemini, `streamGenerateContent`.
//!
//! What the protocol makes of a thread is in `docs/decisions/0005-providers.md`. Models differ in what they take, and
//! some refusals are followed by another request: of a JSON reply together with tools, which models before Gemini 3
//! don't give; about the signatures of tool calls, which Gemini 3 wants and older models don't know; and about the order
//! of turns.

mod reply;
mod request;

use super::target::Target;

use super::protocol::{Assembler, ModelPage, NameRule, Protocol, WireQuirks, below, extras, refusal_words};
use reqwest::header::{HeaderMap, HeaderName};
use reqwest::{StatusCode, Url};
use selvedge_engine::{Failure, ModelRequest, ModelSettings, Role};
use serde::Deserialize;

/// The model gives no JSON reply when it is offered tools.
const NO_SCHEMA_WITH_TOOLS: u16 = 1;
/// The model wants the opposite of what its name says about signatures.
const OTHER_SIGNATURES: u16 = 2;
/// A conversation has to end with the user's turn or with results.
const USER_LAST: u16 = 4;
/// Turns of the user and of the model have to alternate.
const ALTERNATE: u16 = 8;
/// How many models a page of their list has at most.
const PAGE: &str = "1000";

/// Gemini's `generateContent`.
#[derive(Debug)]
pub(crate) struct Gemini;

impl Protocol for Gemini {
    fn url(&self, base: &Url, model: &str, _quirks: WireQuirks) -> Url {
        // A tuned model comes with its collection: `tunedModels/mine`.
        let model = if model.contains('/') { model.to_owned() } else { format!("models/{model}") };
        let mut url = below(base, &format!("{model}:streamGenerateContent"));
        url.query_pairs_mut().append_pair("alt", "sse");
        url
    }

    fn sign(&self, headers: &mut HeaderMap, target: &Target) -> Result<(), Failure> {
        if let Some(key) = target.secret("")? {
            headers.insert(HeaderName::from_static("x-goog-api-key"), key);
        }
        Ok(())
    }

    fn body(
        &self,
        model: &str,
        request: &ModelRequest,
        quirks: WireQuirks,
    ) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&request::Body::new(model, request, quirks))
    }

    fn after(
        &self,
        quirks: WireQuirks,
        status: StatusCode,
        body: &[u8],
        request: &ModelRequest,
    ) -> Option<WireQuirks> {
        let text = refusal_words(status, body)?;
        let both = !request.tools.is_empty() && request.schema.is_some();
        if both && !quirks.has(NO_SCHEMA_WITH_TOOLS) && text.contains("response mime type") {
            return Some(quirks.with(NO_SCHEMA_WITH_TOOLS));
        }
        let names = ["thought_signature", "thought signature", "thoughtsignature"];
        let signatures = names.iter().any(|name| text.contains(name));
        let calls = request.messages.iter().any(|message| !message.tool_calls.is_empty());
        if calls && signatures && !quirks.has(OTHER_SIGNATURES) {
            return Some(quirks.with(OTHER_SIGNATURES));
        }
        let says =
            |bit: u16, words: &[&str]| !quirks.has(bit) && words.iter().any(|word| text.contains(word));
        if says(ALTERNATE, &["alternate between user and model"]) {
            return Some(quirks.with(ALTERNATE));
        }
        let last = request.messages.last().is_some_and(|message| message.role == Role::Assistant);
        let refused = says(USER_LAST, &["ending with a model turn", "ends with a user", "end with a user"]);
        (last && refused).then(|| quirks.with(USER_LAST))
    }

    fn assembler(&self, _request: &ModelRequest, limit: usize) -> Box<dyn Assembler> {
        Box::new(reply::Reply::new(limit))
    }

    fn models_url(&self, base: &Url, page: Option<&str>) -> Url {
        let mut url = below(base, "models");
        url.query_pairs_mut().append_pair("pageSize", PAGE);
        if let Some(page) = page {
            url.query_pairs_mut().append_pair("pageToken", page);
        }
        url
    }

    fn models(&self, body: &[u8]) -> Result<ModelPage, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page {
            models: Vec<Entry>,
            #[serde(default)]
            next_page_token: Option<String>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Entry {
            name: String,
            #[serde(default)]
            supported_generation_methods: Option<Vec<String>>,
        }
        let page: Page = serde_json::from_slice(body)?;
        // The list has models for embeddings, images and speech too.
        let generates = |entry: &Entry| {
            entry
                .supported_generation_methods
                .as_ref()
                .is_none_or(|all| all.iter().any(|m| m == "generateContent"))
        };
        let names = page.models.into_iter().filter(generates);
        let names = names.map(|entry| entry.name.strip_prefix("models/").unwrap_or(&entry.name).to_owned());
        Ok(ModelPage { names: names.collect(), next: page.next_page_token.filter(|token| !token.is_empty()) })
    }

    fn unsent(&self, settings: &ModelSettings) -> Vec<String> {
        extras(settings)
    }

    fn names(&self, _quirks: WireQuirks) -> Option<NameRule> {
        Some(NameRule::Word)
    }
}

#[cfg(test)]
mod tests;
