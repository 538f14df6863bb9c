//! What a model was asked within the last minute, and its configured limits (E-51).

use super::Pace;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// What the limits of a minute count.
const MINUTE: Duration = Duration::from_secs(60);

/// A call of the last minute.
#[derive(Debug)]
struct Entry {
    number: u64,
    began: Instant,
    /// Tokens that it may use, or those that it used.
    tokens: u64,
}

/// The calls of a model within the last minute.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) pace: Pace,
    calls: VecDeque<Entry>,
    under_way: u64,
    number: u64,
}

impl Window {
    /// Begins a call that may use so many tokens; its number. If it has to wait, when there may be room for it, unless that is when
    /// another call ends.
    pub(super) fn enter(&mut self, now: Instant, tokens: u64) -> Result<u64, Option<Instant>> {
        while self.calls.front().is_some_and(|call| now.saturating_duration_since(call.began) >= MINUTE) {
            self.calls.pop_front();
        }
        let Pace { requests_per_minute, tokens_per_minute, max_parallel } = self.pace;
        if max_parallel.is_some_and(|most| self.under_way >= most.max(1)) {
            return Err(None);
        }
        let counted = requests_per_minute.is_some() || tokens_per_minute.is_some();
        let used = self.calls.iter().fold(0u64, |sum, call| sum.saturating_add(call.tokens));
        let many = requests_per_minute.is_some_and(|most| self.calls.len() as u64 >= most.max(1));
        // A call of more tokens than a minute allows goes alone.
        let large = tokens_per_minute.is_some_and(|most| used > 0 && used.saturating_add(tokens) > most);
        if many || large {
            return Err(self.calls.front().map(|call| call.began + MINUTE));
        }
        self.number += 1;
        self.under_way += 1;
        if counted {
            self.calls.push_back(Entry { number: self.number, began: now, tokens });
        }
        Ok(self.number)
    }

    /// A call has ended; the tokens that it used, if they are known.
    pub(super) fn leave(&mut self, number: u64, tokens: Option<u64>) {
        self.under_way = self.under_way.saturating_sub(1);
        let call = self.calls.iter_mut().find(|call| call.number == number);
        if let (Some(call), Some(tokens)) = (call, tokens.filter(|tokens| *tokens > 0)) {
            call.tokens = tokens;
        }
    }
}
