//! The body of `generateContent`, made of the shared messages (E-23).

use super::{ALTERNATE, NO_SCHEMA_WITH_TOOLS, OTHER_SIGNATURES, USER_LAST};
use crate::protocol::{WireQuirks, never_came};
use selvedge_engine::{Message, ModelRequest, Role, ToolCall, ToolDef};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// The signature that Google documents for calls that its model did not make, or whose signature is gone.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";
/// The text of a turn that says nothing: an empty one is refused.
const NOTHING: &str = " ";
/// What a model that takes no schema beside tools is told instead, before the schema.
const SHAPE: &str = "When no more tools are needed, answer with JSON only, which fits this JSON Schema: ";
/// Up to here every integer is a number of protobuf's `Struct`, which are doubles.
const EXACT: u64 = 1 << 53;

/// The JSON body, borrowed from the request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'r>>,
    contents: Vec<Content<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'r>; 1]>,
    #[serde(skip_serializing_if = "Settings::is_empty")]
    generation_config: Settings<'r>,
}

#[derive(Serialize)]
struct Content<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<Part<'r>>,
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Part<'r> {
    Text {
        text: Cow<'r, str>,
    },
    Call {
        function_call: Call<'r>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'static str>,
    },
    Answer {
        function_response: Answer<'r>,
    },
}

#[derive(Serialize)]
struct Call<'r> {
    id: &'r str,
    name: &'r str,
    args: Args<'r>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Args<'r> {
    Object(&'r Map<String, Value>),
    Nothing {},
    /// What never parsed goes back as the model wrote it (E-10), under a key since only an object is allowed.
    Text {
        arguments: &'r Value,
    },
}

#[derive(Serialize)]
struct Answer<'r> {
    id: &'r str,
    name: &'r str,
    response: Response<'r>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Response<'r> {
    Object(Map<String, Value>),
    Text { result: &'r str },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'r> {
    function_declarations: Vec<Declaration<'r>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'r> {
    name: &'r str,
    description: &'r str,
    /// JSON Schema as it is; `parameters` would be Google's own subset.
    parameters_json_schema: &'r Value,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Settings<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'r [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// JSON Schema as it is, too (E-26).
    response_json_schema: Option<&'r Value>,
}

impl Settings<'_> {
    fn is_empty(&self) -> bool {
        self.temperature.is_none()
            && self.top_p.is_none()
            && self.max_output_tokens.is_none()
            && self.seed.is_none()
            && self.stop_sequences.is_empty()
            && self.response_json_schema.is_none()
    }
}

impl<'r> Body<'r> {
    /// The body of `request` for `model`.
    pub(super) fn new(model: &str, request: &'r ModelRequest, quirks: WireQuirks) -> Self {
        let settings = &request.settings;
        let signed = wants_signatures(model) != quirks.has(OTHER_SIGNATURES);
        let first = request.messages.iter().take_while(|message| message.role == Role::System).count();
        let (system, rest) = request.messages.split_at(first);
        // Without tools there is no tool choice either: the protocol takes calls in the history of a request that
        // offers no tool, and refuses a tool choice there (E-30, P-15).
        let tools = (!request.tools.is_empty()).then(|| [Tools::of(&request.tools)]);
        let alone = !(tools.is_some() && quirks.has(NO_SCHEMA_WITH_TOOLS));
        let schema = request.schema.as_ref().map(|schema| &schema.schema);
        let told = schema.filter(|_| !alone).map(|schema| format!("{SHAPE}{schema}"));
        let schema = schema.filter(|_| alone);
        let system =
            system.iter().filter(|message| !message.content.is_empty()).map(|message| text(&message.content));
        let parts: Vec<Part<'_>> =
            system.chain(told.map(|told| Part::Text { text: Cow::Owned(told) })).collect();
        Self {
            system_instruction: (!parts.is_empty()).then_some(Content { role: None, parts }),
            contents: turns(contents(rest, signed), quirks),
            tools,
            generation_config: Settings {
                temperature: settings.temperature,
                top_p: settings.top_p,
                max_output_tokens: settings.max_tokens,
                seed: settings.seed,
                stop_sequences: &settings.stop,
                response_mime_type: schema.map(|_| "application/json"),
                response_json_schema: schema,
            },
        }
    }
}

/// A text as a part; an empty one is refused.
fn text(text: &str) -> Part<'_> {
    Part::Text { text: Cow::Borrowed(if text.is_empty() { NOTHING } else { text }) }
}

/// Whether calls go with a signature: since Gemini 3 a call without one is refused.
fn wants_signatures(model: &str) -> bool {
    let model = model.rsplit('/').next().unwrap_or(model);
    !["gemini-1", "gemini-2", "gemma", "learnlm"].iter().any(|old| model.starts_with(old))
}

impl<'r> Tools<'r> {
    fn of(tools: &'r [Arc<ToolDef>]) -> Self {
        let declaration = |tool: &'r Arc<ToolDef>| Declaration {
            name: &tool.name,
            description: &tool.description,
            parameters_json_schema: &tool.input_schema,
        };
        Self { function_declarations: tools.iter().map(declaration).collect() }
    }
}

/// The conversation, a content for each message but for two places where the protocol counts in turns: the results
/// of one message's calls are one turn, and calls continue the turn of an assistant message right before them.
fn contents(messages: &[Arc<Message>], signed: bool) -> Vec<Content<'_>> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut all: Vec<Content<'_>> = Vec::with_capacity(messages.len());
    for message in messages {
        match message.role {
            // A system message within the conversation stays where it is (E-23); there is no role for it.
            Role::System | Role::User => {
                all.push(Content { role: Some("user"), parts: vec![text(&message.content)] });
            }
            Role::Assistant => {
                names.extend(message.tool_calls.iter().map(|call| (&*call.id, &*call.name)));
                let parts = spoken(message, signed);
                match all.last_mut() {
                    Some(last) if !message.tool_calls.is_empty() && last.speaks() => last.parts.extend(parts),
                    _ => all.push(Content { role: Some("model"), parts }),
                }
            }
            Role::Tool => {
                let part = Part::Answer { function_response: answer(message, &names) };
                match all.last_mut() {
                    Some(last) if last.answers() => last.parts.push(part),
                    _ => all.push(Content { role: Some("user"), parts: vec![part] }),
                }
            }
        }
    }
    all
}

/// The contents as turns that the model takes.
fn turns(mut all: Vec<Content<'_>>, quirks: WireQuirks) -> Vec<Content<'_>> {
    let is_users = |content: &Content<'_>| content.role == Some("user");
    let nothing = || Content { role: Some("user"), parts: vec![text(NOTHING)] };
    // Every model wants a conversation to begin with the user's turn, and newer ones that it ends so.
    if !all.first().is_some_and(is_users) {
        all.insert(0, nothing());
    }
    if quirks.has(USER_LAST) && !all.last().is_some_and(is_users) {
        all.push(nothing());
    }
    if quirks.has(ALTERNATE) {
        all.dedup_by(|next, content| {
            let same = next.role == content.role;
            if same {
                content.parts.append(&mut next.parts);
            }
            same
        });
    }
    all
}

impl Content<'_> {
    /// Whether it is a turn of the model without calls.
    fn speaks(&self) -> bool {
        self.role == Some("model") && self.parts.iter().all(|part| matches!(part, Part::Text { .. }))
    }

    /// Whether it is a turn of results.
    fn answers(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Answer { .. }))
    }
}

