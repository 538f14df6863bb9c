//! What sets one provider's HTTP protocol apart from the others': addresses, headers, bodies, the pieces of a reply.
//!
//! [`super::endpoint`] does everything else: it sends, watches limits, reads event streams and bodies, and makes
//! faults. A protocol does no I/O.

use super::stop::cut_by;
use super::target::Target;
use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};
use selvedge_engine::json::{self, Unique};
use selvedge_engine::{Cut, Failure, ModelReply, ModelRequest, ModelSettings, Tokens, ToolCall, Unread};
use selvedge_http::surrogates;
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt;

/// How a request is written, as far as an endpoint was found to differ: kept per endpoint, so that a refusal
/// happens once per process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WireQuirks {
    /// Bits whose meaning is the protocol's own: what the endpoint does not take.
    bits: u16,
    /// The most tokens of reply that the endpoint lets a request ask for.
    pub(crate) max_tokens: Option<u64>,
}

impl WireQuirks {
    /// Whether `bit` is set.
    pub(crate) fn has(self, bit: u16) -> bool {
        self.bits & bit != 0
    }

    /// This form with `bit` set.
    pub(crate) fn with(self, bit: u16) -> Self {
        Self { bits: self.bits | bit, ..self }
    }

    /// This form with at most `most` tokens of reply.
    pub(crate) fn capped(self, most: u64) -> Self {
        Self { max_tokens: Some(most), ..self }
    }

    /// What both of two forms say: calls that run at once may each find something out.
    pub(crate) fn merge(self, other: Self) -> Self {
        let both = [self.max_tokens, other.max_tokens];
        Self { bits: self.bits | other.bits, max_tokens: both.into_iter().flatten().min() }
    }
}

/// One page of a list of models.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ModelPage {
    /// The names, as requests want them.
    pub(crate) names: Vec<String>,
    /// What asks for the next page, if there is one.
    pub(crate) next: Option<String>,
}

/// One provider's protocol.
pub(crate) trait Protocol: Send + Sync + fmt::Debug {
    /// The address of a call; [`below`] keeps the query of `base`.
    fn url(&self, base: &Url, model: &str, quirks: WireQuirks) -> Url;

    /// Adds the key ([`Target::secret`]) and whatever else the provider wants to see in the headers.
    fn sign(&self, headers: &mut HeaderMap, target: &Target) -> Result<(), Failure>;

    /// The JSON body of a call (E-23).
    fn body(
        &self,
        model: &str,
        request: &ModelRequest,
        quirks: WireQuirks,
    ) -> Result<Vec<u8>, serde_json::Error>;

    /// The form to try next when a refusal names a part of this one; `None` makes the refusal the call's fault.
    /// Asked for every status that is not 2xx. The answer must differ from `form`, and never lead back to it.
    fn after(
        &self,
        quirks: WireQuirks,
        status: StatusCode,
        body: &[u8],
        request: &ModelRequest,
    ) -> Option<WireQuirks>;

    /// An empty reply to `request` that may hold `limit` bytes of text and arguments.
    fn assembler(&self, request: &ModelRequest, limit: usize) -> Box<dyn Assembler>;

    /// The address of the list of models: its first page, or the one that [`ModelPage::next`] names.
    fn models_url(&self, base: &Url, page: Option<&str>) -> Url;

    /// Reads a page of that list.
    fn models(&self, body: &[u8]) -> Result<ModelPage, serde_json::Error>;

    /// The settings, by their names in documents, that the protocol has no word for: they are not sent (P-26).
    fn unsent(&self, settings: &ModelSettings) -> Vec<String>;

    /// What names of tools the endpoint takes; `None`: any (E-23).
    fn names(&self, _quirks: WireQuirks) -> Option<NameRule> {
        Some(NameRule::Plain)
    }
}

/// Which names of tools an endpoint takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// `^[a-zA-Z0-9_-]{1,64}$`.
    Plain,
    /// The same, and no digit or hyphen at the beginning.
    Word,
}

