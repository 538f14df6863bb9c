//! What a node remembers for the graph that works between its rounds.

use super::node::Visit;
use crate::fault::Fault;
use crate::graph::Over;
use crate::ids::MessageIx;
use crate::message::{Thread, ToolCall};
use serde_json::Value;
use std::sync::Arc;

/// What a provider puts around each message, in tokens.
pub const TOKENS_AROUND: u64 = 4;

/// What has happened since the last time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since {
    pub(super) calls: Vec<Made>,
    /// What the graph that works there is told of: the calls before these.
    pub(super) told: Vec<Made>,
    /// The conversation with the last reply, and its tokens by the provider's figures; `None` if it said none.
    pub(super) used: Option<(Thread, u64)>,
    /// What of the conversation an operation has counted, and what it came to. Only what has been said behind it is told to the next one:
    /// else a round would take the longer the more rounds there were.
    pub(super) counted: Option<(Thread, Value)>,
}

impl Since {
    /// What is said in a thread and nobody has counted, with what was counted before it.
    pub(super) fn uncounted(&self, thread: &Thread) -> (Vec<MessageIx>, Option<&Value>) {
        let behind =
            self.counted.as_ref().and_then(|(before, counted)| Some((thread.behind(before)?, counted)));
        match behind {
            Some((new, counted)) => (new, Some(counted)),
            None => (thread.iter().collect(), None),
        }
    }

    /// Tokens of the last request and its reply, by the provider's figures; 0 if it said none.
    pub(super) fn used(&self) -> u64 {
        self.used.as_ref().map_or(0, |(_, tokens)| *tokens)
    }

    /// The conversation when its tokens were last known, and how many they were.
    fn known(&self) -> Option<(&Thread, u64)> {
        match (&self.used, &self.counted) {
            (Some((thread, tokens)), _) => Some((thread, *tokens)),
            (None, Some((thread, counted))) => Some((thread, counted.as_u64()?)),
            (None, None) => None,
        }
    }
}

/// How large the thread of a visit may be.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// At most so many tokens.
    pub(super) tokens: u64,
    /// Bytes that have come since its tokens were known; all of them, if they are not known, or it was edited.
    pub(super) new: u64,
}

impl Size {
    /// Of a few sums, however long the conversation is.
    pub(super) fn of(visit: &Visit) -> Self {
        let since = visit.extra.as_ref().and_then(|extra| extra.since.as_deref());
        let beyond = since
            .and_then(Since::known)
            .and_then(|(before, tokens)| Some((tokens, visit.thread.beyond(before)?)));
        let (tokens, (messages, new)) =
            beyond.unwrap_or_else(|| (0, (visit.thread.len() as u64, visit.thread.bytes())));
        let around = messages.saturating_mul(TOKENS_AROUND);
        Self { tokens: tokens.saturating_add(new).saturating_add(around), new }
    }
}

/// Whether somebody has to look how large the thread of a visit is.
pub(super) fn is_over(visit: &Visit, over: Over) -> bool {
    let size = Size::of(visit);
    size.tokens > over.tokens.into() || size.new > over.new.into()
}

/// A call that came to its end.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// Whether a request had its result already, so that it is among the tokens of that.
    pub(super) sent: bool,
    pub(super) call: ToolCall,
    pub(super) version: Arc<str>,
    pub(super) result: Result<Arc<Value>, Box<Fault>>,
}
