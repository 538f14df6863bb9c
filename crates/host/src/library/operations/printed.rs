//! What tools printed while they failed: it stands in the run's journal, beside the outcome.

use super::given::Call;
use super::place::Task;
use crate::error::Error;
use selvedge_engine::{Event, Outcome, Record, Request, State};
use selvedge_runtime::{LoadError, Reading};
use selvedge_store::StoreError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The end of what each of these calls printed, by its id.
pub(super) fn of(task: &Task, calls: &[&Call]) -> Result<BTreeMap<Arc<str>, String>, Error> {
    let mut found = BTreeMap::new();
    let (store, run) = (&task.bench.store, &*task.run);
    if calls.is_empty() {
        return Ok(found);
    }
    let mut reading = match Reading::open(store, run) {
        // Who asks without a run has no journal either.
        Err(LoadError::Store(StoreError::UnknownRun { .. })) => return Ok(found),
        reading => reading?,
    };
    let mut state = State::new(Arc::clone(reading.graph()));
    for entry in store.journal(run, 1)? {
        let entry = entry.map_err(LoadError::from)?;
        let event = reading.event(&entry)?;
        if let Event::Completed { effect, outcome: Outcome::Failed(_), printed: Some(printed), .. } = &event
            && effect.0.starts_with(&*task.frame.to_string())
            && let Some(Request::Tool(request)) = state.request(effect)
        {
            let same = |call: &&&Call| call.version == request.tool.version && call.arguments == request.args;
            for call in calls.iter().filter(same) {
                let ends = [&printed.stdout, &printed.stderr].into_iter().filter(|text| !text.is_empty());
                found.insert(Arc::clone(&call.id), ends.map(String::as_str).collect::<Vec<_>>().join("\n"));
            }
        }
        state.apply_record(&Record { at: entry.at_ms, event });
    }
    Ok(found)
}
