//! What a call may take, and what it costs.

use selvedge_engine::Tokens;
use std::time::Duration;

/// What a model costs, in the currency of the configuration, per million tokens (E-20).
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// A million tokens of prompt.
    pub input_per_mtok: f64,
    /// A million tokens of reply.
    pub output_per_mtok: f64,
    /// A million tokens of prompt that the provider read from its cache; without it they cost what others do.
    #[serde(default)]
    pub cached_input_per_mtok: Option<f64>,
}

impl Price {
    /// The usage of one reply with its cost filled in.
    pub fn charge(self, tokens: Tokens) -> Tokens {
        // Counts of tokens are far below 2^53, so the conversion is exact.
        let cached = tokens.cached.min(tokens.input);
        let cached_price = self.cached_input_per_mtok.unwrap_or(self.input_per_mtok);
        let input = (tokens.input - cached) as f64 * self.input_per_mtok + cached as f64 * cached_price;
        let cost = (input + tokens.output as f64 * self.output_per_mtok) / 1e6;
        Tokens { cost, ..tokens }
    }
}

/// The limits of one model call (E-28); faults name the keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallLimits {
    /// `model_timeout_s`: the whole call, unless the node has a time-out of its own.
    pub model_timeout: Duration,
    /// `first_token_timeout_s`: until the reply begins.
    pub first_token_timeout: Duration,
    /// `message_bytes`: text and arguments of one reply.
    pub message_bytes: usize,
    /// `rate_limit_wait_s`: the longest Retry-After that is waited for (E-14).
    pub rate_limit_wait: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            model_timeout: Duration::from_secs(600),
            first_token_timeout: Duration::from_secs(120),
            message_bytes: 16 << 20,
            rate_limit_wait: Duration::from_secs(60),
        }
    }
}
