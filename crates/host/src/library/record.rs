//! What runs and the library have to do with each other: texts of pinned versions, and calls that become tests.

use super::Decided;
use super::samples;
use crate::environment::Environment;
use crate::error::Error;
use crate::options::RunOptions;
use crate::places;
use crate::secrets::{Known, refuse_tool};
use selvedge_engine::library::{Call, Change, Command, Origin, Sample, SampleFault};
use selvedge_engine::{Event, FaultKind, Outcome, Record, Request, State, ToolDef};
use selvedge_runtime::{LoadError, Reading};
use selvedge_store::{BlobHash, Store};
use selvedge_tools::Catalogue;
use selvedge_tools::library::LIBRARY;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Keeps the texts of the Python tools that a run pins, so that they stay what they are whatever becomes of files and
/// caches. None of them holds a key: what is kept and told to models is here, whatever command pins it (C-06).
///
/// # Errors
/// `Usage` if one holds a key, before any is kept; `Environment` if they can't be written.
pub async fn pin<'t>(
    store: &Store,
    catalogue: &Catalogue,
    tools: impl Iterator<Item = &'t ToolDef>,
    known: &[Known],
) -> Result<(), Error> {
    let mut texts = Vec::new();
    for tool in tools {
        // What a command's or a server's tool says of itself stands in the graph.
        let said = serde_json::json!([tool.description, tool.input_schema, tool.output_params]);
        refuse_tool(known, "definition", &tool.name, &said.to_string())?;
        // Built-ins and commands have no text.
        let Ok(hash) = tool.version.parse::<BlobHash>() else { continue };
        let Some(text) = catalogue.text(&tool.version).await else { continue };
        refuse_tool(known, "text", &tool.name, &String::from_utf8_lossy(&text))?;
        if !store.has_blob(hash)? {
            texts.push(text);
        }
    }
    let commits: Vec<_> = texts.into_iter().map(|text| store.put_blob(text).1).collect();
    for commit in commits {
        commit.await?;
    }
    Ok(())
}

/// Whether a run may have called tools of the library, so that there is something to record.
pub fn calls_library(state: &State) -> bool {
    state.graph().tools.values().any(|tool| &*tool.source == LIBRARY)
}

/// Records the calls of library tools that a run has made, for tests. Calls that are recorded already are left
/// out, so that it may be repeated.
///
/// # Errors
/// `Environment` if the run or the library can't be read or written.
pub fn calls(environment: &Environment, store: &Store, run: &str, state: &State) -> Result<(), Error> {
    if !calls_library(state) {
        return Ok(());
    }
    let folder = places::workspace(environment, &RunOptions::stored(&store.run(run)?.options).document);
    let folder: Arc<str> = folder.display().to_string().into();
    let made = made(store, run)?;
    if made.is_empty() {
        return Ok(());
    }
    let versions: BTreeSet<Arc<str>> = made.iter().map(|made| Arc::clone(&made.version)).collect();
    super::change_versions(store, &versions, |library| {
        let mut change = Change::new(library);
        let mut contents = Vec::new();
        for Made { version, effect, sample, json } in &made {
            if library.version(version).is_none() {
                continue;
            }
            let origin =
                Origin { run: run.into(), effect: Arc::clone(effect), folder: Some(Arc::clone(&folder)) };
            let kept = |change: &Change| change.after().version(version).map(|known| known.calls.len());
            let before = kept(&change);
            change
                .accept(recorded(version, sample, json, Some(origin)))
                .map_err(|error| super::refused(&error))?;
            if kept(&change) != before {
                contents.push(json.clone().into_bytes());
            }
        }
        Ok(Decided { events: change.into_events(), contents, what: () })
    })
}

/// The command that records a call.
pub fn recorded(version: &Arc<str>, sample: &Sample, json: &str, origin: Option<Origin>) -> Command {
    let call = Call {
        sample: BlobHash::of(json.as_bytes()).to_string().into(),
        ok: sample.output.is_some(),
        fault: sample.fault.as_ref().map(|fault| fault.kind),
        origin,
        ..Call::default()
    };
    Command::Record { version: Arc::clone(version), call, bytes: json.len() }
}

struct Made {
    version: Arc<str>,
    effect: Arc<str>,
    sample: Sample,
    json: String,
}

/// The calls of library tools in a journal that came to an end by themselves. Journals hold no keys (C-06), so these
/// don't either.
fn made(store: &Store, run: &str) -> Result<Vec<Made>, Error> {
    let mut reading = Reading::open(store, run)?;
    let mut state = State::new(Arc::clone(reading.graph()));
    let mut made = Vec::new();
    for entry in store.journal(run, 1)? {
        let entry = entry.map_err(LoadError::from)?;
        let event = reading.event(&entry)?;
        if let Event::Completed { effect, outcome, .. } = &event
            && let Some(Request::Tool(request)) = state.request(effect)
            && &*request.tool.source == LIBRARY
            && let Some(sample) = sample(request.args, outcome)
            && let Ok(json) = serde_json::to_string(&sample)
            // One that is too deeply nested for a file of calls is none of them.
            && samples::parsed(&json).is_ok()
        {
            made.push(Made { version: request.tool.version.clone(), effect: effect.0.clone(), sample, json });
        }
        state.apply_record(&Record { at: entry.at_ms, event });
    }
    Ok(made)
}

/// A call as it is kept; `None` for what says nothing about the tool: a denied call, a limit, an interrupt.
fn sample(arguments: serde_json::Value, outcome: &Outcome) -> Option<Sample> {
    let (output, fault) = match outcome {
        Outcome::Output(output) => (Some((**output).clone()), None),
        Outcome::Failed(failure) => {
            let kind = failure.fault.kind;
            let shows = [FaultKind::InputError, FaultKind::ExecutionFailure, FaultKind::Timeout];
            if !shows.contains(&kind) {
                return None;
            }
            (None, Some(SampleFault { kind, message: Some(failure.fault.message.clone()) }))
        }
        Outcome::Reply(_) | Outcome::Operated(_) => return None,
    };
    Some(Sample { arguments, output, fault, note: None })
}
