//! Putting a reply together from the chunks of `streamGenerateContent`. No I/O here.

use crate::protocol::{
    Assembler, ByteBudget, Phase, Refusal, ReplyError, arguments_in, arguments_in_body, count, finished,
    is_unread, parse,
};
use crate::stop::is_withheld;
use selvedge_engine::{ModelReply, Tokens, ToolCall, Unread};
use serde::Deserialize;
use serde_json::{Value, json};

/// A chunk of a stream, or a whole reply.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    #[serde(default)]
    candidates: Option<Vec<Candidate>>,
    #[serde(default)]
    prompt_feedback: Option<Feedback>,
    #[serde(default)]
    usage_metadata: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    #[serde(default)]
    block_reason: Option<String>,
    #[serde(default)]
    block_reason_message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(default)]
    function_call: Option<Call>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default, deserialize_with = "arguments_in_body")]
    args: Option<Value>,
}

/// What a finish reason says about the reply before it.
enum Verdict {
    /// It is what the model had to say.
    Whole,
    /// The rest of it was held back.
    Withheld,
    /// A call of the model's was lost.
    Lost,
}

/// Google's figures (E-20).
#[derive(Default)]
struct Counts {
    prompt: u64,
    cached: u64,
    tools: u64,
    said: u64,
    thought: u64,
}

impl Counts {
    /// Thoughts are paid for as output, and what a tool of the provider's own adds to the prompt as input.
    fn tokens(&self) -> Tokens {
        Tokens {
            input: self.prompt.saturating_add(self.tools),
            output: self.said.saturating_add(self.thought),
            cached: self.cached,
            reasoning: self.thought,
            ..Tokens::default()
        }
    }
}

/// The reply as far as it has come.
pub(super) struct Reply {
    budget: ByteBudget,
    text: String,
    calls: Vec<ToolCall>,
    counts: Counts,
    unread: Unread,
    stop: Option<String>,
    began: bool,
    ended: bool,
}

impl Reply {
    /// An empty reply that may hold `limit` bytes of text and arguments.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            budget: ByteBudget::new(limit),
            text: String::new(),
            calls: Vec::new(),
            counts: Counts::default(),
            unread: Unread::default(),
            stop: None,
            began: false,
            ended: false,
        }
    }

    /// Takes a chunk or a list of them: without `alt=sse` a stream is one JSON array, and so are some errors.
    fn take(&mut self, body: &[u8]) -> Result<String, ReplyError> {
        if body.trim_ascii_start().first() != Some(&b'[') {
            return self.chunk(parse(body)?);
        }
        let mut added = String::new();
        for chunk in parse::<Vec<Chunk>>(body)? {
            added.push_str(&self.chunk(chunk)?);
        }
        Ok(added)
    }

    fn chunk(&mut self, chunk: Chunk) -> Result<String, ReplyError> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(ReplyError::Provider(error));
        }
        if let Some(usage) = &chunk.usage_metadata {
            self.count(usage);
        }
        let mut added = String::new();
        let first =
            chunk.candidates.into_iter().flatten().find(|candidate| candidate.index.unwrap_or(0) == 0);
        if let Some(candidate) = first {
            added = self.candidate(candidate)?;
        }
        if let Some(feedback) = chunk.prompt_feedback {
            self.feedback(feedback)?;
        }
        Ok(added)
    }

    fn candidate(&mut self, candidate: Candidate) -> Result<String, ReplyError> {
        self.began = true;
        let mut added = String::new();
        for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
            if let Some(call) = part.function_call {
                self.call(call)?;
            }
            // Thoughts are summaries of the model's reasoning, not the reply.
            if let Some(text) = part.text.filter(|_| part.thought != Some(true)) {
                self.budget.take(text.len())?;
                added.push_str(&text);
            }
        }
        self.text.push_str(&added);
        let reason = candidate.finish_reason.filter(|reason| !is_unspecified(reason));
        if let Some(reason) = reason {
            let detail = candidate.finish_message.unwrap_or_default();
            match verdict(&reason) {
                Verdict::Withheld if self.is_empty() => {
                    return Err(Refusal::withheld("finishReason", &reason, &detail));
                }
                // What the model did not get to call is no reply: it is asked again, as for an unreadable body (E-14).
                Verdict::Lost => {
                    return Err(ReplyError::Provider(json!({"message": said(&reason, &detail)})));
                }
                Verdict::Whole | Verdict::Withheld => self.stop = Some(reason),
            }
        }
        Ok(added)
    }

    fn feedback(&mut self, feedback: Feedback) -> Result<(), ReplyError> {
        let Some(reason) = feedback.block_reason.filter(|reason| !is_unspecified(reason)) else {
            return Ok(());
        };
        if self.is_empty() {
            let detail = feedback.block_reason_message.unwrap_or_default();
            let (what, field) = ("the provider blocked the prompt", "blockReason");
            return Err(ReplyError::Refused(Refusal { what, field, reason, detail }));
        }
        self.stop.get_or_insert(reason);
        Ok(())
    }

    /// Calls come whole, one part each (E-10). Older models give them no ids.
    fn call(&mut self, call: Call) -> Result<(), ReplyError> {
        let (id, name) = (call.id.unwrap_or_default(), call.name.unwrap_or_default());
        let arguments = arguments_in(call.args.unwrap_or_default());
        self.budget.take(id.len() + name.len() + arguments.to_string().len() + size_of::<ToolCall>())?;
        self.calls.push(ToolCall { id: id.into(), name: name.into(), arguments });
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty()
    }
}

