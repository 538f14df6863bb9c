//! The body of a chat completion request, written straight from the shared messages (E-23).

mod legacy;

use super::{
    COMPLETION_TOKENS, FUNCTION_MESSAGES, FUNCTIONS, NO_STREAM, NO_STREAM_OPTIONS, OBJECT_ARGUMENTS,
    SHORT_IDS, no_extra,
};
use crate::protocol::{WireQuirks, never_came, schema_name, short_id, tool_schema};
use selvedge_engine::{Message, ModelRequest, ReplySchema, Role, ToolCall, ToolDef};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// The JSON body, borrowed from the request.
pub(super) struct Body<'r> {
    /// The model's name at the endpoint.
    pub(super) model: &'r str,
    /// What to ask.
    pub(super) request: &'r ModelRequest,
    /// What this endpoint was found not to take.
    pub(super) quirks: WireQuirks,
    /// Whether `settings.extra` is sent (P-26).
    pub(super) extras: bool,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (request, settings) = (self.request, &self.request.settings);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.model)?;
        map.serialize_entry("messages", &Messages(&request.messages, self.quirks))?;
        if !request.tools.is_empty() {
            if self.quirks.has(FUNCTIONS) {
                map.serialize_entry("functions", &Functions(&request.tools))?;
            } else {
                map.serialize_entry("tools", &Tools(&request.tools))?;
            }
        }
        if let Some(schema) = &request.schema {
            map.serialize_entry("response_format", &Format(schema))?;
        }
        if let Some(temperature) = settings.temperature {
            map.serialize_entry("temperature", &temperature)?;
        }
        if let Some(top_p) = settings.top_p {
            map.serialize_entry("top_p", &top_p)?;
        }
        if let Some(max_tokens) = settings.max_tokens {
            let key = if self.quirks.has(COMPLETION_TOKENS) { "max_completion_tokens" } else { "max_tokens" };
            map.serialize_entry(key, &max_tokens)?;
        }
        if let Some(seed) = settings.seed {
            map.serialize_entry("seed", &seed)?;
        }
        if !settings.stop.is_empty() {
            map.serialize_entry("stop", &settings.stop)?;
        }
        map.serialize_entry("stream", &!self.quirks.has(NO_STREAM))?;
        if !self.quirks.has(NO_STREAM) && !self.quirks.has(NO_STREAM_OPTIONS) {
            map.serialize_entry("stream_options", &Pairs(&[("include_usage", &true)]))?;
        }
        if self.extras {
            for (key, value) in settings.extra.iter().filter(|(key, _)| !self.quirks.has(no_extra(key))) {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

/// A small object whose values have one type.
struct Pairs<'p, V>(&'p [(&'static str, &'p V)]);

impl<V: Serialize> Serialize for Pairs<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

struct Messages<'r>(&'r [Arc<Message>], WireQuirks);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.1.has(FUNCTION_MESSAGES) {
            return legacy::Messages(self.0, self.1).serialize(serializer);
        }
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for message in self.0 {
            list.serialize_element(&Sent(message, self.1))?;
        }
        list.end()
    }
}

/// One message. `content` is always a string: empty text of an assistant that only calls tools is `""`, which
/// chat templates print as nothing, where `null` becomes the word `None` in some.
struct Sent<'r>(&'r Message, WireQuirks);

impl Serialize for Sent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", role(message.role))?;
        map.serialize_entry("content", &*message.content)?;
        if !message.tool_calls.is_empty() {
            map.serialize_entry("tool_calls", &Calls(&message.tool_calls, self.1))?;
        }
        if let Some(id) = &message.tool_call_id {
            map.serialize_entry("tool_call_id", &call_id(id, self.1))?;
        }
        map.end()
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// The id of a call, the same in the call and in its result.
fn call_id(id: &str, quirks: WireQuirks) -> Cow<'_, str> {
    if quirks.has(SHORT_IDS) { short_id(id) } else { Cow::Borrowed(id) }
}

struct Calls<'r>(&'r [ToolCall], WireQuirks);

impl Serialize for Calls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|call| Call(call, self.1)))
    }
}

struct Call<'r>(&'r ToolCall, WireQuirks);

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("id", &call_id(&self.0.id, self.1))?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &Function(self.0, self.1))?;
        map.end()
    }
}

struct Function<'r>(&'r ToolCall, WireQuirks);

impl Serialize for Function<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("name", &*self.0.name)?;
        match &self.0.arguments {
            nothing if never_came(nothing) => map.serialize_entry("arguments", "{}")?,
            // What never parsed goes back as the model wrote it (E-10), or under a name where it must be an object.
            text @ Value::String(_) if self.1.has(OBJECT_ARGUMENTS) => {
                map.serialize_entry("arguments", &AsText(&json!({"arguments": text})))?
            }
            Value::String(text) => map.serialize_entry("arguments", text)?,
            value => map.serialize_entry("arguments", &AsText(value))?,
        }
        map.end()
    }
}

/// A JSON value as a string that holds its compact text.
struct AsText<'r>(&'r Value);

impl Serialize for AsText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

struct Tools<'r>(&'r [Arc<ToolDef>]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|tool| Tool(tool)))
    }
}

struct Tool<'r>(&'r ToolDef);

impl Serialize for Tool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &Definition(self.0))?;
        map.end()
    }
}

/// What a function is to the model.
struct Definition<'r>(&'r ToolDef);

impl Serialize for Definition<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolDef { name, description, input_schema, .. } = self.0;
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("name", &**name)?;
        map.serialize_entry("description", &**description)?;
        map.serialize_entry("parameters", &*tool_schema(input_schema))?;
        map.end()
    }
}

struct Functions<'r>(&'r [Arc<ToolDef>]);

impl Serialize for Functions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|tool| Definition(tool)))
    }
}

/// E-26's `response_format`.
struct Format<'r>(&'r ReplySchema);

impl Serialize for Format<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Named<'n> {
            name: String,
            schema: &'n Value,
        }
        let named = Named { name: schema_name(&self.0.name), schema: &self.0.schema };
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "json_schema")?;
        map.serialize_entry("json_schema", &named)?;
        map.end()
    }
}
