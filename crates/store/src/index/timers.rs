//! When the next timers of waiting runs are due (E-37).

use std::path::Path;

use rusqlite::Connection;

use crate::StoreError;

/// Sets when the next timer of a run is due, or that it has none to wait for.
pub(super) fn set(conn: &Connection, key: i64, due_ms: Option<i64>) -> rusqlite::Result<()> {
    match due_ms {
        Some(due_ms) => conn
            .prepare_cached("INSERT OR REPLACE INTO timers (run, due_ms) VALUES (?1, ?2)")?
            .execute((key, due_ms))?,
        None => conn.prepare_cached("DELETE FROM timers WHERE run = ?1")?.execute([key])?,
    };
    Ok(())
}

/// The ids of waiting runs that no other run began and of which a timer was due by `now_ms`, each with that time, the earliest first.
pub(crate) fn due(conn: &Connection, db: &Path, now_ms: i64) -> Result<Vec<(String, i64)>, StoreError> {
    let rows = || {
        conn.prepare_cached(
            "SELECT r.id, t.due_ms FROM timers t JOIN runs r ON r.key = t.run
             WHERE t.due_ms <= ?1 AND r.begun_by IS NULL ORDER BY t.due_ms",
        )?
        .query_map([now_ms], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()
    };
    rows().map_err(|error| StoreError::from_sqlite(db, &error))
}
