//! What the graph of an agent asks of the tool library (A-14 … A-19), as operations (E-40): what they are given and what they answer
//! is in `selvedge_dialects::agent::operations`. What an optimisation asks is beside it, in `optimise`.
//!
//! Whatever changes the library is kept with the run and the operation's key, and its answer with it, in one commit: asked again, it
//! changes nothing and answers the same.

mod bindings;
mod calls;
mod draft;
mod end;
mod given;
mod mend;
mod optimise;
mod place;
mod printed;
mod replayed;
mod requests;
mod settle;
mod texts;
mod workshop;

use crate::child::Children;
use crate::config::Config;
use crate::error::Error;
use crate::options::RunOptions;
use place::Task;
use selvedge_dialects::agent::operations as known;
use selvedge_dialects::evolve::optimise::operations as optimising;
use selvedge_engine::{Failure, FaultKind, Operated, ToolRequest};
use selvedge_runtime::{CallContext, Pending};
use selvedge_store::Store;
use selvedge_tools::operations::aside;
use selvedge_tools::{Catalogue, OwnOperations};
use serde_json::Value;
use std::future::Future;
use std::sync::Arc;

pub(crate) use requests::requests;
pub use workshop::Workshop;

/// What the operations of a run need.
pub struct Bench {
    /// Where the run and the library are.
    pub store: Arc<Store>,
    /// The run's tools.
    pub catalogue: Catalogue,
    /// What is configured for it.
    pub config: Config,
    /// Who makes tools of files.
    pub workshop: Arc<dyn Workshop>,
    /// Who begins runs for it (E-39).
    pub children: Arc<dyn Children>,
    /// What was chosen for it.
    pub options: RunOptions,
}

impl Bench {
    /// One whose tools are made by its catalogue.
    pub fn new(
        store: Arc<Store>,
        catalogue: Catalogue,
        config: Config,
        children: Arc<dyn Children>,
        options: RunOptions,
    ) -> Self {
        let workshop = Arc::new(catalogue.clone());
        Self { store, catalogue, config, workshop, children, options }
    }
}

/// Adds the operations on the library to those of a run.
pub fn on_library(operations: OwnOperations, bench: Arc<Bench>) -> OwnOperations {
    let pure = operations
        .with_computed(&known::requests().name, Arc::new(requests))
        .with_computed(&optimising::weigh().name, Arc::new(optimise::weigh));
    let mut with = Adding { operations: pure, bench };
    with.one(known::tools().name.clone(), bindings::tools);
    with.one(known::bindings().name.clone(), bindings::bindings);
    with.one(known::draft().name.clone(), draft::draft);
    with.one(known::calls().name.clone(), calls::calls);
    with.one(known::settle().name.clone(), settle::settle);
    with.one(known::replay().name.clone(), replayed::replay);
    with.one(known::accept().name.clone(), mend::accept);
    with.one(known::retire().name.clone(), mend::retire);
    with.one(known::end().name.clone(), end::end);
    with.one(optimising::collect().name.clone(), optimise::collect);
    with.one(optimising::clusters().name.clone(), optimise::clusters);
    with.one(optimising::members().name.clone(), optimise::members);
    with.one(optimising::regress().name.clone(), optimise::regress);
    with.one(optimising::publish().name.clone(), optimise::publish);
    with.operations
}

struct Adding {
    operations: OwnOperations,
    bench: Arc<Bench>,
}

impl Adding {
    fn one<F>(&mut self, name: Arc<str>, operate: fn(Arc<Task>) -> F)
    where
        F: Future<Output = Result<Value, Undone>> + Send + 'static,
    {
        let bench = Arc::clone(&self.bench);
        let operate = move |request: ToolRequest, context: CallContext| -> Pending<Operated> {
            let bench = Arc::clone(&bench);
            Box::pin(async move {
                let task = Task::of(bench, &request, &context.run)?;
                Ok(answered(operate(Arc::new(task)).await, &context).await?.into())
            })
        };
        self.operations = std::mem::take(&mut self.operations).with(&name, Arc::new(operate));
    }
}

/// Why an operation has no output.
pub(crate) enum Undone {
    /// That is what came of it.
    Failed(Failure),
    /// The machine could not do it, as where the disk is full: nothing may follow from that (E-40).
    Unanswered(Error),
}

impl From<Failure> for Undone {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Error> for Undone {
    fn from(error: Error) -> Self {
        if error.is_of_machine() { Self::Unanswered(error) } else { Self::Failed(failed(&error)) }
    }
}

/// What the driver hears of an operation.
pub(crate) async fn answered<T>(done: Result<T, Undone>, context: &CallContext) -> Result<T, Failure> {
    match done {
        Ok(done) => Ok(done),
        Err(Undone::Failed(failure)) => Err(failure),
        Err(Undone::Unanswered(error)) => context.unanswered.because(error).await,
    }
}

/// Something that an operation could not do, as the failure of its call.
pub(crate) fn failed(error: &Error) -> Failure {
    let said = error.diagnostics.first().map(|first| match first.help.as_str() {
        "" => first.message.clone(),
        help => format!("{} ({help})", first.message),
    });
    Failure::permanent(FaultKind::ExecutionFailure, said.unwrap_or_default())
}

/// Does what reads and writes the store on a thread of its own.
pub(crate) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Undone> {
    Ok(aside(move || Ok(work())).await??)
}
