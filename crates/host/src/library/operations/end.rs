//! The end of a task.

use super::beside;
use super::place::{Changing, Task};
use crate::error::Error;
use crate::library::left;
use crate::library::operations::Undone;
use selvedge_engine::library::{Command, Library, Place, Stage, Version};
use selvedge_engine::{EffectId, Event, Record, State};
use selvedge_runtime::{LoadError, Reading};
use selvedge_store::StoreError;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What it is given.
#[derive(Deserialize)]
struct Given {
    #[serde(default)]
    publish: bool,
}

/// Ends a task: what was not proven is retired, and what was becomes public, unless it is to stay the task's own.
pub(super) async fn end(task: Arc<Task>) -> Result<Value, Undone> {
    let Given { publish } = task.given()?;
    let (ending, calling) = (Arc::clone(&task), Arc::clone(&task));
    let called = beside(move || called(&calling)).await?;
    let ended = task
        .once(move |changing: &mut Changing<'_>| {
            let task = Arc::clone(&ending.id);
            changing.sure(Command::EndTask { task, publish, left: false })?;
            Ok(json!({ "tools": made(changing.library(), &ending, &called) }))
        })
        .await?;
    let listed = ended.get("tools").and_then(Value::as_array);
    if listed.into_iter().flatten().any(|tool| tool.get("state") == Some(&json!(Stage::Retired.name()))) {
        beside(move || {
            let retired = task.look(|library| left::retired(library, &task.id))?;
            left::forget(&task.bench.catalogue.config().tool_cache, &retired);
            Ok(())
        })
        .await?;
    }
    Ok(ended)
}

/// The versions of tools that a task has called, by the run's journal. The library does not say it: it keeps no call that it has
/// already, and a fork takes over the outcomes of its source (A-17, E-29).
fn called(task: &Task) -> Result<BTreeSet<Arc<str>>, Error> {
    let (store, run) = (&task.bench.store, &*task.run);
    let mut reading = match Reading::open(store, run) {
        // A caller without a run has no journal either.
        Err(LoadError::Store(StoreError::UnknownRun { .. })) => return Ok(BTreeSet::new()),
        reading => reading?,
    };
    let mut state = State::new(Arc::clone(reading.graph()));
    let mut called = BTreeSet::new();
    for entry in store.journal(run, 1)? {
        let entry = entry.map_err(LoadError::from)?;
        let event = reading.event(&entry)?;
        if let Event::Requested { effect, .. } | Event::Reused { effect, .. } = &event
            && is_within(effect, task)
            && let Some(tool) = state.tool_called(&event)
        {
            called.insert(Arc::clone(&tool.version));
        }
        state.apply_record(&Record { at: entry.at_ms, event });
    }
    Ok(called)
}

/// Whether an effect is of a task's frame or of a frame in it.
fn is_within(effect: &EffectId, task: &Task) -> bool {
    let frame = task.frame.to_string();
    let rest = effect.0.strip_prefix(&frame);
    frame.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
}

/// What a task made, and what it used of what was there, by name.
fn made(library: &Library, task: &Task, called: &BTreeSet<Arc<str>>) -> Vec<Value> {
    let place = task.place();
    let mut tools: BTreeMap<(Arc<str>, Arc<str>), Value> = BTreeMap::new();
    let mut add = |version: &Version, stage: Stage, how: &str| {
        let entry = json!({"name": version.name, "version": version.hash, "state": stage.name(), "how": how});
        tools.entry((Arc::clone(&version.name), Arc::clone(&version.hash))).or_insert(entry);
    };
    if library.knows_task(&task.id) {
        for version in library.versions_of(&task.id) {
            let Some(life) = version.lives.get(&place) else { continue };
            // What was built anew as everybody has it already is that tool.
            if life.stage == Stage::Retired && version.stage(&Place::Library) == Some(Stage::Public) {
                add(version, Stage::Public, "used");
                continue;
            }
            let enhanced = version.parents.iter().any(|parent| library.version(parent).is_some());
            add(version, life.stage, if enhanced { "enhanced" } else { "built" });
        }
    }
    for version in called.iter().filter_map(|version| library.version(version)) {
        add(version, version.stage(&Place::Library).unwrap_or(Stage::Public), "used");
    }
    tools.into_values().collect()
}
