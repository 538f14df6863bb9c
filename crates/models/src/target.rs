//! What can go wrong at an endpoint, as E-14's faults.

mod words;

use crate::protocol::Refusal;
use crate::text::bounded;
use reqwest::header::{DATE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{StatusCode, Url};
use selvedge_engine::{Failure, Fault, FaultKind};
use selvedge_http::{Secret, Secrets, Trouble, chain, is_transient, shown, url_passwords};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use words::{page, plain, sentence, told};

/// Bytes of a provider's body that a fault's cause keeps.
const BODY_KEPT: usize = 4096;

/// Where a call went, for the words of its faults.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The endpoint.
    pub(crate) url: Url,
    /// The configured address that it is below.
    pub(crate) base: Url,
    /// The model's name there.
    pub(crate) model: String,
    /// The key that is sent.
    pub(crate) key: Option<Secret>,
    /// The environment variables that a key may come from.
    pub(crate) key_variable: String,
    /// The key, and passwords of the address: what is shown of them nowhere (C-06).
    pub(crate) secrets: Secrets,
    /// The longest Retry-After that is waited for (E-14).
    pub(crate) longest_wait: Duration,
}

/// What is secret of a key and an address (C-06).
pub(crate) fn secrets(key: Option<&Secret>, base: &Url) -> Secrets {
    let passwords: Vec<Secret> = url_passwords(base.as_str()).iter().map(|word| Secret::new(word)).collect();
    Secrets::new(key.into_iter().chain(&passwords))
}

impl Target {
    /// The same model and key at another address.
    pub(crate) fn at(&self, url: Url) -> Self {
        Self { url, ..self.clone() }
    }

