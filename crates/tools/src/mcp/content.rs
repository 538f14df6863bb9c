//! What a call brought, as a tool's JSON value (E-25).

use super::definition::Definition;
use super::error::words;
use crate::failures::tool_failure;
use crate::json::{self, Unread};
use crate::limits::ToolLimits;
use crate::store::sha256;
use rmcp::model::{CallToolResult, ServerResult};
use selvedge_engine::json::Unique;
use selvedge_engine::{Failure, FaultKind};
use serde_json::{Map, Value, json};

/// Structured content, else the text, else a description of what there is.
///
/// # Errors
/// The tool says that it failed, the server does not answer as the protocol has it, or the output is not what the
/// tool's definition promises; `limit_exceeded` for one that is nested too deeply (E-28).
pub(super) fn output(
    name: &str,
    definition: &Definition,
    result: ServerResult,
    limits: &ToolLimits,
) -> Result<Value, Failure> {
    let Some(Answer { blocks, structured, failed }) = Answer::of(result) else {
        let message = format!("the answer of `{name}` is no result of a tool call as MCP has it");
        return Err(tool_failure("parsing_tool_error", message));
    };
    if failed {
        let text = match text_of(&blocks) {
            Some(text) if !text.trim().is_empty() => text,
            _ if structured.is_some() => structured.unwrap_or_default().to_string(),
            _ => "the tool failed and does not say why".to_owned(),
        };
        return Err(tool_failure("tool_execution_error", format!("`{name}` failed: {}", words(&text))));
    }
    let deep = || Unread::Deep.failure(name, limits);
    let value = match structured {
        Some(value) => value,
        None => content(blocks, limits.json_nesting).map_err(|Deep| deep())?,
    };
    if json::depth_of(&value) > limits.json_nesting {
        return Err(deep());
    }
    match definition.misfit(&value) {
        Ok(None) => Ok(definition.unwrapped(value)),
        Err(excess) => {
            let message =
                format!("to hold the output of `{name}` against the outputSchema it declares {excess}");
            Err(Failure::permanent(FaultKind::LimitExceeded, message))
        }
        Ok(Some(why)) => {
            let message = format!("the output of `{name}` does not fit the outputSchema it declares: {why}");
            Err(tool_failure("parsing_tool_error", words(&message)))
        }
    }
}

struct Answer {
    blocks: Vec<Value>,
    structured: Option<Value>,
    failed: bool,
}

impl Answer {
    fn of(result: ServerResult) -> Option<Self> {
        match result {
            ServerResult::CallToolResult(CallToolResult {
                content, structured_content, is_error, ..
            }) => {
                let blocks: Result<_, _> = content.iter().map(serde_json::to_value).collect();
                Some(Self {
                    blocks: blocks.ok()?,
                    structured: structured_content.filter(|content| !content.is_null()),
                    failed: is_error == Some(true),
                })
            }
            // Kinds of content that are newer than the client.
            ServerResult::CustomResult(custom) => {
                let Value::Object(mut fields) = custom.0 else { return None };
                let blocks = match fields.remove("content")? {
                    Value::Array(blocks) => blocks,
                    // One block by itself is a list, too.
                    block @ Value::Object(_) => vec![block],
                    _ => return None,
                };
                let structured = fields.remove("structuredContent").filter(|content| !content.is_null());
                let failed = fields.get("isError") == Some(&Value::Bool(true));
                Some(Self { blocks, structured, failed })
            }
            _ => None,
        }
    }
}

/// The text, if there is nothing but text.
fn text_of(blocks: &[Value]) -> Option<String> {
    let texts: Option<Vec<&str>> = blocks.iter().map(text).collect();
    texts.map(|texts| texts.join("\n"))
}

fn text(block: &Value) -> Option<&str> {
    if block.get("type")? == "text" { block.get("text")?.as_str() } else { None }
}

/// There are more objects and arrays inside each other than may be.
#[derive(Debug, PartialEq)]
struct Deep;

fn content(blocks: Vec<Value>, nesting: usize) -> Result<Value, Deep> {
    if let Some(text) = text_of(&blocks) {
        return parsed(text, nesting);
    }
    let mut described: Vec<Value> = blocks.into_iter().map(described).collect();
    Ok(if described.len() == 1 { described.pop().unwrap_or_default() } else { Value::Array(described) })
}

