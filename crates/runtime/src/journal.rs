//! Where a run's events go.

use crate::driver::DriveError;
use crate::report::usage;
use selvedge_engine::{Event, Record, RunStatus, State};
use selvedge_store::{Entry, RunStatus as StoredStatus, RunUpdate, Settled, Store};
use std::sync::Arc;

/// The journal of one run: in the store, or in memory only for benches and tests.
#[derive(Debug)]
pub enum Journal {
    /// Durable: every append returns once it is synced (E-04).
    Stored {
        /// The store.
        store: Arc<Store>,
        /// The run's id.
        run: Arc<str>,
        /// Events already in it.
        events: u64,
    },
    /// Kept as long as the process lives.
    Memory(Vec<Record>),
}

impl Journal {
    /// A journal of a stored run that has `events` events so far.
    pub fn stored(store: Arc<Store>, run: impl Into<Arc<str>>, events: u64) -> Self {
        Self::Stored { store, run: run.into(), events }
    }

    /// Appends what a batch of inputs led to, with the run's row in the index and the replies to commands of other processes (E-43), in one
    /// commit.
    ///
    /// # Errors
    /// If it could not be made durable; then nothing of it was kept.
    pub(crate) async fn append(
        &mut self,
        records: &[Record],
        state: &State,
        settled: Vec<Settled>,
    ) -> Result<(), DriveError> {
        match self {
            Self::Memory(kept) => kept.extend_from_slice(records),
            Self::Stored { store, run, events } => {
                let mut entries = Vec::with_capacity(records.len());
                for (n, record) in (*events + 1..).zip(records) {
                    let json = serde_json::to_string(&record.event).map_err(DriveError::unwritable)?;
                    entries.push(Entry { n, at_ms: record.at, json });
                }
                let count = entries.len() as u64;
                store.room().await;
                let update = if entries.is_empty() { None } else { update(state, records) };
                store.append_and_settle(run, entries, update, settled).await?;
                *events += count;
            }
        }
        Ok(())
    }
}

/// The run's row changes when it ends or begins to wait, so that `runs` needs no journal (C-15).
fn update(state: &State, records: &[Record]) -> Option<RunUpdate> {
    let goes_on =
        |event: &Event| matches!(event, Event::Resumed { .. } | Event::Forked(_) | Event::Answered { .. });
    let told = state.status() != RunStatus::Running || records.iter().any(|record| goes_on(&record.event));
    told.then(|| standing(state, records.last().map_or(0, |record| record.at)))
}

/// What a run's row says of a state that was come to at a time, in milliseconds since 1970.
pub fn standing(state: &State, at: i64) -> RunUpdate {
    let status = match state.status() {
        RunStatus::Running => (StoredStatus::Running, None),
        RunStatus::Waiting => (StoredStatus::Waiting, None),
        RunStatus::Completed => (StoredStatus::Completed, Some(at)),
        RunStatus::Failed => (StoredStatus::Failed, Some(at)),
        RunStatus::Cancelled => (StoredStatus::Cancelled, Some(at)),
    };
    let due_ms = state.next_due().filter(|_| status.0 == StoredStatus::Waiting);
    RunUpdate { status: Some(status), due_ms, usage: Some(usage(state).to_string()), ..RunUpdate::default() }
}
