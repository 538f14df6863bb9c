//! Questions that are open no more: what was answered, or when their time was up (S-07, E-37).

use crate::asks;
use crate::error::Error;
use crate::recorded::RecordedRun;
use crate::report::Said;
use crate::text::one_line;
use crate::time;
use selvedge_engine::{Event, State};
use selvedge_runtime::recorded;
use std::sync::Arc;

/// Characters of an answer that an error shows.
const ANSWER: usize = 400;

/// How a question was closed, and when.
enum Closed {
    Answered(Said, i64),
    Expired(i64),
}

/// Returns the error that says how the question was closed; `unknown`, if it is another error or there was no such question.
pub(crate) fn error(run: &RecordedRun, named: Option<&str>, unknown: Error) -> Error {
    if !unknown.is("unknown-ask") {
        return unknown;
    }
    let Some((ask, closed)) = closed(run, named) else { return unknown };
    let called = asks::called(&run.state, &ask);
    let help = unknown.diagnostics.first().map(|first| first.help.clone()).unwrap_or_default();
    match closed {
        Closed::Answered(said, at) => {
            let (at, told) = (time::told(at), one_line(&said.told(), ANSWER));
            let message = format!("the question {called} was answered at {at}: {told}");
            Error::usage("S-07", "ask-answered", &message).help(&help)
        }
        Closed::Expired(at) => expired(&called, at, &help),
    }
}

/// The error of an answer that comes too late.
pub(crate) fn expired(called: &str, at: i64, help: &str) -> Error {
    let message =
        format!("the question {called} expired at {}: it can't be answered any more", time::told(at));
    Error::usage("E-37", "ask-expired", &message).help(help)
}

/// The question of that name, or without one the last, as the journal has it. `None` if there was none, if it is open, or if it was
/// taken back.
fn closed(run: &RecordedRun, named: Option<&str>) -> Option<(Arc<str>, Closed)> {
    let kinds = ["\"asked\"", "\"answered\"", "\"fired\""];
    let mut found: Option<(Arc<str>, Option<Closed>)> = None;
    // When its own time is up: a timer may fire later, as no process drives the run.
    let mut due = None;
    for entry in run.store.journal(run.id(), 1).ok()? {
        let entry = entry.ok()?;
        // Cheaper than reading each event.
        if !kinds.iter().any(|kind| entry.json.contains(kind)) {
            continue;
        }
        match recorded(entry.json.as_bytes()) {
            Ok(Event::Asked(asked)) if is_named(&run.state, &asked.ask, named) => {
                (found, due) = (Some((asked.ask, None)), asked.due);
            }
            Ok(Event::Answered { ask, value }) if is_named(&run.state, &ask, named) => {
                let said = Closed::Answered(Said::new(&ask, &value), entry.at_ms);
                found = Some((ask, Some(said)));
            }
            Ok(Event::Fired { timer }) => {
                if let Some((ask, closed @ None)) = &mut found
                    && asks::ends(&timer, ask)
                {
                    *closed = Some(Closed::Expired(due.filter(|_| timer == *ask).unwrap_or(entry.at_ms)));
                }
            }
            _ => {}
        }
    }
    found.and_then(|(ask, closed)| Some((ask, closed?)))
}

fn is_named(state: &State, ask: &str, named: Option<&str>) -> bool {
    named.is_none_or(|named| named == ask || asks::called(state, ask) == named)
}
