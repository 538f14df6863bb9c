//! Versions of tools.

use crate::time;
use selvedge_engine::library::{Life, Place, Version};
use serde_json::{Value, json};
use std::sync::Arc;

/// C-15's object of a version; `current` is the one that its name means.
pub fn version(version: &Version, current: Option<&Arc<str>>) -> Value {
    let tested = version.reports.last().map(|(at, report)| {
        json!({"at": time::rfc3339(*at), "passed": report.passed, "failed": report.failed, "skipped": report.skipped})
    });
    let failing = version.calls.iter().filter(|call| !call.ok).count();
    let shown = version.shown();
    json!({
        "version": version.hash,
        "name": version.name,
        "current": Some(&version.hash) == current,
        "state": shown.stage.name(),
        "reason": shown.reason,
        "written": time::rfc3339(version.drafted),
        "author": version.author,
        "parents": version.parents,
        "members": version.members,
        "request": version.request,
        "lives": lives(version),
        "calls": {"recorded": version.calls.len(), "failing": failing},
        "tested": tested,
    })
}

/// What a version has been in its places.
pub fn lives(version: &Version) -> Vec<Value> {
    let life = |(place, life): (&Place, &Life)| {
        let task = match place {
            Place::Library => None,
            Place::Task(task) => Some(task),
        };
        json!({"task": task, "state": life.stage.name(), "since": time::rfc3339(life.at), "reason": life.reason,
               "proven": life.proven})
    };
    version.lives.iter().map(life).collect()
}
