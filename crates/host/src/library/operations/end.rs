//! The end of a task.

use super::beside;
use super::place::{Changing, Task};
use crate::library::left;
use selvedge_engine::Failure;
use selvedge_engine::library::{Command, Library, Place, Stage, Version};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// What it is given.
#[derive(Deserialize)]
struct Given {
    #[serde(default)]
    publish: bool,
}

/// Ends a task: what was not proven is retired, and what was becomes public, unless it is to stay the task's own.
pub(super) async fn end(task: Arc<Task>) -> Result<Value, Failure> {
    let Given { publish } = task.given()?;
    let ending = Arc::clone(&task);
    let ended = task
        .once(move |changing: &mut Changing<'_>| {
            let task = Arc::clone(&ending.id);
            changing.sure(Command::EndTask { task, publish, left: false })?;
            Ok(json!({ "tools": made(changing.library(), &ending) }))
        })
        .await?;
    beside(move || {
        let retired = task.look(|library| left::retired(library, &task.id))?;
        left::forget(&task.bench.catalogue.config().tool_cache, &retired);
        Ok(())
    })
    .await?;
    Ok(ended)
}

/// What a task made, and what it used of what was there.
fn made(library: &Library, task: &Task) -> Vec<Value> {
    let place = task.place();
    let mut tools = Vec::new();
    for version in library.versions() {
        if let Some(life) = version.lives.get(&place) {
            let enhanced = version.parents.iter().any(|parent| library.version(parent).is_some());
            let how = if enhanced { "enhanced" } else { "built" };
            tools.push(entry(version, life.stage, how));
        } else if used(version, task) {
            tools.push(entry(version, version.stage(&Place::Library).unwrap_or(Stage::Public), "used"));
        }
    }
    tools.sort_by_key(|tool| (tool["name"].to_string(), tool["version"].to_string()));
    tools
}

/// Whether a call of it by this task is kept.
fn used(version: &Version, task: &Task) -> bool {
    let frame = task.frame.to_string();
    let of = |effect: &str| {
        frame.is_empty() || effect.strip_prefix(&frame).is_some_and(|rest| rest.starts_with('/'))
    };
    let calls = version.calls.iter().filter_map(|call| call.origin.as_ref());
    let mut own = calls.filter(|origin| origin.run == task.run);
    own.any(|origin| of(&origin.effect))
}

fn entry(version: &Version, stage: Stage, how: &str) -> Value {
    json!({"name": version.name, "version": version.hash, "state": stage.name(), "how": how})
}
