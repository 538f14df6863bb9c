//! Messages of a server, read within what a run keeps: an answer that is nested too deeply (E-28), or has an integer that
//! would become another one (E-25), is the fault of its own call and loses no other.

use crate::tools::failures::over_limit;
use crate::tools::json::{self, Unread};
use crate::tools::limits::ToolLimits;
use rmcp::model::{CustomResult, ErrorData, JsonRpcMessage, RequestId, ServerResult};
use rmcp::service::{RoleClient, RxJsonRpcMessage};
use selvedge_engine::Failure;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// What a server says.
pub(super) type Message = RxJsonRpcMessage<RoleClient>;

/// Up to here the client of the protocol reads messages by itself: its JSON has a limit of its own.
const USUAL: usize = 120;
/// How much deeper an answer may be than what it holds may be: it is looked at then, so that of several tools only the one
/// that is too deep is wrong.
const AROUND: usize = 64;
/// Answers that wait to be fetched. Those of calls that were given up are fetched by nobody.
const WAITING: usize = 32;

/// Why an answer is none.
#[derive(Debug)]
pub(super) enum Unheard {
    /// It can't be kept as it is.
    Unread(Unread),
    /// It has more than so many bytes.
    Long,
}

/// An answer that did not go through the client of the protocol.
pub(super) type Answer = Result<ServerResult, Unheard>;

/// Reads the messages of one connection. Clones share what was put aside.
#[derive(Clone)]
pub(super) struct Reader {
    nesting: usize,
    aside: Arc<Mutex<VecDeque<(String, Answer)>>>,
}

/// What tells whose answer a message is.
#[derive(Deserialize)]
struct Envelope {
    id: Option<RequestId>,
    result: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Whole {
    result: Value,
}

impl Reader {
    /// At most `nesting` objects and arrays of an output inside each other.
    pub(super) fn new(nesting: usize) -> Self {
        Self { nesting, aside: Arc::default() }
    }

    /// Reads a message; `None` if it is none. In the place of an answer that the client could not read comes an error with
    /// the same id, and [`Self::fetch`] has the answer.
    pub(super) fn read(&self, text: &[u8]) -> Option<Message> {
        match serde_json::from_slice::<Message>(text) {
            Ok(JsonRpcMessage::Response(response)) => match changed(&response.result, text) {
                Some(digits) => {
                    Some(self.put_aside(&response.id, Err(Unheard::Unread(Unread::Large(digits)))))
                }
                None => Some(JsonRpcMessage::Response(response)),
            },
            Ok(message) => Some(message),
            Err(_) if json::depth(text) > USUAL => self.deep(text),
            Err(_) => None,
        }
    }

    /// The text of a message as the client may read it: the same, but for answers that it could not read.
    pub(super) fn readable(&self, text: String) -> String {
        let bytes = text.as_bytes();
        if json::depth(bytes) <= USUAL && json::large_integer(bytes).is_none() {
            return text;
        }
        match self.read(bytes).map(|message| serde_json::to_string(&message)) {
            Some(Ok(readable)) => readable,
            _ => text,
        }
    }

    /// In the place of an answer to `id` that is longer than a message may be.
    pub(super) fn too_long(&self, id: &RequestId) -> Message {
        self.put_aside(id, Err(Unheard::Long))
    }

    /// The answer to a request that was put aside, if it was.
    pub(super) fn fetch(&self, id: &RequestId) -> Option<Answer> {
        let (id, mut aside) = (key(id), self.aside.lock().unwrap_or_else(PoisonError::into_inner));
        let at = aside.iter().position(|(of, _)| *of == id)?;
        aside.remove(at).map(|(_, answer)| answer)
    }

    fn deep(&self, text: &[u8]) -> Option<Message> {
        let envelope: Envelope = json::read(text, usize::MAX).ok()?;
        // Only answers are waited for.
        let (id, _) = envelope.id.zip(envelope.result)?;
        let answer = json::read::<Whole>(text, self.nesting.saturating_add(AROUND));
        let answer = answer.map(|whole| ServerResult::CustomResult(CustomResult::new(whole.result)));
        let answer = answer.and_then(|result| match changed(&result, text) {
            Some(digits) => Err(Unread::Large(digits)),
            None => Ok(result),
        });
        Some(self.put_aside(&id, answer.map_err(Unheard::Unread)))
    }

