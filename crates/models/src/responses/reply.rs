//! Putting a reply together from the events of a response. No I/O here.
//!
//! The same words come up to four times: as deltas, whole when their part is done, in the finished item, and in the
//! finished response. Servers leave out any of them. Each later form replaces what the earlier ones gave, so that
//! nothing is doubled and one of them is enough.

mod items;

use crate::protocol::{Assembler, ByteBudget, Phase, Refusal, ReplyError, count, finished, is_unread, parse};
use crate::stop::cut_by;
use items::{Items, Kind};
use selvedge_engine::{ModelReply, Tokens, Unread};
use serde_json::{Value, json};

/// The status of a response or an item that is not whole, and why where nothing else is said.
const INCOMPLETE: &str = "incomplete";

/// The reply as far as it has come.
pub(super) struct Reply {
    budget: ByteBudget,
    items: Items,
    tokens: Tokens,
    unread: Unread,
    stop: Option<String>,
    ended: bool,
}

impl Reply {
    /// An empty reply that may hold `limit` bytes of text and arguments.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            budget: ByteBudget::new(limit),
            items: Items::default(),
            tokens: Tokens::default(),
            unread: Unread::default(),
            stop: None,
            ended: false,
        }
    }

    fn take(&mut self, kind: &str, event: &Value) -> Result<String, ReplyError> {
        let (items, budget) = (&mut self.items, &mut self.budget);
        let place = items::Place::of(event);
        match kind {
            "response.output_item.added" => items.added(budget, &place, field(event, "item")),
            "response.output_item.done" => items.done(budget, &place, field(event, "item")),
            "response.content_part.done" => items.part_done(budget, &place, field(event, "part")),
            "response.output_text.delta" => items.more(budget, &place, Kind::Text, field(event, "delta")),
            "response.output_text.done" => items.settle(budget, &place, Kind::Text, field(event, "text")),
            "response.refusal.delta" => items.more(budget, &place, Kind::Refusal, field(event, "delta")),
            "response.refusal.done" => items.settle(budget, &place, Kind::Refusal, field(event, "refusal")),
            "response.function_call_arguments.delta" => {
                items.more(budget, &place, Kind::Arguments, field(event, "delta"))
            }
            "response.function_call_arguments.done" => {
                items.settle(budget, &place, Kind::Arguments, field(event, "arguments"))
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => {
                self.ended = true;
                self.close(field(event, "response"), kind)
            }
            // Progress, reasoning, and what the provider's own tools do.
            _ => Ok(String::new()),
        }
    }

    /// Takes the finished response, whose event is `kind`, and returns the text that only it has.
    fn close(&mut self, response: &Value, kind: &str) -> Result<String, ReplyError> {
        if let Some(usage) = response.get("usage") {
            self.count(usage);
        }
        let ending = response.get("status").and_then(Value::as_str);
        match ending.unwrap_or(kind.strip_prefix("response.").unwrap_or(kind)) {
            "failed" => return Err(ReplyError::Provider(failure(response, "the response failed"))),
            "cancelled" => return Err(ReplyError::Provider(failure(response, "the response was cancelled"))),
            _ => {}
        }
        let added = self.items.replace(&mut self.budget, response.get("output"))?;
        let reason = field(field(response, "incomplete_details"), "reason").as_str();
        if reason == Some("content_filter") && self.items.is_empty() {
            return Err(Refusal::withheld("stop reason", "content_filter", ""));
        }
        let incomplete = kind == "response.incomplete" || ending == Some(INCOMPLETE);
        let word = reason.unwrap_or(if incomplete { INCOMPLETE } else { "completed" });
        self.stop = Some(word.to_owned());
        Ok(added)
    }
}

impl Assembler for Reply {
    fn event(&mut self, name: Option<&str>, data: &str) -> Result<String, ReplyError> {
        // Not this protocol's word, but gateways say it.
        if data.trim() == "[DONE]" {
            self.ended = true;
            return Ok(String::new());
        }
        let event: Value = parse(data.as_bytes())?;
        let kind = event.get("type").and_then(Value::as_str).or(name).unwrap_or_default();
        let inner = event.get("error").filter(|error| !error.is_null());
        match (kind, inner) {
            ("error", inner) => Err(ReplyError::Provider(inner.unwrap_or(&event).clone())),
            (kind, Some(inner)) if !kind.starts_with("response.") => Err(ReplyError::Provider(inner.clone())),
            (kind, _) => self.take(kind, &event),
        }
    }

    fn whole(&mut self, body: &[u8]) -> Result<String, ReplyError> {
        let response: Value = parse(body)?;
        if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
            return Err(ReplyError::Provider(error.clone()));
        }
        if field(&response, "type") == "error" {
            return Err(ReplyError::Provider(response));
        }
        let unfinished = matches!(field(&response, "status").as_str(), Some("queued" | "in_progress"));
        if unfinished {
            return Err(ReplyError::Unparsable("it is not finished".to_owned()));
        }
        if !field(&response, "output").is_array() {
            return Err(ReplyError::Unparsable("it has no output".to_owned()));
        }
        self.close(&response, "response.completed")
    }

    fn phase(&self) -> Phase {
        if self.ended { Phase::Ended } else { Phase::Open }
    }

    /// Reasoning is part of the output that is paid for (E-20).
    fn count(&mut self, usage: &Value) {
        let read = |whole: &str, detail: &str| count(field(usage, whole), &[detail]);
        const INPUT: [&str; 2] = ["input_tokens", "prompt_tokens"];
        const OUTPUT: [&str; 2] = ["output_tokens", "completion_tokens"];
        self.tokens.input = count(usage, &INPUT).unwrap_or(self.tokens.input);
        self.tokens.output = count(usage, &OUTPUT).unwrap_or(self.tokens.output);
        self.unread = Unread { input: is_unread(usage, &INPUT), output: is_unread(usage, &OUTPUT) };
        self.tokens.cached = read("input_tokens_details", "cached_tokens").unwrap_or(self.tokens.cached);
        self.tokens.reasoning =
            read("output_tokens_details", "reasoning_tokens").unwrap_or(self.tokens.reasoning);
    }

    fn tokens(&self) -> Tokens {
        self.tokens
    }

    fn unread(&self) -> Unread {
        self.unread
    }

    fn finish(self: Box<Self>) -> ModelReply {
        // Some servers say that a call is not whole, and that the response is.
        let whole = self.stop.as_deref().is_none_or(|stop| cut_by(stop).is_none());
        let stop = if whole && self.items.has_cut_call() { Some(INCOMPLETE.to_owned()) } else { self.stop };
        let (text, calls) = self.items.finish();
        ModelReply { unread: self.unread, ..finished(text, calls, self.tokens, stop) }
    }
}

/// A field of an object; `null` if there is none.
fn field<'v>(value: &'v Value, name: &str) -> &'v Value {
    value.get(name).unwrap_or(&Value::Null)
}

/// The error of a response that failed.
fn failure(response: &Value, otherwise: &str) -> Value {
    let error = field(response, "error");
    if error.is_null() { json!({"message": otherwise}) } else { error.clone() }
}
