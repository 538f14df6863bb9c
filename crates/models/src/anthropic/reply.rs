//! Putting a reply together, from the events of a stream or from one body. No I/O here.

use super::schema::ReplyTool;
use crate::protocol::{
    Assembler, ByteBudget, Phase, Refusal, ReplyError, arguments_in, arguments_in_body, arguments_of, count,
    finished, is_unread, parse,
};
use crate::stop::cut_by;
use selvedge_engine::{ModelReply, Tokens, ToolCall, Unread};
use serde::Deserialize;
use serde_json::{Map, Value};

/// One event of a stream. Events of kinds that are not known have none of these fields.
#[derive(Deserialize)]
struct Event {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    index: u64,
    #[serde(default)]
    message: Option<Body>,
    #[serde(default)]
    content_block: Option<Content>,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

/// A whole message, which is also what a stream begins with.
#[derive(Deserialize)]
struct Body {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    content: Option<Vec<Content>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    stop_details: Option<Value>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default, deserialize_with = "arguments_in_body")]
    input: Option<Value>,
}

/// What an event adds to a block, or to the message.
#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    partial_json: Option<String>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    stop_details: Option<Value>,
}

/// A tool call as far as it has come.
struct Open {
    index: u64,
    id: String,
    name: String,
    arguments: String,
    input: Value,
}

/// The reply as far as it has come.
pub(super) struct Reply {
    budget: ByteBudget,
    tool: Option<ReplyTool>,
    text: String,
    calls: Vec<Open>,
    usage: [Option<u64>; 5],
    unread: Unread,
    stop: Option<String>,
    details: Option<Value>,
    ended: bool,
}

/// What `usage` counts: the prompt without its cached parts, those written to the cache, those read from it, the
/// reply, and the thoughts in it.
const COUNTS: [&str; 4] =
    ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];

impl Reply {
    /// An empty reply of at most `limit` bytes of text and arguments; a call of `tool` is the reply itself.
    pub(super) fn new(tool: Option<ReplyTool>, limit: usize) -> Self {
        Self {
            budget: ByteBudget::new(limit),
            tool,
            text: String::new(),
            calls: Vec::new(),
            usage: [None; 5],
            unread: Unread::default(),
            stop: None,
            details: None,
            ended: false,
        }
    }

    fn body(&mut self, body: Body) -> Result<String, ReplyError> {
        self.counts(body.usage.as_ref());
        self.stopped(body.stop_reason, body.stop_details);
        let mut added = String::new();
        for (index, content) in (0..).zip(body.content.into_iter().flatten()) {
            added.push_str(&self.block(index, content)?);
        }
        Ok(added)
    }

    /// Begins a block. Thoughts, and tools that the provider runs itself, are not the reply's.
    fn block(&mut self, index: u64, content: Content) -> Result<String, ReplyError> {
        match content.kind.as_str() {
            "text" => self.say(content.text),
            "tool_use" => {
                let (id, name) = (content.id.unwrap_or_default(), content.name.unwrap_or_default());
                let input = content.input.unwrap_or(Value::Null);
                let size = if input.is_null() { 0 } else { input.to_string().len() };
                // A flood of empty calls must meet the limit too.
                self.budget.take(id.len() + name.len() + size + size_of::<Open>())?;
                self.calls.push(Open { index, id, name, arguments: String::new(), input });
                Ok(String::new())
            }
            _ => Ok(String::new()),
        }
    }

    fn say(&mut self, text: Option<String>) -> Result<String, ReplyError> {
        let text = text.unwrap_or_default();
        self.budget.take(text.len())?;
        self.text.push_str(&text);
        Ok(text)
    }

    fn delta(&mut self, index: u64, delta: Delta) -> Result<String, ReplyError> {
        if let Some(json) = delta.partial_json {
            self.budget.take(json.len())?;
            let open = self.calls.iter_mut().rev().find(|open| open.index == index);
            // Without a call of that index it belongs to a tool that the provider runs itself.
            if let Some(open) = open {
                open.arguments.push_str(&json);
            }
        }
        self.say(delta.text)
    }

    fn stopped(&mut self, reason: Option<String>, details: Option<Value>) {
        self.stop = reason.filter(|reason| !reason.is_empty()).or(self.stop.take());
        self.details = details.or(self.details.take());
    }

    /// Figures are sums so far. Some servers begin with zeros, others end with them.
    fn counts(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        let thoughts = usage
            .get("output_tokens_details")
            .and_then(|inner| count(inner, &["thinking_tokens", "reasoning_tokens"]));
        let found = COUNTS.iter().map(|name| count(usage, &[name])).chain([thoughts]);
        for (known, new) in self.usage.iter_mut().zip(found) {
            *known = new.max(*known);
        }
        // Two events bring figures, the second one those of the reply.
        for name in COUNTS.iter().filter(|name| is_unread(usage, &[name])) {
            let unread = &mut self.unread;
            if *name == "output_tokens" { unread.output = true } else { unread.input = true }
        }
    }

