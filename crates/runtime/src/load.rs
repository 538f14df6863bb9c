//! From a stored journal back to a state: the whole of recovery is this fold (E-03, E-05).

use crate::count::Count;
use crate::ports::Model;
use crate::reading::Reading;
use crate::recorded::LoadError;
use selvedge_engine::{Input, State};
use selvedge_store::{RunInfo, Store};
use std::sync::Arc;

/// A run as its journal leaves it.
#[derive(Debug)]
pub struct Loaded {
    /// Its row in the index.
    pub info: RunInfo,
    /// Its state.
    pub state: State,
}

/// Loads a run up to event `until`, or whole. A model that counts requests is told of those that were made (C-07).
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
    let mut reading = Reading::open(store, run)?;
    let mut state = State::new(Arc::clone(reading.graph()));
    let mut count = Count::new(run, model, info.fork.as_ref().map(|point| point.events + 1));
    reading.fold(&mut state, until.unwrap_or(u64::MAX), |state, record| count.see(state, &record.event))?;
    Ok(Loaded { info, state })
}

/// What a driver says first about effects that were in flight when an earlier process died: a write may
/// have happened, everything else is simply dispatched again (E-05).
pub(crate) fn losses(state: &State) -> Vec<Input> {
    let pending = state.pending_in_order().into_iter();
    let writes = pending.filter(|(_, row)| row.effects == selvedge_engine::Effects::Write);
    writes.map(|(effect, _)| Input::Lose(effect.clone())).collect()
}
