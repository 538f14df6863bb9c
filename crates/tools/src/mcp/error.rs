//! Why a server can't be used: as an error before a run, or as a fault in it.

use crate::diag::ToolError;
use crate::failures::{failure, tool_failure};
use selvedge_engine::{Failure, FaultKind};
use serde_json::Map;
use std::time::Duration;

/// How much of a server's own words goes into a message, in characters.
const WORDS: usize = 2000;

/// A server that does not do what it should; the message names it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerError {
    /// What happened.
    pub(super) message: String,
    /// What to do about it; may be empty.
    pub(super) help: String,
    /// The kind of the fault.
    pub(super) kind: FaultKind,
    /// Whether trying again may help.
    pub(super) transient: bool,
    /// How long the server asks to wait before that.
    pub(super) retry_after_ms: Option<u64>,
}

impl ServerError {
    /// The server is switched off by the configuration; `place` says where.
    pub(crate) fn off(server: &str, place: &str) -> Self {
        let place = if place.is_empty() { "in the configuration" } else { place };
        Self::lasting(format!("the MCP server `{server}` is disabled ({place})"))
            .help("take `disabled` out there, or name another tool")
    }

    /// Trying again may help.
    pub(super) fn passing(message: impl Into<String>) -> Self {
        Self { transient: true, ..Self::lasting(message) }
    }

    /// Trying again does not help.
    pub(super) fn lasting(message: impl Into<String>) -> Self {
        let kind = FaultKind::ExecutionFailure;
        Self { message: message.into(), help: String::new(), kind, transient: false, retry_after_ms: None }
    }

    /// The same with what to do.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// The fault of a call that needed the server.
    pub(super) fn fault(self) -> Failure {
        let message = match self.help.is_empty() {
            true => self.message,
            false => format!("{} ({})", self.message, self.help),
        };
        let mut failed = match self.kind {
            FaultKind::ExecutionFailure => tool_failure("subprocess_execution_error", message),
            FaultKind::Timeout => failure(self.kind, "tool_execution_timeout", message, Map::new()),
            kind => Failure::permanent(kind, message),
        };
        failed.transient = self.transient;
        failed.retry_after_ms = self.retry_after_ms;
        failed
    }

    /// The error of a document that needs the server (exit 4).
    pub(crate) fn error(self) -> ToolError {
        ToolError::environment("A-22", self.message).help(self.help)
    }
}

/// A server's words in a message: cut, in one piece, without control characters.
pub(super) fn words(text: &str) -> String {
    let plain: String =
        text.trim().chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
    cut(&plain, WORDS)
}

/// Where a text goes on that is not shown.
pub(super) const CUT: &str = " […]";

/// The first `most` characters of a text, and that it goes on if it does.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}{CUT}", text.get(..end).unwrap_or_default().trim_end()),
        None => text.to_owned(),
    }
}

/// The same in one line.
pub(super) fn line(text: &str) -> String {
    words(text).replace('\n', " ")
}

/// Seconds as people write them.
pub(super) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
