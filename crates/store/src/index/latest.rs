//! The latest runs, and no others: who wants a few of very many does not look at all of them.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::list::is_short_of_its_end;
use super::row::{COLUMNS, info};
use super::{RunFilter, RunInfo, Runs};
use crate::StoreError;

/// How many runs are looked at one by one: where those that are wanted lie behind more, looking through the table is faster.
const LOOKS: usize = 2_000;

/// The latest runs that a filter takes, unless they lie behind very many others. The index of starts leads to them; it is believed as far as it fits the rows, and has as many as there are
/// journals. Damage that lies behind the last of them shows where all runs are listed.
pub(super) fn latest(
    conn: &Connection,
    db: &Path,
    filter: &RunFilter,
    most: usize,
) -> Result<Option<Runs>, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let damaged = |why: &str| StoreError::Damaged { path: db.to_owned(), why: why.to_owned() };
    let moment = if conn.is_autocommit() { Some(conn.unchecked_transaction().map_err(sql)?) } else { None };
    let mut runs = Runs::default();
    // The index of starts is what this counts.
    if count(conn, "SELECT count(started_ms) FROM runs").map_err(sql)? != journals(conn).map_err(sql)? {
        runs.damaged.push(damaged("its index of runs has not as many as there are journals"));
    }
    let mut starts = conn
        .prepare_cached("SELECT started_ms, key FROM runs ORDER BY started_ms DESC, key DESC")
        .map_err(sql)?;
    let (mut before, mut looks) = (None, 0);
    for start in starts.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(sql)? {
        if runs.sound.len() >= most {
            break;
        }
        looks += 1;
        if looks > LOOKS.max(most) {
            return Ok(None);
        }
        let start: (i64, i64) = start.map_err(sql)?;
        let fits = before.replace(start).is_none_or(|before| start < before);
        match of_key(conn, db, start.1).map_err(sql)? {
            Some(Ok(info)) if !fits || info.started_ms != start.0 => {
                runs.damaged.push(StoreError::broken(
                    db,
                    &info.id,
                    None,
                    "the index of starts does not fit it",
                ));
            }
            Some(Ok(info)) if !filter.takes(&info) => {}
            Some(Ok(info)) if is_short_of_its_end(conn, start.1).map_err(sql)? => {
                runs.damaged.push(StoreError::broken(db, &info.id, None, "its journal has lost its end"));
            }
            Some(Ok(info)) => runs.sound.push(info),
            Some(Err(error)) => runs.damaged.push(error),
            None => runs.damaged.push(damaged("its index of starts leads to no run")),
        }
    }
    drop(starts);
    moment.map_or(Ok(()), rusqlite::Transaction::commit).map_err(sql)?;
    Ok(Some(runs))
}

/// The row of a key, if it is what was written.
pub(super) fn of_key(
    conn: &Connection,
    db: &Path,
    key: i64,
) -> rusqlite::Result<Option<Result<RunInfo, StoreError>>> {
    conn.prepare_cached(&format!("SELECT {COLUMNS} WHERE r.key = ?1"))?
        .query_row([key], |row| Ok(info(row, db)))
        .optional()
}

/// How many journals of runs there are.
pub(super) fn journals(conn: &Connection) -> rusqlite::Result<i64> {
    count(conn, "SELECT count(*) FROM heads WHERE run > 0")
}

pub(super) fn count(conn: &Connection, query: &str) -> rusqlite::Result<i64> {
    conn.prepare_cached(query)?.query_row([], |row| row.get(0))
}
