//! Recording what the program itself does: a case of the command line is run, and the runs in the state folders that it leaves
//! are written down as texts.

use super::runs::{Head, Source, dir, read, summary};
use crate::conformance::cli::{CliCase, run_in};
use crate::conformance::{files, spec_dir};
use selvedge_engine::{Event, Record};
use selvedge_runtime::recorded;
use selvedge_store::{Mode, RunFilter, RunInfo, Store};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where the cases are run: no folder of whoever records, should a path get into a journal.
const PLACE: &str = "/tmp/selvedge-journals";

/// Runs the cases of the command line whose names (`cli/fork: name`) contain `wanted`, and writes the journals of all their runs
/// into [`dir`], where they are not there yet. Returns the files that are new.
///
/// # Errors
/// A case that is not as it says, or a file that can't be written.
pub fn record(wanted: &str) -> Result<Vec<PathBuf>, String> {
    let mut written = Vec::new();
    for file in files(&spec_dir().join("cases/cli"))? {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for value in crate::conformance::read::<Value>(&file)? {
            let name = format!("cli/{stem}: {}", value["name"].as_str().unwrap_or_default());
            if name.contains(wanted) {
                written.extend(record_case(&name, &value).map_err(|error| format!("{name}: {error}"))?);
            }
        }
    }
    Ok(written)
}

fn record_case(name: &str, value: &Value) -> Result<Vec<PathBuf>, String> {
    let case: CliCase = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    let place = Path::new(PLACE);
    // Whatever an earlier recording left.
    let _ = std::fs::remove_dir_all(place);
    let (folder, home) = (place.join("work"), place.join("home"));
    for folder in [&folder, &home] {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    }
    run_in(&case, &folder, &home)?;
    let mut written = Vec::new();
    for state in states(place) {
        let store = Store::open(&state, Mode::ReadOnly).map_err(|error| error.to_string())?;
        let runs = store.runs(&RunFilter::default()).map_err(|error| error.to_string())?;
        let mut runs = runs.sound;
        // Sources come before their forks.
        runs.sort_by_key(|run| run.started_ms);
        let mut names = BTreeMap::new();
        for run in &runs {
            let file = format!("{}-{}", super::slug(name), names.len() + 1);
            names.insert(run.id.clone(), file.clone());
            let path = dir().join(format!("{file}.jsonl"));
            if !path.exists() {
                let text = text(&store, run, value, &names)?;
                std::fs::write(&path, text).map_err(|error| error.to_string())?;
                finish(&path)?;
                written.push(path);
            }
        }
    }
    Ok(written)
}

/// The folders that hold a database, below a folder.
fn states(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.is_dir()).flat_map(|path| states(&path)).collect();
    found.extend(folder.join("selvedge.db").is_file().then(|| folder.to_owned()));
    found.sort();
    found
}

/// A run as a text, but for what it came to.
fn text(
    store: &Store,
    run: &RunInfo,
    case: &Value,
    names: &BTreeMap<String, String>,
) -> Result<String, String> {
    let wrong = |error: &dyn std::fmt::Display| error.to_string();
    let shared = run.fork.as_ref().map_or(0, |point| point.events);
    let mut head = Head {
        case: case.clone(),
        run: run.id.clone(),
        source: None,
        graphs: BTreeMap::new(),
        end: Value::Null,
    };
    if let Some(point) = &run.fork {
        let file = names.get(&point.run).ok_or("its source was not recorded")?.clone();
        head.source = Some(Source { file, shared: usize::try_from(shared).unwrap_or(usize::MAX) });
    }
    let mut lines = Vec::new();
    for entry in store.journal(&run.id, shared + 1).map_err(|error| wrong(&error))? {
        let entry = entry.map_err(|error| wrong(&error))?;
        let event: Event = recorded(entry.json.as_bytes()).map_err(|error| wrong(&error))?;
        let named = match &event {
            Event::Started(start) => Some(&start.graph),
            Event::Forked(fork) => fork.graph.as_ref(),
            _ => None,
        };
        if let Some(hash) = named {
            let known = hash.parse().map_err(|error| format!("{hash}: {error:?}"))?;
            let bytes = store.get_blob(known).map_err(|error| wrong(&error))?;
            head.graphs.insert(hash.to_string(), recorded(&bytes).map_err(|error| wrong(&error))?);
        }
        lines.push(serde_json::to_string(&Record { at: entry.at_ms, event }).map_err(|error| wrong(&error))?);
    }
    lines.insert(0, serde_json::to_string(&head).map_err(|error| wrong(&error))?);
    Ok(lines.join("\n") + "\n")
}

/// Adds what the run came to: its fold.
fn finish(path: &Path) -> Result<(), String> {
    let (mut head, run) = read(path)?;
    head.end = summary(&run.fold(usize::MAX));
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let events = text.split_once('\n').map_or("", |(_, events)| events);
    let first = serde_json::to_string(&head).map_err(|error| error.to_string())?;
    std::fs::write(path, format!("{first}\n{events}")).map_err(|error| error.to_string())
}
