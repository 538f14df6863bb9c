//! One model behind an HTTP endpoint, whatever protocol it speaks.
//!
//! A request always asks for a stream; a server that answers with one JSON body is understood as well. The client
//! is our own (`docs/decisions/0003-model-client.md`): the messages go out exactly as they are (E-23), and every
//! failure keeps its status and Retry-After (E-14). Nothing is retried here. The one thing that is asked twice is
//! a request whose *form* the server refuses: the endpoint's form is remembered, so that this happens once per
//! process.

mod list;
mod mend;
mod names;
mod stream;

pub use list::list_models;

use super::limiter::{Answer, Limiter, Permit, Wait};
use super::protocol::{Protocol, WireQuirks, count_in};
use super::provider::ProviderConfig;
use super::target::{Target, secrets};
use super::terms::{CallLimits, Price};
use names::Names;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use reqwest::{Client, Response, Url};
use selvedge_engine::{Failure, ModelReply, ModelRequest, ModelSettings, Tokens, Unread};
use selvedge_http::{Http, shown};
use selvedge_runtime::ports::{CallContext, Delta, Model, Pending};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// Bytes that are read of a body that is an error.
const ERROR_BODY: usize = 64 << 10;
/// How long the body of an error may take: its status alone is enough to go on.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(5);
/// The longest idempotency key that is sent.
const KEY_LENGTH: usize = 255;
/// The content coding of bodies that are as they are.
const PLAIN: &str = "identity";
/// How many forms of a request are tried, whatever a protocol says.
const FORMS: usize = 8;
/// Bytes of a token of most texts, roughly.
const TOKEN: u64 = 4;

/// One model behind an endpoint. Clones share what was learnt about it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    base: Url,
    protocol: Box<dyn Protocol>,
    /// The form of a call, as far as it was learnt, and where calls of that form go.
    known: Mutex<(WireQuirks, Arc<Target>)>,
    price: Option<Price>,
    limits: CallLimits,
    /// Settings of calls that say nothing else.
    settings: ModelSettings,
    http: Http,
    /// Who may call this endpoint when.
    limiter: Arc<Limiter>,
    /// The model's name there.
    model: Arc<str>,
}

impl Endpoint {
    /// A model; nothing is connected or loaded yet.
    ///
    /// # Errors
    /// A sentence for the user, when the base URL is none.
    pub fn new(config: ProviderConfig, http: &Http) -> Result<Self, String> {
        let base = base_url(config.base_url.as_deref().unwrap_or(config.provider.default_base_url()))?;
        let protocol = config.provider.protocol(&base, config.extras);
        let quirks = WireQuirks::default();
        let target = Target {
            url: protocol.url(&base, &config.model, quirks),
            base: base.clone(),
            model: config.model,
            secrets: secrets(config.key.as_ref(), &base),
            key: config.key,
            key_variable: config.key_variable,
            longest_wait: config.limits.rate_limit_wait,
        };
        let model = Arc::from(target.model.as_str());
        let limiter = Limiter::of(base.as_str(), target.key.as_ref(), &model, config.pace);
        let (price, limits, http) = (config.price, config.limits, http.clone());
        let known = Mutex::new((quirks, Arc::new(target)));
        let settings = config.settings;
        let inner = Inner { base, protocol, known, price, limits, settings, http, limiter, model };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Those of `settings` that are not sent, since the provider has no word for them, by their names in documents:
    /// a document that uses them deserves a warning (P-26).
    pub fn unsent(&self, settings: &ModelSettings) -> Vec<String> {
        self.inner.protocol.unsent(&settings.clone().over(&self.inner.settings))
    }
}

impl Model for Endpoint {
    fn call(&self, request: ModelRequest, context: CallContext) -> Pending<ModelReply> {
        let inner = self.inner.clone();
        Box::pin(async move {
            let settings = request.settings.clone().over(&inner.settings);
            let request = ModelRequest { settings, ..request };
            let turn = inner.turn(&request, &context).await;
            let own = request.timeout_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let whole = own.unwrap_or(inner.limits.model_timeout);
            let key = if own.is_some() { "the node's timeout" } else { "limits.model_timeout_s" };
            // What a reply takes that comes to nothing is paid for, too (E-20).
            let spent = Mutex::default();
            let exchange = inner.exchange(&request, &context, Instant::now() + whole, &spent);
            let result = match timeout(whole, exchange).await {
                Ok(result) => result,
                Err(_) => Err(inner.known().1.late("did not finish its reply", whole, key)),
            };
            if let Some(turn) = turn {
                turn.end(answer(&result));
            }
            let (tokens, unread) = spent.into_inner().unwrap_or_else(PoisonError::into_inner);
            result.map_err(|failure| Failure { tokens: inner.charged(tokens), unread, ..failure })
        })
    }
}

impl Inner {
    /// Waits until it is the call's turn, and says so to who watches (E-51). This is no part of the time that a call may take.
    async fn turn(&self, request: &ModelRequest, context: &CallContext) -> Option<Permit> {
        let bytes: usize = request.messages.iter().map(|message| message.content.len()).sum();
        let tokens = (bytes as u64 / TOKEN).saturating_add(request.settings.max_tokens.unwrap_or(0));
        let asked = Instant::now();
        let told = |wait: Wait| {
            context.turn.waits();
            let Some(watch) = &context.watch else { return };
            let before = match wait.before {
                0 => String::new(),
                1 => "; 1 call is before it".to_owned(),
                before => format!("; {before} calls are before it"),
            };
            let pause =
                wait.pause.map(|pause| format!("; the server asked to wait {:.1} s", pause.as_secs_f64()));
            let place = shown(&self.base);
            watch(Delta::Progress(format!(
                "waits for its turn at {place}{before}{}",
                pause.unwrap_or_default()
            )));
        };
        let permit = self.limiter.turn(&self.model, tokens, told).await;
        if context.turn.begins()
            && let Some(watch) = &context.watch
        {
            watch(Delta::Progress(format!("is sent after {:.1} s", asked.elapsed().as_secs_f64())));
        }
        permit
    }

