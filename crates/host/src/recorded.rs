//! Runs that are recorded: folded once, and locked by whoever is to drive them.

use crate::error::Error;
use crate::options::RunOptions;
use selvedge_engine::{Event, Graph, Input, Record, RunStatus, State, Warning};
use selvedge_runtime::{Clock, DriveError, Loaded, SystemClock, graph_of, load};
use selvedge_store::{DriverLock, Entry, RunInfo, RunStatus as StoredStatus, RunUpdate, Store, StoreError};
use std::path::PathBuf;
use std::sync::Arc;

/// A recorded run, as its journal leaves it.
pub struct RecordedRun {
    /// The state folder.
    pub dir: PathBuf,
    /// Where its journal is.
    pub store: Arc<Store>,
    /// Its row in the index.
    pub info: RunInfo,
    /// Its state.
    pub state: State,
}

impl RecordedRun {
    /// Folds the journal of a run.
    pub(crate) fn load(dir: PathBuf, store: Arc<Store>, id: &str) -> Result<Self, Error> {
        let Loaded { info, state } = load(&store, id, None, None)?;
        Ok(Self { dir, store, info, state })
    }

    /// Its full id.
    pub fn id(&self) -> &str {
        &self.info.id
    }

    /// The graph that it was started with, in which tools are as they were.
    ///
    /// # Errors
    /// The store has none that can be read.
    pub fn graph(&self) -> Result<Arc<Graph>, Error> {
        Ok(graph_of(&self.store, &self.info)?)
    }

    /// What was said of its document when it began.
    pub fn warnings(&self) -> Vec<Warning> {
        RunOptions::stored(&self.info.options).warnings
    }

    /// Whether a bug ended the run: then its journal says so last (E-17).
    ///
    /// # Errors
    /// The journal can't be read.
    pub fn is_poisoned(&self) -> Result<bool, Error> {
        let last = self.store.last_event(self.id())?;
        let Some(entry) = self.store.journal(self.id(), last.max(1))?.next().transpose()? else {
            return Ok(false);
        };
        let event: Option<Event> = selvedge_runtime::recorded(entry.json.as_bytes()).ok();
        Ok(matches!(event, Some(Event::Poisoned { .. })))
    }

    /// Whether it could go on by itself, or with an answer to an open ask. One that has completed or was cancelled has nothing left to do,
    /// and one that failed of a no would come to the same question: who said it may say something else (E-05).
    pub fn can_go_on(&self) -> bool {
        self.state.status() == RunStatus::Waiting || can_resume(&self.state)
    }
}

/// Whether `resume` would do something with a run that nobody drives. One that failed of a person's no would come to the same question (E-05).
pub fn can_resume(state: &State) -> bool {
    match state.status() {
        RunStatus::Completed | RunStatus::Cancelled => false,
        // A timer that is due continues it (E-37).
        RunStatus::Waiting => state.next_due().is_some_and(|due| due <= SystemClock.now_ms()),
        RunStatus::Failed => state.declined().is_none(),
        RunStatus::Running => true,
    }
}

/// A recorded run with the right to drive it.
pub struct LockedRun {
    /// The run.
    pub run: RecordedRun,
    /// The right to drive it; none where it has ended and its folder can only be read.
    pub(crate) lock: Option<DriverLock>,
    /// What it is told once it goes on; if that is nothing, and it has failed, the failed part begins anew (E-05).
    pub(crate) inputs: Vec<Input>,
}

impl LockedRun {
    /// Takes the lock of a run, and folds it then: nobody else appends to it meanwhile.
    pub(crate) fn take(dir: PathBuf, store: Arc<Store>, id: &str) -> Result<Self, Error> {
        let lock = store.drive(id);
        let ended = !matches!(store.run(id)?.status, StoredStatus::Running | StoredStatus::Waiting);
        let lock = match lock {
            Ok(lock) => Some(lock),
            // A run that can't be written can still be shown, if there is nothing left to do.
            Err(StoreError::ReadOnly { .. }) if ended => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { run: RecordedRun::load(dir, store, id)?, lock, inputs: Vec::new() })
    }

    /// The right to drive it.
    ///
    /// # Errors
    /// Its folder can only be read.
    pub(crate) fn take_lock(&mut self) -> Result<DriverLock, Error> {
        self.lock.take().ok_or_else(|| {
            let message = format!("run {} can't go on: its state folder can only be read", self.run.id());
            Error::environment("C-14", "state-read-only", &message).help("make the folder writable")
        })
    }

    /// Records what the run was told and does not go on: whoever takes it up next does.
    ///
    /// # Errors
    /// The journal can't be written.
    pub async fn record(mut self) -> Result<RecordedRun, Error> {
        let run = &mut self.run;
        match record_inputs(&run.store, &run.info.id, &mut run.state, self.inputs).await? {
            true => Ok(self.run),
            false => Err(Error::internal("an open ask takes no answer")),
        }
    }
}

/// Records what a run was told, and does not go on with it. Whether the run took all of it: else nothing is recorded.
///
/// # Errors
/// The journal can't be written.
pub(crate) async fn record_inputs(
    store: &Store,
    run: &str,
    state: &mut State,
    inputs: Vec<Input>,
) -> Result<bool, DriveError> {
    let mut entries = Vec::new();
    for input in inputs {
        let at = state.tick(SystemClock.now_ms());
        let Some(event) = state.accept(input) else { return Ok(false) };
        let json =
            serde_json::to_string(&event).map_err(|error| DriveError::Unwritable(error.to_string()))?;
        state.apply_record(&Record { at, event });
        entries.push(Entry { n: state.events(), at_ms: at, json });
    }
    // Other asks may still be open: the run waits for them, unless this answer lets it go on.
    let status = match state.status() {
        RunStatus::Waiting => StoredStatus::Waiting,
        _ => StoredStatus::Running,
    };
    let due_ms = state.next_due().filter(|_| status == StoredStatus::Waiting);
    let update = RunUpdate { status: Some((status, None)), due_ms, ..RunUpdate::default() };
    store.append_and_update(run, entries, update).await?;
    Ok(true)
}
