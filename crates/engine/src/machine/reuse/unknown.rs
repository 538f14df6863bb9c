//! Writes of unknown outcome (E-55).

use super::said::{Key, any_version};
use crate::effect::Outcome;
use crate::fault::FaultKind;
use crate::message::ToolCall;
use serde_json::Value;
use std::sync::Arc;

/// A write of which nobody knows whether it happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnknownWrite {
    /// The call, whatever the tool's version.
    pub(crate) key: Key,
    pub(crate) tool: Arc<str>,
    /// The arguments, as a question shows them.
    pub(crate) arguments: Arc<str>,
}

impl UnknownWrite {
    pub(crate) fn of(call: &ToolCall) -> Self {
        Self {
            key: any_version(&call.name, &call.arguments),
            tool: Arc::clone(&call.name),
            arguments: shown(&call.arguments).into(),
        }
    }
}

/// Whether an outcome says that nobody knows it.
pub(in crate::machine) fn is_unknown(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(failure) if failure.fault.kind == FaultKind::UnknownOutcome)
}

/// Arguments as who is asked about a call sees them (E-21): whole, but for the middle of those that nobody reads to the
/// end.
pub(in crate::machine) fn shown(arguments: &Value) -> String {
    const WHOLE: usize = 4_000;
    const KEPT: usize = 1_500;
    let text = arguments.to_string();
    let count = text.chars().count();
    if count <= WHOLE {
        return text;
    }
    let begin: String = text.chars().take(KEPT).collect();
    let end: String = text.chars().skip(count - KEPT).collect();
    format!("{begin}… {} characters …{end}", count - 2 * KEPT)
}

#[cfg(test)]
mod tests {
    use super::shown;
    use serde_json::json;

    /// E-21: what a person approves is seen to its end.
    #[test]
    fn the_ends_of_long_arguments_are_seen() {
        let usual = json!({"command": format!("begin {} end", "x".repeat(3_000))});
        assert_eq!(shown(&usual), usual.to_string());
        let long = json!({"command": format!("begin {} end", "ä".repeat(90_000))});
        let text = shown(&long);
        assert!(text.starts_with(r#"{"command":"begin"#) && text.ends_with(r#" end"}"#), "{text}");
        assert!(text.contains(" characters …") && text.chars().count() < 4_000);
    }
}
