//! What a person is asked, as the command line prints it and reads it (C-02, C-13).

use crate::ways::{Way, listed};
use crate::words::command;
use selvedge_engine::State;
use selvedge_host::{WayOut, time};

pub(crate) use selvedge_host::report::asked as object;

pub(crate) use selvedge_host::asks::{
    LINE, SAME_QUESTION, answer_of, answers, called, happened, open, prompt, strict, takes, ways_in_line,
    whole, words,
};

/// Until when an open question may be answered, if there is an end (E-37); `now` is `None` for a moment in the past.
pub(crate) fn until(state: &State, id: &str, now: Option<i64>) -> Option<String> {
    let at = state.expires(id)?;
    let word = if is_expired(state, id, now) { "expired at" } else { "until" };
    Some(format!("{word} {}", time::told(at)))
}

/// Whether an open question has expired (E-37).
pub(crate) fn is_expired(state: &State, id: &str, now: Option<i64>) -> bool {
    state.expires(id).is_some_and(|at| now.is_some_and(|now| at <= now))
}

/// When the next timer of a run that waits is due, and what continues the run then (E-37). `now` is `None` for a moment in the past.
pub(crate) fn next_timer(state: &State, run: &str, now: Option<i64>) -> Option<String> {
    let (due, now) = (state.next_due()?, now?);
    let resume = command(&["resume", run]);
    Some(if due <= now {
        format!("its next timer was due at {}; {resume} continues the run", time::told(due))
    } else {
        format!(
            "its next timer is due at {}; from then on {resume} continues the run, as a running `selvedge serve` does by itself",
            time::told_from(due)
        )
    })
}

/// What was said: `@FILE` is what a file holds, and `-` what stdin does (C-13).
pub(crate) fn read_text(said: &str) -> Result<String, String> {
    let file = said.strip_prefix('@').filter(|file| !file.is_empty());
    let read = match (said, file) {
        ("-", _) => std::io::read_to_string(std::io::stdin()),
        (_, Some(file)) => std::fs::read_to_string(file),
        (text, None) => return Ok(text.to_owned()),
    };
    read.map_err(|error| {
        let whose = file.unwrap_or("stdin");
        format!("it can't be read from {whose}: {error}")
    })
}

/// What can be done about a run that has failed as somebody said no to a write in doubt (E-05).
pub(crate) fn ways(run: &str, ask: &str) -> Vec<Way> {
    let way = |(way, when): (WayOut<'_>, _)| Way { command: way.to_string(), when };
    selvedge_host::asks::ways(run, ask).into_iter().map(way).collect()
}

/// The same as advice on stderr.
pub(crate) fn advice(run: &str, ask: &str) -> String {
    let columns = crate::ui::columns().unwrap_or(usize::MAX);
    format!("{SAME_QUESTION}\n{}", listed(&ways(run, ask), 4, columns).join("\n"))
}