impl NameRule {
    /// Whether `name` may go out as it is.
    pub(crate) fn fits(self, name: &str) -> bool {
        let begins = |byte: u8| self == Self::Plain || byte.is_ascii_alphabetic() || byte == b'_';
        is_plain(name) && name.bytes().next().is_some_and(begins)
    }
}

/// The settings of [`ModelSettings::extra`], by name.
pub(crate) fn extras(settings: &ModelSettings) -> Vec<String> {
    settings.extra.keys().cloned().collect()
}

/// How far a reply has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// More must follow; a stream that ends here is broken.
    Open,
    /// The provider said why it stopped; only usage can follow.
    Stopped,
    /// Nothing follows.
    Ended,
}

impl Phase {
    /// Of a reply that has ended, or said why it stopped.
    pub(crate) fn of(ended: bool, stopped: bool) -> Self {
        match (ended, stopped) {
            (true, _) => Self::Ended,
            (false, true) => Self::Stopped,
            (false, false) => Self::Open,
        }
    }
}

/// Why a piece of a reply can't be used.
#[derive(Debug, PartialEq)]
pub(crate) enum ReplyError {
    /// Not the JSON it should be; why.
    Unparsable(String),
    /// Text and arguments passed `message_bytes`.
    TooLong,
    /// The provider says that it failed, inside a reply that began well (E-14): its error object, in which
    /// `endpoint/fault.rs` looks for a status, a wait and words.
    Provider(Value),
    /// It was refused or held back before a word of it came. The same request is refused again: a fault that names
    /// the reason, where an empty reply would be asked for twice more (E-27).
    Refused(Refusal),
}

/// Why there is no reply.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    /// What happened: `the model refused to answer`.
    pub(crate) what: &'static str,
    /// The provider's field that says so, as faults call it: `stop reason`, `blockReason`.
    pub(crate) field: &'static str,
    /// What the field holds.
    pub(crate) reason: String,
    /// What the provider says about it, possibly empty.
    pub(crate) detail: String,
}

impl Refusal {
    /// A reply that its provider held back.
    pub(crate) fn withheld(field: &'static str, reason: &str, detail: &str) -> ReplyError {
        let what = "the provider withheld the reply";
        ReplyError::Refused(Self { what, field, reason: reason.to_owned(), detail: detail.to_owned() })
    }
}

/// Puts one reply together, from the events of a stream or from one body.
pub(crate) trait Assembler: Send {
    /// Takes one event, `name` being its `event:` field, and returns the text it adds to the reply.
    fn event(&mut self, name: Option<&str>, data: &str) -> Result<String, ReplyError>;

    /// Takes a reply that came in one piece and returns its text.
    fn whole(&mut self, body: &[u8]) -> Result<String, ReplyError>;

    /// How far the reply has come.
    fn phase(&self) -> Phase;

    /// Takes the provider's figures, as its field for them holds them.
    fn count(&mut self, usage: &Value);

    /// What the reply has taken so far, without its cost.
    fn tokens(&self) -> Tokens;

    /// Which figures of that were said and are none (E-20).
    fn unread(&self) -> Unread;

    /// What the reply shows of the form that the endpoint wants requests in.
    fn learnt(&self) -> WireQuirks {
        WireQuirks::default()
    }

    /// The finished reply, without its cost.
    fn finish(self: Box<Self>) -> ModelReply;
}

/// Takes the figures of a body that is no reply, or none that could be read (E-20): they are where a reply's would be, or
/// inside its error.
pub(crate) fn count_in(body: &[u8], reply: &mut dyn Assembler) {
    const NAMES: [&str; 2] = ["usage", "usageMetadata"];
    let Ok(body) = parse::<Value>(body) else { return };
    let body = match &body {
        Value::Array(items) => items.last().unwrap_or(&Value::Null),
        body => body,
    };
    let places = [Some(body), body.get("error"), body.get("response"), body.get("message")];
    for usage in places.into_iter().flatten().flat_map(|target| NAMES.map(|name| target.get(name))).flatten()
    {
        reply.count(usage);
    }
}