    fn put_aside(&self, id: &RequestId, answer: Answer) -> Message {
        let mut aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        aside.push_back((key(id), answer));
        if aside.len() > WAITING {
            aside.pop_front();
        }
        JsonRpcMessage::error(ErrorData::internal_error("the answer can't be read", None), Some(id.clone()))
    }
}

/// Servers answer number 7 as number "7" too.
fn key(id: &RequestId) -> String {
    match id {
        RequestId::Number(number) => number.to_string(),
        RequestId::String(text) => text.to_string(),
    }
}

/// The integer of a structured output that would become another number; what other answers hold is no output.
fn changed(result: &ServerResult, text: &[u8]) -> Option<String> {
    let structured = match result {
        ServerResult::CallToolResult(result) => result.structured_content.is_some(),
        ServerResult::CustomResult(result) => result.0.get("structuredContent").is_some(),
        _ => false,
    };
    if structured { json::large_integer(text) } else { None }
}

impl Unheard {
    /// What it means for the call of a tool.
    pub(super) fn failure(self, tool: &str, limits: &ToolLimits) -> Failure {
        match self {
            Self::Unread(unread) => unread.failure(tool, limits),
            Self::Long => over_limit(tool, limits),
        }
    }

    /// The same as the rest of a sentence: "answers with …".
    pub(super) fn words(&self, nesting: usize) -> String {
        match self {
            Self::Unread(Unread::Large(digits)) => format!("the integer {digits}, which 64 bits can't hold"),
            Self::Unread(Unread::Deep) => format!(
                "more than {nesting} objects and arrays inside each other (`json_nesting` in [limits])"
            ),
            Self::Unread(Unread::Wrong(error)) => format!("what is no JSON: {error}"),
            Self::Long => "more bytes than a message may have (`tool_output_bytes` in [limits])".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    fn answer(id: &str, structured: &str) -> String {
        format!(
            r#"{{"jsonrpc": "2.0", "id": {id}, "result": {{"content": [], "structuredContent": {{"a": {structured}}}}}}}"#
        )
    }

    /// E-28: what is deeper than the client reads by itself, but not too deep, arrives whole; what is too deep has its call
    /// as the only one that fails; numbers and texts are the same id.
    #[test]
    fn deep_answers_are_put_aside() {
        let reader = Reader::new(128);
        for (id, levels) in [("7", 127), ("\"7\"", 127)] {
            let message = reader.read(answer(id, &nested(levels)).as_bytes()).expect("a message");
            assert!(matches!(message, JsonRpcMessage::Error(_)), "{message:?}");
            let Some(Ok(ServerResult::CustomResult(result))) = reader.fetch(&RequestId::Number(7)) else {
                panic!("not put aside")
            };
            assert!(result.0["structuredContent"]["a"].is_array());
            assert!(reader.fetch(&RequestId::Number(7)).is_none());
        }
        for levels in [200, 100_000] {
            reader.read(answer("8", &nested(levels)).as_bytes()).expect("a message");
            let aside = reader.fetch(&RequestId::Number(8));
            assert!(matches!(aside, Some(Err(Unheard::Unread(Unread::Deep)))), "{levels}: {aside:?}");
        }
        // Nobody waits for it.
        let told = format!(r#"{{"jsonrpc": "2.0", "method": "a", "params": {}}}"#, nested(200));
        assert!(reader.read(told.as_bytes()).is_none());
        assert!(reader.read(b"[[[").is_none());
    }

    /// E-25: an integer of an output stays what it is; those of other answers, and those in texts, are none of an output.
    #[test]
    fn integers_of_outputs_are_not_changed() {
        let reader = Reader::new(128);
        reader.read(answer("1", "18446744073709551616").as_bytes()).expect("a message");
        let aside = reader.fetch(&RequestId::Number(1));
        let Some(Err(Unheard::Unread(Unread::Large(digits)))) = aside else { panic!("{aside:?}") };
        assert_eq!(digits, "18446744073709551616");
        for untouched in [
            answer("1", "18446744073709551615"),
            answer("1", "\"18446744073709551616\""),
            json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [
                {"name": "t", "inputSchema": {"type": "object", "maximum": 7}}]}})
            .to_string()
            .replace('7', "340282366920938463463374607431768211455"),
        ] {
            let message = reader.read(untouched.as_bytes()).expect("a message");
            assert!(matches!(message, JsonRpcMessage::Response(_)), "{untouched}: {message:?}");
        }
    }

    /// What nobody fetches does not stay for ever.
    #[test]
    fn only_so_many_wait() {
        let reader = Reader::new(128);
        for id in 0..1000 {
            reader.too_long(&RequestId::Number(id));
        }
        assert!(reader.aside.lock().unwrap().len() <= WAITING);
        assert!(reader.fetch(&RequestId::Number(999)).is_some());
    }
}
