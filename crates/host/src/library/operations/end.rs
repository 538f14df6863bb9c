//! The end of a task.

use super::beside;
use super::place::{Changing, Task};
use crate::library::left;
use crate::library::operations::Undone;
use selvedge_engine::library::{Command, Library, Place, Stage, Version};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
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
    let ending = Arc::clone(&task);
    let ended = task
        .once(move |changing: &mut Changing<'_>| {
            let task = Arc::clone(&ending.id);
            changing.sure(Command::EndTask { task, publish, left: false })?;
            Ok(json!({ "tools": made(changing.library(), &ending) }))
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

/// What a task made, and what it used of what was there, by name.
fn made(library: &Library, task: &Task) -> Vec<Value> {
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
    let frame = task.frame.to_string();
    for (effect, version) in library.calls_of(&task.run) {
        let rest = effect.strip_prefix(&frame);
        let own = frame.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'));
        if let Some(version) = library.version(version).filter(|_| own) {
            add(version, version.stage(&Place::Library).unwrap_or(Stage::Public), "used");
        }
    }
    tools.into_values().collect()
}
