//! OpenAI-compatible chat completions at any base URL: OpenAI, vLLM, llama.cpp, Ollama, OpenRouter and others.
//!
//! A request always asks for a stream; a server that answers with one JSON body is understood as well. The client
//! is our own (`docs/decisions/0003-model-client.md`): the messages go out exactly as they are (E-23), and every
//! failure keeps its status and Retry-After (E-14). Nothing is retried here. The one thing that is asked twice is
//! a request whose *form* the server refuses (400 or 422 naming `stream_options`, `stream` or `max_tokens`): the
//! endpoint's form is remembered, so that this happens once per process.

mod fault;
mod reply;
mod request;
mod stream;

use super::{CallLimits, Price};
use crate::http::{Http, Secret, shown};
use fault::Place;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use selvedge_engine::{Failure, ModelReply, ModelRequest};
use selvedge_runtime::ports::{CallContext, Model, Pending};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// Bytes that are read of a body that is an error.
const ERROR_BODY: usize = 64 << 10;
/// How long the body of an error may take: its status alone is enough to go on.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(5);
/// The longest idempotency key that is sent.
const KEY_LENGTH: usize = 255;

/// How to reach one model.
#[derive(Clone, Debug)]
pub struct OpenAiConfig {
    /// The base URL, version part included: `http://127.0.0.1:8000/v1`. A query is kept on every request.
    pub base_url: String,
    /// The model's name at the endpoint.
    pub model: String,
    /// The key, sent as a bearer token.
    pub key: Option<Secret>,
    /// Where a key comes from, for the help of a 401: `OPENAI_API_KEY`.
    pub key_variable: String,
    /// What it costs, if the configuration says (E-20).
    pub price: Option<Price>,
    /// Time and size limits of a call.
    pub limits: CallLimits,
    /// Whether `enable_search`, `enable_thinking` and the like are sent (P-26). `None`: yes, except to OpenAI
    /// itself, which refuses fields it does not know.
    pub extras: Option<bool>,
}

impl OpenAiConfig {
    /// A model without key and price, with the default limits.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            key_variable: "OPENAI_API_KEY".to_owned(),
            price: None,
            limits: CallLimits::default(),
            extras: None,
        }
    }
}

/// What an endpoint was found not to take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Dialect {
    no_stream_options: bool,
    no_stream: bool,
    completion_tokens: bool,
}

impl Dialect {
    fn load(bits: &AtomicU8) -> Self {
        let bits = bits.load(Ordering::Relaxed);
        Self { no_stream_options: bits & 1 != 0, no_stream: bits & 2 != 0, completion_tokens: bits & 4 != 0 }
    }

    fn store(self, bits: &AtomicU8) {
        let value = u8::from(self.no_stream_options)
            | u8::from(self.no_stream) << 1
            | u8::from(self.completion_tokens) << 2;
        bits.fetch_or(value, Ordering::Relaxed);
    }

    /// The form to try next, when a refusal names a field of this one.
    fn after(self, status: StatusCode, body: &[u8], max_tokens: bool) -> Option<Self> {
        if !matches!(status.as_u16(), 400 | 422) {
            return None;
        }
        let text = String::from_utf8_lossy(body).to_ascii_lowercase();
        if max_tokens && !self.completion_tokens && text.contains("max_completion_tokens") {
            return Some(Self { completion_tokens: true, ..self });
        }
        if self.no_stream {
            return None;
        }
        if !self.no_stream_options && text.contains("stream_options") {
            return Some(Self { no_stream_options: true, ..self });
        }
        let refused =
            ["not support", "n't support", "unsupported", "unknown", "unrecognized", "not permitted"];
        let streaming =
            text.contains("streaming") || text.contains("\"stream\"") || text.contains("'stream'");
        let no_stream = streaming && refused.iter().any(|word| text.contains(word));
        no_stream.then_some(Self { no_stream: true, ..self })
    }
}

/// One model behind an OpenAI-compatible endpoint.
#[derive(Clone, Debug)]
pub struct OpenAi {
    endpoint: Arc<Endpoint>,
}

