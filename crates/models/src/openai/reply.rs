//! Putting a reply together, from the chunks of a stream or from one body. No I/O here.

use super::FUNCTION_MESSAGES;
use crate::protocol::{
    Assembler, ByteBudget, Phase, Refusal, ReplyError, WireQuirks, arguments_in, arguments_in_body,
    arguments_of, count, finished, is_unread, parse,
};
use crate::stop::cut_by;
use selvedge_engine::{Cut, ModelReply, Tokens, ToolCall, Unread};
use serde::Deserialize;
use serde_json::{Value, json};

/// A chunk of a stream, or a whole completion: the two differ by `delta` and `message`.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    object: Option<String>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    delta: Option<Part>,
    #[serde(default)]
    message: Option<Part>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallPart>>,
    /// What calls were before there could be many.
    #[serde(default)]
    function_call: Option<FunctionPart>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize)]
struct ContentPart {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct CallPart {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionPart>,
}

#[derive(Default, Deserialize)]
struct FunctionPart {
    #[serde(default)]
    name: Option<String>,
    #[serde(default, deserialize_with = "arguments_in_body")]
    arguments: Option<Value>,
}

/// A tool call as far as it has come.
#[derive(Default)]
struct Open {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Arguments that came as JSON instead of as text of JSON.
    ready: Option<Value>,
}

/// The reply as far as it has come.
pub(super) struct Reply {
    budget: ByteBudget,
    text: String,
    refusal: String,
    calls: Vec<Open>,
    tokens: Tokens,
    unread: Unread,
    stop: Option<String>,
    began: bool,
    done: bool,
    /// It calls as servers did before there were tools.
    legacy: bool,
}

impl Reply {
    /// An empty reply that may hold `limit` bytes of text and arguments.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            budget: ByteBudget::new(limit),
            text: String::new(),
            refusal: String::new(),
            calls: Vec::new(),
            tokens: Tokens::default(),
            unread: Unread::default(),
            stop: None,
            began: false,
            done: false,
            legacy: false,
        }
    }

    fn take(&mut self, body: &[u8]) -> Result<String, ReplyError> {
        let chunk: Chunk = parse(body)?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(ReplyError::Provider(error));
        }
        if chunk.object.as_deref() == Some("error") {
            // Older vLLM puts the error's fields at the top.
            return Err(ReplyError::Provider(serde_json::from_slice(body).unwrap_or(Value::Null)));
        }
        if let Some(usage) = &chunk.usage {
            self.count(usage);
        }
        let first = chunk.choices.into_iter().flatten().find(|choice| choice.index.unwrap_or(0) == 0);
        match first {
            Some(choice) => self.choice(choice),
            None => Ok(String::new()),
        }
    }

    fn choice(&mut self, choice: Choice) -> Result<String, ReplyError> {
        if let Some(error) = choice.error.filter(|error| !error.is_null()) {
            return Err(ReplyError::Provider(error));
        }
        if choice.finish_reason.as_deref() == Some("error") {
            // OpenRouter's word for a provider that failed behind it.
            return Err(ReplyError::Provider(json!({"message": "finish_reason is `error`"})));
        }
        self.began = true;
        let mut added = String::new();
        if let Some(part) = choice.delta.or(choice.message) {
            if let Some(refusal) = part.refusal {
                self.budget.take(refusal.len())?;
                self.refusal.push_str(&refusal);
            }
            added = part.content.map(|content| self.content(content)).unwrap_or_default();
            self.budget.take(added.len())?;
            self.text.push_str(&added);
            let legacy = part.function_call.filter(|_| part.tool_calls.as_ref().is_none_or(Vec::is_empty));
            for call in part.tool_calls.into_iter().flatten() {
                self.call(call)?;
            }
            if let Some(function) = legacy.filter(FunctionPart::says_something) {
                self.legacy = true;
                self.call(CallPart { index: Some(0), id: None, function: Some(function) })?;
            }
        }
        if let Some(stop) = choice.finish_reason.filter(|stop| !stop.is_empty()) {
            let silent = self.text.is_empty() && self.refusal.is_empty() && self.calls.is_empty();
            if silent && cut_by(&stop) == Some(Cut::Withheld) {
                return Err(Refusal::withheld("stop reason", &stop, ""));
            }
            self.stop = Some(stop);
        }
        Ok(added)
    }

    /// The text of `content`; parts that are not text (reasoning, references) are not the reply's.
    fn content(&mut self, content: Content) -> String {
        let parts = match content {
            Content::Text(text) => return text,
            Content::Parts(parts) => parts,
        };
        let mut text = String::new();
        for part in parts {
            match part.kind.as_deref() {
                None | Some("text" | "output_text") => {
                    text.push_str(part.text.as_deref().unwrap_or_default())
                }
                Some("refusal") => self.refusal.push_str(part.refusal.as_deref().unwrap_or_default()),
                Some(_) => {}
            }
        }
        text
    }

    fn call(&mut self, part: CallPart) -> Result<(), ReplyError> {
        let function = part.function.unwrap_or_default();
        let id = part.id.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let arguments = match function.arguments {
            None | Some(Value::Null) => (String::new(), None),
            Some(Value::String(text)) => (text, None),
            Some(value) => (String::new(), Some(value)),
        };
        let size = arguments.1.as_ref().map_or(0, |value| value.to_string().len());
        // A flood of empty calls must meet the limit too.
        self.budget.take(id.len() + name.len() + arguments.0.len() + size + size_of::<Open>())?;
        let Some(open) = self.slot(part.index, &id, &name) else { return Ok(()) };
        if open.id.is_empty() {
            open.id = id;
        }
        // The name comes whole in one chunk, is repeated in each, or comes in pieces before the arguments.
        if open.name.is_empty() {
            open.name = name;
        } else if open.arguments.is_empty() && !name.is_empty() && name != open.name {
            open.name.push_str(&name);
        }
        open.arguments.push_str(&arguments.0);
        if arguments.1.is_some() {
            open.ready = arguments.1;
        }
        Ok(())
    }

    /// The call that a part belongs to.
    ///
    /// By `index` where it can be trusted. Ollama has sent every call of a reply with index 0, others send none:
    /// a part with both a name and an id of its own begins a call. (Some versions of vLLM send a new id with
    /// every part, but the name only once.)
    fn slot(&mut self, index: Option<u64>, id: &str, name: &str) -> Option<&mut Open> {
        let known = match index {
            Some(index) => self.calls.iter().rposition(|open| open.index == Some(index)),
            None if id.is_empty() && name.is_empty() => self.calls.len().checked_sub(1),
            None if id.is_empty() => None,
            None => self.calls.iter().rposition(|open| open.id == id),
        };
        let another = |open: &Open| {
            !id.is_empty()
                && !name.is_empty()
                && !open.name.is_empty()
                && !open.id.is_empty()
                && open.id != id
        };
        match known.filter(|&at| !self.calls.get(at).is_some_and(another)) {
            Some(at) => self.calls.get_mut(at),
            None => {
                self.calls.push(Open { index, ..Open::default() });
                self.calls.last_mut()
            }
        }
    }
}

