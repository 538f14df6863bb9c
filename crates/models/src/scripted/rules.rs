//! The file of a scripted model: its shape, and its errors with places (C-07).

use regex::Regex;
use selvedge_engine::{FaultKind, Message, ModelRequest, Role, Tokens};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{Location, Spanned};
use std::fmt;
use std::time::Duration;

/// What is wrong with a script, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ScriptError {
    /// The file's name as given.
    pub file: String,
    /// From 1; 0 when the place is not known.
    pub line: u64,
    /// From 1, in characters; 0 when the place is not known.
    pub column: u64,
    /// What is wrong.
    pub message: String,
}

/// One rule: when it fits, and what it answers.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) when: When,
    pub(super) reply: Reply,
    pub(super) delay: Duration,
}

/// The conditions of a rule; all that are given must hold.
#[derive(Debug, Default)]
pub(super) struct When {
    role: Option<String>,
    thread: Option<String>,
    node: Option<String>,
    contains: Option<String>,
    matches: Option<Regex>,
    /// Counts from 1 the requests of a run that meet the other conditions.
    pub(super) nth: Option<u64>,
    has_tool_result: Option<bool>,
}

impl When {
    /// Whether every condition but `nth` holds.
    pub(super) fn fits(&self, request: &ModelRequest) -> bool {
        let last = request.messages.last();
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        let content = |test: &dyn Fn(&Message) -> bool| last.is_some_and(|message| test(message));
        is(&self.role, &request.role)
            && is(&self.thread, &request.thread)
            && is(&self.node, &request.node)
            && self.contains.as_ref().is_none_or(|part| content(&|last| last.content.contains(part.as_str())))
            && self.matches.as_ref().is_none_or(|regex| content(&|last| regex.is_match(&last.content)))
            && self.has_tool_result.is_none_or(|wanted| wanted == content(&|last| last.role == Role::Tool))
    }
}

/// What a rule answers.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// A reply, possibly empty.
    Says { text: String, calls: Vec<Call>, tokens: Tokens, stop: Option<String> },
    /// The failure that this HTTP status is, with the Retry-After in milliseconds.
    Status { status: u16, message: String, retry_after_ms: Option<u64>, tokens: Tokens },
    /// A failure of this kind.
    Fails(FaultKind, Tokens),
}

