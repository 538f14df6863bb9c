//! A run in a list of runs.

use crate::options::{Origin, RunOptions};
use crate::time;
use selvedge_engine::{Event, Fault, FaultKind};
use selvedge_store::{RunInfo, RunStatus, Store, StoreError};
use serde_json::{Map, Value, json};

/// Whether a run was recorded elsewhere (C-14).
pub fn is_imported(info: &RunInfo) -> bool {
    RunOptions::stored(&info.options).origin == Origin::Imported
}

/// C-15's object: `driven` says of one that goes on whether a process drives it, `fault` why one has failed.
pub fn row(info: &RunInfo, driven: bool, fault: Option<&Fault>) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("run_id", info.id.as_str().into());
    put("name", info.name.as_str().into());
    put("dialect", info.dialect.as_str().into());
    put("status", info.status.as_str().into());
    put("started", time::rfc3339(info.started_ms).into());
    put("ended", json!(info.ended_ms.map(time::rfc3339)));
    put("usage", usage(&info.usage));
    if info.status == RunStatus::Running {
        put("driven", driven.into());
    }
    if let Some(parent) = &info.parent {
        put("parent", parent.as_str().into());
    }
    if is_imported(info) {
        put("imported", true.into());
    }
    if let Some(fault) = fault {
        put("fault", json!(fault));
    }
    fields
}

/// C-02's usage; a row that was never updated has used nothing yet.
fn usage(stored: &str) -> Value {
    let known: Map<String, Value> = serde_json::from_str(stored).unwrap_or_default();
    let mut usage = json!({
        "model_calls": 0, "tool_calls": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0,
    });
    if let Some(fields) = usage.as_object_mut() {
        fields.extend(known);
    }
    usage
}

/// Why a run has failed, if it has: its last event says so.
///
/// # Errors
/// That event can't be read (E-44).
pub fn failed_of(store: &Store, info: &RunInfo) -> Result<Option<Fault>, StoreError> {
    if info.status != RunStatus::Failed {
        return Ok(None);
    }
    let last = store.last_event(&info.id)?;
    let Some(entry) = store.journal(&info.id, last.max(1))?.next().transpose()? else { return Ok(None) };
    Ok(match selvedge_runtime::recorded(entry.json.as_bytes()) {
        Ok(Event::Ended { fault, .. }) => fault.map(|fault| *fault),
        Ok(Event::Poisoned { message }) => Some(Fault::new(FaultKind::ExecutionFailure, message)),
        _ => None,
    })
}
