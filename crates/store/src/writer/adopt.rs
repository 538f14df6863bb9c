//! Runs of another store become runs of this one, all of them or none.

use std::path::Path;

use rusqlite::Connection;

use super::ends::Ends;
use super::request::{Adopted, Request, apply};
use crate::{Entry, NewRun, RunUpdate, Store, StoreError, blobs};

/// Events are taken over in pieces of so many bytes: a journal need not fit into memory.
const PIECE_BYTES: usize = 4 * 1024 * 1024;

/// Takes over all contents of `from`, and of these runs of it what is not here.
pub(super) fn adopt(
    conn: &Connection,
    db: &Path,
    ends: &mut Ends,
    from: &Store,
    adopted: &Adopted,
) -> Result<(), StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    // Within the group's transaction: a request that is refused must leave nothing.
    conn.execute_batch("SAVEPOINT adopt").map_err(sql)?;
    let done = contents(conn, db, from).and_then(|()| {
        // First the sources that new forks leave behind what is here.
        adopted.further.iter().try_for_each(|(run, next)| take_over(conn, db, ends, from, run, *next))?;
        adopted.new.iter().try_for_each(|run| begin(conn, db, ends, from, run))
    });
    match done {
        Ok(()) => conn.execute_batch("RELEASE adopt").map_err(sql),
        Err(error) => {
            ends.forget_runs();
            conn.execute_batch("ROLLBACK TO adopt; RELEASE adopt").map_err(sql)?;
            Err(error)
        }
    }
}

fn contents(conn: &Connection, db: &Path, from: &Store) -> Result<(), StoreError> {
    from.each_blob(|hash, bytes| {
        blobs::insert(conn, hash, bytes).map_err(|error| StoreError::from_sqlite(db, &error))
    })
}

/// A run that is not here.
fn begin(conn: &Connection, db: &Path, ends: &mut Ends, from: &Store, run: &str) -> Result<(), StoreError> {
    let info = from.run(run)?;
    let own = info.fork.as_ref().map_or(1, |fork| fork.events + 1);
    let new = NewRun {
        id: info.id,
        name: info.name,
        dialect: info.dialect,
        status: info.status,
        started_ms: info.started_ms,
        graph: info.graph,
        scripted: info.scripted,
        options: info.options,
        fork: info.fork,
        parent: info.parent,
    };
    apply(conn, db, ends, &Request::create(new, Vec::new()))?;
    take_over(conn, db, ends, from, run, own)
}

/// The events of a run from `next` on, and where it stands behind them.
fn take_over(
    conn: &Connection,
    db: &Path,
    ends: &mut Ends,
    from: &Store,
    run: &str,
    next: u64,
) -> Result<(), StoreError> {
    let info = from.run(run)?;
    let update = RunUpdate {
        status: Some((info.status, info.ended_ms)),
        usage: Some(info.usage),
        ..RunUpdate::default()
    };
    let mut write = |entries: &mut Vec<Entry>, update: Option<RunUpdate>| {
        let entries = std::mem::take(entries);
        apply(conn, db, ends, &Request::append(run.to_owned(), entries, update))
    };
    let (mut entries, mut bytes) = (Vec::new(), 0);
    for entry in from.journal(run, next)? {
        let entry = entry?;
        bytes += entry.json.len();
        entries.push(entry);
        if bytes >= PIECE_BYTES {
            write(&mut entries, None)?;
            bytes = 0;
        }
    }
    write(&mut entries, Some(update))
}