/// E-25: text that is a JSON object or array is that. One with an integer that would become another one, or with a key that stands
/// twice in an object, stays the text that the server wrote.
fn parsed(text: String, nesting: usize) -> Result<Value, Deep> {
    let trimmed = text.trim();
    if !trimmed.starts_with(['{', '[']) {
        return Ok(Value::String(text));
    }
    match json::read_exactly(trimmed.as_bytes(), nesting) {
        Ok(Unique(value)) => Ok(value),
        Err(Unread::Deep) => Err(Deep),
        Err(Unread::Large(_) | Unread::Twice(_) | Unread::Wrong(_)) => Ok(Value::String(text)),
    }
}

/// A block without its bytes, which no model reads and no journal should hold: how many there are, and their hash.
fn described(block: Value) -> Value {
    let Value::Object(fields) = block else { return block };
    let mut kept = Map::new();
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("data" | "blob", Value::String(data)) => {
                kept.insert("bytes".into(), json!(decoded_length(&data)));
                kept.insert("base64_sha256".into(), sha256(data.as_bytes()).into());
            }
            ("resource", inner @ Value::Object(_)) => {
                kept.insert(name, described(inner));
            }
            ("_meta" | "annotations" | "icons", _) => {}
            (_, value) => {
                kept.insert(name, value);
            }
        }
    }
    Value::Object(kept)
}

/// The number of bytes that a base64 text stands for.
fn decoded_length(text: &str) -> usize {
    text.trim_end().trim_end_matches('=').len() * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(result: Value) -> Value {
        let Answer { blocks, structured, .. } =
            Answer::of(serde_json::from_value(result).unwrap()).expect("a result");
        structured.unwrap_or_else(|| content(blocks, 128).unwrap())
    }

    /// E-25: structured content first, then text, which is JSON if it is an object or array; the rest is described.
    #[test]
    fn contents_become_values() {
        let text = |text: &str| json!({"type": "text", "text": text});
        for (result, value) in [
            (json!({"content": [text("a")]}), json!("a")),
            (json!({"content": [text("a"), text("b")]}), json!("a\nb")),
            (json!({"content": [text(" {\"a\": [1]}\n")]}), json!({"a": [1]})),
            (json!({"content": [text("[1]")]}), json!([1])),
            (json!({"content": [text("7")]}), json!("7")),
            (json!({"content": [text("{no json}")]}), json!("{no json}")),
            (json!({"content": [text("[18446744073709551616]")]}), json!("[18446744073709551616]")),
            (json!({"content": []}), json!("")),
            (json!({"content": text("a")}), json!("a")),
            (json!({"content": [text("a")], "structuredContent": {"b": 1}}), json!({"b": 1})),
            (
                json!({"content": [{"type": "resource_link", "uri": "file:///x", "name": "x"}]}),
                json!({"type": "resource_link", "uri": "file:///x", "name": "x"}),
            ),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "t"}}]}),
                json!({"type": "resource", "resource": {"uri": "a:b", "text": "t"}}),
            ),
            (json!({"content": [{"type": "hologram", "depth": 3}]}), json!({"type": "hologram", "depth": 3})),
        ] {
            assert_eq!(answer(result.clone()), value, "{result}");
        }
    }

    /// E-28: a text of JSON has the same limit as any other output.
    #[test]
    fn texts_are_not_nested_deeper_than_may_be() {
        assert!(parsed("[[[]]]".into(), 3).unwrap().is_array());
        assert_eq!(parsed("[[[[]]]]".into(), 3), Err(Deep));
        assert_eq!(parsed("[[[[ and so on".into(), 3), Ok(json!("[[[[ and so on")));
    }

    #[test]
    fn bytes_are_counted_and_not_kept() {
        let image = json!({"type": "image", "data": "AAECAw==", "mimeType": "image/png"});
        let described = answer(json!({"content": [{"type": "text", "text": "see"}, image]}));
        assert_eq!(described[0], json!({"type": "text", "text": "see"}));
        assert_eq!((&described[1]["bytes"], &described[1]["mimeType"]), (&json!(4), &json!("image/png")));
        assert!(described[1].get("data").is_none() && described[1]["base64_sha256"].is_string());
    }
}
