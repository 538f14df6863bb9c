//! What became of tools that a run had written, by what the operations on the tool library answered.

use super::Timeline;
use super::calls::CallAt;
use super::history::CallKind;
use selvedge_dialects::agent::operations as known;
use selvedge_engine::Outcome;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Tools that a run has had built, mended or given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Names for which a file was taken in.
    pub built: BTreeSet<Arc<str>>,
    /// Names that mean a better version.
    pub mended: BTreeSet<Arc<str>>,
    /// Names that nobody could mend.
    pub retired: BTreeSet<Arc<str>>,
    /// Files that were no tool, and versions that were no better.
    pub refused: u64,
    /// Recorded calls that were repeated.
    pub repeated: u64,
}

impl Made {
    fn add(&mut self, operation: &str, args: &Value, output: &Value) {
        let says = |field: &str| output.get(field) == Some(&Value::Bool(true));
        let name: Option<Arc<str>> = args.get("name").and_then(Value::as_str).map(Arc::from);
        let list =
            |field: &str| output.get(field).and_then(Value::as_array).map_or(0, |list| list.len() as u64);
        if operation == &*known::draft().name {
            match says("ok") {
                true if args.get("replaces").is_none_or(Value::is_null) => self.built.extend(name),
                true => {}
                false => self.refused += 1,
            }
        } else if operation == &*known::replay().name {
            let passed = output.get("passed").and_then(Value::as_u64).unwrap_or_default();
            self.repeated = self.repeated.saturating_add(passed) + list("failing") + list("unsure");
        } else if operation == &*known::accept().name {
            match says("accepted") {
                true => self.mended.extend(name),
                false => self.refused += 1,
            }
        } else if operation == &*known::retire().name && says("retired") {
            self.retired.extend(name);
        }
    }
}

impl Timeline {
    /// What became of the tools that it had written.
    pub fn made(&self) -> &Made {
        &self.made
    }

    /// An operation has answered.
    pub(super) fn note_made(&mut self, at: CallAt, outcome: &Outcome) {
        let Some(output) = outcome.output() else { return };
        if let Some(call) = self.call_at(at)
            && let (CallKind::Operation(name), Some(args)) = (&call.kind, &call.arguments)
        {
            let (name, args) = (Arc::clone(name), Arc::clone(args));
            self.made.add(&name, &args, output);
        }
    }
}
