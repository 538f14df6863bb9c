//! What `codex exec --json` says: an object a line.

use selvedge_engine::{Tokens, Unread};
use serde::Deserialize;
use serde_json::Value;

/// No thread of a model has more: a larger figure is none.
const MOST: u64 = 1_000_000_000_000;

/// What is of use here.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Said {
    /// The last message, or what went wrong.
    pub(super) words: String,
    /// What models used.
    pub(super) tokens: Tokens,
    /// Figures that are none.
    pub(super) unread: Unread,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Event {
    #[serde(rename = "item.started")]
    Begun { item: Item },
    #[serde(rename = "item.completed")]
    Item { item: Item },
    #[serde(rename = "turn.completed")]
    Turn { usage: Box<Usage> },
    #[serde(rename = "turn.failed")]
    Failed { error: Message },
    #[serde(rename = "error")]
    Error(Message),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Item {
    #[serde(rename = "agent_message")]
    Message { text: String },
    #[serde(rename = "command_execution")]
    Command { command: String },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Message {
    message: String,
}

/// Of the whole thread so far.
#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: Value,
    #[serde(default)]
    cached_input_tokens: Value,
    #[serde(default)]
    output_tokens: Value,
    #[serde(default)]
    reasoning_output_tokens: Value,
}

impl Said {
    /// What these lines say. What is no event is left out: they are a program's that others write.
    pub(super) fn read(lines: &[u8]) -> Self {
        let mut said = Self::default();
        for line in lines.split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Event::Item { item: Item::Message { text } }) => said.words = text,
                Ok(Event::Failed { error: Message { message } } | Event::Error(Message { message })) => {
                    said.words = message;
                }
                Ok(Event::Turn { usage }) => said.count(&usage),
                Ok(Event::Begun { .. } | Event::Item { .. } | Event::Other) | Err(_) => {}
            }
        }
        said
    }

    /// What a line says of how it gets on, for who watches.
    pub(super) fn progress(line: &str) -> Option<String> {
        match serde_json::from_str(line).ok()? {
            Event::Begun { item: Item::Command { command } } => Some(format!("codex runs {command}")),
            Event::Item { item: Item::Message { text } } => Some(format!("codex: {text}")),
            Event::Failed { error: Message { message } } | Event::Error(Message { message }) => {
                Some(format!("codex: {message}"))
            }
            Event::Begun { .. } | Event::Item { .. } | Event::Turn { .. } | Event::Other => None,
        }
    }

    fn count(&mut self, usage: &Usage) {
        let figure = |value: &Value| value.as_u64().filter(|figure| *figure <= MOST);
        let (input, output) = (figure(&usage.input_tokens), figure(&usage.output_tokens));
        self.unread = Unread { input: input.is_none(), output: output.is_none() };
        self.tokens = Tokens {
            input: input.unwrap_or_default(),
            output: output.unwrap_or_default(),
            cached: figure(&usage.cached_input_tokens).unwrap_or_default(),
            reasoning: figure(&usage.reasoning_output_tokens).unwrap_or_default(),
            ..Tokens::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a07_events_tell_the_last_words_and_the_tokens() {
        let lines = br#"{"type":"thread.started","thread_id":"t"}
Reading prompt from stdin...
{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"I begin."}}
{"type":"item.completed","item":{"id":"2","type":"command_execution","command":"x","aggregated_output":"secret"}}
{"type":"item.completed","item":{"id":"3","type":"agent_message","text":"Done."}}
{"type":"turn.completed","usage":{"input_tokens":2000,"cached_input_tokens":400,"output_tokens":100,"reasoning_output_tokens":20}}
{"type":"turn.completed","usage":"#;
        let said = Said::read(lines);
        assert_eq!(said.words, "Done.");
        assert!(said.unread.is_empty());
        let Tokens { input, output, cached, reasoning, .. } = said.tokens;
        assert_eq!((input, output, cached, reasoning), (2000, 100, 400, 20));
        let told = |line: &str| Said::progress(line);
        let runs = r#"{"type":"item.started","item":{"id":"2","type":"command_execution","command":"python3 add.py"}}"#;
        assert_eq!(told(runs).unwrap(), "codex runs python3 add.py");
        let says = r#"{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"I begin."}}"#;
        assert_eq!(told(says).unwrap(), "codex: I begin.");
        for nothing in ["Reading prompt", "{}", r#"{"type":"item.started","item":{"type":"reasoning"}}"#] {
            assert_eq!(told(nothing), None);
        }
        let failed = Said::read(br#"{"type":"turn.failed","error":{"message":"no such model"}}"#);
        assert_eq!((&*failed.words, failed.tokens.input), ("no such model", 0));
    }

    #[test]
    fn a07_figures_that_are_none_are_told() {
        for usage in [r#"{"input_tokens":-1}"#, r#"{"input_tokens":1e30,"output_tokens":1}"#, "{}"] {
            let said = Said::read(format!(r#"{{"type":"turn.completed","usage":{usage}}}"#).as_bytes());
            assert!(said.unread.input && said.tokens.input == 0, "{usage}");
        }
        assert_eq!(Said::read(b"\xff\n{}\n[1]\nnull"), Said::default());
    }
}