/// Counts the bytes of a reply against `message_bytes`.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    limit: usize,
    used: usize,
}

impl ByteBudget {
    /// ByteBudget for `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, used: 0 }
    }

    /// Takes room for `more` bytes.
    pub(crate) fn take(&mut self, more: usize) -> Result<(), ReplyError> {
        self.used = self.used.saturating_add(more);
        if self.used > self.limit { Err(ReplyError::TooLong) } else { Ok(()) }
    }
}

/// `path` below a base URL, whose own query stays at the end. Reserved characters of `path` are escaped.
pub(crate) fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let whole = format!("{}/{path}", url.path().trim_end_matches('/'));
    url.set_path(&whole);
    url
}

/// A chunk, event or body of `T`, or why it is none. Half a character, as streams that are cut anywhere have it, is
/// no reason: texts have marks in their place, until [`surrogates::settled`].
pub(crate) fn parse<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, ReplyError> {
    let unparsable = |error: serde_json::Error| ReplyError::Unparsable(error.to_string());
    let error = match serde_json::from_slice(body) {
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    match surrogates::marked(body) {
        Some(mended) => serde_json::from_slice(&mended).map_err(unparsable),
        None => Err(unparsable(error)),
    }
}

/// The finished reply, without its cost.
///
/// Only now it is known what a call without arguments is. In a whole reply they are an empty object. In one that was
/// cut (E-27) they did not come, or not all of them: such a call has an empty text for arguments, which the engine
/// does not run (E-10). Nor does it run a call of a reply that was held back, whose arguments stay text.
pub(crate) fn finished(
    text: String,
    mut calls: Vec<ToolCall>,
    tokens: Tokens,
    stop: Option<String>,
) -> ModelReply {
    let cut = stop.as_deref().and_then(cut_by);
    for call in &mut calls {
        match (&call.arguments, cut) {
            (Value::Null, None) => call.arguments = Value::Object(Map::new()),
            (Value::Null, Some(_)) => call.arguments = Value::String(String::new()),
            (Value::Object(_), Some(Cut::Withheld)) => {
                call.arguments = Value::String(call.arguments.to_string());
            }
            _ => {}
        }
    }
    ModelReply { text, calls, tokens, stop, cut, unmended: 0, unread: Unread::default() }
}

/// E-10: arguments that are no JSON object stay the string they came as. None at all are `null` until the reply is
/// [`finished`].
pub(crate) fn arguments_of(text: String) -> Value {
    if text.trim().is_empty() {
        return Value::Null;
    }
    match parse(text.as_bytes()) {
        Ok(Unique(Value::Object(object))) => Value::Object(object),
        _ => Value::String(text),
    }
}

/// Arguments in a body, where a provider sends them as JSON and not as its text. With a key that stands twice in an object they
/// are their text (E-10).
pub(crate) fn arguments_in_body<'de, D: Deserializer<'de>>(body: D) -> Result<Option<Value>, D::Error> {
    let Some(raw) = Option::<Box<RawValue>>::deserialize(body)? else { return Ok(None) };
    match json::read(raw.get()) {
        Ok(value) => Ok(Some(value)),
        Err(error) if json::is_duplicate_key(&error) => Ok(Some(Value::String(raw.get().to_owned()))),
        Err(error) => Err(D::Error::custom(error)),
    }
}

/// E-10 for arguments that came as JSON: an object as it is, nothing as `null`, the rest as its text.
pub(crate) fn arguments_in(value: Value) -> Value {
    match value {
        Value::Object(_) | Value::Null => value,
        Value::String(text) => arguments_of(text),
        other => Value::String(other.to_string()),
    }
}

/// A tool's schema as providers take it, which refuse one that does not say that it is of an object, or has no
/// properties. What arguments are checked against stays the tool's own (D-15).
pub(crate) fn tool_schema(schema: &Value) -> Cow<'_, Value> {
    let typed = schema.get("type");
    let is_object = typed.is_none_or(|name| name == "object");
    if typed.is_some() && (!is_object || schema.get("properties").is_some()) {
        return Cow::Borrowed(schema);
    }
    let mut fields = schema.as_object().cloned().unwrap_or_default();
    fields.entry("type").or_insert_with(|| "object".into());
    fields.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    Cow::Owned(Value::Object(fields))
}

