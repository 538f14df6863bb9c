//! Recorded journals that every later version must still read: they fold to the same end, replay byte for byte, and can be
//! resumed after each of their events (E-18, E-05).
//!
//! `spec/journals/README.md` describes the files. They are recorded once and never again: what they say is what users have in
//! their state folders.

#![allow(clippy::indexing_slicing, reason = "only JSON is indexed, by name: what is not there is null")]

pub mod program;
pub mod runs;
mod world;

use crate::conformance::case::Case;
use crate::conformance::laws::{crashes, replay, summary};
use crate::conformance::ports::Pace;
use crate::conformance::run::{Session, compile};
use crate::conformance::{files, spec_dir};
use selvedge_engine::{Graph, Record};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The first line of a recorded journal; each line behind it is an event.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The conformance case as it was: the document, its tools and the script.
    pub case: Value,
    /// The compiled graph, as the run recorded it.
    pub graph: Value,
    /// How many events there were before the last step of the case.
    pub before: usize,
    /// What the run came to.
    pub end: Value,
}

/// The folder of the recorded journals.
pub fn dir() -> PathBuf {
    spec_dir().join("journals")
}

/// Runs the cases whose names (`plan/P-05-slices: name`) contain `wanted`, and writes their journals into [`dir`], where they are
/// not there yet. Returns the files that are new.
///
/// # Errors
/// A case that can't be read or driven, or a file that can't be written.
pub fn record(wanted: &str) -> Result<Vec<PathBuf>, String> {
    let mut written = Vec::new();
    for folder in crate::conformance::rules::FOLDERS {
        for file in files(&spec_dir().join("cases").join(folder))? {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            for value in crate::conformance::read::<Value>(&file)? {
                let name = format!(
                    "{folder}/{stem}: {}",
                    value.get("name").and_then(Value::as_str).unwrap_or_default()
                );
                if name.contains(wanted) {
                    written.extend(record_case(&name, value)?);
                }
            }
        }
    }
    Ok(written)
}

fn record_case(name: &str, value: Value) -> Result<Option<PathBuf>, String> {
    let case: Case = serde_json::from_value(value.clone()).map_err(|error| format!("{name}: {error}"))?;
    let path = dir().join(format!("{}.jsonl", slug(name)));
    let compiled = compile(&case)?;
    let (Some(graph), Some(_)) = (&compiled.graph, &case.expect.status) else { return Ok(None) };
    if path.exists() || !case.replay {
        return Ok(None);
    }
    let mut session = Session::new(&case, Arc::clone(graph), Pace::AsWritten)?;
    session.start(&compiled, false)?;
    let mut before = 0;
    for step in &case.then {
        before = session.records.len();
        session.step(step)?;
    }
    let json = |value: Result<Value, serde_json::Error>| value.map_err(|error| error.to_string());
    let head = Head {
        case: value,
        graph: json(serde_json::to_value(&**graph))?,
        before,
        end: summary(&session, None),
    };
    let mut text = json(serde_json::to_value(&head))?.to_string();
    for record in &session.records {
        text.push('\n');
        text.push_str(&serde_json::to_string(record).map_err(|error| error.to_string())?);
    }
    std::fs::write(&path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Some(path))
}

/// A file's name: letters, digits and `-`.
fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// Checks that a recorded journal is still what it was.
///
/// # Errors
/// What is different.
pub fn check(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut lines = text.lines();
    let wrong = |error: serde_json::Error| error.to_string();
    let head: Head = serde_json::from_str(lines.next().unwrap_or_default()).map_err(wrong)?;
    let case: Case = serde_json::from_value(head.case).map_err(wrong)?;
    let recorded = head.graph.to_string();
    let graph: Arc<Graph> = Arc::new(serde_json::from_value(head.graph).map_err(wrong)?);
    if serde_json::to_string(&*graph).map_err(wrong)? != recorded {
        return Err("the graph is read as another one".into());
    }
    let mut records: Vec<Record> = Vec::new();
    for (at, line) in lines.enumerate() {
        let record = serde_json::from_str(line).map_err(|error| format!("event {}: {error}", at + 1))?;
        if serde_json::to_string(&record).map_err(wrong)? != line {
            return Err(format!("event {} is read as another one: {line}", at + 1));
        }
        records.push(record);
    }
    let session = Session::recorded(&case, Arc::clone(&graph), records)?;
    let end = summary(&session, None);
    if end != head.end {
        return Err(format!("it folds to another end\n  recorded: {}\n  here:     {end}", head.end));
    }
    if let Some(why) = replay(&graph, &session.records) {
        return Err(why);
    }
    match case.then.last() {
        // What came after the crash was cut from the journal that the crash left.
        Some(step) if step.crash.is_some() => Ok(()),
        _ if case.crash != crate::conformance::case::Crash::Every => Ok(()),
        _ => crashes(&session, head.before)?.map_or(Ok(()), Err),
    }
}