    async fn exchange(
        &self,
        request: &ModelRequest,
        context: &CallContext,
        deadline: Instant,
        spent: &Mutex<(Tokens, Unread)>,
    ) -> Result<ModelReply, Failure> {
        let (mut quirks, mut target) = self.known();
        let client = self.http.client(&self.base).map_err(|error| target.hopeless(error))?;
        let mut tried = 1;
        loop {
            let names = Names::of(request, self.protocol.names(quirks));
            let sent = names.sent(request);
            let request = &*sent;
            let wait = self.limits.first_token_timeout;
            let first = (Instant::now() + wait, wait);
            let response = self.send(&client, &target, request, context, quirks, first).await?;
            let status = response.status();
            if status.is_success() {
                self.remember(quirks, &target);
                let reading = stream::Reading {
                    target: &target,
                    limit: self.limits.message_bytes,
                    first,
                    deadline,
                    watch: context.watch.as_ref(),
                    spent,
                };
                let empty = self.protocol.assembler(request, self.limits.message_bytes);
                let (reply, learnt) = reading.read(response, empty).await?;
                self.remember(quirks.merge(learnt), &target);
                return Ok(self.settle(names.received(reply), &target));
            }
            let headers = response.headers().clone();
            let body = error_body(response).await;
            // Nobody can read it, and it would say nothing.
            let body = if compressed(&headers).is_some() { Vec::new() } else { body };
            let next = self.protocol.after(quirks, status, &body, request);
            match next.filter(|next| *next != quirks && tried < FORMS) {
                Some(next) => (quirks, target) = (next, self.target_of(next, &target)),
                None => {
                    let mut reply = self.protocol.assembler(request, self.limits.message_bytes);
                    count_in(&body, &mut *reply);
                    *spent.lock().unwrap_or_else(PoisonError::into_inner) = (reply.tokens(), reply.unread());
                    return Err(target.refused(status, &headers, &body));
                }
            }
            tried += 1;
        }
    }

    fn known(&self) -> (WireQuirks, Arc<Target>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where calls of a form go.
    fn target_of(&self, quirks: WireQuirks, target: &Target) -> Arc<Target> {
        Arc::new(target.at(self.protocol.url(&self.base, &target.model, quirks)))
    }

    fn remember(&self, quirks: WireQuirks, target: &Target) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let merged = known.0.merge(quirks);
        if merged != known.0 {
            *known = (merged, self.target_of(merged, target));
        }
    }

