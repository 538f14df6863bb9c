//! Messages as cases write them: short, and exact where it matters.
//!
//! ```yaml
//! - {user: "what is 1 + 2?"}
//! - {calls: [{name: add, args: {a: 1, b: 2}, id: c1}], text: "let me see"}
//! - {result: "3", of: c1, tool: add}
//! - {assistant: "3"}
//! ```

use selvedge_engine::{Message, Role};
use serde_json::{Map, Value, json};

/// A message in the short form, with everything that it says.
pub fn short(message: &Message) -> Value {
    let text = message.content.as_ref();
    match message.role {
        Role::System => json!({"system": text}),
        Role::User => json!({"user": text}),
        Role::Assistant if message.tool_calls.is_empty() => json!({"assistant": text}),
        Role::Assistant => {
            let calls = message.tool_calls.iter();
            let calls: Vec<Value> =
                calls.map(|call| json!({"name": call.name, "args": call.arguments, "id": call.id})).collect();
            let mut short = Map::from_iter([("calls".to_owned(), Value::Array(calls))]);
            if !text.is_empty() {
                short.insert("text".into(), text.into());
            }
            Value::Object(short)
        }
        Role::Tool => json!({"result": text, "of": message.tool_call_id, "tool": message.name}),
    }
}

/// Where messages differ from what a case expects, or `None` if they don't.
pub fn difference<'m>(
    what: &str,
    expected: &Value,
    actual: impl Iterator<Item = &'m Message>,
) -> Option<String> {
    let actual: Vec<Value> = actual.map(short).collect();
    let Some(expected) = expected.as_array() else {
        return Some(format!("{what}: write a list of messages"));
    };
    let same = expected.len() == actual.len() && expected.iter().zip(&actual).all(|(e, a)| same(e, a));
    (!same).then(|| format!("{what}\n  expected:\n{}\n  got:\n{}", lines(expected), lines(&actual)))
}

/// Values one a line.
pub fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("    {value}")).collect::<Vec<_>>().join("\n")
}

/// Ids and the tool's name count only where the case writes them: which ids calls get is not its business
/// (that they fit each other is checked for every request).
fn same(expected: &Value, actual: &Value) -> bool {
    let (Some(wanted), Some(found)) = (expected.as_object(), actual.as_object()) else { return false };
    let optional = |key: &str| matches!(key, "id" | "of" | "tool");
    let all_there = found.keys().all(|key| wanted.contains_key(key) || optional(key));
    all_there
        && wanted.iter().all(|(key, wanted)| match (key.as_str(), found.get(key)) {
            (_, None) => false,
            ("calls", Some(Value::Array(calls))) => wanted.as_array().is_some_and(|wanted| {
                wanted.len() == calls.len()
                    && wanted.iter().zip(calls).all(|(wanted, call)| same(wanted, call))
            }),
            ("args", Some(args)) => args == wanted,
            (_, Some(Value::String(text))) => fits(wanted, text),
            (_, Some(value)) => value == wanted,
        })
}

/// Whether a text is the expected one: literally, as a fault of a kind (`{error: kind}`), by parts
/// (`{contains: […]}`), or both.
pub fn fits(expected: &Value, text: &str) -> bool {
    let Some(object) = expected.as_object() else { return expected.as_str() == Some(text) };
    let kind = object.get("error").is_none_or(|kind| {
        let stated: Value = serde_json::from_str(text).unwrap_or_default();
        stated.pointer("/error/type") == Some(kind) && stated.pointer("/error/message").is_some()
    });
    let contains = object.get("contains").and_then(Value::as_array);
    let parts =
        contains.is_none_or(|parts| parts.iter().all(|part| part.as_str().is_some_and(|p| text.contains(p))));
    kind && parts && object.keys().all(|key| key == "error" || key == "contains")
}

/// What makes a conversation invalid (E-10): every call has exactly one result, in order, before anything else
/// is said, and no result comes without its call.
pub fn invalid(messages: &[impl AsRef<Message>]) -> Option<String> {
    let mut open: std::collections::VecDeque<&str> = std::collections::VecDeque::new();
    let mut used = std::collections::HashSet::new();
    for message in messages.iter().map(AsRef::as_ref) {
        if message.role == Role::Tool {
            let id = message.tool_call_id.as_deref().unwrap_or_default();
            if open.pop_front() != Some(id) {
                return Some(format!("the result of {id:?} is out of place"));
            }
            continue;
        }
        if let Some(id) = open.front() {
            return Some(format!("the call {id:?} has no result"));
        }
        for call in &message.tool_calls {
            if call.id.is_empty() || !used.insert(call.id.as_ref()) {
                return Some(format!("the call id {:?} is missing or used twice", call.id));
            }
            open.push_back(&call.id);
        }
    }
    open.front().map(|id| format!("the call {id:?} has no result"))
}