/// Whether a call's arguments never came. It goes back with an empty object: servers read the text as JSON.
pub(crate) fn never_came(arguments: &Value) -> bool {
    arguments.as_str().is_some_and(|text| text.trim().is_empty())
}

/// The first of `names` that holds a count in `usage` (E-20). Some servers write counts as floats; what no reply can have
/// taken is no count, as it would be the sum of all.
pub(crate) fn count(usage: &Value, names: &[&str]) -> Option<u64> {
    const MOST: u64 = 1_000_000_000_000;
    let float = |value: &Value| value.as_f64().filter(|float| *float >= 0.0).map(|float| float as u64);
    let number = |value: &Value| value.as_u64().or_else(|| float(value)).filter(|count| *count <= MOST);
    names.iter().filter_map(|name| usage.get(name)).find_map(number)
}

/// Whether a count is said, and what is said is none.
pub(crate) fn is_unread(usage: &Value, names: &[&str]) -> bool {
    let said = names.iter().any(|name| usage.get(name).is_some_and(|said| !said.is_null()));
    said && count(usage, names).is_none()
}

/// The longest name of a schema that providers take.
const NAME_LENGTH: usize = 64;

/// Whether a name is `^[a-zA-Z0-9_-]{1,64}$`.
fn is_plain(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=NAME_LENGTH).contains(&name.len()) && name.bytes().all(fits)
}

/// A schema's name as providers take it, `^[a-zA-Z0-9_-]{1,64}$`: node ids may be anything (E-33).
pub(crate) fn schema_name(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name: String = name.chars().take(NAME_LENGTH).map(fits).collect();
    if name.is_empty() { "reply".to_owned() } else { name }
}

/// A call's id as every provider takes it, `^[a-zA-Z0-9_-]{1,64}$`: as it is if it fits, else a name made of its
/// hash, the same for the call and for its result. Structural ids (E-10) have slashes.
pub(crate) fn wire_id(id: &str) -> Cow<'_, str> {
    if is_plain(id) {
        return Cow::Borrowed(id);
    }
    let hash = Sha256::digest(id.as_bytes());
    let digits: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Cow::Owned(format!("call_{digits}"))
}

/// A call's id as the strictest endpoints of chat completions take it: nine letters and digits.
pub(crate) fn short_id(id: &str) -> Cow<'_, str> {
    const LENGTH: usize = 9;
    if id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Cow::Borrowed(id);
    }
    let hash = Sha256::digest(id.as_bytes());
    let mut number = hash.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let mut digit = || {
        let digit = char::from_digit((number % 36) as u32, 36).unwrap_or('0');
        number /= 36;
        digit
    };
    Cow::Owned((0..LENGTH).map(|_| digit()).collect())
}

/// Whether a refusal's status can be about the form of a request, and its words in lower case.
pub(crate) fn refusal_words(status: StatusCode, body: &[u8]) -> Option<String> {
    let about_form = matches!(status.as_u16(), 400 | 422);
    about_form.then(|| String::from_utf8_lossy(body).to_ascii_lowercase())
}

/// Whether the words of a refusal say that the endpoint can't stream.
pub(crate) fn refuses_streaming(text: &str) -> bool {
    let refused = ["not support", "n't support", "unsupported", "unknown", "unrecognized", "not permitted"];
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    says(&["streaming", "\"stream\"", "'stream'"]) && says(&refused)
}