/// The parts of an assistant message. The first call of a turn has the signature of all of them.
fn spoken(message: &Message, signed: bool) -> Vec<Part<'_>> {
    let mut parts = Vec::with_capacity(1 + message.tool_calls.len());
    if !message.content.is_empty() || message.tool_calls.is_empty() {
        parts.push(text(&message.content));
    }
    for (number, call) in message.tool_calls.iter().enumerate() {
        let thought_signature = (signed && number == 0).then_some(NO_SIGNATURE);
        parts.push(Part::Call { function_call: called(call), thought_signature });
    }
    parts
}

fn called(call: &ToolCall) -> Call<'_> {
    let args = match &call.arguments {
        Value::Object(object) => Args::Object(object),
        nothing if never_came(nothing) => Args::Nothing {},
        other => Args::Text { arguments: other },
    };
    Call { id: &call.id, name: &call.name, args }
}

fn answer<'r>(message: &'r Message, names: &HashMap<&'r str, &'r str>) -> Answer<'r> {
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    let name = names.get(id).copied().or(message.name.as_deref()).unwrap_or_default();
    let text = &*message.content;
    Answer { id, name, response: object(text).map_or(Response::Text { result: text }, Response::Object) }
}

/// The object that `text` is, if the object says exactly what the text does (E-24): the same characters once written
/// again, and no number that a double can't hold.
fn object(text: &str) -> Option<Map<String, Value>> {
    if !text.starts_with('{') {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    if !exact(&value) || serde_json::to_string(&value).ok()? != text {
        return None;
    }
    match value {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

fn exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => integer.unsigned_abs() <= EXACT,
            (None, Some(integer)) => integer <= EXACT,
            (None, None) => true,
        },
        Value::Array(items) => items.iter().all(exact),
        Value::Object(fields) => fields.values().all(exact),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}
