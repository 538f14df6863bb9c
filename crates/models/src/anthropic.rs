//! Anthropic's messages (`docs/decisions/0005-providers.md` says what its form of requests forces).
//!
//! Its models differ in what they take: a refusal (400 or 422) that names the most tokens of a reply, a last message
//! by the assistant, the schema or a forced tool is followed by a request without it. Settings of the document that a
//! model does not take (newer ones know no `temperature`) are not left out: the refusal names them.

mod reply;
mod request;
mod schema;

use super::protocol::{Assembler, ModelPage, Protocol, WireQuirks, below, extras, refusal_words};
use super::target::Target;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{StatusCode, Url};
use selvedge_engine::{Failure, ModelRequest, ModelSettings};
use serde::Deserialize;

/// The version of the protocol that is spoken here.
const VERSION: &str = "2023-06-01";
/// What a request without `max_tokens` asks for at most: the field is required.
const MAX_TOKENS: u64 = 32_000;
/// A maximum below this is read out of some other number.
const LEAST_MAXIMUM: u64 = 16;
/// Models on one page of the list; the API's own limit.
const PAGE: &str = "1000";

/// The conversation must end with a user message.
const NO_PREFILL: u16 = 1;
/// A schema goes out as a tool, since `output_config` is refused.
const SCHEMA_AS_TOOL: u16 = 2;
/// No tool may be forced.
const NO_FORCED_TOOL: u16 = 4;

/// The messages protocol.
#[derive(Debug)]
pub(crate) struct Messages;

impl Protocol for Messages {
    fn url(&self, base: &Url, _model: &str, _quirks: WireQuirks) -> Url {
        below(base, "messages")
    }

    fn sign(&self, headers: &mut HeaderMap, target: &Target) -> Result<(), Failure> {
        headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION));
        if let Some(key) = target.secret("")? {
            headers.insert(HeaderName::from_static("x-api-key"), key);
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
        let names = |words: &[&str]| words.iter().any(|word| text.contains(word));
        // The document's own figure is not lowered: the refusal is the call's fault.
        let unset = request.settings.max_tokens.is_none();
        if let Some(most) = maximum_in(&text, max_tokens(request, quirks)).filter(|_| unset) {
            return Some(quirks.capped(most));
        }
        if !quirks.has(NO_PREFILL) && names(&["prefill", "must end with a user message"]) {
            return Some(quirks.with(NO_PREFILL));
        }
        let schema = request.schema.as_ref()?;
        let as_tool = quirks.has(SCHEMA_AS_TOOL) || schema::native(&schema.schema).is_none();
        if as_tool && !quirks.has(NO_FORCED_TOOL) && names(&["tool_choice", "forces tool use", "forced tool"])
        {
            return Some(quirks.with(NO_FORCED_TOOL));
        }
        let refused = names(&["output_config", "output_format", "schema", "structured output"]);
        (!as_tool && refused).then_some(quirks.with(SCHEMA_AS_TOOL))
    }

    fn assembler(&self, request: &ModelRequest, limit: usize) -> Box<dyn Assembler> {
        Box::new(reply::Reply::new(schema::ReplyTool::of(request), limit))
    }

    fn models_url(&self, base: &Url, page: Option<&str>) -> Url {
        let mut url = below(base, "models");
        url.query_pairs_mut().append_pair("limit", PAGE);
        if let Some(last) = page {
            url.query_pairs_mut().append_pair("after_id", last);
        }
        url
    }

    fn models(&self, body: &[u8]) -> Result<ModelPage, serde_json::Error> {
        #[derive(Deserialize)]
        struct Models {
            data: Vec<Entry>,
            #[serde(default)]
            has_more: bool,
            #[serde(default)]
            last_id: Option<String>,
        }
        #[derive(Deserialize)]
        struct Entry {
            id: String,
        }
        let models: Models = serde_json::from_slice(body)?;
        let next = models.last_id.filter(|_| models.has_more);
        Ok(ModelPage { names: models.data.into_iter().map(|entry| entry.id).collect(), next })
    }

    fn unsent(&self, settings: &ModelSettings) -> Vec<String> {
        let seed = settings.seed.map(|_| "seed".to_owned());
        seed.into_iter().chain(extras(settings)).collect()
    }
}

/// The most tokens that a request asks for: what the document says, else what the endpoint lets it ask for.
fn max_tokens(request: &ModelRequest, quirks: WireQuirks) -> u64 {
    let usual = || quirks.max_tokens.map_or(MAX_TOKENS, |most| MAX_TOKENS.min(most));
    request.settings.max_tokens.unwrap_or_else(usual)
}

/// The smaller maximum that a refusal of `sent` tokens names: "max_tokens: 32000 > 8192, which is the maximum …".
fn maximum_in(text: &str, sent: u64) -> Option<u64> {
    let (_, rest) = text.split_once("max_tokens").filter(|_| text.contains("maximum"))?;
    let numbers = rest.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<u64>().ok());
    numbers.filter(|number| (LEAST_MAXIMUM..sent).contains(number)).max()
}

#[cfg(test)]
mod tests;
