//! Messages that are not quite as the protocol has them, and say what they mean all the same: halves of characters, bytes
//! that are not UTF-8, several messages in a list, errors that are a text.

use super::{Message, UNNAMED};
use crate::json;
use rmcp::model::RequestId;
use selvedge_http::surrogates;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The most messages of a list.
const MOST: usize = 10_000;

/// The messages that a text means; `again` reads one that was mended. None, if it means none.
pub(super) fn messages(text: &[u8], nesting: usize, again: &dyn Fn(&[u8]) -> Vec<Message>) -> Vec<Message> {
    let whole = mended(text);
    if let Cow::Owned(whole) = &whole {
        let read = again(whole);
        if !read.is_empty() {
            return read;
        }
    }
    if whole.trim_ascii_start().starts_with(b"[") {
        let items = items(&whole).unwrap_or_default().into_iter().take(MOST);
        return items.filter(|item| item.starts_with(b"{")).flat_map(again).collect();
    }
    match json::read::<Value>(&whole, nesting) {
        Ok(value) => message(value)
            // What stays the same was read already.
            .filter(|text| json::read::<Value>(text, nesting).ok() != json::read(&whole, nesting).ok())
            .map(|text| again(&text))
            .unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

/// The items of a list, each as it is written: no number becomes another one. `None` if it is no JSON.
fn items(list: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = list.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?.trim_ascii();
    let mut items = Vec::new();
    while !rest.is_empty() {
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
        values.next()?.ok()?;
        let (item, after) = rest.split_at_checked(values.byte_offset())?;
        items.push(item.trim_ascii());
        rest = match after.trim_ascii() {
            [] => &[],
            more => more.strip_prefix(b",")?.trim_ascii(),
        };
    }
    Some(items)
}

/// The text with U+FFFD for bytes that are not UTF-8 and for escaped halves of characters.
fn mended(text: &[u8]) -> Cow<'_, [u8]> {
    let utf8 = match String::from_utf8_lossy(text) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    match may_have_halves(&utf8).then(|| surrogates::mended(&utf8)).flatten() {
        Some(whole) => Cow::Owned(whole),
        None => utf8,
    }
}

/// A message as the protocol has it; `None` if it does not even say that it is one.
fn message(value: Value) -> Option<Vec<u8>> {
    let Value::Object(mut fields) = value else { return None };
    fields.contains_key("jsonrpc").then_some(())?;
    fields.insert("jsonrpc".into(), "2.0".into());
    match fields.get("id") {
        // 7.0 is 7.
        Some(Value::Number(number)) if number.as_i64().is_none() => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
            fields.insert("id".into(), whole.map_or(Value::Null, |number| json!(number as i64)));
        }
        Some(Value::Number(_) | Value::String(_) | Value::Null) | None => {}
        Some(_) => drop(fields.insert("id".into(), Value::Null)),
    }
    let has = |name: &str| fields.get(name).is_some_and(|value| !value.is_null());
    match (has("result"), fields.remove("error")) {
        (false, Some(error)) if !error.is_null() => {
            fields.remove("result");
            fields.insert("error".into(), error_of(error));
        }
        // `null` besides a result is none.
        (_, None | Some(Value::Null)) => {}
        (_, Some(error)) => drop(fields.insert("error".into(), error_of(error))),
    }
    if fields.get("id").is_some_and(Value::is_null) && fields.contains_key("error") {
        fields.remove("id");
    }
    serde_json::to_vec(&fields).ok()
}

/// An error with a code and a message, whatever it is. A code that is none is shown with the rest of it.
fn error_of(error: Value) -> Value {
    let mut fields = match error {
        Value::Object(fields) => fields,
        Value::String(message) => Map::from_iter([("message".to_owned(), Value::String(message))]),
        other => Map::from_iter([("message".to_owned(), Value::String(other.to_string()))]),
    };
    let given = fields.get("code").filter(|code| !code.is_null());
    let code = given.and_then(|code| match code {
        Value::String(code) => code.trim().parse().ok(),
        code => {
            code.as_i64().or_else(|| code.as_f64().filter(|code| code.fract() == 0.0).map(|code| code as i64))
        }
    });
    let code = code.and_then(|code| i32::try_from(code).ok());
    let is_lost = given.is_some() && code.is_none();
    if is_lost || !fields.get("message").is_some_and(Value::is_string) {
        let said = Value::Object(fields.clone()).to_string();
        fields.insert("message".into(), said.into());
    }
    fields.insert("code".into(), code.unwrap_or(UNNAMED).into());
    Value::Object(fields)
}

/// Whether there may be escaped halves of characters in it.
pub(super) fn may_have_halves(text: &[u8]) -> bool {
    has(text, br"\ud") || has(text, br"\uD")
}

/// Whether a text was meant as a message, whatever has become of it.
pub(super) fn is_meant(text: &[u8]) -> bool {
    has(text, b"\"jsonrpc\"")
}

/// The id that a message names which can't be read.
pub(super) fn id_in(text: &[u8]) -> Option<RequestId> {
    let text = String::from_utf8_lossy(text);
    let (_, behind) = text.split_once("\"id\"")?;
    let value = behind.trim_start().strip_prefix(':')?.trim_start();
    match value.strip_prefix('"') {
        Some(id) => Some(RequestId::String(id.split('"').next()?.into())),
        None => {
            let end = value.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(value.len());
            value.get(..end)?.parse().ok().map(RequestId::Number)
        }
    }
}

/// Whether `part` occurs in a text.
pub(super) fn has(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}