impl Assembler for Reply {
    /// Chunks without choices (usage, pings, filters) add no text.
    fn event(&mut self, _name: Option<&str>, data: &str) -> Result<String, ReplyError> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(String::new());
        }
        self.take(data.as_bytes())
    }

    fn whole(&mut self, body: &[u8]) -> Result<String, ReplyError> {
        let text = self.take(body)?;
        if !self.began {
            return Err(ReplyError::Unparsable("it has no choices".to_owned()));
        }
        Ok(text)
    }

    fn phase(&self) -> Phase {
        Phase::of(self.done, self.stop.is_some())
    }

    fn count(&mut self, usage: &Value) {
        let tokens = &mut self.tokens;
        const INPUT: [&str; 2] = ["prompt_tokens", "input_tokens"];
        const OUTPUT: [&str; 2] = ["completion_tokens", "output_tokens"];
        tokens.input = count(usage, &INPUT).unwrap_or(tokens.input);
        tokens.output = count(usage, &OUTPUT).unwrap_or(tokens.output);
        self.unread = Unread { input: is_unread(usage, &INPUT), output: is_unread(usage, &OUTPUT) };
        let part = |of: &str, name: &str| count(usage.get(of)?, &[name]);
        // DeepSeek has a word of its own.
        let cached = part("prompt_tokens_details", "cached_tokens")
            .or_else(|| count(usage, &["prompt_cache_hit_tokens"]));
        tokens.cached = cached.unwrap_or(tokens.cached);
        tokens.reasoning = part("completion_tokens_details", "reasoning_tokens").unwrap_or(tokens.reasoning);
    }

    fn tokens(&self) -> Tokens {
        self.tokens
    }

    fn unread(&self) -> Unread {
        self.unread
    }

    fn learnt(&self) -> WireQuirks {
        if self.legacy { WireQuirks::default().with(FUNCTION_MESSAGES) } else { WireQuirks::default() }
    }

    /// A refusal is text like any other: the run shows it instead of an empty reply.
    fn finish(mut self: Box<Self>) -> ModelReply {
        if self.calls.iter().all(|open| open.index.is_some()) {
            self.calls.sort_by_key(|open| open.index);
        }
        let text = if self.text.is_empty() { self.refusal } else { self.text };
        let calls = self.calls.into_iter().filter(|open| !open.is_nothing()).map(Open::close).collect();
        ModelReply { unread: self.unread, ..finished(text, calls, self.tokens, self.stop) }
    }
}

impl FunctionPart {
    /// Some servers send an empty one with every text.
    fn says_something(&self) -> bool {
        self.name.as_ref().is_some_and(|name| !name.is_empty())
            || self.arguments.as_ref().is_some_and(|arguments| !arguments.is_null() && arguments != "")
    }
}

impl Open {
    /// A slot that nothing but an index was ever said about.
    fn is_nothing(&self) -> bool {
        self.id.is_empty() && self.name.is_empty() && self.arguments.is_empty() && self.ready.is_none()
    }

    fn close(self) -> ToolCall {
        let arguments = match self.ready {
            Some(value) => arguments_in(value),
            None => arguments_of(self.arguments),
        };
        ToolCall { id: self.id.into(), name: self.name.into(), arguments }
    }
}
