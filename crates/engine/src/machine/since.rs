//! What a node remembers for the graph that works between its rounds.

use crate::fault::Fault;
use crate::message::ToolCall;
use serde_json::Value;
use std::sync::Arc;

/// What has happened since the last time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since {
    pub(super) calls: Vec<Made>,
    /// What the graph that works there is told of: the calls before these.
    pub(super) told: Vec<Made>,
    /// Tokens of the last request and its reply, by the provider's figures; 0 if it said none.
    pub(super) used: u64,
}

/// A call that came to its end.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) call: ToolCall,
    pub(super) version: Arc<str>,
    pub(super) result: Result<Arc<Value>, Box<Fault>>,
}