/// A tool call of a reply; without an id the run gives it one (E-10).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Value,
    #[serde(default)]
    pub(super) id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    #[serde(default)]
    when: Option<RawWhen>,
    reply: Spanned<RawReply>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWhen {
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    thread: Option<String>,
    #[serde(default)]
    node: Option<String>,
    #[serde(default)]
    contains: Option<String>,
    #[serde(default)]
    matches: Option<Spanned<String>>,
    #[serde(default)]
    nth: Option<Spanned<u64>>,
    #[serde(default)]
    has_tool_result: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReply {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
    #[serde(default)]
    json: Option<Value>,
    #[serde(default)]
    empty: Option<bool>,
    #[serde(default)]
    error: Option<Spanned<RawError>>,
    /// Why the model stopped, in any provider's words: `length`.
    #[serde(default)]
    stop: Option<String>,
    #[serde(default)]
    usage: Option<RawUsage>,
    #[serde(default)]
    delay_ms: Option<u64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUsage {
    #[serde(default, alias = "input", alias = "prompt_tokens")]
    input_tokens: u64,
    #[serde(default, alias = "output", alias = "completion_tokens")]
    output_tokens: u64,
    #[serde(default, alias = "cached")]
    cached_tokens: u64,
    #[serde(default, alias = "reasoning")]
    reasoning_tokens: u64,
    /// The sum that some recorded usages carry; it says nothing new.
    #[serde(default, rename = "total_tokens")]
    _total_tokens: Option<u64>,
    #[serde(default)]
    cost: f64,
}

impl RawUsage {
    fn tokens(self) -> Tokens {
        Tokens {
            input: self.input_tokens,
            output: self.output_tokens,
            cost: self.cost,
            cached: self.cached_tokens,
            reasoning: self.reasoning_tokens,
        }
    }
}

enum RawError {
    Kind(String),
    Status { status: u16, message: String, retry_after_s: Option<u32> },
}

impl<'de> Deserialize<'de> for RawError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Fields {
            status: u16,
            #[serde(default)]
            message: String,
            #[serde(default)]
            retry_after_s: Option<u32>,
        }
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RawError;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("{status, message, retry_after_s} or the name of a fault")
            }
            fn visit_str<E>(self, text: &str) -> Result<RawError, E> {
                Ok(RawError::Kind(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawError, A::Error> {
                let Fields { status, message, retry_after_s } =
                    Fields::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RawError::Status { status, message, retry_after_s })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The rules of a script.
pub(super) fn parse(file: &str, yaml: &str) -> Result<Vec<Rule>, ScriptError> {
    let error = |at: Option<Location>, message: String| ScriptError {
        file: file.to_owned(),
        line: at.map_or(0, |at| at.line()),
        column: at.map_or(0, |at| at.column()),
        message,
    };
    // YAML 1.2: `yes`, `on` and `n` are strings, not booleans.
    let options = serde_saphyr::options! { strict_booleans: true };
    let raw: Vec<RawRule> = serde_saphyr::from_str_with_options(yaml, options).map_err(|problem| {
        let at = problem.location();
        error(at, worded(&first_line(&problem.without_snippet().to_string())))
    })?;
    let built = raw.into_iter().map(|rule| build(rule).map_err(|(at, message)| error(Some(at), message)));
    built.collect()
}

/// The place is a field of its own, so the library's "at line …" is dropped from its sentence.
fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("not readable as YAML");
    line.split(" at line ").next().unwrap_or(line).trim_end_matches(':').to_owned()
}

/// What is wrong in words of a script, where the library's are about its own options and types.
fn worded(message: &str) -> String {
    const EXPECTED: [(&str, &str); 7] = [
        ("invalid u", "a whole number from 0 on"),
        ("invalid f", "a number"),
        ("invalid boolean", "true or false"),
        ("expected sequence start", "a list"),
        ("expected mapping start", "a field with its value, as in `when: {…}`,"),
        ("expected string scalar", "a text"),
        ("expected scalar", "a text or a number"),
    ];
    if let Some(rest) = message.strip_prefix("duplicate mapping key: ") {
        return format!("`{}` is given twice", rest.split(',').next().unwrap_or(rest));
    }
    let expected = EXPECTED.iter().find(|(said, _)| message.starts_with(said));
    expected.map_or_else(|| message.to_owned(), |(_, what)| format!("{what} is expected here"))
}

type Misplaced = (Location, String);

fn build(rule: RawRule) -> Result<Rule, Misplaced> {
    let raw = rule.when.unwrap_or_default();
    let matches = match raw.matches {
        None => None,
        Some(pattern) => Some(Regex::new(&pattern.value).map_err(|problem| {
            let why = problem.to_string();
            (pattern.referenced, format!("`matches` is no regular expression: {}", why.replace('\n', " ")))
        })?),
    };
    let nth = match raw.nth {
        Some(nth) if nth.value == 0 => return Err((nth.referenced, "`nth` counts from 1".to_owned())),
        nth => nth.map(|nth| nth.value),
    };
    let RawWhen { role, thread, node, contains, has_tool_result, .. } = raw;
    let when = When { role, thread, node, contains, matches, nth, has_tool_result };
    let delay = Duration::from_millis(rule.reply.value.delay_ms.unwrap_or(0));
    Ok(Rule { when, reply: reply(rule.reply)?, delay })
}

fn reply(raw: Spanned<RawReply>) -> Result<Reply, Misplaced> {
    let (at, raw) = (raw.referenced, raw.value);
    let empty = raw.empty == Some(true);
    // An assistant message may have text and calls, so these two go together.
    let says = raw.text.is_some() || raw.tool_calls.is_some();
    let given = [says, raw.json.is_some(), empty, raw.error.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        let message =
            "a reply is exactly one of `text` or `tool_calls` (or both), `json`, `empty: true` and `error`";
        return Err((at, message.to_owned()));
    }
    let tokens = raw.usage.unwrap_or_default().tokens();
    if let Some(error) = raw.error {
        return failure(error, tokens);
    }
    let text = match raw.json {
        Some(json) => json.to_string(),
        None => raw.text.unwrap_or_default(),
    };
    let calls = raw.tool_calls.unwrap_or_default();
    Ok(Reply::Says { text, calls, tokens, stop: raw.stop })
}

fn failure(error: Spanned<RawError>, tokens: Tokens) -> Result<Reply, Misplaced> {
    match error.value {
        RawError::Status { status, message, retry_after_s } if (400..600).contains(&status) => {
            let retry_after_ms = retry_after_s.map(|seconds| u64::from(seconds) * 1000);
            Ok(Reply::Status { status, message, retry_after_ms, tokens })
        }
        RawError::Status { status, .. } => {
            Err((error.referenced, format!("`status` is {status}, an error has one from 400 to 599")))
        }
        RawError::Kind(name) => match serde_json::from_value(Value::String(name.clone())) {
            Ok(kind) => Ok(Reply::Fails(kind, tokens)),
            Err(_) => {
                let message = format!(
                    "`{name}` is no fault: write {{status, message}} or a kind such as provider_error"
                );
                Err((error.referenced, message))
            }
        },
    }
}