    async fn send(
        &self,
        client: &Client,
        target: &Target,
        request: &ModelRequest,
        context: &CallContext,
        quirks: WireQuirks,
        first: (Instant, Duration),
    ) -> Result<Response, Failure> {
        let body = self.protocol.body(&target.model, request, quirks);
        let body = body.and_then(|body| with_fields(body, &request.settings.body));
        let body =
            body.map_err(|error| target.hopeless(format!("the request can't be written as JSON: {error}")))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(PLAIN));
        if let Some(key) = idempotency_key(&format!("{}/{}", context.run, request.effect)) {
            headers.insert(HeaderName::from_static("idempotency-key"), key);
        }
        self.protocol.sign(&mut headers, target)?;
        let sent = client.post(target.url.clone()).headers(headers).body(body).send();
        let response = match timeout_at(first.0, sent).await {
            Err(_) => return Err(target.late("sent no token", first.1, "limits.first_token_timeout_s")),
            Ok(response) => response.map_err(reqwest::Error::without_url),
        };
        response.map_err(|error| match error {
            error if error.is_builder() => {
                target.hopeless(format!("the request can't be built: {}", selvedge_http::chain(&error)))
            }
            error if error.is_connect() => target.unreached(&error),
            error => target.broken("closed the connection", Some(&error)),
        })
    }

    /// Figures with what they cost.
    fn charged(&self, tokens: Tokens) -> Tokens {
        self.price.map_or(tokens, |price| price.charge(tokens))
    }

    /// The reply with its cost, and without the key should the provider have echoed it (C-06).
    fn settle(&self, mut reply: ModelReply, target: &Target) -> ModelReply {
        reply.tokens = self.charged(reply.tokens);
        reply.text = target.clean(reply.text);
        reply.stop = reply.stop.map(|stop| target.clean(stop));
        for call in &mut reply.calls {
            for text in [&mut call.id, &mut call.name] {
                target.clean_shared(text);
            }
            target.clean_value(&mut call.arguments);
        }
        reply
    }
}

/// What the limiter learns from the end of a call.
fn answer(result: &Result<ModelReply, Failure>) -> Answer {
    let failure = match result {
        Ok(reply) => return Answer::Taken(reply.tokens.input.saturating_add(reply.tokens.output)),
        Err(failure) => failure,
    };
    let status = failure.fault.cause.as_ref().and_then(|cause| cause.get("status")?.as_u64());
    let pause = failure.retry_after_ms.map(Duration::from_millis);
    match (failure.transient, status) {
        (true, Some(429)) => Answer::Refused(pause),
        (true, Some(503)) if pause.is_some() => Answer::Refused(pause),
        _ => Answer::Other,
    }
}

/// A body with the document's own fields (P-28): an object is merged with one that is there under its name, anything else
/// takes the place of what is there.
fn with_fields(body: Vec<u8>, fields: &Map<String, Value>) -> Result<Vec<u8>, serde_json::Error> {
    fn merge(into: &mut Map<String, Value>, fields: &Map<String, Value>) {
        for (name, value) in fields {
            match (into.get_mut(name), value) {
                (Some(Value::Object(known)), Value::Object(fields)) => merge(known, fields),
                _ => {
                    into.insert(name.clone(), value.clone());
                }
            }
        }
    }
    if fields.is_empty() {
        return Ok(body);
    }
    let mut whole: Map<String, Value> = serde_json::from_slice(&body)?;
    merge(&mut whole, fields);
    serde_json::to_vec(&whole)
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

/// The content coding of a body that is not plain.
fn compressed(headers: &HeaderMap) -> Option<String> {
    let coding = headers.get(CONTENT_ENCODING)?.to_str().ok()?.trim();
    (!coding.is_empty() && !coding.eq_ignore_ascii_case(PLAIN)).then(|| super::text::bounded(coding, 20))
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

/// A base URL from a configuration.
fn base_url(text: &str) -> Result<Url, String> {
    let example = "an address such as http://127.0.0.1:8000/v1 is needed";
    let mut url =
        Url::parse(text.trim()).map_err(|error| format!("base_url is not a URL ({error}): {example}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("base_url {} is not an HTTP address: {example}", shown(&url)));
    }
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests;