#[derive(Debug)]
struct Endpoint {
    place: Place,
    price: Option<Price>,
    limits: CallLimits,
    extras: bool,
    dialect: AtomicU8,
    http: Http,
}

impl OpenAi {
    /// A model; nothing is connected or loaded yet.
    ///
    /// # Errors
    /// A sentence for the user, when the base URL is none.
    pub fn new(config: OpenAiConfig, http: &Http) -> Result<Self, String> {
        let url = join(&config.base_url, "chat/completions")?;
        let own = url.host_str() == Some("api.openai.com");
        let endpoint = Endpoint {
            place: Place { url, model: config.model, key: config.key, key_variable: config.key_variable },
            price: config.price,
            limits: config.limits,
            extras: config.extras.unwrap_or(!own),
            dialect: AtomicU8::new(0),
            http: http.clone(),
        };
        Ok(Self { endpoint: Arc::new(endpoint) })
    }

    /// Whether provider-specific settings are sent; if not, a document that uses them deserves a warning (P-26).
    pub fn sends_extras(&self) -> bool {
        self.endpoint.extras
    }
}

impl Model for OpenAi {
    fn call(&self, request: ModelRequest, context: CallContext) -> Pending<ModelReply> {
        let endpoint = self.endpoint.clone();
        Box::pin(async move {
            let own = request.timeout_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let whole = own.unwrap_or(endpoint.limits.model_timeout);
            let key = if own.is_some() { "the node's timeout" } else { "limits.model_timeout_s" };
            let exchange = endpoint.exchange(&request, &context);
            match timeout(whole, exchange).await {
                Ok(result) => result,
                Err(_) => Err(endpoint.place.late("did not finish its reply", whole, key)),
            }
        })
    }
}

impl Endpoint {
    async fn exchange(&self, request: &ModelRequest, context: &CallContext) -> Result<ModelReply, Failure> {
        let client = self.http.client(&self.place.url).map_err(|error| self.place.hopeless(error))?;
        let mut dialect = Dialect::load(&self.dialect);
        loop {
            let wait = self.limits.first_token_timeout;
            let first = (Instant::now() + wait, wait);
            let response = self.send(&client, request, context, dialect, first).await?;
            let status = response.status();
            if status.is_success() {
                dialect.store(&self.dialect);
                let reading = stream::Reading {
                    place: &self.place,
                    limit: self.limits.message_bytes,
                    first,
                    watch: context.watch.as_ref(),
                };
                return Ok(self.settle(reading.read(response).await?));
            }
            let headers = response.headers().clone();
            let body = error_body(response).await;
            match dialect.after(status, &body, request.settings.max_tokens.is_some()) {
                Some(next) => dialect = next,
                None => return Err(self.place.refused(status, &headers, &body)),
            }
        }
    }

    async fn send(
        &self,
        client: &Client,
        request: &ModelRequest,
        context: &CallContext,
        dialect: Dialect,
        first: (Instant, Duration),
    ) -> Result<Response, Failure> {
        let model = &self.place.model;
        let body = request::Body { model, request, dialect, extras: self.extras };
        let body = serde_json::to_vec(&body)
            .map_err(|error| self.place.hopeless(format!("the request can't be written as JSON: {error}")))?;
        let headers = headers(&self.place, &format!("{}/{}", context.run, request.effect))?;
        let sent = client.post(self.place.url.clone()).headers(headers).body(body).send();
        let response = match timeout_at(first.0, sent).await {
            Err(_) => return Err(self.place.late("sent no token", first.1, "limits.first_token_timeout_s")),
            Ok(response) => response.map_err(reqwest::Error::without_url),
        };
        response.map_err(|error| match error {
            error if error.is_builder() => {
                self.place.hopeless(format!("the request can't be built: {}", crate::http::chain(&error)))
            }
            error if error.is_connect() => self.place.broken("can't be reached", Some(&error)),
            error => self.place.broken("closed the connection", Some(&error)),
        })
    }

    /// The reply with its cost, and without the key should the provider have echoed it (C-06).
    fn settle(&self, mut reply: ModelReply) -> ModelReply {
        if let Some(price) = self.price {
            reply.tokens = price.charge(reply.tokens);
        }
        reply.text = self.place.clean(reply.text);
        for call in &mut reply.calls {
            self.place.clean_value(&mut call.arguments);
        }
        reply
    }
}

