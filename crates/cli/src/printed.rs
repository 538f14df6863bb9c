//! What is told of a tool's call beside its outcome: the traceback of its fault, and what it printed, as lines.

use crate::names::node_of;
use crate::ui::Part;
use selvedge_engine::{Event, Fault, Outcome, Printed};
use selvedge_host::text::counted;
use selvedge_store::Store;
use serde_json::Value;
use std::collections::VecDeque;

/// Events at the end of a journal among which the failed call of a fault is looked for.
const NEAR: u64 = 10_000;

/// Lines of a traceback: all that there are.
const TRACEBACK: usize = 200;

/// The traceback of a fault, if its tool has one.
pub(crate) fn traceback(fault: &Fault) -> Option<&str> {
    let text = fault.cause.as_ref()?.get("error")?.get("traceback")?.as_str()?;
    (!text.trim().is_empty()).then_some(text)
}

/// A fault's message without the end of what its tool wrote to stderr, where that is shown beside it, as lines.
pub(crate) fn message<'f>(fault: &'f Fault, printed: Option<&Printed>) -> &'f str {
    let whole = fault.message.as_str();
    let Some(stderr) = printed.map(|printed| printed.stderr.trim_end()).filter(|text| !text.is_empty())
    else {
        return whole;
    };
    let repeats = |at: &usize| {
        let rest = whole.get(at + 2..).unwrap_or_default().trim();
        !rest.is_empty() && stderr.ends_with(rest)
    };
    let at = whole.match_indices(": ").map(|(at, _)| at).find(repeats);
    at.and_then(|at| whole.get(..at)).unwrap_or(whole)
}

/// All parts of what is known of a call: the traceback, and of each stream the last `most` lines.
pub(crate) fn parts(fault: Option<&Fault>, printed: Option<&Printed>, most: usize) -> Vec<Part> {
    let trace = fault.and_then(traceback).map(|text| part("traceback", text, 0, TRACEBACK));
    let streams = printed.into_iter().flat_map(Printed::streams);
    trace.into_iter().chain(streams.map(|(name, text, cut)| part(name, text, cut, most))).collect()
}

fn part(name: &'static str, text: &str, cut: u64, most: usize) -> Part {
    let mut lines: VecDeque<&str> = VecDeque::new();
    let mut hidden = 0_usize;
    for line in text.trim_end().lines() {
        if lines.len() == most {
            lines.pop_front();
            hidden += 1;
        }
        lines.push_back(line);
    }
    let of_lines = || format!("{} before", counted(hidden, "line"));
    let left_out = match (hidden, cut) {
        (0, 0) => None,
        (0, cut) => Some(format!(
            "the first {} not kept",
            if cut == 1 { "byte is".to_owned() } else { format!("{cut} bytes are") }
        )),
        (_, 0) => Some(of_lines()),
        (_, cut) => Some(format!("{}, and {cut} bytes that are not kept", of_lines())),
    };
    Part { name, left_out, lines: lines.into_iter().map(str::to_owned).collect() }
}

/// What a failed call that led to a fault had printed: the node's last one, near the journal's end. Nothing where it can't
/// be read: the fault itself is told whatever becomes of this.
pub(crate) fn of_fault(store: &Store, run: &str, fault: &Fault) -> Option<Printed> {
    let node = fault.node.as_deref()?;
    let first = store.last_event(run).ok()?.saturating_sub(NEAR).max(1);
    let mut found = None;
    for entry in store.journal(run, first).ok()? {
        let Ok(entry) = entry else { break };
        // Cheaper than reading each event.
        if entry.json.contains("\"failed\"")
            && let Ok(Event::Completed { effect, outcome: Outcome::Failed(_), printed, .. }) =
                selvedge_runtime::recorded(entry.json.as_bytes())
            && node_of(&effect.0) == node
        {
            found = printed;
        }
    }
    found.map(|printed| Printed::clone(&printed))
}

/// A fault's cause for people, without the traceback, which is told as lines; nothing if there is no more in it than the
/// message.
pub(crate) fn cause(fault: &Fault) -> Option<Value> {
    let mut cause = fault.cause.clone().filter(|cause| !cause.is_null())?;
    let error = cause.get_mut("error").and_then(Value::as_object_mut);
    let told = error.is_some_and(|error| {
        let traced = error.shift_remove("traceback").is_some() && error.len() <= 2;
        if error.get("message").and_then(Value::as_str) == Some(&fault.message) {
            error.shift_remove("message");
        }
        traced
    });
    (!told).then_some(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown as lines is not shown in the message, too; what it ends with by chance is.
    #[test]
    fn a_message_does_not_repeat_what_is_shown_beside_it() {
        let fault = |text: &str| Fault::new(selvedge_engine::FaultKind::ExecutionFailure, text);
        let stderr = |text: &str| Printed { stderr: text.into(), ..Printed::default() };
        let told = fault("the tool `t` ended with exit code 1: warn\nValueError: boom");
        assert_eq!(
            message(&told, Some(&stderr("first\nwarn\nValueError: boom\n"))),
            "the tool `t` ended with exit code 1"
        );
        for other in [None, Some(stderr("")), Some(stderr("something else"))] {
            assert_eq!(message(&told, other.as_ref()), told.message);
        }
    }

    #[test]
    fn the_last_lines_are_shown_and_what_is_not_is_told() {
        let printed = Printed { stdout: "a\nb\nc\n".into(), stdout_cut: 7, ..Printed::default() };
        let shown = parts(None, Some(&printed), 2);
        let [part] = &shown[..] else { panic!("{shown:?}") };
        assert_eq!((part.name, &part.lines[..]), ("stdout", &["b".to_owned(), "c".to_owned()][..]));
        assert_eq!(part.left_out.as_deref(), Some("1 line before, and 7 bytes that are not kept"));
        assert!(
            parts(None, Some(&Printed { stderr: "x".into(), ..Printed::default() }), 9)[0].left_out.is_none()
        );
    }
}
