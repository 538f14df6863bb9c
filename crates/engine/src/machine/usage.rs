//! What was used: of the run, and of each frame and node that counts it (E-20).

use crate::effect::Tokens;
use crate::ids::NodeIx;
use std::collections::BTreeMap;

/// What a run has used (C-02).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Model requests that were sent, whatever came of them.
    pub model_calls: u64,
    /// Tool calls that were sent, those that were ended early included.
    pub tool_calls: u64,
    /// Tokens and money.
    pub tokens: Tokens,
}

/// What was used at a place and below it, and what model requests under way there hold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    pub(super) used: Usage,
    /// Model requests under way.
    pub(super) flying: u64,
    /// Tokens that they reserve.
    pub(super) reserved: u64,
}

/// The meters of a frame, once something was used there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meters {
    /// Which reset of the run's usage they count from.
    pub(super) resets: u32,
    pub(super) all: Meter,
    /// Of nodes that have a budget.
    pub(super) nodes: BTreeMap<NodeIx, Meter>,
}

impl Usage {
    pub(crate) fn add_reply(&mut self, tokens: &Tokens) {
        self.model_calls += 1;
        self.tokens.add(tokens);
    }
}
