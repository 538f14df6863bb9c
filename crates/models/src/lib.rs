//! Models behind [`selvedge_runtime::ports::Model`].
//!
//! - [`endpoint`]: a model behind HTTP, in the protocol of its [`Provider`]: what they share.
//! - `openai`: chat completions, the protocol of most endpoints.
//! - `anthropic`: Anthropic's messages.
//! - `responses`, `gemini`: OpenAI's responses, Google's Gemini.
//! - [`scripted`]: answers from a file of rules, for demos and tests (C-07).
//! - [`router`]: the configured models of a run, by role (C-14).
//!
//! # Example
//! ```
//! use selvedge_models::scripted::Scripted;
//!
//! let rules = "- when: {contains: hello}\n  reply: {text: Hello!}\n";
//! assert!(Scripted::parse("rules.yaml", rules).is_ok());
//! let error = Scripted::parse("rules.yaml", "- wen: {}\n  reply: {empty: true}\n").err().expect("a misspelt key");
//! assert_eq!(error.line, 1);
//! ```

// `Failure` is the ports' error type; boxing it here would only unbox it there.
#![allow(clippy::result_large_err)]

mod anthropic;
pub mod endpoint;
mod gemini;
mod openai;
mod protocol;
mod provider;
mod responses;
pub mod router;
#[cfg(test)]
mod samples;
pub mod scripted;

pub use endpoint::{Endpoint, list_models};
pub use provider::{Provider, ProviderConfig};

use selvedge_engine::{Cut, Tokens};
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

/// Why a reply with this stop reason is not whole, in the words of all providers; `None`: it is (E-27).
pub(crate) fn cut_by(stop: &str) -> Option<Cut> {
    match stop {
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "model_context_window_exceeded"
        | "model_length"
        | "MAX_TOKENS"
        | "incomplete" => Some(Cut::Limit),
        "content_filter" | "refusal" => Some(Cut::Withheld),
        stop if gemini::is_withheld(stop) => Some(Cut::Withheld),
        _ => None,
    }
}

/// At most `limit` bytes of `text`, cut at a character, with a mark where something is missing.
pub(crate) fn bounded(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let cut = text.floor_char_boundary(limit);
    let head = text.get(..cut).unwrap_or_default();
    format!("{head}… ({} bytes in all)", text.len())
}
