//! Messages of a server, read within what a run keeps: an answer that is nested too deeply (E-28), has an integer that
//! would become another one (E-25), or can't be read at all is the fault of its own call and loses no other.

mod lenient;
#[cfg(test)]
mod tests;
mod waiting;

use super::error::{CUT, cut, line};
use crate::failures::{over_limit, tool_failure};
use crate::json::{self, Unread};
use crate::limits::ToolLimits;
use rmcp::model::{
    ClientNotification, CustomResult, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerResult,
};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use selvedge_engine::Failure;
use selvedge_engine::json::Unique;
use selvedge_http::Secret;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use waiting::Waiting;

/// What a server says.
pub(super) type Message = RxJsonRpcMessage<RoleClient>;

/// Up to here the client of the protocol reads messages by itself: its JSON has a limit of its own.
const USUAL: usize = 120;
/// How much deeper an answer may be than what it holds may be: it is looked at then, so that of several tools only the one
/// that is too deep is wrong.
const AROUND: usize = 64;
/// Answers that wait to be fetched. Those of calls that were given up are fetched by nobody.
const ASIDE: usize = 32;
/// How much of what can't be read is shown, in characters.
const SHOWN: usize = 200;
/// The code of an error that has none: the client of the protocol wants one, and nobody else has this.
const UNNAMED: i32 = i32::MIN;

/// Why an answer is none.
#[derive(Debug)]
pub(super) enum UnreadableReply {
    /// It can't be kept as it is.
    Unread(Unread),
    /// Its message has more than so many bytes.
    Long(usize),
    /// It can't be read: how it begins, without keys.
    Garbled(String),
}

/// An answer that did not go through the client of the protocol.
pub(super) type Answer = Result<ServerResult, UnreadableReply>;

/// Reads the messages of one connection. Clones share what was put aside, and who waits.
#[derive(Clone)]
pub(super) struct Reader {
    nesting: usize,
    longest: usize,
    secrets: Arc<[Secret]>,
    aside: Arc<Mutex<VecDeque<(String, Answer)>>>,
    waiting: Waiting,
}

/// What tells what a message is, and whose. Its texts are looked at by nobody yet.
#[derive(Deserialize)]
struct Envelope {
    jsonrpc: Option<String>,
    id: Option<RequestId>,
    method: Option<IgnoredAny>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Whole {
    result: Value,
}

impl Reader {
    /// At most `nesting` objects and arrays of an output inside each other, and `longest` bytes of a message.
    pub(super) fn new(nesting: usize, longest: usize, secrets: &[Secret]) -> Self {
        let (aside, waiting) = (Arc::default(), Waiting::default());
        Self { nesting, longest, secrets: secrets.into(), aside, waiting }
    }

    /// The most objects and arrays of an output inside each other.
    pub(super) fn nesting(&self) -> usize {
        self.nesting
    }

    /// The most bytes of a message.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// A request goes out: its answer is waited for.
    pub(super) fn asked(&self, id: &RequestId) {
        self.waiting.add(id);
    }

    /// Nobody waits any more.
    pub(super) fn given_up(&self, id: &RequestId) {
        self.waiting.remove(id);
    }

    /// Reads the messages of a text: one, or several in a list; none if it is nothing of the protocol. What is not quite as
    /// the protocol has it is read where it says what it means. In the place of an answer that the client of the
    /// protocol could not read comes an error with the same id, and [`Self::fetch`] has the answer.
    pub(super) fn read(&self, text: &[u8]) -> Vec<Message> {
        let read = self.parsed(text);
        self.answered(&read);
        read
    }

    fn parsed(&self, text: &[u8]) -> Vec<Message> {
        let read = match serde_json::from_slice::<Message>(text) {
            Ok(JsonRpcMessage::Response(response)) if for_itself(text) => {
                self.deep(text).or(Some(JsonRpcMessage::Response(response)))
            }
            Ok(JsonRpcMessage::Response(response)) => match changed(&response.result, text) {
                Some(unread) => Some(self.put_aside(&response.id, Err(UnreadableReply::Unread(unread)))),
                None => Some(JsonRpcMessage::Response(response)),
            },
            Ok(message) => Some(message),
            Err(_) if json::depth(text) > USUAL => self.deep(text),
            Err(_) => None,
        };
        match read {
            Some(message) => vec![message],
            None => lenient::messages(text, self.nesting.saturating_add(AROUND), &|text| self.parsed(text)),
        }
    }

    fn answered(&self, messages: &[Message]) {
        messages.iter().filter_map(id_of).for_each(|id| self.waiting.remove(id));
    }

