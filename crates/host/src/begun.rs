//! A run that this process may drive: begun now, taken up again or forked.

use crate::cancelled;
use crate::environment::Environment;
use crate::error::Error;
use crate::library::record;
use crate::recorded::record_inputs;
use selvedge_engine::{Graph, Input, RunStatus, State, Warning};
use selvedge_runtime::{Controls, DriveError, Driven, Driver, Halt, Journal, RunHandle, load};
use selvedge_store::{DriverLock, RunInfo, Store};
use selvedge_tools::Catalogue;
use std::sync::Arc;

/// A run that this process may drive.
pub struct Begun {
    /// Where its journal is.
    pub store: Arc<Store>,
    /// Its id.
    pub id: String,
    /// Its state, as the journal leaves it.
    pub state: State,
    /// The graph it was started with.
    pub graph: Arc<Graph>,
    /// Its row, as it begins or goes on.
    pub info: RunInfo,
    /// What the checker and the catalogue said.
    pub warnings: Vec<Warning>,
    /// Held as long as it is driven (C-12).
    pub lock: DriverLock,
    /// What drives it.
    pub driver: Driver,
    /// Its tools, to be closed behind it; none if nothing is called any more.
    pub catalogue: Option<Catalogue>,
    /// What it is told once it goes on.
    pub inputs: Vec<Input>,
    /// The run that it was forked from, whenever that was.
    pub source: Option<String>,
    /// What it was forked from now.
    pub fork: Option<ForkedFrom>,
}

/// Where a fork has left its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkedFrom {
    /// The source's id.
    pub run: String,
    /// How many events the source had.
    pub events: u64,
    /// The event that was asked for, or the source's last one.
    pub at: u64,
    /// The last event that it shares: an edited outcome lies before that.
    pub shared: u64,
}

impl Begun {
    /// Drives the run until it ends, waits for a person or is stopped; `controls` are what reaches it meanwhile
    /// (E-43), and [`RunHandle::new`](selvedge_runtime::RunHandle::new) gives some with a handle to them. What it came to is in [`Self::state`], but for a bug's end ([`Halt::Poisoned`]) and after an error: then [`Self::reload`] says it.
    ///
    /// # Errors
    /// The journal can't be written. What is in it is the run, and it can be gone on with.
    pub async fn drive(&mut self, controls: &mut Controls) -> Result<Halt, DriveError> {
        let events = self.state.events();
        let mut journal = Journal::stored(Arc::clone(&self.store), self.id.as_str(), events);
        let inputs = std::mem::take(&mut self.inputs);
        let halt = self.driver.drive(&self.id, &mut self.state, &mut journal, inputs, controls).await?;
        if halt == Halt::Ended {
            cancel_children(&self.store, &self.id, &self.state).await;
        }
        Ok(halt)
    }

    /// Records what the run is told now, so that it has its time; the run goes on with it at the next [`Self::drive`]. Whether the run takes it.
    ///
    /// # Errors
    /// The journal can't be written.
    pub async fn record(&mut self, input: Input) -> Result<bool, DriveError> {
        record_inputs(&self.store, &self.id, &mut self.state, vec![input]).await
    }

    /// A handle to the run, and what drives it as long as that is polled: it keeps the run while that waits for a person, and answers and
    /// a cancel reach it by the handle and from other processes (E-43). Its tools are closed at the end.
    pub fn driven(self) -> (RunHandle, impl Future<Output = Driven> + Send + use<>) {
        let (store, id, catalogue) = (Arc::clone(&self.store), self.id.clone(), self.catalogue);
        let journal = Journal::stored(self.store, self.id.as_str(), self.state.events());
        let (handle, driven) =
            self.driver.driven(&self.id, self.state, journal, self.inputs, Some(self.lock));
        let driven = Box::pin(async move {
            let driven = driven.await;
            // Boxed: otherwise each run has the room for it, which is five times its own, from its beginning on.
            if let Driven { state, halt: Ok(Halt::Ended), .. } = &driven {
                Box::pin(cancel_children(&store, &id, state)).await;
            }
            if let Some(catalogue) = catalogue {
                Box::pin(catalogue.close()).await;
            }
            driven
        });
        (handle, driven)
    }

    /// The state that the journal leaves: what a failed assertion, or a commit that failed, left behind is none (E-03, E-17).
    ///
    /// # Errors
    /// The journal can't be read.
    pub fn reload(&mut self) -> Result<(), Error> {
        self.state = load(&self.store, &self.id, None, None)?.state;
        Ok(())
    }

    /// Makes tests of the calls of library tools. The run itself is what it is, whether or not they do.
    ///
    /// # Errors
    /// The run or the library can't be read or written.
    pub fn record_calls(&self, environment: &Environment) -> Result<(), Error> {
        record::calls(environment, &self.store, &self.id, &self.state)
    }

    /// Leaves the run to whoever takes it up next, and ends what its tools have started.
    pub async fn close(self) {
        drop(self.lock);
        if let Some(catalogue) = self.catalogue {
            catalogue.close().await;
        }
    }
}

/// What a run has begun ends with it where it is cancelled (E-39). What can't be reached now is cancelled by whoever cancels the run again.
async fn cancel_children(store: &Arc<Store>, id: &str, state: &State) {
    if state.status() == RunStatus::Cancelled {
        // The run itself has ended as it should.
        let _ = cancelled::cancel_children(store, id).await;
    }
}
