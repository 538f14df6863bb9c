//! Whether what an archive holds are runs at all: their journals have to be what the engine makes of their inputs (E-18).

use super::moments::Moments;
use crate::error::Error;
use selvedge_engine::{Event, State};
use selvedge_runtime::{LoadError, Reading, Replayed, recorded, replay_from, standing};
use selvedge_store::archive::{ArchivedRun, Manifest};
use selvedge_store::{Entry, Store};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Proves the runs of a store that hold nothing else, and writes where each stands. Of a fork only what is its own is looked at: what it shares
/// was proved with its source, however long their chain is.
///
/// # Errors
/// The first that is none, or that a newer version recorded. Its store is of no use then.
pub(super) fn prove(store: &Store, manifest: &Manifest) -> Result<(), Error> {
    let mut moments = Moments::none();
    let mut source = None;
    let mut left = manifest.runs.as_slice();
    while let Some((run, later)) = left.split_first() {
        own_events(store, run, source.as_ref().map(|(source, _)| *source))?;
        let mut reading = Reading::open(store, &run.id)?;
        if let Some((source, past)) = source.take() {
            let source: &ArchivedRun = source;
            reading = reading.knowing(&source.id, source.events, past);
        }
        let begun = moments.take(run, later);
        let begun = begun.unwrap_or_else(|| State::recording(Arc::clone(reading.graph())));
        let Replayed { mut state, diverged, .. } = replay_from(&mut reading, begun, |state| {
            moments.see(state.events(), state);
        })?;
        if let Some(divergence) = diverged {
            return Err(no_run(
                &run.id,
                &format!("event {} does not follow from those before it", divergence.n),
            ));
        }
        if !can_be_seen(&state) {
            return Err(no_run(&run.id, "what its events come to can't be shown"));
        }
        let last = store.journal(&run.id, run.events.max(1))?.next().transpose()?;
        let at = last.map_or(run.started_ms, |entry| entry.at_ms);
        store.update_run(&run.id, standing(&state, at)).wait()?;
        (source, left) = (Some((run, state.take_past())), later);
    }
    Ok(())
}

/// A run begins once, and a fork leaves the source that its row names: nothing else is to be looked for when they are read.
fn own_events(store: &Store, run: &ArchivedRun, source: Option<&ArchivedRun>) -> Result<(), Error> {
    let first = run.first();
    for entry in store.journal(&run.id, first)? {
        let entry = entry?;
        let right = match event(&run.id, &entry)? {
            Event::Started(start) => {
                entry.n == 1 && run.fork.is_none() && run.graph.as_deref() == Some(&*start.graph)
            }
            Event::Forked(fork) => {
                let left = |source: &ArchivedRun| *source.id == *fork.source && fork.events <= source.events;
                entry.n == first && run.fork.is_some() && source.is_some_and(left)
            }
            _ => entry.n != first,
        };
        if !right {
            return Err(no_run(&run.id, &format!("event {} has no place there", entry.n)));
        }
    }
    if run.events < first {
        return Err(no_run(&run.id, "it has no events"));
    }
    Ok(())
}

fn event(run: &str, entry: &Entry) -> Result<Event, Error> {
    recorded(entry.json.as_bytes()).map_err(|error| {
        let (what, cause) = (format!("event {}", entry.n), error.to_string());
        LoadError::Unreadable { run: run.to_owned(), what, cause }.into()
    })
}

/// Whether the state that a stranger's graph and events come to can be looked at.
fn can_be_seen(state: &State) -> bool {
    let look = || {
        let view = state.view();
        let seen = view.results().count() + view.threads().count() + view.joins().count();
        seen + state.pending().keys().filter_map(|effect| state.request(effect)).count()
    };
    catch_unwind(AssertUnwindSafe(look)).is_ok()
}

fn no_run(run: &str, why: &str) -> Error {
    let message = format!("run {run} of the archive is none: {why}");
    Error::environment("C-14", "archive-damaged", &message)
        .help("the archive was changed, or made by something else; get it anew where the run is")
}
