//! Reading the timeline of a run from its journal.

use super::Found;
use selvedge_engine::{Record, State};
use selvedge_host::Error;
use selvedge_host::timeline::{Followed, Timeline};
use selvedge_runtime::Reading;

/// A run as it is after event `until`, or now: its state, and what happened. `see` is shown each record with the state after it.
///
/// # Errors
/// If its journal can't be read.
pub(super) fn read(
    found: &Found,
    until: Option<u64>,
    mut see: impl FnMut(&State, &Record),
) -> Result<(State, Timeline), Error> {
    let mut reading = Reading::open(&found.store, found.run())?;
    let mut run = Followed::new(reading.graph());
    reading.records(1, until.unwrap_or(u64::MAX), |record| {
        run.take(record);
        see(&run.state, record);
    })?;
    Ok((run.state, run.timeline))
}