    /// The messages of an answer to `asked`: an error that names no call, or one that nobody waits for, is its own. What
    /// answers another call as well is left out: the client of the protocol reads nothing behind the first answer.
    pub(super) fn answer(&self, text: &[u8], asked: &RequestId) -> Vec<Message> {
        let mut read = self.parsed(text);
        for message in &mut read {
            if let JsonRpcMessage::Error(error) = message
                && !error.id.as_ref().is_some_and(|id| self.waiting.has(id))
            {
                error.id = Some(asked.clone());
            }
        }
        let own = |message: &Message| id_of(message).is_some_and(|id| same(id, asked));
        if read.iter().any(own) {
            read.retain(|message| own(message) || id_of(message).is_none());
        } else {
            read.retain(|message| id_of(message).is_none_or(|id| self.waiting.has(id)));
        }
        self.answered(&read);
        read
    }

    /// The text of an event as the client of the protocol may read it: the same, but for what it could not read or
    /// would not take for an answer to `asked`. Nothing, if it is nothing of the protocol.
    pub(super) fn readable(&self, text: String, asked: Option<&RequestId>) -> Vec<String> {
        if text.trim().is_empty() {
            return vec![text];
        }
        let bytes = text.as_bytes();
        let plain = json::depth(bytes) <= USUAL
            && json::large_integer(bytes).is_none()
            && duplicate_key(bytes).is_none()
            && !lenient::may_have_halves(bytes)
            && !for_itself(bytes);
        if plain && let Some(id) = plainly(bytes) {
            let foreign =
                |id: &RequestId| asked.is_some_and(|asked| !same(id, asked)) && !self.waiting.has(id);
            if id.as_ref().is_some_and(foreign) {
                return Vec::new();
            }
            id.iter().for_each(|id| self.waiting.remove(id));
            return vec![text];
        }
        let mut read = match asked {
            Some(asked) => self.answer(bytes, asked),
            None => self.read(bytes).into_iter().map(|message| self.addressed(message)).collect(),
        };
        if read.is_empty() {
            read = self.unreadable(bytes);
        }
        read.iter().filter_map(|message| serde_json::to_string(message).ok()).collect()
    }

    /// What was meant as a message and can't be read ends the call whose id it names, else all that wait: none of them would
    /// hear of it otherwise.
    pub(super) fn unreadable(&self, text: &[u8]) -> Vec<Message> {
        self.lost(text, false)
    }

    /// The same of a text of which only the beginning is known.
    pub(super) fn unfinished(&self, text: &[u8]) -> Vec<Message> {
        self.lost(text, true)
    }

    fn lost(&self, text: &[u8], goes_on: bool) -> Vec<Message> {
        if !lenient::is_meant(text) {
            return Vec::new();
        }
        let named = lenient::id_in(text).filter(|id| self.waiting.has(id));
        let over = named.map_or_else(|| self.waiting.all(), |id| vec![id]);
        let mut told = self.told(text);
        if goes_on && !told.ends_with(CUT) {
            told.push_str(CUT);
        }
        let over: Vec<Message> =
            over.iter().map(|id| self.put_aside(id, Err(UnreadableReply::Garbled(told.clone())))).collect();
        self.answered(&over);
        over
    }

    /// In the place of an answer to `id` that is longer than a message may be.
    pub(super) fn too_long(&self, id: &RequestId) -> Message {
        self.put_aside(id, Err(UnreadableReply::Long(self.longest)))
    }

    /// Gives an error that names no call to the only one that waits.
    pub(super) fn addressed(&self, mut message: Message) -> Message {
        if let JsonRpcMessage::Error(error) = &mut message
            && error.id.is_none()
            && let Some(only) = self.only_one()
        {
            self.waiting.remove(&only);
            error.id = Some(only);
        }
        message
    }

    /// The only request that waits, if there is one and no other.
    pub(super) fn only_one(&self) -> Option<RequestId> {
        let mut waiting = self.waiting.all();
        waiting.pop().filter(|_| waiting.is_empty())
    }

    /// The answer to a request that was put aside, if it was.
    pub(super) fn fetch(&self, id: &RequestId) -> Option<Answer> {
        let (id, mut aside) = (key(id), self.aside.lock().unwrap_or_else(PoisonError::into_inner));
        let at = aside.iter().position(|(of, _)| *of == id)?;
        aside.remove(at).map(|(_, answer)| answer)
    }

    /// The beginning of what a server wrote, for people, without keys: they are taken out before it is cut (C-06).
    pub(super) fn told(&self, text: &[u8]) -> String {
        // More than is shown, so that no key is cut in two, and not all of it.
        let most = 20 * SHOWN;
        let read = String::from_utf8_lossy(text.get(..most).unwrap_or(text));
        let clean = self.secrets.iter().fold(read.into_owned(), |text, key| key.redact(&text).into_owned());
        let told = cut(&line(&clean), SHOWN);
        match text.len() > most && !told.ends_with(CUT) {
            true => told + CUT,
            false => told,
        }
    }

