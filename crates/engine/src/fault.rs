//! Failures of the domain, as data (E-16).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The closed list of what can fail (E-16).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Arguments or parameters that the tool's schema refuses.
    InputError,
    /// The tool ran and failed.
    ExecutionFailure,
    /// A time limit was reached.
    Timeout,
    /// A model kept answering with nothing (E-27).
    EmptyResponse,
    /// A reply that does not have the asked-for shape (E-33).
    MalformedResponse,
    /// The provider refused or could not be reached (E-14).
    ProviderError,
    /// A limit of `[limits]` was reached (E-12, E-28).
    LimitExceeded,
    /// A tool could not be built.
    ToolBuildFailure,
    /// A placeholder had nothing to stand for (D-10).
    UnresolvedPlaceholder,
    /// A call of a tool that is not there (P-15).
    UnknownTool,
    /// A join that can no longer be met.
    JoinUnmet,
    /// A write was in flight when the process died (E-05).
    UnknownOutcome,
    /// Cancelled from outside (E-13).
    Cancelled,
    /// A cap on calls, tokens or money was reached (E-20).
    BudgetExceeded,
    /// A person, or a missing permission, said no (E-33, A-22).
    Denied,
    /// A tool is no longer what was approved.
    DefinitionChanged,
}

impl FaultKind {
    /// The name in the journal and in C-02's output.
    pub fn name(self) -> &'static str {
        match self {
            Self::InputError => "input_error",
            Self::ExecutionFailure => "execution_failure",
            Self::Timeout => "timeout",
            Self::EmptyResponse => "empty_response",
            Self::MalformedResponse => "malformed_response",
            Self::ProviderError => "provider_error",
            Self::LimitExceeded => "limit_exceeded",
            Self::ToolBuildFailure => "tool_build_failure",
            Self::UnresolvedPlaceholder => "unresolved_placeholder",
            Self::UnknownTool => "unknown_tool",
            Self::JoinUnmet => "join_unmet",
            Self::UnknownOutcome => "unknown_outcome",
            Self::Cancelled => "cancelled",
            Self::BudgetExceeded => "budget_exceeded",
            Self::Denied => "denied",
            Self::DefinitionChanged => "definition_changed",
        }
    }
}

/// A failure with all that a person needs to act on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Which of E-16's kinds.
    pub kind: FaultKind,
    /// What happened and what to do, in one or a few sentences.
    pub message: String,
    /// The node it belongs to; filled in when the fault reaches a node.
    pub node: Option<Arc<str>>,
    /// What lies behind it: a provider's status and text, a tool's error, the failed look-ups.
    pub cause: Option<Value>,
}

impl Fault {
    /// What placeholders find in it: `{{id.error.kind}}`.
    pub const FIELDS: [&str; 4] = ["kind", "message", "node", "cause"];

    /// A fault without a cause, not yet placed at a node.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), node: None, cause: None }
    }
    /// The same fault with its cause.
    #[must_use]
    pub fn because(mut self, cause: Value) -> Self {
        self.cause = Some(cause);
        self
    }
    /// The same fault at a node.
    #[must_use]
    pub fn at(mut self, node: &Arc<str>) -> Self {
        self.node = Some(node.clone());
        self
    }
    /// The text of the tool message that states this fault (E-24).
    pub fn tool_text(&self) -> String {
        serde_json::json!({"error": {"type": self.kind.name(), "message": self.message}}).to_string()
    }
}

/// A note for the user that does not change the run; `code` is stable, in kebab case (C-02).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable name of the kind of warning.
    pub code: Arc<str>,
    /// What was found and what it means.
    pub message: String,
    /// The node it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<str>>,
}

impl Warning {
    /// A warning at a node.
    pub fn at(code: &str, node: &Arc<str>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), node: Some(node.clone()) }
    }
}
