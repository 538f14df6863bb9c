//! Messages in a form in which engine and reference can be compared: call ids that are not the model's own are
//! numbered, and the engine's wording of its own faults is left out (the kind stays).

use selvedge_engine::{Limits, Message, Role};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What ids begin with that the simulated model gives.
pub const MODEL_ID: &str = "call_";
/// Stands for the engine's wording when it asks again for a reply that fits the schema (E-33).
pub const ASKED_AGAIN: &str = "asked again";
/// Kinds of faults whose message is the engine's to word.
const WORDED: [&str; 8] = [
    "limit_exceeded",
    "unknown_tool",
    "input_error",
    "denied",
    "unresolved_placeholder",
    "empty_response",
    "malformed_response",
    "unknown_outcome",
];

/// The limits of simulated runs. With these, four waits between attempts are longer than the span, and three are not,
/// whatever chance says: a model is asked five times (E-14).
pub fn limits() -> Limits {
    Limits { retry_span_ms: 3_600, ..Limits::default() }
}

/// A message, in neutral form.
#[derive(Clone, Debug, PartialEq)]
pub struct Msg {
    /// `user`, `assistant`, `tool`.
    pub role: &'static str,
    /// Its text.
    pub content: String,
    /// Its calls.
    pub calls: Vec<MsgCall>,
    /// In a tool message: the call's id and the tool.
    pub of: Option<(String, String)>,
}

/// A tool call, in neutral form.
#[derive(Clone, Debug, PartialEq)]
pub struct MsgCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub args: Value,
}

impl Msg {
    /// A message of text alone.
    pub fn text(role: &'static str, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), calls: Vec::new(), of: None }
    }
    /// The answer to a call.
    pub fn tool(call: &MsgCall, content: impl Into<String>) -> Self {
        Self {
            role: "tool",
            content: content.into(),
            calls: Vec::new(),
            of: Some((call.id.clone(), call.name.clone())),
        }
    }
}

impl From<&Message> for Msg {
    fn from(message: &Message) -> Self {
        let calls = message.tool_calls.iter().map(|call| MsgCall {
            id: call.id.to_string(),
            name: call.name.to_string(),
            args: call.arguments.clone(),
        });
        let name = message.name.as_deref().unwrap_or("").to_owned();
        Self {
            role: match message.role {
                Role::System => "system",
                Role::User => "user",
                Role::Assistant => "assistant",
                Role::Tool => "tool",
            },
            content: message.content.to_string(),
            calls: calls.collect(),
            of: message.tool_call_id.as_ref().map(|id| (id.to_string(), name)),
        }
    }
}

/// Messages with ids numbered; ids of the model stay if `keep`.
pub fn messages(messages: &[Msg], keep: bool) -> Vec<Value> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut number = |id: &str| {
        if keep && id.starts_with(MODEL_ID) {
            return Value::from(id);
        }
        let next = numbers.len();
        Value::from(*numbers.entry(id.to_owned()).or_insert(next))
    };
    let mut out = Vec::with_capacity(messages.len());
    for message in messages {
        let mut row = json!({"role": message.role, "content": text(&message.content)});
        let calls = message.calls.iter();
        let calls: Vec<Value> =
            calls.map(|c| json!({"id": number(&c.id), "name": c.name, "args": value(&c.args)})).collect();
        if let Some(object) = row.as_object_mut() {
            if !calls.is_empty() {
                object.insert("calls".into(), calls.into());
            }
            if let Some((id, name)) = &message.of {
                object.insert("of".into(), json!([number(id), name]));
            }
        }
        out.push(row);
    }
    out
}

/// What a model is asked, as one text: equal for equal content.
pub fn model_content(sent: &[Msg], tools: &[String], schema: Option<&Value>) -> String {
    json!({"messages": messages(sent, false), "tools": tools, "schema": schema}).to_string()
}

/// What a tool is asked, as one text.
pub fn tool_content(name: &str, args: &Value) -> String {
    json!([name, value(args)]).to_string()
}

/// A fault: kind and, if the world worded it, message.
pub fn fault(kind: &str, message: &str) -> Value {
    if WORDED.contains(&kind) { json!({"kind": kind}) } else { json!({"kind": kind, "message": message}) }
}

/// A text without the engine's wording of faults.
pub fn text(text: &str) -> String {
    const START: &str = "{\"error\":{\"type\":\"";
    const MIDDLE: &str = "\",\"message\":\"";
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(START) {
        out.push_str(before);
        out.push_str(START);
        rest = after;
        let Some((kind, message)) = after.split_once(MIDDLE) else { continue };
        if !WORDED.contains(&kind) {
            continue;
        }
        let mut escaped = false;
        let end = message.char_indices().find(|(_, c)| {
            let here = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            here
        });
        out.push_str(kind);
        rest = end.and_then(|(at, _)| message.get(at..)).unwrap_or("");
    }
    out + rest
}

/// Whether wording of faults was left out of what is asked: equal content may then be asked in other words.
pub fn is_worded(content: &str) -> bool {
    let bare = content.replace('\\', "");
    WORDED.iter().any(|kind| bare.contains(&format!("\"type\":\"{kind}\"}}")))
}

/// A value without the engine's wording of faults.
pub fn value(value: &Value) -> Value {
    match value {
        Value::String(content) => Value::String(text(content)),
        Value::Array(items) => items.iter().map(self::value).collect(),
        Value::Object(object) => {
            let worded =
                object.get("type").and_then(Value::as_str).is_some_and(|kind| WORDED.contains(&kind));
            let members = object.iter().filter(|(key, _)| !(worded && *key == "message"));
            Value::Object(members.map(|(key, item)| (key.clone(), self::value(item))).collect())
        }
        other => other.clone(),
    }
}
