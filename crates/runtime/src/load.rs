//! From a stored journal back to a state: the whole of recovery is this fold (E-03, E-05).

use crate::ports::Model;
use selvedge_engine::{Event, Graph, Input, Record, Request, State};
use selvedge_store::{RunInfo, Store, StoreError};
use std::sync::Arc;

/// Why a run could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An event or graph that this binary can't read.
    #[error("run {run}: {what} can't be read: {cause}; a newer Selvedge may have written it")]
    Unreadable {
        /// The run.
        run: String,
        /// Which part.
        what: String,
        /// Why.
        cause: String,
    },
}

/// A run as its journal leaves it.
#[derive(Debug)]
pub struct Loaded {
    /// Its row in the index.
    pub info: RunInfo,
    /// Its state.
    pub state: State,
}

/// The compiled graph that a run names by hash (E-05).
///
/// # Errors
/// If the store has no readable graph for it.
pub fn graph_of(store: &Store, info: &RunInfo) -> Result<Arc<Graph>, LoadError> {
    let unreadable = |cause: String| LoadError::Unreadable {
        run: info.id.clone(),
        what: "its compiled graph".into(),
        cause,
    };
    let hash = info.graph.ok_or_else(|| unreadable("the run names none".into()))?;
    let bytes = store.get_blob(hash)?;
    let graph = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    Ok(Arc::new(graph))
}

/// Loads a run up to event `until`, or whole. A model that counts requests is told of those that came to
/// an end (C-07).
///
/// # Errors
/// If the run is not there or can't be read.
pub fn load(
    store: &Store,
    run: &str,
    until: Option<u64>,
    model: Option<&dyn Model>,
) -> Result<Loaded, LoadError> {
    let info = store.run(run)?;
    let mut state = State::new(graph_of(store, &info)?);
    for entry in store.journal(run, 1)? {
        let entry = entry?;
        if until.is_some_and(|until| entry.n > until) {
            break;
        }
        let event: Event = serde_json::from_str(&entry.json).map_err(|error| LoadError::Unreadable {
            run: run.into(),
            what: format!("event {}", entry.n),
            cause: error.to_string(),
        })?;
        fold(&mut state, &Record { at: entry.at_ms, event }, run, model);
    }
    Ok(Loaded { info, state })
}

/// Applies one record, telling the model of a request that it ends.
pub fn fold(state: &mut State, record: &Record, run: &str, model: Option<&dyn Model>) {
    if let (Some(model), Event::Completed { effect, .. }) = (model, &record.event)
        && let Some(Request::Model(request)) = state.request(effect)
    {
        model.recorded(&request, run);
    }
    state.apply_record(record);
}

/// What a driver says first about effects that were in flight when an earlier process died: a write may
/// have happened, everything else is simply dispatched again (E-05).
pub(crate) fn losses(state: &State) -> Vec<Input> {
    let writes = state.pending().iter().filter(|(_, p)| p.effects == selvedge_engine::Effects::Write);
    writes.map(|(effect, _)| Input::Lose(effect.clone())).collect()
}