    /// The key as the value of a header, after `prefix`; `None` without a key.
    ///
    /// # Errors
    /// A permanent fault when the key has characters that no header can have.
    pub(crate) fn secret(&self, prefix: &str) -> Result<Option<HeaderValue>, Failure> {
        let Some(key) = &self.key else { return Ok(None) };
        let value = HeaderValue::from_str(&format!("{prefix}{}", key.expose()));
        let mut value = value.map_err(|_| {
            self.hopeless(format!("the key in {} has characters that can't be sent", self.key_variable))
        })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    fn redact(&self, text: &str) -> String {
        self.secrets.redact(text).into_owned()
    }

    /// `text` without the key, and without a copy when the key does not occur (C-06).
    pub(crate) fn clean(&self, text: String) -> String {
        match self.secrets.redact(&text) {
            Cow::Owned(clean) => clean,
            Cow::Borrowed(_) => text,
        }
    }

    /// The same for a name that is shared.
    pub(crate) fn clean_shared(&self, text: &mut Arc<str>) {
        if let Cow::Owned(clean) = self.secrets.redact(text) {
            *text = clean.into();
        }
    }

    /// The same for the strings of a value, names of fields among them.
    pub(crate) fn clean_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.clean(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_value(item)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| self.clean_value(field));
                if fields.keys().any(|name| matches!(self.secrets.redact(name), Cow::Owned(_))) {
                    let all = std::mem::take(fields);
                    *fields = all.into_iter().map(|(name, field)| (self.clean(name), field)).collect();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn cause(&self, status: Option<u16>, body: Option<&str>) -> Value {
        let mut cause = json!({"status": status, "url": shown(&self.url), "model": self.model});
        if let (Some(body), Some(map)) = (body, cause.as_object_mut()) {
            // Redacted before it is cut: a cut through the key would leave half of it.
            map.insert("body".to_owned(), Value::String(bounded(&self.redact(body), BODY_KEPT)));
        }
        cause
    }

    /// An answer whose status is not 2xx.
    pub(crate) fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
        let text = String::from_utf8_lossy(body);
        let parsed: Option<Value> = serde_json::from_slice(body).ok().map(first);
        let error = parsed.as_ref().map(|body| body.get("error").unwrap_or(body));
        let words = parsed.as_ref().and_then(words_of).unwrap_or_else(|| told(&text));
        // Google answers a wrong key with 400.
        let meaning = error.filter(|error| is_wrong_key(error)).map(|_| 401);
        let title = status.canonical_reason().map(|title| format!(" {title}")).unwrap_or_default();
        let head = format!("{} answered {}{title}", shown(&self.url), status.as_u16());
        let moved = headers.get(LOCATION).and_then(|to| to.to_str().ok()).filter(|_| status.is_redirection());
        let help = match moved {
            Some(to) => self.moved(to),
            None if matches!(status.as_u16(), 401 | 403) && page(&text).is_some() => format!(
                "the answer is a web page, which a proxy or gateway on the way may have sent instead of the provider; \
                 check base_url and the network, and the key in {}",
                self.key_variable
            ),
            None => self.help(meaning.unwrap_or(status.as_u16())),
        };
        let wait = retry_after(headers, SystemTime::now()).or_else(|| error.and_then(wait_in));
        let mut failure = self.failure(status.as_u16(), &head, &words, &help, wait, &text);
        if let (Some(meaning), Some(Value::Object(cause))) = (meaning, &mut failure.fault.cause) {
            cause.insert("means".to_owned(), meaning.into());
        }
        failure
    }

    /// What to do about a redirect: the configured address is that of the provider, not of one kind of request.
    fn moved(&self, to: &str) -> String {
        let target = self.url.join(to).ok();
        let below = self.url.path().strip_prefix(self.base.path().trim_end_matches('/'));
        let base = target.as_ref().zip(below).and_then(|(target, below)| {
            let mut base = target.clone();
            base.set_path(target.path().strip_suffix(below)?);
            base.set_query(self.base.query());
            Some(base)
        });
        let to = target.map_or_else(|| to.to_owned(), |target| shown(&target));
        match base {
            Some(base) => {
                format!("it redirects to {to}: put {} into base_url", shown(&base).trim_end_matches('/'))
            }
            None => format!("it redirects to {to}: put the final address into base_url"),
        }
    }

    /// A reply that was refused before a word of it came: asked again it is refused again.
    pub(crate) fn withheld(&self, refusal: &Refusal) -> Failure {
        let Refusal { what, field, reason, detail } = refusal;
        let message = sentence(&format!("{what} ({field} `{reason}`)"), &plain(detail), "");
        let mut failure = Failure { unsent: false, ..self.hopeless(message) };
        let key = if *field == "stop reason" { "stop" } else { field };
        if let Some(Value::Object(cause)) = &mut failure.fault.cause {
            cause.insert(key.to_owned(), self.redact(reason).into());
        }
        failure
    }

    /// An error object inside a reply that began with 200 (E-14). Without a recognisable status it counts as a
    /// connection fault.
    pub(crate) fn in_reply(&self, error: &Value, headers: &HeaderMap) -> Failure {
        let text = error.to_string();
        let words = words_of(error).unwrap_or_else(|| told(&text));
        let wait = wait_in(error).or_else(|| retry_after(headers, SystemTime::now()));
        match status_in(error) {
            Some(status) => {
                let head = format!("{} broke off its reply with error {status}", shown(&self.url));
                self.failure(status, &head, &words, &self.help(status), wait, &text)
            }
            None => {
                let head = format!("{} broke off its reply with an error", shown(&self.url));
                let message = self.redact(&sentence(&head, &words, ""));
                let mut failure = Failure::transient(FaultKind::ProviderError, message);
                failure.fault.cause = Some(self.cause(None, Some(&text)));
                self.hold(&mut failure, wait);
                failure
            }
        }
    }

    fn failure(
        &self,
        status: u16,
        head: &str,
        words: &str,
        help: &str,
        wait: Option<Duration>,
        body: &str,
    ) -> Failure {
        let message = self.redact(&sentence(head, words, help));
        let fault =
            Fault::new(FaultKind::ProviderError, message).because(self.cause(Some(status), Some(body)));
        let used_up = serde_json::from_str(body).ok().is_some_and(|body| is_used_up(&first(body)));
        let transient = is_transient(status) && !used_up;
        let mut failure = Failure { transient, ..Failure::of(fault) };
        self.hold(&mut failure, wait);
        failure
    }

    /// Puts a wait into a failure; one that is too long ends the attempts (E-14).
    fn hold(&self, failure: &mut Failure, wait: Option<Duration>) {
        let Some(wait) = wait.filter(|_| failure.transient) else { return };
        failure.retry_after_ms = Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        if wait > self.longest_wait {
            failure.transient = false;
            let asked = match wait {
                Duration::MAX => "longer than can be counted".to_owned(),
                wait => format!("{} s", wait.as_secs()),
            };
            failure.fault.message.push_str(&format!(
                "; it asks to wait {asked}, which is over the {} s that a run waits (setting: \
                 limits.rate_limit_wait_s)",
                self.longest_wait.as_secs_f64()
            ));
        }
    }

    fn help(&self, status: u16) -> String {
        match (status, &self.key) {
            (401 | 403, Some(_)) => format!("check the key in {}", self.key_variable),
            (401 | 403, None) => format!("no key was sent: set {}", self.key_variable),
            (407, _) => {
                "the proxy wants a user and a password, or other ones: write them into HTTP_PROXY (or \
                         ALL_PROXY), as http://USER:PASSWORD@HOST:PORT"
                    .to_owned()
            }
            (404, _) if self.model.is_empty() => "check base_url (the version part belongs to it)".to_owned(),
            (404, _) => {
                format!(
                    "check base_url (the version part belongs to it) and the model's name, {}",
                    self.model
                )
            }
            _ => String::new(),
        }
    }

    /// No connection: what stands in the way, and whether it may go away (E-14).
    pub(crate) fn unreached(&self, error: &(dyn std::error::Error + 'static)) -> Failure {
        let Trouble { words, help, lasting } = Trouble::of(error, &self.url);
        let message =
            self.redact(&sentence(&format!("{} can't be reached", shown(&self.url)), &words, &help));
        let mut failure = Failure::transient(FaultKind::ProviderError, message).unsent();
        failure.transient = !lasting;
        failure.fault.cause = Some(self.cause(None, None));
        failure
    }

    /// A connection that broke before the reply was whole, or that was no use.
    pub(crate) fn broken(&self, what: &str, error: Option<&(dyn std::error::Error + 'static)>) -> Failure {
        let detail = error.map(chain).unwrap_or_default();
        let message = self.redact(&sentence(&format!("{} {what}", shown(&self.url)), &detail, ""));
        let mut failure = Failure::transient(FaultKind::ProviderError, message);
        failure.fault.cause = Some(self.cause(None, None));
        failure
    }

    /// A reply that is not what it should be: counts as a connection fault (E-14).
    pub(crate) fn unparsable(&self, status: StatusCode, why: &str, body: &str) -> Failure {
        let head = format!("{} sent a reply that can't be parsed ({why})", shown(&self.url));
        let message = self.redact(&sentence(&head, &told(body), ""));
        let mut failure = Failure::transient(FaultKind::ProviderError, message);
        failure.fault.cause = Some(self.cause(Some(status.as_u16()), Some(body)));
        failure
    }

    /// A time limit; `key` is its setting.
    pub(crate) fn late(&self, what: &str, after: Duration, key: &str) -> Failure {
        let message =
            format!("{} {what} within {} s (setting: {key})", shown(&self.url), after.as_secs_f64());
        let mut failure = Failure::transient(FaultKind::Timeout, message);
        let mut cause = self.cause(None, None);
        if let Some(map) = cause.as_object_mut() {
            map.insert("limit".to_owned(), key.into());
        }
        failure.fault.cause = Some(cause);
        failure
    }

    /// A reply over `message_bytes` (E-12).
    pub(crate) fn too_long(&self, limit: usize) -> Failure {
        let message = format!(
            "the reply of {} is longer than {limit} bytes (setting: limits.message_bytes)",
            shown(&self.url)
        );
        let mut failure = Failure::permanent(FaultKind::LimitExceeded, message);
        failure.fault.cause = Some(json!({"limit": "limits.message_bytes", "url": shown(&self.url)}));
        failure
    }

    /// A request that can't be sent, which no second attempt mends.
    pub(crate) fn hopeless(&self, message: String) -> Failure {
        let mut failure = Failure::permanent(FaultKind::ProviderError, self.redact(&message)).unsent();
        failure.fault.cause = Some(self.cause(None, None));
        failure
    }
}

/// The error of a body that is a list of one, as Google sends it where a stream was asked for.
fn first(body: Value) -> Value {
    match body {
        Value::Array(mut items) if !items.is_empty() => items.swap_remove(0),
        other => other,
    }
}

/// The entries of Google's `error.details`.
fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error.get("details").and_then(Value::as_array).into_iter().flatten()
}

/// Whether an error says that what was paid for is used up, which no wait of a run mends (E-14). `quota` alone may be
/// that of a minute.
fn is_used_up(body: &Value) -> bool {
    const WORDS: [&str; 7] = [
        "insufficient_quota",
        "insufficient_balance",
        "insufficient_credits",
        "billing_hard_limit_reached",
        "billing_not_active",
        "exceeded_current_quota_error",
        "credit_balance_too_low",
    ];
    let error = body.get("error").unwrap_or(body);
    let names = ["code", "type"].iter().filter_map(|field| error.get(field)?.as_str());
    let named = names.map(str::to_ascii_lowercase).any(|name| WORDS.contains(&name.as_str()));
    // Google's quotas of a day.
    let mut violations = details(error)
        .filter_map(|detail| detail.get("violations")?.as_array())
        .flatten()
        .filter_map(|violation| violation.get("quotaId").or_else(|| violation.get("quota_id"))?.as_str());
    named || violations.any(|quota| quota.contains("PerDay"))
}

fn is_wrong_key(error: &Value) -> bool {
    details(error).any(|detail| detail.get("reason").and_then(Value::as_str) == Some("API_KEY_INVALID"))
}

/// The provider's sentence: `{"error": {"message"}}`, `{"error": "…"}`, `{"message"}` or `{"detail"}`.
fn words_of(body: &Value) -> Option<String> {
    let inner = body.get("error").unwrap_or(body);
    let found = [inner.get("message"), inner.get("detail"), body.get("detail"), Some(inner)];
    found.into_iter().flatten().find_map(Value::as_str).map(plain).filter(|words| !words.is_empty())
}

/// The HTTP status that an error object stands for: its number, or the meaning of its words.
fn status_in(error: &Value) -> Option<u16> {
    let number = |value: &Value| {
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
        u16::try_from(number).ok().filter(|status| (400..600).contains(status))
    };
    let fields = ["status", "status_code", "code"];
    if let Some(status) = fields.iter().filter_map(|field| error.get(field)).find_map(number) {
        return Some(status);
    }
    let names = ["code", "type", "status"].iter().filter_map(|field| error.get(field)?.as_str());
    names.map(str::to_ascii_lowercase).find_map(|name| {
        let table: [(&[&str], u16); 12] = [
            (&["overloaded_error"], 529),
            (&["billing"], 402),
            (&["too_large"], 413),
            (&["conflict"], 409),
            (&["rate_limit", "ratelimit", "too_many", "quota", "resource_exhausted"], 429),
            (&["overloaded", "unavailable"], 503),
            (&["server_error", "internal", "api_error"], 500),
            (&["timeout"], 408),
            (&["authentication", "invalid_api_key", "unauthorized", "unauthenticated"], 401),
            (&["permission", "forbidden"], 403),
            (&["not_found", "notfound"], 404),
            (
                &[
                    "invalid",
                    "bad_request",
                    "badrequest",
                    "context_length",
                    "exceed_context",
                    "content_filter",
                ],
                400,
            ),
        ];
        table
            .iter()
            .find(|(words, _)| words.iter().any(|word| name.contains(word)))
            .map(|(_, status)| *status)
    })
}

/// A wait inside an error object: where the HTTP status is already spent, some providers put it there.
fn wait_in(error: &Value) -> Option<Duration> {
    let seconds = |value: &Value| match value {
        Value::String(text) => wait_of(text, SystemTime::now()),
        value => value.as_f64().and_then(lasting),
    };
    let millis = |value: &Value| lasting(value.as_f64()? / 1000.0);
    // Google's `RetryInfo`, as `17s` or `1.5s`.
    let delay =
        |detail: &Value| wait_of(detail.get("retryDelay")?.as_str()?.strip_suffix('s')?, SystemTime::now());
    if let Some(wait) = details(error).find_map(delay) {
        return Some(wait);
    }
    let metadata = error.get("metadata");
    let places =
        [Some(error), metadata, metadata.and_then(|inner| inner.get("headers")), error.get("headers")];
    places.into_iter().flatten().filter_map(Value::as_object).find_map(|map| {
        map.iter().find_map(|(name, value)| match name.to_ascii_lowercase().replace('-', "_").as_str() {
            "retry_after" | "retry_after_seconds" => seconds(value),
            "retry_after_ms" => millis(value),
            _ => None,
        })
    })
}

/// The wait that headers ask for: `Retry-After` in seconds or as a date, or `retry-after-ms`.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.trim().parse::<f64>().ok()) {
        return lasting(millis / 1000.0);
    }
    // A date is one of the server's clock, and so is `Date`: this machine's may have been set.
    let theirs = text(DATE.as_str()).and_then(|date| httpdate::parse_http_date(date.trim()).ok());
    wait_of(text(RETRY_AFTER.as_str())?, theirs.unwrap_or(now))
}

/// So many seconds. More than a duration holds are still a wait, and one that is too long; less than none are no wait.
fn lasting(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().or((seconds > 0.0).then_some(Duration::MAX))
}

/// Seconds, or an HTTP date; a date in the past is no wait.
fn wait_of(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(seconds) => lasting(seconds),
        Err(_) => Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()),
    }
}
