//! What is said to a run: to the process that drives it, as long as one does, or else to the run as its journal has it (E-43, C-13).

use crate::answer::{Answer, no_such_ask};
use crate::asks;
use crate::begun::Begun;
use crate::closed;
use crate::compose::idle_driver;
use crate::error::Error;
use crate::host::Host;
use crate::options::RunOptions;
use crate::recorded::{LockedRun, RecordedRun};
use crate::secrets;
use crate::trust::Gate;
use crate::ways::WayOut;
use selvedge_engine::Input;
use selvedge_runtime::{Clock, Command, Refusal, SystemClock, send_command};
use selvedge_store::StoreError;
use std::sync::Arc;
use std::time::Duration;

/// After so long it is said that a driver takes its time.
const SILENCE: Duration = Duration::from_secs(2);
/// How often it is tried to take a run from a driver that is about to end; each takes a tenth of a second.
const TRIES: u32 = 20;

/// Who has heard what was said to a run.
pub enum Given {
    /// The process that drives it: the event is durable, and that process goes on. The run as it is then.
    Driven(RecordedRun),
    /// Nobody drives it. The run is locked, and hears it once it goes on ([`Host::resume`]), or is only made to record it
    /// ([`LockedRun::record`]).
    Alone(LockedRun),
}

impl Host {
    /// Answers an open ask of a run, or takes a no back that it has failed of. `run` is its id or enough of its beginning. This waits for
    /// whoever has locked the run: a program that has, and drives it no further, first lets go of it ([`Begun::close`]).
    ///
    /// # Errors
    /// There is no such run or ask, it was answered before, its time is up, the answer does not fit or holds a key. An open ask stays open.
    pub async fn answer(&self, run: &str, answer: &Answer) -> Result<Given, Error> {
        self.refuse_key(run, "the answer", answer.texts())?;
        let refused = |run: &RecordedRun, refusal: &Refusal| match refusal {
            Refusal::NotOpen { ask } => {
                let unknown = no_such_ask(&asks::called(&run.state, ask), run.id(), &run.state);
                closed::error(run, Some(ask), unknown)
            }
            Refusal::Misfit { ask, .. } => Error::usage("C-13", "bad-answer", &refusal.to_string())
                .help(&asks::answers(&run.state, run.id(), ask)),
            _ => Error::internal(&refusal.to_string()),
        };
        let says = |run: &RecordedRun| {
            let inputs = answer.inputs(run.id(), &run.state);
            let inputs = inputs.map_err(|error| closed::error(run, answer.ask.as_deref(), error))?;
            asks::in_time(run.id(), &run.state, &inputs, SystemClock.now_ms())?;
            Ok(inputs)
        };
        self.give(run, &says, &refused).await
    }

    /// Ends a run (E-13). One that nobody drives is given back: [`LockedRun::cancel`] ends it, unless it has ended already.
    ///
    /// # Errors
    /// There is no such run.
    pub async fn cancel(&self, run: &str) -> Result<Given, Error> {
        let cancel =
            |run: &RecordedRun| Ok(run.state.ended().map_or_else(|| vec![Input::Cancel], |_| Vec::new()));
        let refused = |_: &RecordedRun, refusal: &Refusal| Error::internal(&refusal.to_string());
        self.give(run, &cancel, &refused).await
    }

