//! The conformance suite: the rules of `spec/` as cases in `spec/cases/`, and what runs them.
//!
//! A case is data: a document, the world around it, and what must come of it (see `spec/cases/README.md`).
//! Every case is also replayed, crashed after each event, and run in other orders, and nobody may be able to
//! tell ([`laws`]).

#![allow(clippy::indexing_slicing, reason = "only JSON is indexed, by name: what is not there is null")]

pub mod case;
pub mod cli;
pub mod compare;
pub mod laws;
pub mod messages;
pub mod ports;
pub mod rules;
pub mod run;

pub use case::Case;

use ports::Pace;
use run::Session;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long one case may take, all its runs together.
const LIMIT: Duration = Duration::from_secs(10);

/// The project's `spec` folder.
pub fn spec_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec")
}

/// Every case file of a folder of `spec/cases`, in order.
///
/// # Errors
/// If the folder can't be read.
pub fn files(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    Ok(files)
}

/// Reads a file of values of one type.
///
/// # Errors
/// What is wrong with the file, with its place.
pub fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    // Of YAML 1.2: `y`, `n`, `on` and the like are texts.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(&text, options)
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs one case in a thread of its own, for at most ten seconds.
///
/// # Errors
/// Everything that is not as the case says.
pub fn check(case: &Case) -> Result<(), String> {
    let (done, outcome) = std::sync::mpsc::channel();
    let case = case.clone();
    let thread = std::thread::Builder::new().name(case.name.clone()).spawn(move || {
        // The receiver is gone only once the case took too long.
        let _ = done.send(differences(&case));
    });
    thread.map_err(|error| error.to_string())?;
    match outcome.recv_timeout(LIMIT) {
        Ok(Ok(wrong)) if wrong.is_empty() => Ok(()),
        Ok(Ok(wrong)) => Err(wrong.join("\n")),
        Ok(Err(error)) => Err(error),
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => Err(format!("not done within {LIMIT:?}")),
        Err(_) => Err("it panicked".into()),
    }
}

fn differences(case: &Case) -> Result<Vec<String>, String> {
    let compiled = run::compile(case)?;
    let mut wrong: Vec<String> = Vec::new();
    let fatal = compiled.graph.is_none();
    match &case.expect.diagnostics {
        Some(expected) => wrong.extend(compare::findings(expected, &compiled.findings)),
        None if fatal => wrong.extend(compare::findings(&[], &compiled.findings)),
        None => {}
    }
    let runs = case.expect.status.is_some();
    let Some(graph) = &compiled.graph else {
        if runs {
            wrong.push("the document has errors, so it does not run".into());
        }
        return Ok(wrong);
    };
    if !runs {
        return Ok(wrong);
    }
    let mut session = Session::new(case, Arc::clone(graph), Pace::AsWritten)?;
    let seen = session.start(&compiled, false)?;
    wrong.extend(compare::run(&case.expect, &session, &seen));
    wrong.extend(laws::check(case, &compiled, &session, &seen)?);
    let mut before = 0;
    for (at, step) in case.then.iter().enumerate() {
        before = session.records.len();
        let seen = session.step(step)?;
        let found = compare::run(&step.expect, &session, &seen);
        wrong.extend(found.into_iter().map(|found| format!("after step {}: {found}", at + 1)));
        wrong.extend(laws::conversations(&seen));
    }
    // What came after a crash was cut from the journal that the crash left.
    let resumed = case.then.last().is_some_and(|step| step.crash.is_none());
    if resumed && case.crash == case::Crash::Every {
        wrong.extend(laws::crashes(&session, before)?);
    }
    if case.replay {
        wrong.extend(laws::replay(graph, &session.records));
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests;
