//! Messages and threads.
//!
//! A [`Message`] is stored once in a run and never changed; a [`Thread`] is a persistent list of
//! message indices, so that forking, slicing and snapshotting cost O(log n) whatever its length (E-08).

mod thread;

pub use thread::Thread;
pub(crate) use thread::{Entry, Kind};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions that stand above the conversation.
    System,
    /// The document or a person.
    User,
    /// A model, or a node speaking for itself (P-13, P-18).
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// A request of an assistant message to run a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique among the calls of a run (E-10).
    pub id: Arc<str>,
    /// The tool's bound name.
    pub name: Arc<str>,
    /// An object; a string when the model's text did not parse (E-10).
    pub arguments: Value,
}

/// One message, in the shape that C-02 prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text; empty when an assistant only calls tools.
    pub content: Arc<str>,
    /// The calls of an assistant message, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// In a tool message: the call it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Arc<str>>,
    /// In a tool message: the tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
}

impl Message {
    /// A message of text alone.
    pub fn text(role: Role, content: impl Into<Arc<str>>) -> Self {
        Self { role, content: content.into(), tool_calls: Vec::new(), tool_call_id: None, name: None }
    }
    /// The answer to `call` (E-24 says what `content` is).
    pub fn tool(call: &ToolCall, content: impl Into<Arc<str>>) -> Self {
        Self {
            role: Role::Tool,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: Some(call.id.clone()),
            name: Some(call.name.clone()),
        }
    }
    /// How much of a request it is: the bytes of its text and of its calls.
    pub(crate) fn bytes(&self) -> u64 {
        let calls = self.tool_calls.iter();
        let calls: u64 = calls.map(|call| call.name.len() as u64 + crate::json::bytes(&call.arguments)).sum();
        self.content.len() as u64 + calls
    }
}

/// A Python slice `[start, end)` (P-05): negative indices count from the end, `None` is open, and what
/// lies outside clamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice(pub Option<i64>, pub Option<i64>);

impl Slice {
    /// All messages.
    pub const ALL: Slice = Slice(None, None);
    /// The last message, if there is one (P-08, P-27).
    pub const LAST: Slice = Slice(Some(-1), None);

    /// The half-open range of a list of `len` items, with `start <= end <= len`.
    pub fn bounds(self, len: usize) -> (usize, usize) {
        let clamp = |at: i64| {
            if at < 0 {
                len.saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX))
            } else {
                usize::try_from(at).unwrap_or(usize::MAX).min(len)
            }
        };
        let start = self.0.map_or(0, clamp);
        let end = self.1.map_or(len, clamp);
        (start, end.max(start))
    }
    /// How many first messages decide the slice, if a prefix does: `[a, b)` with `a, b >= 0`, and none at all when
    /// it is empty whatever the thread holds (P-20).
    pub fn prefix(self) -> Option<usize> {
        match self {
            Slice(start, Some(end)) if end <= start.unwrap_or(0) && (end < 0) == (start.unwrap_or(0) < 0) => {
                Some(0)
            }
            Slice(start, Some(end)) if end >= 0 && start.unwrap_or(0) >= 0 => usize::try_from(end).ok(),
            _ => None,
        }
    }
}
