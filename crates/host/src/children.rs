//! Runs that a run begins (E-39): each has a journal of its own and an id that follows from what it is begun for, so that whoever asks for
//! it again finds it and goes on with it.

use crate::begun::Begun;
use crate::child::{Child, Children, Running};
use crate::error::Error;
use crate::host::Host;
use selvedge_engine::{AskKind, Input, State, reasoned};
use selvedge_runtime::{Controls, Halt};
use selvedge_store::{RunInfo, RunStatus as Stored, Store};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How often a run that somebody else is about to leave is tried again, and after how long.
const TRIES: (u32, Duration) = (100, Duration::from_millis(100));

impl Children for Host {
    fn run(&self, child: Child) -> Running {
        let host = self.clone();
        Box::pin(async move { child.driven(&host).await })
    }
}

impl Child {
    async fn driven(&self, host: &Host) -> Result<Option<RunInfo>, Error> {
        let store = host.store(&host.state_dir()?)?;
        let Some(mut run) = self.taken(host, &store).await? else { return Ok(Some(store.run(&self.id)?)) };
        let halt = loop {
            match run.drive(&mut Controls::default()).await {
                Ok(Halt::Waiting) => run.inputs = denied(&run.state),
                halt => break halt,
            }
        };
        if matches!(halt, Ok(Halt::Ended)) {
            run.record_calls(&host.environment)?;
        }
        run.close().await;
        match halt? {
            Halt::Ended | Halt::Poisoned => Ok(Some(store.run(&self.id)?)),
            Halt::Interrupted | Halt::Waiting => Ok(None),
        }
    }

    /// The run, to be driven; `None` if it has ended.
    async fn taken(&self, host: &Host, store: &Arc<Store>) -> Result<Option<Begun>, Error> {
        let mut tries = 0;
        loop {
            if !store.has_run(&self.id)? {
                match self.begin(host).await {
                    Err(error) if error.is("run-id-used") => continue,
                    begun => return begun.map(Some),
                }
            }
            let found = store.run(&self.id)?;
            if !matches!(found.status, Stored::Running | Stored::Waiting) {
                return Ok(None);
            }
            match host.lock(&self.id) {
                // The process that had it is about to be gone.
                Err(error) if error.is("run-driven") && tries < TRIES.0 => {
                    tries += 1;
                    tokio::time::sleep(TRIES.1).await;
                }
                Ok(run) if run.run.state.ended().is_some() => return Ok(None),
                locked => {
                    // What is chosen for its parent now goes over what it was begun with.
                    let asked = host.take_up(locked?, &self.options)?;
                    return Ok(Some(host.begin(host.prepare(asked).await?).await?));
                }
            }
        }
    }

    async fn begin(&self, host: &Host) -> Result<Begun, Error> {
        let document: PathBuf = self.options.document.clone();
        let mut asked = host.read(&document, self.options.clone(), Some(&self.id))?;
        (asked.parent, asked.name) = (Some(Arc::clone(&self.parent)), Some(self.name.clone()));
        host.begin(host.prepare(asked).await?).await
    }
}

/// Why such a run is told no.
const NOBODY: &str = "no person can be asked in a run that another run began";

/// What is said to a run that waits for a person where there is none: no. What no cannot be said to ends it.
fn denied(state: &State) -> Vec<Input> {
    let open = state.asks().iter().filter(|(_, ask)| ask.kind == AskKind::Approve);
    let inputs: Vec<Input> = open
        .map(|(id, _)| Input::Answer(Arc::clone(id), reasoned("no".into(), None, Some(NOBODY))))
        .collect();
    if inputs.is_empty() { vec![Input::Cancel] } else { inputs }
}
