//! The body of a request for a response, made of the shared messages (E-23).

use crate::protocol::{never_came, schema_name, tool_schema};
use selvedge_engine::{Message, ModelRequest, Role, ToolCall};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt::Write;

/// The longest id of a call that the protocol takes, in characters.
const ID_LENGTH: usize = 64;
/// Bytes of a hash that stand for a longer id.
const ID_BYTES: usize = 20;

/// The JSON body, borrowed from the request.
#[derive(Serialize)]
pub(super) struct Body<'r> {
    model: &'r str,
    input: Vec<Item<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    store: bool,
    stream: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'r> {
    Message { role: &'static str, content: &'r str },
    FunctionCall { call_id: Cow<'r, str>, name: &'r str, arguments: Cow<'r, str> },
    FunctionCallOutput { call_id: Cow<'r, str>, output: &'r str },
}

#[derive(Serialize)]
struct Tool<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'r str,
    description: &'r str,
    parameters: Cow<'r, Value>,
    /// By default the provider rewrites schemas, or refuses those that can't be.
    strict: bool,
}

/// E-26's schema.
#[derive(Serialize)]
struct Text<'r> {
    format: Format<'r>,
}

#[derive(Serialize)]
struct Format<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    schema: &'r Value,
    strict: bool,
}

impl<'r> Body<'r> {
    /// The body of `request` for `model`.
    pub(super) fn new(model: &'r str, request: &'r ModelRequest, stream: bool) -> Self {
        let settings = &request.settings;
        let tools = request.tools.iter().map(|tool| Tool {
            kind: "function",
            name: &tool.name,
            description: &tool.description,
            parameters: tool_schema(&tool.input_schema),
            strict: false,
        });
        let format = request.schema.as_ref().map(|schema| Format {
            kind: "json_schema",
            name: schema_name(&schema.name),
            schema: &schema.schema,
            strict: false,
        });
        Self {
            model,
            input: request.messages.iter().flat_map(|message| items(message)).collect(),
            tools: tools.collect(),
            text: format.map(|format| Text { format }),
            temperature: settings.temperature,
            top_p: settings.top_p,
            max_output_tokens: settings.max_tokens,
            store: false,
            stream,
        }
    }
}

/// The items of a message: one, but for an assistant's, whose calls are items of their own. An assistant message that
/// only calls has no item for its empty text.
fn items(message: &Message) -> Vec<Item<'_>> {
    let said = |role| Item::Message { role, content: &message.content };
    match message.role {
        Role::System => vec![said("system")],
        Role::User => vec![said("user")],
        Role::Tool => {
            let id = message.tool_call_id.as_deref().unwrap_or_default();
            vec![Item::FunctionCallOutput { call_id: call_id(id), output: &message.content }]
        }
        Role::Assistant => {
            let mut items = Vec::with_capacity(1 + message.tool_calls.len());
            if !message.content.is_empty() || message.tool_calls.is_empty() {
                items.push(said("assistant"));
            }
            items.extend(message.tool_calls.iter().map(called));
            items
        }
    }
}

fn called(call: &ToolCall) -> Item<'_> {
    let arguments = match &call.arguments {
        nothing if never_came(nothing) => Cow::Borrowed("{}"),
        // What never parsed goes back as the model wrote it (E-10).
        Value::String(text) => Cow::Borrowed(text.as_str()),
        value => Cow::Owned(value.to_string()),
    };
    Item::FunctionCall { call_id: call_id(&call.id), name: &call.name, arguments }
}

/// An id as the protocol takes it. One that is too long is replaced by its hash, in the call and in its result alike.
fn call_id(id: &str) -> Cow<'_, str> {
    if id.chars().nth(ID_LENGTH).is_none() {
        return Cow::Borrowed(id);
    }
    let mut short = "call_".to_owned();
    for byte in Sha256::digest(id.as_bytes()).iter().take(ID_BYTES) {
        // Writing to a string can't fail.
        let _ = write!(short, "{byte:02x}");
    }
    Cow::Owned(short)
}