    /// Gives a run the inputs that `says` makes of it as it stands; `refused` is the error where its driver would not have them.
    pub(crate) async fn give(
        &self,
        run: &str,
        says: &(dyn Fn(&RecordedRun) -> Result<Vec<Input>, Error> + Sync),
        refused: &(dyn Fn(&RecordedRun, &Refusal) -> Error + Sync),
    ) -> Result<Given, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let (dir, store, id) = self.find(run)?;
            if store.is_driven(&id)? {
                let driven = RecordedRun::load(dir, store, &id)?;
                if let Some(command) = command(says(&driven).map_err(|error| while_driven(error, &driven))?) {
                    let reply = self.send(&driven, &command).await?;
                    let driven = RecordedRun::load(driven.dir, driven.store, &id)?;
                    match reply {
                        Ok(()) => return Ok(Given::Driven(driven)),
                        Err(Refusal::NotDriven | Refusal::Ended) => continue,
                        Err(refusal) => return Err(while_driven(refused(&driven, &refusal), &driven)),
                    }
                }
            }
            match self.lock(&id) {
                // Another process was faster, and is told; or its driver is about to end.
                Err(error) if error.is("run-driven") && tries < TRIES => {}
                locked => {
                    let mut locked = locked?;
                    locked.inputs = says(&locked.run)?;
                    return Ok(Given::Alone(locked));
                }
            }
        }
    }

    async fn send(&self, run: &RecordedRun, command: &Command) -> Result<Result<(), Refusal>, StoreError> {
        let mut reply = std::pin::pin!(send_command(&run.store, run.id(), command));
        tokio::select! {
            reply = &mut reply => reply,
            () = tokio::time::sleep(SILENCE) => {
                self.observer.note("the process that drives the run has not taken it yet");
                reply.await
            }
        }
    }

    /// What is said is recorded: none of it holds a key of this environment, or of the configuration that the run began with (C-06).
    pub(crate) fn refuse_key<'t>(
        &self,
        run: &str,
        what: &str,
        mut texts: impl Iterator<Item = &'t str>,
    ) -> Result<(), Error> {
        let (_, store, id) = self.find(run)?;
        let options = RunOptions::stored(&store.run(&id)?.options);
        let silent = self.clone().heard_by(Arc::new(()), Gate::default());
        let known = secrets::named(&silent.config(&options)?);
        texts.try_for_each(|text| secrets::refuse_text(&known, what, text))
    }
}

/// An error about a question that is not open any more, of a run that another process drives: that process continues the run, so
/// nobody has to resume it.
fn while_driven(error: Error, run: &RecordedRun) -> Error {
    let closed = error.is("ask-expired") || error.is("unknown-ask") && run.state.asks().is_empty();
    if !closed || run.state.ended().is_some() {
        return error;
    }
    let show = WayOut::Show { run: run.id(), at: None };
    error.help(&format!("another process drives the run and continues it: {show} shows how far it is"))
}

/// The command that says the same to a driver. A run that has nothing left to be told has none.
fn command(mut inputs: Vec<Input>) -> Option<Command> {
    match (inputs.pop(), inputs.is_empty()) {
        (Some(Input::Answer(ask, value)), true) => Some(Command::Answer { ask, value }),
        (Some(Input::PersonMessage(message)), true) => Some(Command::Message(message)),
        (Some(Input::Cancel), true) => Some(Command::Cancel {}),
        _ => None,
    }
}

impl LockedRun {
    /// The run, about to end: nothing that was under way is asked again (C-12).
    ///
    /// # Errors
    /// Its folder can only be read, or what it began with can't be.
    pub fn cancel(self) -> Result<Begun, Error> {
        self.told(Input::Cancel)
    }

    /// The run, about to end by what has ended whoever drove it (E-17).
    ///
    /// # Errors
    /// As those of a cancel.
    pub(crate) fn poisoned(self, message: String) -> Result<Begun, Error> {
        self.told(Input::Poison(message))
    }

    fn told(mut self, last: Input) -> Result<Begun, Error> {
        let lock = self.take_lock()?;
        let (graph, warnings) = (self.run.graph()?, self.run.warnings());
        let RecordedRun { store, info, state, .. } = self.run;
        Ok(Begun {
            store,
            id: info.id.clone(),
            state,
            graph,
            warnings,
            lock,
            driver: idle_driver(),
            catalogue: None,
            inputs: vec![last],
            source: info.fork.as_ref().map(|fork| fork.run.clone()),
            fork: None,
            info,
        })
    }
}

#[cfg(test)]
mod tests;
