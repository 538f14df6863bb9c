//! Tasks whose run was left as it was: it failed, was cancelled, or its process died. The next command that looks at the library ends
//! them.

use super::Decided;
use crate::error::Error;
use selvedge_dialects::agent::operations;
use selvedge_engine::graph::Act;
use selvedge_engine::library::{Change, Command, Library, Place, Stage};
use selvedge_runtime::graph_of;
use selvedge_store::{Mode, RunStatus, Store, StoreError};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The run of a task.
fn run_of(task: &str) -> &str {
    task.split('/').next().unwrap_or(task)
}

/// Ends the tasks of these that are over: nobody drives their run, and it waits for nobody. Says whether there was one. Who can't write
/// the library leaves it to somebody who can.
///
/// # Errors
/// The library can't be read.
pub(super) fn end(store: &Store, state: &Path, open: &BTreeSet<Arc<str>>) -> Result<bool, Error> {
    let mut over = Vec::new();
    for task in open {
        if is_left(store, run_of(task))? {
            let publish = publishes(store, run_of(task));
            over.push((Arc::clone(task), publish));
        }
    }
    if over.is_empty() {
        return Ok(false);
    }
    let Ok(store) = Store::open(state, Mode::ReadWrite) else { return Ok(false) };
    let retired = super::change(&store, |library| {
        let mut change = Change::new(library);
        for (task, publish) in &over {
            // Somebody may have been faster.
            if library.open_tasks().contains(task) && is_left(&store, run_of(task))? {
                let command = Command::EndTask { task: Arc::clone(task), publish: *publish, left: true };
                change.accept(command).map_err(|refusal| super::refused(&refusal))?;
            }
        }
        let retired = over.iter().flat_map(|(task, _)| retired(change.after(), task)).collect();
        Ok(Decided { events: change.into_events(), contents: Vec::new(), what: retired })
    });
    match retired {
        Ok(retired) => {
            forget(&state.join("cache/tools"), &retired);
            Ok(true)
        }
        Err(_) => Ok(false),
    }
}

/// Whether nobody drives a run and nobody is waited for: it has ended, or its process has.
fn is_left(store: &Store, run: &str) -> Result<bool, Error> {
    if store.is_driven(run)? {
        return Ok(false);
    }
    match store.run(run) {
        Ok(info) => Ok(info.status != RunStatus::Waiting),
        Err(StoreError::UnknownRun { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Whether the graph of a run would have made proven tools everybody's at the end of each of its tasks. What can't be read says no.
fn publishes(store: &Store, run: &str) -> bool {
    let graph = store.run(run).ok().and_then(|info| graph_of(store, &info).ok());
    let end = &operations::end().name;
    let leaves = graph.iter().flat_map(|graph| graph.all_nodes()).flat_map(|node| node.body.leaves.values());
    let calls = leaves.filter_map(|leaf| match &leaf.act {
        Act::Call(call) if call.tool == *end => serde_json::to_value(&call.args).ok(),
        _ => None,
    });
    let said: Vec<bool> = calls.map(|args| args.get("publish") == Some(&true.into())).collect();
    !said.is_empty() && said.iter().all(|publish| *publish)
}

/// The versions of a task that are retired there and in use nowhere else.
pub(super) fn retired(library: &Library, task: &Arc<str>) -> BTreeSet<Arc<str>> {
    let place = Place::Task(Arc::clone(task));
    let in_use = |stage: Stage| !matches!(stage, Stage::Retired | Stage::Enhanced | Stage::RolledBack);
    let known = library.versions_of(task).filter(|known| known.stage(&place) == Some(Stage::Retired));
    let gone = known.filter(|known| !known.lives.values().any(|life| in_use(life.stage)));
    gone.map(|known| Arc::clone(&known.hash)).collect()
}

/// Removes copies of tools from the cache of a state folder: their texts stay in the library.
pub(super) fn forget(cache: &Path, versions: &BTreeSet<Arc<str>>) {
    for version in versions {
        for kind in ["py", "json"] {
            // It is only a copy.
            let _ = std::fs::remove_file(cache.join(format!("{version}.{kind}")));
        }
    }
}