impl Assembler for Reply {
    fn event(&mut self, _name: Option<&str>, data: &str) -> Result<String, ReplyError> {
        // Google ends a stream by closing it; gateways add the word of chat completions.
        if data.trim() == "[DONE]" {
            self.ended = true;
            return Ok(String::new());
        }
        self.take(data.as_bytes())
    }

    fn whole(&mut self, body: &[u8]) -> Result<String, ReplyError> {
        let text = self.take(body)?;
        if !self.began {
            return Err(ReplyError::Unparsable("it has no candidates".to_owned()));
        }
        Ok(text)
    }

    fn phase(&self) -> Phase {
        Phase::of(self.ended, self.stop.is_some())
    }

    /// Each chunk has the counts so far, or some of them.
    fn count(&mut self, usage: &Value) {
        let Counts { prompt, cached, tools, said, thought } = &mut self.counts;
        for (name, known) in [
            ("promptTokenCount", prompt),
            ("cachedContentTokenCount", cached),
            ("toolUsePromptTokenCount", tools),
            ("candidatesTokenCount", said),
            ("thoughtsTokenCount", thought),
        ] {
            *known = count(usage, &[name]).unwrap_or(*known);
        }
        let any = |names: [&str; 2]| names.iter().any(|name| is_unread(usage, &[name]));
        self.unread = Unread {
            input: any(["promptTokenCount", "toolUsePromptTokenCount"]),
            output: any(["candidatesTokenCount", "thoughtsTokenCount"]),
        };
    }

    fn tokens(&self) -> Tokens {
        self.counts.tokens()
    }

    fn unread(&self) -> Unread {
        self.unread
    }

    fn finish(self: Box<Self>) -> ModelReply {
        let reply = finished(self.text, self.calls, self.counts.tokens(), self.stop);
        ModelReply { unread: self.unread, ..reply }
    }
}

fn is_unspecified(reason: &str) -> bool {
    reason.is_empty() || reason.ends_with("_UNSPECIFIED")
}

fn verdict(reason: &str) -> Verdict {
    match reason {
        "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" => {
            Verdict::Lost
        }
        reason if is_withheld(reason) => Verdict::Withheld,
        // Of the end of its text, its limit, and what is not known the reply says enough.
        _ => Verdict::Whole,
    }
}

fn said(reason: &str, detail: &str) -> String {
    if detail.is_empty() {
        format!("it stopped with {reason}")
    } else {
        format!("it stopped with {reason}: {detail}")
    }
}
