//! The body of a request, written straight from the shared messages (E-23).

use super::schema::{ReplyTool, native};
use super::{NO_FORCED_TOOL, NO_PREFILL, SCHEMA_AS_TOOL, max_tokens};
use crate::protocol::{WireQuirks, never_came, tool_schema, wire_id};
use selvedge_engine::{Message, ModelRequest, Role, ToolDef};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// The smallest user message, for places where the API wants one and the conversation has none: before a first
/// message of the assistant, or instead of an empty one.
const NOTHING: &str = ".";
/// What asks a model to speak after its own message, where that may not be the last.
const GO_ON: &str = "Continue.";
/// What the tool that stands for a schema says about itself.
const REPLY_TOOL: &str = "Gives the reply to the conversation in the form that is asked for.";

/// The JSON body, borrowed from the request.
#[derive(Serialize)]
pub(super) struct Body<'r> {
    model: &'r str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'r>>,
    messages: Vec<Turn<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'r [String],
    stream: bool,
}

/// What one side says until the other one speaks.
#[derive(Serialize)]
struct Turn<'r> {
    role: &'static str,
    content: Vec<Block<'r>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'r> {
    Text {
        text: &'r str,
    },
    ToolUse {
        id: Cow<'r, str>,
        name: &'r str,
        input: Input<'r>,
    },
    ToolResult {
        tool_use_id: Cow<'r, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        content: &'r str,
    },
}

/// The arguments of a call: an object, whatever they were (E-10).
struct Input<'r>(&'r Value);

impl Serialize for Input<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => fields.serialize(serializer),
            nothing if never_came(nothing) => Map::new().serialize(serializer),
            // What never parsed goes back as the model wrote it, under a name.
            other => serializer.collect_map([("arguments", other)]),
        }
    }
}

#[derive(Serialize)]
struct Tool<'r> {
    name: Cow<'r, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'r str,
    input_schema: Cow<'r, Value>,
}

impl<'r> Body<'r> {
    /// The body of `request` in a form that the endpoint takes.
    pub(super) fn new(model: &'r str, request: &'r ModelRequest, quirks: WireQuirks) -> Self {
        let settings = &request.settings;
        let (system, messages) = turns(&request.messages, quirks);
        let output = output_config(request, quirks);
        let (tools, tool_choice) = tools(request, quirks, output.is_none());
        Self {
            model,
            max_tokens: max_tokens(request, quirks),
            system,
            messages,
            tools,
            tool_choice,
            output_config: output,
            temperature: settings.temperature,
            top_p: settings.top_p,
            stop_sequences: &settings.stop,
            stream: true,
        }
    }
}

fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// The system's blocks, and the conversation by turns. Nothing is left out but text of white space alone, which is
/// refused. Neighbours of one role become blocks of one turn, as the API would join them; what the system says
/// within the conversation stays in its place, as the user's.
fn turns(messages: &[Arc<Message>], quirks: WireQuirks) -> (Vec<Block<'_>>, Vec<Turn<'_>>) {
    let leading = messages.iter().take_while(|message| message.role == Role::System).count();
    let (first, rest) = messages.split_at_checked(leading).unwrap_or((messages, &[]));
    let system = first.iter().flat_map(|message| text(&message.content)).collect();
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for message in rest {
        let (role, blocks) = blocks(message);
        match turns.last_mut().filter(|turn| turn.role == role) {
            Some(turn) => turn.content.extend(blocks),
            None if role == "assistant" && blocks.is_empty() => {}
            None => turns.push(Turn { role, content: blocks }),
        }
    }
    for turn in turns.iter_mut().filter(|turn| turn.content.is_empty()) {
        turn.content.extend(text(NOTHING));
    }
    if turns.first().is_none_or(|turn| turn.role == "assistant") {
        turns.insert(0, Turn { role: "user", content: text(NOTHING).collect() });
    }
    if let Some(turn) = turns.last_mut().filter(|turn| turn.role == "assistant") {
        // White space at the end of such a turn is refused.
        if let Some(Block::Text { text }) = turn.content.last_mut() {
            *text = text.trim_end();
        }
        if quirks.has(NO_PREFILL) {
            turns.push(Turn { role: "user", content: text(GO_ON).collect() });
        }
    }
    (system, turns)
}

fn text(text: &str) -> impl Iterator<Item = Block<'_>> {
    Some(Block::Text { text }).filter(|_| !blank(text)).into_iter()
}

fn blocks(message: &Message) -> (&'static str, Vec<Block<'_>>) {
    match (message.role, &message.tool_call_id) {
        (Role::Assistant, _) => {
            let calls = message.tool_calls.iter().map(|call| Block::ToolUse {
                id: wire_id(&call.id),
                name: &call.name,
                input: Input(&call.arguments),
            });
            ("assistant", text(&message.content).chain(calls).collect())
        }
        (Role::Tool, Some(id)) => {
            ("user", vec![Block::ToolResult { tool_use_id: wire_id(id), content: &message.content }])
        }
        _ => ("user", text(&message.content).collect()),
    }
}

/// The schema as the API's own kind of structured reply, where it can be said so.
fn output_config(request: &ModelRequest, quirks: WireQuirks) -> Option<Value> {
    let schema = request.schema.as_ref().filter(|_| !quirks.has(SCHEMA_AS_TOOL))?;
    Some(json!({"format": {"type": "json_schema", "schema": native(&schema.schema)?}}))
}

/// The tools, and which of them the model may call.
///
/// A request without tools over a history with calls still defines the tools of that history and forbids their use
/// (E-30), as the graph knows them. Of one that it does not know there is a name, which is all that is asked.
fn tools<'r>(
    request: &'r ModelRequest,
    quirks: WireQuirks,
    schema_as_tool: bool,
) -> (Vec<Tool<'r>>, Option<Value>) {
    let mut tools: Vec<Tool<'_>> = request.tools.iter().map(|tool| defined(tool)).collect();
    let offered = !tools.is_empty();
    if !offered {
        for call in request.messages.iter().flat_map(|message| &message.tool_calls) {
            if !tools.iter().any(|tool| *tool.name == *call.name) {
                let known = request.known.iter().find(|tool| tool.name == call.name);
                let input_schema = Cow::Owned(json!({"type": "object", "properties": {}}));
                let stub = || Tool { name: Cow::Borrowed(&call.name), description: "", input_schema };
                tools.push(known.map(|tool| defined(tool)).unwrap_or_else(stub));
            }
        }
    }
    let choice = (!offered && !tools.is_empty()).then(|| json!({"type": "none"}));
    let reply = ReplyTool::of(request).filter(|_| schema_as_tool);
    let (Some(reply), Some(schema)) = (reply, &request.schema) else { return (tools, choice) };
    let choice = match (quirks.has(NO_FORCED_TOOL), offered) {
        (true, _) => json!({"type": "auto"}),
        (false, true) => json!({"type": "any"}),
        (false, false) => json!({"type": "tool", "name": reply.name}),
    };
    let input_schema = Cow::Owned(reply.input_schema(&schema.schema));
    tools.push(Tool { name: reply.name.into(), description: REPLY_TOOL, input_schema });
    (tools, Some(choice))
}

fn defined(tool: &ToolDef) -> Tool<'_> {
    Tool {
        name: Cow::Borrowed(&tool.name),
        description: &tool.description,
        input_schema: tool_schema(&tool.input_schema),
    }
}