    /// A refusal without a word before it. Words are a reply, whatever they say.
    fn refused(&self) -> Result<(), ReplyError> {
        let silent = self.text.is_empty() && self.calls.is_empty();
        let Some(reason) = self.stop.as_ref().filter(|stop| silent && *stop == "refusal") else {
            return Ok(());
        };
        let why = self.details.as_ref().and_then(|details| details.get("explanation")?.as_str());
        Err(ReplyError::Refused(Refusal {
            what: "the model refused to answer",
            field: "stop reason",
            reason: reason.clone(),
            detail: why.unwrap_or_default().to_owned(),
        }))
    }

    fn spent(&self) -> Tokens {
        let [fresh, written, read, output, thoughts] = self.usage.map(Option::unwrap_or_default);
        Tokens {
            input: fresh.saturating_add(written).saturating_add(read),
            output,
            cached: read,
            reasoning: thoughts,
            ..Tokens::default()
        }
    }
}

impl Assembler for Reply {
    fn event(&mut self, _name: Option<&str>, data: &str) -> Result<String, ReplyError> {
        // Some gateways end every stream like OpenAI's.
        if data.trim() == "[DONE]" {
            self.ended = true;
            return Ok(String::new());
        }
        let event: Event = parse(data.as_bytes())?;
        if let Some(error) = event.error.filter(|error| !error.is_null()) {
            return Err(ReplyError::Provider(error));
        }
        self.counts(event.usage.as_ref());
        match (event.kind.as_str(), event.message, event.content_block, event.delta) {
            ("message_start", Some(message), ..) => self.body(message),
            ("content_block_start", _, Some(content), _) => self.block(event.index, content),
            ("content_block_delta", .., Some(delta)) => self.delta(event.index, delta),
            ("message_delta", .., Some(delta)) => {
                self.stopped(delta.stop_reason, delta.stop_details);
                self.refused()?;
                Ok(String::new())
            }
            ("message_stop", ..) => {
                self.ended = true;
                Ok(String::new())
            }
            _ => Ok(String::new()),
        }
    }

    fn whole(&mut self, body: &[u8]) -> Result<String, ReplyError> {
        let body: Body = parse(body)?;
        if let Some(error) = body.error.filter(|error| !error.is_null()) {
            return Err(ReplyError::Provider(error));
        }
        if body.kind == "error" || body.content.is_none() {
            return Err(ReplyError::Unparsable("it has no content".to_owned()));
        }
        let text = self.body(Body { error: None, ..body })?;
        self.refused()?;
        Ok(text)
    }

    fn phase(&self) -> Phase {
        Phase::of(self.ended, self.stop.is_some())
    }

    fn count(&mut self, usage: &Value) {
        self.counts(Some(usage));
    }

    fn tokens(&self) -> Tokens {
        self.spent()
    }

    fn unread(&self) -> Unread {
        self.unread
    }

    /// A call of the reply's own tool is the text, unless other tools are called too: then the reply is yet to come.
    fn finish(self: Box<Self>) -> ModelReply {
        let tokens = self.spent();
        let calls = self.calls.into_iter().map(Open::close);
        let is_reply = |call: &ToolCall| self.tool.as_ref().is_some_and(|tool| *tool.name == *call.name);
        let (replies, calls): (Vec<ToolCall>, Vec<ToolCall>) = calls.partition(is_reply);
        let whole = self.stop.as_deref().is_none_or(|stop| cut_by(stop).is_none());
        let mut text = self.text;
        if let (true, Some(tool), Some(reply)) = (calls.is_empty(), &self.tool, replies.into_iter().next()) {
            match reply.arguments {
                Value::Null if !whole => {}
                Value::Null => text = tool.reply(Value::Object(Map::new())),
                input => text = tool.reply(input),
            }
        }
        ModelReply { unread: self.unread, ..finished(text, calls, tokens, self.stop) }
    }
}

impl Open {
    /// Arguments come in pieces of text, or whole where a server does not stream them (E-10). An empty `input` is
    /// also what a block begins with before any of them came.
    fn close(self) -> ToolCall {
        let arguments = match arguments_in(self.input) {
            _ if !self.arguments.is_empty() => arguments_of(self.arguments),
            Value::Object(fields) if fields.is_empty() => Value::Null,
            input => input,
        };
        ToolCall { id: self.id.into(), name: self.name.into(), arguments }
    }
}