    fn deep(&self, text: &[u8]) -> Option<Message> {
        let envelope: Envelope = json::read(text, usize::MAX).ok()?;
        // Only answers are waited for.
        let (id, _) = envelope.id.zip(envelope.result)?;
        let answer = json::read::<Whole>(text, self.nesting.saturating_add(AROUND));
        let answer = answer.map(|whole| ServerResult::CustomResult(CustomResult::new(whole.result)));
        let answer = answer.and_then(|result| match changed(&result, text) {
            Some(unread) => Err(unread),
            None => Ok(result),
        });
        Some(self.put_aside(&id, answer.map_err(UnreadableReply::Unread)))
    }

    fn put_aside(&self, id: &RequestId, answer: Answer) -> Message {
        let mut aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        aside.push_back((key(id), answer));
        if aside.len() > ASIDE {
            aside.pop_front();
        }
        let error = ErrorData::new(ErrorCode(UNNAMED), "the answer can't be read", None);
        JsonRpcMessage::error(error, Some(id.clone()))
    }
}

/// Whether the client of the protocol would lose a part of what is said: it knows no tools that are called as tasks.
fn for_itself(text: &[u8]) -> bool {
    lenient::has(text, b"\"taskSupport\"")
}

/// The id that a message as the protocol has it answers, if it answers; `None` if it is not one, or an error.
fn plainly(text: &[u8]) -> Option<Option<RequestId>> {
    let envelope: Envelope = serde_json::from_slice(text).ok()?;
    match envelope {
        Envelope { jsonrpc: Some(version), .. } if version != "2.0" => None,
        Envelope { jsonrpc: None, .. } | Envelope { error: Some(_), .. } => None,
        Envelope { method: Some(_), result: None, .. } => Some(None),
        Envelope { id: Some(id), result: Some(_), method: None, .. } => Some(Some(id)),
        _ => None,
    }
}

/// The id of the request that a message of ours gives up.
pub(super) fn cancelled(message: &TxJsonRpcMessage<RoleClient>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Notification(told) => match &told.notification {
            ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.as_ref(),
            _ => None,
        },
        _ => None,
    }
}

/// The id of the request that a message answers.
pub(super) fn id_of(message: &Message) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

/// The code of an error, if the server gave it one.
pub(super) fn code_of(error: &ErrorData) -> Option<i32> {
    Some(error.code.0).filter(|code| *code != UNNAMED)
}

/// Whether two ids are the same call's.
pub(super) fn same(one: &RequestId, other: &RequestId) -> bool {
    key(one) == key(other)
}

/// Servers answer number 7 as text "7" too.
fn key(id: &RequestId) -> String {
    match id {
        RequestId::Number(number) => number.to_string(),
        RequestId::String(text) => text.to_string(),
    }
}

/// Why a structured output would become another value: an integer of it, or a key that stands twice. What other answers hold
/// is no output.
fn changed(result: &ServerResult, text: &[u8]) -> Option<Unread> {
    let structured = match result {
        ServerResult::CallToolResult(result) => result.structured_content.is_some(),
        ServerResult::CustomResult(result) => result.0.get("structuredContent").is_some(),
        _ => false,
    };
    let large = || json::large_integer(text).map(Unread::Large);
    if structured { large().or_else(|| duplicate_key(text)) } else { None }
}

/// The key that stands twice in an object of a structured output.
fn duplicate_key(text: &[u8]) -> Option<Unread> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "result")]
        _result: Structured,
    }
    #[derive(Deserialize)]
    struct Structured {
        #[serde(rename = "structuredContent")]
        _output: Unique,
    }
    if !lenient::has(text, b"\"structuredContent\"") {
        return None;
    }
    json::read::<Answer>(text, usize::MAX).err().filter(|unread| matches!(unread, Unread::Twice(_)))
}

impl UnreadableReply {
    /// What it means for the call of a tool.
    pub(super) fn failure(self, tool: &str, limits: &ToolLimits) -> Failure {
        match self {
            Self::Unread(unread) => unread.failure(tool, limits),
            Self::Long(_) => over_limit(tool, limits),
            Self::Garbled(begin) => {
                let message = format!("the answer to `{tool}` can't be read; it begins with: {begin}");
                tool_failure("parsing_tool_error", message)
            }
        }
    }

    /// The same as the rest of a sentence: "answers with …".
    pub(super) fn words(&self, nesting: usize) -> String {
        match self {
            Self::Unread(Unread::Large(digits)) => format!("the integer {digits}, which 64 bits can't hold"),
            Self::Unread(Unread::Deep) => format!(
                "more than {nesting} objects and arrays inside each other (`json_nesting` in [limits])"
            ),
            Self::Unread(Unread::Twice(error)) => error.to_string(),
            Self::Unread(Unread::Wrong(error)) => format!("what is no JSON: {error}"),
            Self::Long(longest) => {
                format!(
                    "more than the {longest} bytes that a message may have (`tool_output_bytes` in [limits])"
                )
            }
            Self::Garbled(begin) => format!("what can't be read; it begins with: {begin}"),
        }
    }
}
