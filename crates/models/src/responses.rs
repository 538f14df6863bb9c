//! OpenAI's responses, at any base URL.
//!
//! Nothing is stored at the provider (`store: false`): each request has the whole thread (E-23).

mod reply;
mod request;

use super::openai::{bearer, listed};
use super::protocol::{
    Assembler, ModelPage, Protocol, WireQuirks, below, extras, refusal_words, refuses_streaming,
};
use super::target::Target;
use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};
use selvedge_engine::{Failure, ModelRequest, ModelSettings};

/// The endpoint does not stream.
const NO_STREAM: u16 = 1;

/// OpenAI's responses.
#[derive(Debug)]
pub(crate) struct Responses;

impl Protocol for Responses {
    fn url(&self, base: &Url, _model: &str, _quirks: WireQuirks) -> Url {
        below(base, "responses")
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
        serde_json::to_vec(&request::Body::new(model, request, !quirks.has(NO_STREAM)))
    }

    /// Settings that a model does not take (`temperature`) are not left out: the refusal names them.
    fn after(
        &self,
        quirks: WireQuirks,
        status: StatusCode,
        body: &[u8],
        _request: &ModelRequest,
    ) -> Option<WireQuirks> {
        let text = refusal_words(status, body)?;
        (!quirks.has(NO_STREAM) && refuses_streaming(&text)).then(|| quirks.with(NO_STREAM))
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
        let seed = settings.seed.map(|_| "seed".to_owned());
        let stop = (!settings.stop.is_empty()).then(|| "stop".to_owned());
        seed.into_iter().chain(stop).chain(extras(settings)).collect()
    }
}

#[cfg(test)]
mod tests;
