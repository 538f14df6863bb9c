//! Reading the timeline of a run from its journal.

use super::Found;
use selvedge_engine::{Record, State};
use selvedge_host::Error;
use selvedge_host::timeline::Timeline;
use selvedge_runtime::Reading;
use std::sync::Arc;

/// A run as it is after event `until`, or now: its state, and what happened.
///
/// # Errors
/// If its journal can't be read.
pub(super) fn read(found: &Found, until: Option<u64>) -> Result<(State, Timeline), Error> {
    let mut reading = Reading::open(&found.store, found.run())?;
    let mut timeline = Timeline::new(reading.graph());
    let mut state = State::new(Arc::clone(reading.graph()));
    for entry in found.store.journal(found.run(), 1)?.until(until.unwrap_or(u64::MAX)) {
        let entry = entry?;
        let record = Record { at: entry.at_ms, event: reading.event(&entry)? };
        state.apply_record(&record);
        timeline.events(&state, &[record]);
    }
    Ok((state, timeline))
}
