//! The runs that a run's journal needs to be read (E-19).

use crate::error::Error;
use crate::options::RunOptions;
use selvedge_engine::Event;
use selvedge_runtime::LoadError;
use selvedge_store::archive::{ArchivedFork, ArchivedRun};
use selvedge_store::{RunInfo, Store};

/// The rows of a run and of its sources, the first of these first. Of a source there is what its fork refers to: what it did later belongs to
/// nobody else.
///
/// # Errors
/// One of them can't be read.
pub(super) fn chain(store: &Store, run: &str) -> Result<Vec<ArchivedRun>, Error> {
    let mut chain = Vec::new();
    let mut next = Some((run.to_owned(), store.last_event(run)?));
    while let Some((run, events)) = next.take() {
        let info = store.run(&run)?;
        if let Some(point) = &info.fork {
            let referred = match first_own(store, &info)? {
                Some(Event::Forked(fork)) => fork.events,
                _ => return Err(no_fork(&run, point.events + 1)),
            };
            next = Some((point.run.clone(), referred.max(point.events)));
        }
        chain.push(row(info, events)?);
    }
    chain.reverse();
    Ok(chain)
}

fn first_own(store: &Store, info: &RunInfo) -> Result<Option<Event>, Error> {
    let n = info.fork.as_ref().map_or(1, |fork| fork.events + 1);
    let Some(entry) = store.journal(&info.id, n)?.next().transpose()? else { return Ok(None) };
    selvedge_runtime::recorded(entry.json.as_bytes()).map(Some).map_err(|_| no_fork(&info.id, n))
}

fn no_fork(run: &str, n: u64) -> Error {
    let (run, what) = (run.to_owned(), format!("event {n}"));
    LoadError::Unreadable { run, what, cause: "a fork begins with another event".to_owned() }.into()
}

fn row(info: RunInfo, events: u64) -> Result<ArchivedRun, Error> {
    let options = RunOptions::read(&info.options)?.portable();
    let options = serde_json::to_value(options).map_err(|error| Error::internal(&error.to_string()))?;
    Ok(ArchivedRun {
        id: info.id,
        name: info.name,
        dialect: info.dialect,
        started_ms: info.started_ms,
        graph: info.graph.map(|graph| graph.to_string()),
        scripted: info.scripted,
        options,
        fork: info.fork.map(|fork| ArchivedFork { run: fork.run, events: fork.events }),
        events,
    })
}
