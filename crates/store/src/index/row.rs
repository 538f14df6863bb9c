//! One row of the run index: how it is written, and what proves that it is what was written (E-44).

use std::path::Path;

use rusqlite::{Connection, Row};

use super::{ForkPoint, NewRun, RunInfo, RunUpdate};
use crate::chain::Link;
use crate::{BlobHash, StoreError};

/// Not by joins: SQLite plans those anew for each key that they are asked with, which takes longer than the answer.
pub(super) const COLUMNS: &str = "r.id, r.name, r.dialect, r.status, r.started_ms, r.ended_ms, r.usage, r.graph, r.scripted, \
                       r.options, (SELECT p.id FROM runs p WHERE p.key = r.parent), r.parent_events, r.key, r.seal, \
                       (SELECT h.since FROM heads h WHERE h.run = r.key), r.begun_by FROM runs r";

/// Adds a run; the caller has checked that its id is free. Returns its key.
pub(crate) fn insert(conn: &Connection, run: &NewRun, parent: Option<i64>) -> rusqlite::Result<i64> {
    let shared = run.fork.as_ref().map_or(0, |fork| i64::try_from(fork.events).unwrap_or(i64::MAX));
    // The key that SQLite would choose: the seal has it in it.
    let key = conn
        .prepare_cached("SELECT coalesce(max(key), 0) + 1 FROM runs")?
        .query_row([], |row| row.get::<_, i64>(0))?;
    let info = run.info();
    conn.prepare_cached(
        "INSERT INTO runs (key, id, name, dialect, status, started_ms, usage, graph, scripted, options, parent, \
         parent_events, seal, begun_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?
    .execute((
        key,
        &info.id,
        &info.name,
        &info.dialect,
        info.status.as_str(),
        info.started_ms,
        &info.usage,
        info.graph.as_ref().map(BlobHash::as_bytes),
        info.scripted,
        &info.options,
        parent,
        shared,
        seal(key, &info),
        &info.parent,
    ))?;
    Ok(key)
}

/// Changes a run's row, and seals it anew.
pub(crate) fn update(conn: &Connection, db: &Path, key: i64, change: &RunUpdate) -> Result<(), StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let mut info = conn
        .prepare_cached(&format!("SELECT {COLUMNS} WHERE r.key = ?1"))
        .and_then(|mut query| query.query_row([key], |row| Ok(info(row, db))))
        .map_err(sql)??;
    if let Some((status, ended)) = change.status {
        (info.status, info.ended_ms) = (status, ended);
        super::timers::set(conn, key, change.due_ms).map_err(sql)?;
    }
    info.usage = change.usage.clone().unwrap_or(info.usage);
    info.graph = change.graph.or(info.graph);
    info.options = change.options.clone().unwrap_or(info.options);
    info.scripted |= change.scripted;
    conn.prepare_cached(
        "UPDATE runs SET status = ?2, ended_ms = ?3, usage = ?4, graph = ?5, options = ?6, scripted = ?7, seal = ?8 \
         WHERE key = ?1",
    )
    .and_then(|mut query| {
        query.execute((
            key,
            info.status.as_str(),
            info.ended_ms,
            &info.usage,
            info.graph.as_ref().map(BlobHash::as_bytes),
            &info.options,
            info.scripted,
            seal(key, &info),
        ))
    })
    .map_err(sql)?;
    Ok(())
}

/// The hash of all that a row says (E-44).
fn seal(key: i64, info: &RunInfo) -> Link {
    let number = |number: i64| number.to_be_bytes();
    let (key, started, scripted) = (number(key), number(info.started_ms), number(info.scripted.into()));
    let (ended, shared) =
        (info.ended_ms.map(number), info.fork.as_ref().map(|fork| fork.events.to_be_bytes()));
    let values = [
        Some(&key[..]),
        Some(info.id.as_bytes()),
        Some(info.name.as_bytes()),
        Some(info.dialect.as_bytes()),
        Some(info.status.as_str().as_bytes()),
        Some(&started[..]),
        ended.as_ref().map(|ended| &ended[..]),
        Some(info.usage.as_bytes()),
        info.graph.as_ref().map(BlobHash::as_bytes),
        Some(&scripted[..]),
        Some(info.options.as_bytes()),
        info.fork.as_ref().map(|fork| fork.run.as_bytes()),
        shared.as_ref().map(|shared| &shared[..]),
    ];
    // Rows of older formats say nothing of it, and are sealed as they were.
    let parent = info.parent.as_ref().map(|parent| Some(parent.as_bytes()));
    Link::seal(values.into_iter().chain(parent))
}

/// A row, if it is what was written.
pub(super) fn info(row: &Row<'_>, db: &Path) -> Result<RunInfo, StoreError> {
    let name = row.get::<_, String>(0).unwrap_or_else(|_| "?".to_owned());
    let broken = |why: &str| StoreError::broken(db, &name, None, why);
    let (info, key, sealed, since) =
        raw(row).map_err(|why| broken(&format!("its row in the index is not what was written: {why}")))?;
    match sealed {
        Some(sealed) if sealed == seal(key, &info) => Ok(info),
        // Of an older format, and nothing has been written to it since.
        None if since.is_none() => Ok(info),
        _ => Err(broken("its row in the index is not what was written")),
    }
}

/// What a row says, whether or not it fits its seal, with its key, the seal, and the first event that has a hash.
#[allow(clippy::type_complexity, reason = "a row")]
fn raw(row: &Row<'_>) -> Result<(RunInfo, i64, Option<Link>, Option<i64>), String> {
    let read = |error: rusqlite::Error| error.to_string();
    let status = row.get_ref(3).map_err(read)?.as_str().map_err(|error| error.to_string())?.parse()?;
    let graph = row.get_ref(7).map_err(read)?.as_blob_or_null().map_err(|error| error.to_string())?;
    let graph = match graph.map(BlobHash::from_bytes) {
        Some(None) => return Err("its graph's hash has a wrong length".to_owned()),
        graph => graph.flatten(),
    };
    let parent: Option<String> = row.get(10).map_err(read)?;
    let events = row.get::<_, i64>(11).map_err(read)?.unsigned_abs();
    let info = RunInfo {
        id: row.get(0).map_err(read)?,
        name: row.get(1).map_err(read)?,
        dialect: row.get(2).map_err(read)?,
        status,
        started_ms: row.get(4).map_err(read)?,
        ended_ms: row.get(5).map_err(read)?,
        usage: row.get(6).map_err(read)?,
        graph,
        scripted: row.get(8).map_err(read)?,
        options: row.get(9).map_err(read)?,
        fork: parent.map(|run| ForkPoint { run, events }),
        parent: row.get(15).map_err(read)?,
    };
    Ok((info, row.get(12).map_err(read)?, row.get(13).map_err(read)?, row.get(14).map_err(read)?))
}
