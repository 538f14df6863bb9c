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
mod limiter;
mod openai;
mod protocol;
mod provider;
mod responses;
pub mod router;
#[cfg(test)]
mod samples;
pub mod scripted;
mod stop;
mod target;
mod terms;
mod text;
pub mod tokens;

pub use endpoint::{Endpoint, list_models};
pub use limiter::Pace;
pub use provider::{Provider, ProviderConfig};
pub use terms::{CallLimits, Price};