fn headers(place: &Place, idempotency: &str) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    if let Some(key) = idempotency_key(idempotency) {
        headers.insert(HeaderName::from_static("idempotency-key"), key);
    }
    if let Some(key) = &place.key {
        let value = HeaderValue::from_str(&format!("Bearer {}", key.expose()));
        let mut value = value.map_err(|_| {
            place.hopeless(format!("the key in {} has characters that can't be sent", place.key_variable))
        })?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

/// The effect id as a header (E-05): everything but visible ASCII percent-encoded. One that is too long is not
/// sent, since a cut one could be another call's.
fn idempotency_key(text: &str) -> Option<HeaderValue> {
    let mut key = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' => key.push_str("%25"),
            b'!'..=b'~' => key.push(char::from(byte)),
            _ => key.push_str(&format!("%{byte:02X}")),
        }
    }
    if key.len() > KEY_LENGTH {
        return None;
    }
    HeaderValue::from_str(&key).ok()
}

async fn error_body(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() >= ERROR_BODY {
                break;
            }
        }
    };
    // What came in time is what there is to show.
    let _ = timeout(ERROR_BODY_WAIT, read).await;
    body
}

/// `path` below a base URL, whose own query stays at the end.
fn join(base: &str, path: &str) -> Result<Url, String> {
    let example = "an address such as http://127.0.0.1:8000/v1 is needed";
    let mut url =
        Url::parse(base.trim()).map_err(|error| format!("base_url is not a URL ({error}): {example}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("base_url {} is not an HTTP address: {example}", shown(&url)));
    }
    url.set_fragment(None);
    let below = format!("{}/{path}", url.path().trim_end_matches('/'));
    url.set_path(&below);
    Ok(url)
}

/// The names of an endpoint's models, in its order: `GET base_url/models` (C-01).
///
/// # Errors
/// The faults of [`OpenAi`]'s calls; a permanent `provider_error` when the list is empty.
pub async fn list_models(
    http: &Http,
    base_url: &str,
    key: Option<Secret>,
    key_variable: &str,
    wait: Duration,
) -> Result<Vec<String>, Failure> {
    #[derive(Deserialize)]
    struct Models {
        data: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        id: String,
    }
    let url = join(base_url, "models")
        .map_err(|error| Failure::permanent(selvedge_engine::FaultKind::ProviderError, error))?;
    let place = Place { url, model: String::new(), key, key_variable: key_variable.to_owned() };
    let client = http.client(&place.url).map_err(|error| place.hopeless(error))?;
    let mut headers = headers(&place, "models")?;
    headers.remove("idempotency-key");
    let ask = async {
        let sent = client.get(place.url.clone()).headers(headers).send().await;
        let response = sent.map_err(|error| place.broken("can't be reached", Some(&error.without_url())))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = list_body(response, &place).await?;
        if !status.is_success() {
            return Err(place.refused(status, &headers, &body));
        }
        serde_json::from_slice::<Models>(&body).map_err(|error| {
            if let Some(error) =
                serde_json::from_slice::<Value>(&body).ok().as_ref().and_then(|v| v.get("error"))
            {
                return place.in_reply(error, &headers);
            }
            place.unparsable(status, &error.to_string(), &String::from_utf8_lossy(&body))
        })
    };
    let models =
        timeout(wait, ask).await.map_err(|_| place.late("sent no list of models", wait, "fixed"))??;
    if models.data.is_empty() {
        return Err(place
            .hopeless(format!("{} lists no model: load one, or name one with --model", shown(&place.url))));
    }
    Ok(models.data.into_iter().map(|entry| entry.id).collect())
}

/// A list of models; the longest known one has some hundred kilobytes.
async fn list_body(mut response: Response, place: &Place) -> Result<Vec<u8>, Failure> {
    let limit = CallLimits::default().message_bytes;
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(error) => return Err(place.broken("broke off its answer", Some(&error.without_url()))),
        }
        if body.len() > limit {
            return Err(place.too_long(limit));
        }
    }
}

#[cfg(test)]
mod tests;
