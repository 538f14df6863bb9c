//! Words for what was taken from a recording, what that saved, and why the rest was asked for again (E-29).

use crate::durations::duration;
use selvedge_engine::{Afresh, Saved};
use selvedge_host::text::counted;

/// Times below are none to speak of.
const SHOWN_MS: u64 = 10;

/// Why a request of the node `own` was not answered by what was recorded; `name` says what people are told that a node is.
pub(crate) fn why(why: &Afresh, own: &str, name: impl Fn(&str) -> String) -> String {
    let at = |node: &str| Some(name(node)).filter(|name| *name != *own);
    match why {
        Afresh::NeverRecorded => "nothing of it is recorded".to_owned(),
        Afresh::InFlight => "it was under way where the recording ends".to_owned(),
        Afresh::NoResult => "nothing had come of it".to_owned(),
        Afresh::Taken => "what is recorded for it was taken before".to_owned(),
        Afresh::Model => "another model answers".to_owned(),
        Afresh::Tools => "other tools are offered to the model".to_owned(),
        Afresh::ToolVersion { tool } => format!("`{tool}` is another version"),
        Afresh::Edited { node } => match at(node) {
            Some(other) => format!("the document says something else at {other}"),
            None => "the document says something else here".to_owned(),
        },
        Afresh::Inputs => "the run has other inputs".to_owned(),
        Afresh::Message { node } => match at(node) {
            Some(other) => format!("a message of {other} was edited"),
            None => "a message of its own was edited".to_owned(),
        },
        Afresh::Upstream { node } => match at(node) {
            Some(other) => format!("{other} ran afresh"),
            None => "an earlier call of its own ran afresh".to_owned(),
        },
        Afresh::Operation => "what it changes belongs to the run that asked for it".to_owned(),
        Afresh::Different => "it asks for something else".to_owned(),
    }
}

/// What was saved, in words; empty if it is nothing.
pub(crate) fn saved(saved: &Saved) -> String {
    let count = |n: u64, what: &str| (n > 0).then(|| counted(n, what));
    let tokens = saved.usage.tokens.input.saturating_add(saved.usage.tokens.output);
    let cost = saved.usage.tokens.shown_cost();
    let parts = [
        count(saved.usage.model_calls, "model call"),
        count(saved.usage.tool_calls, "tool call"),
        count(tokens, "token"),
        (cost > 0.0).then(|| format!("cost {cost}")),
        (saved.worked_ms >= SHOWN_MS).then(|| duration(i64::try_from(saved.worked_ms).unwrap_or(i64::MAX))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
