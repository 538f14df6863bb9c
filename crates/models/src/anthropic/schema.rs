//! The schema of a reply (E-26, E-33): `output_config` where it can be said so, else a tool whose input is the reply.
//!
//! Either way the engine holds the reply against the schema as the document has it. What is left out of a schema
//! here is therefore a hint less for the model, never a check less.

use crate::protocol::schema_name;
use selvedge_engine::ModelRequest;
use serde_json::{Map, Value, json};

/// Keywords that `output_config` takes as they are.
const KEPT: [&str; 7] = ["type", "title", "description", "const", "default", "required", "format"];
/// Keywords that say nothing about values.
const DROPPED: [&str; 7] = ["$schema", "$id", "$comment", "examples", "deprecated", "readOnly", "writeOnly"];
/// Keywords that it refuses, and that a description can carry.
const TOLD: [&str; 13] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];
/// The formats that it knows.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
/// The property of a tool's input that holds a reply which is no object.
const WRAPPER: &str = "reply";
/// Where references point to.
const DEFINITIONS: [&str; 2] = ["#/$defs/", "#/definitions/"];

/// `schema` in the part of JSON Schema that `output_config` takes: every object closed, and what it refuses told in
/// descriptions. Each value that fits it fits `schema` too, as far as the two can say the same. `None` if they
/// can't: objects with any keys, recursion, conditions.
pub(super) fn native(schema: &Value) -> Option<Value> {
    converted(schema, false)
}

fn converted(schema: &Value, defined: bool) -> Option<Value> {
    let fields = schema.as_object()?;
    let mut out = Map::new();
    let mut told: Vec<String> = Vec::new();
    for (key, value) in fields {
        let sub = |value: &Value| converted(value, defined);
        let kept = match key.as_str() {
            // A definition that refers to another one may be recursive.
            "$ref" => {
                let local =
                    DEFINITIONS.iter().any(|name| value.as_str().is_some_and(|at| at.starts_with(name)));
                Some(value.clone()).filter(|_| local && !defined)?
            }
            "format" if !FORMATS.contains(&value.as_str()?) => {
                told.push(format!("format: {value}"));
                continue;
            }
            "minItems" if matches!(value.as_u64(), Some(0 | 1)) => value.clone(),
            key if KEPT.contains(&key) => value.clone(),
            key if DROPPED.contains(&key) => continue,
            key if TOLD.contains(&key) => {
                told.push(format!("{key}: {value}"));
                continue;
            }
            "enum" => {
                let simple = value.as_array()?.iter().all(|item| !item.is_object() && !item.is_array());
                simple.then(|| value.clone())?
            }
            "items" => sub(value)?,
            "properties" => each(value.as_object()?, sub)?,
            "$defs" | "definitions" => each(value.as_object()?, |value| converted(value, true))?,
            // One of several is some of them; the engine counts.
            "anyOf" | "oneOf" => value.as_array()?.iter().map(sub).collect::<Option<Vec<Value>>>()?.into(),
            "additionalProperties" if value == &Value::Bool(false) => continue,
            _ => return None,
        };
        let name = if key == "oneOf" { "anyOf" } else { key };
        if out.insert(name.to_owned(), kept).is_some() {
            return None;
        }
    }
    if is_object(fields) {
        close(&mut out)?;
    }
    if !told.is_empty() {
        let words = out.get("description").and_then(Value::as_str).unwrap_or_default();
        let words = format!("{words} ({})", told.join(", "));
        out.insert("description".to_owned(), words.trim_start().into());
    }
    Some(Value::Object(out))
}

fn each(fields: &Map<String, Value>, convert: impl Fn(&Value) -> Option<Value>) -> Option<Value> {
    let all: Option<Map<String, Value>> =
        fields.iter().map(|(key, value)| Some((key.clone(), convert(value)?))).collect();
    Some(Value::Object(all?))
}

fn is_object(fields: &Map<String, Value>) -> bool {
    let typed = match fields.get("type") {
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        name => name.is_some_and(|name| name == "object"),
    };
    typed || fields.contains_key("properties")
}

/// An object must name what it may have. One without properties would have to be empty, which no schema means.
fn close(out: &mut Map<String, Value>) -> Option<()> {
    let properties = out.get("properties").and_then(Value::as_object).filter(|fields| !fields.is_empty())?;
    let required = out.get("required").and_then(Value::as_array);
    let known = |name: &Value| name.as_str().is_some_and(|name| properties.contains_key(name));
    required.into_iter().flatten().all(known).then_some(())?;
    out.insert("additionalProperties".to_owned(), Value::Bool(false));
    Some(())
}

/// The tool that stands for a schema: its input is the reply.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReplyTool {
    /// Its name, which no tool of the request has.
    pub(super) name: String,
    /// Whether the reply is one property of the input, as the input must be an object.
    wrapped: bool,
}

impl ReplyTool {
    /// The tool for a request's schema, whether or not the request needs it.
    pub(super) fn of(request: &ModelRequest) -> Option<Self> {
        let schema = request.schema.as_ref()?;
        let mut name = schema_name(&schema.name);
        let called =
            || request.messages.iter().flat_map(|message| &message.tool_calls).map(|call| &call.name);
        let defined = || request.tools.iter().map(|tool| &tool.name).chain(called());
        while defined().any(|taken| **taken == *name) {
            name.push('_');
        }
        let plain = schema.schema.get("type").is_some_and(|name| name == "object")
            && ["anyOf", "oneOf", "allOf"].iter().all(|key| schema.schema.get(key).is_none());
        Some(Self { name, wrapped: !plain })
    }

    /// Its input's schema.
    pub(super) fn input_schema(&self, schema: &Value) -> Value {
        if !self.wrapped {
            return schema.clone();
        }
        let mut input = json!({"type": "object", "properties": {WRAPPER: schema}, "required": [WRAPPER]});
        // References start at the root.
        for name in ["$defs", "definitions"] {
            if let (Some(definitions), Some(input)) = (schema.get(name), input.as_object_mut()) {
                input.insert(name.to_owned(), definitions.clone());
            }
        }
        input
    }

    /// The reply in an input; one that did not parse stays as it came, so that the engine says what is wrong.
    pub(super) fn reply(&self, mut input: Value) -> String {
        let inner = input.get_mut(WRAPPER).filter(|_| self.wrapped).map(Value::take);
        match (inner, input) {
            (Some(reply), _) => reply.to_string(),
            (None, Value::String(text)) => text,
            (None, input) => input.to_string(),
        }
    }
}
