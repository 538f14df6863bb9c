//! A run that begins: recorded before anything of it happens (E-04).

use crate::config::Config;
use crate::error::Error;
use crate::library::record;
use crate::options::RunOptions;
use crate::prepare::{Prepared, budget};
use crate::secrets;
use selvedge_engine::{Input, Record, Start, State};
use selvedge_runtime::{Clock, SystemClock};
use selvedge_store::{BlobHash, DriverLock, Entry, NewRun, RunStatus, Store};
use std::sync::Arc;

/// Creates the run: from here on it exists, and its first event is durable (E-04).
pub async fn record(
    store: &Store,
    id: &str,
    chosen: &RunOptions,
    config: &Config,
    prepared: &Prepared,
) -> Result<(State, DriverLock), Error> {
    let lock = store.drive(id)?;
    let pinned = prepared.graph.tools.values().map(|tool| &**tool);
    record::pin(store, &prepared.catalogue, pinned, &secrets::named(config)).await?;
    let unwritable =
        |error: serde_json::Error| Error::internal(&format!("the run can't be written: {error}"));
    let compiled = serde_json::to_vec(&*prepared.graph).map_err(unwritable)?;
    let graph = BlobHash::of(&compiled);
    let start = Start {
        graph: graph.to_string().into(),
        initial: prepared.initial.clone(),
        sequential: chosen.sequential,
        budget: budget(prepared.budget, chosen, config),
        limits: config.limits.machine(),
        models: prepared.models.names.clone(),
        edition: selvedge_engine::EDITION,
    };
    let mut state = State::new(Arc::clone(&prepared.graph));
    let at = state.tick(SystemClock.now_ms());
    let event = state
        .accept(Input::Start(Box::new(start)))
        .ok_or_else(|| Error::internal("a new run can't start"))?;
    let json = serde_json::to_string(&event).map_err(unwritable)?;
    state.apply_record(&Record { at, event });
    let run = NewRun {
        id: id.to_owned(),
        name: prepared.name.clone(),
        dialect: prepared.dialect.to_owned(),
        status: RunStatus::Running,
        started_ms: at,
        graph: Some(graph),
        scripted: prepared.models.scripted,
        options: chosen.to_stored().map_err(unwritable)?,
        fork: None,
    };
    let created = store.create_run_with_graph(run, compiled, vec![Entry { n: 1, at_ms: at, json }]).await;
    created.map_err(Error::before_run)?;
    Ok((state, lock))
}
