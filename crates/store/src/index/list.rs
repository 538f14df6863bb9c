//! Many runs at a time: all of them, a page, those that a run began (C-15, E-39).

use std::collections::HashSet;
use std::path::Path;

use rusqlite::Connection;

use super::latest::latest;
use super::row::{COLUMNS, info};
use super::{PageOfRuns, RunFilter, RunInfo, RunStatus, Runs, RunsPage};
use crate::StoreError;

/// The runs that a run began, in the order of their ids.
pub(crate) fn children(conn: &Connection, db: &Path, parent: &str) -> Result<Vec<RunInfo>, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let mut query =
        conn.prepare_cached(&format!("SELECT {COLUMNS} WHERE r.begun_by = ?1 ORDER BY r.id")).map_err(sql)?;
    let rows = query.query_map([parent], |row| Ok(info(row, db))).map_err(sql)?;
    rows.map(|row| row.map_err(sql)?).collect()
}

/// The runs whose ids are this and one word more, in the order of their ids, and where they stand. Which ids are, their index says: of others no row is read.
pub(crate) fn named(
    conn: &Connection,
    db: &Path,
    beginning: &str,
) -> Result<Vec<(String, RunStatus)>, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    // No text that begins so is behind this one.
    let end = format!("{beginning}\u{10ffff}");
    let mut query = conn
        .prepare_cached("SELECT id, status FROM runs WHERE id >= ?1 AND id < ?2 AND instr(substr(id, length(?1) + 1), '-') = 0 ORDER BY id")
        .map_err(sql)?;
    let rows = query.query_map([beginning, &end], |row| Ok((row.get(0)?, row.get(1)?))).map_err(sql)?;
    rows.map(|row| {
        let (id, status): (String, String) = row.map_err(sql)?;
        let status = status.parse().map_err(|why: String| StoreError::broken(db, &id, None, &why))?;
        Ok((id, status))
    })
    .collect()
}

/// Runs, latest first. All rows are looked at, in the order of the table: a wrong status or a damaged index hides none. Only where no more than
/// some are wanted, those behind them are not (see [`latest`]).
pub(crate) fn list(conn: &Connection, db: &Path, filter: &RunFilter) -> Result<Runs, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let most = filter.limit.map_or(usize::MAX, |limit| limit as usize);
    if filter.limit.is_some()
        && let Some(runs) = latest(conn, db, filter, most)?
    {
        return Ok(runs);
    }
    let moment = if conn.is_autocommit() { Some(conn.unchecked_transaction().map_err(sql)?) } else { None };
    let heads: i64 = conn
        .prepare_cached("SELECT count(*) FROM heads WHERE run > 0")
        .and_then(|mut query| query.query_row([], |row| row.get(0)))
        .map_err(sql)?;
    let short = short_of_their_end(conn).map_err(sql)?;
    let mut query = conn.prepare_cached(&format!("SELECT {COLUMNS} ORDER BY r.key DESC")).map_err(sql)?;
    let rows = query.query_map([], |row| Ok(info(row, db))).map_err(sql)?;
    let mut runs = Runs::default();
    let mut found = 0;
    for row in rows {
        found += 1;
        match row.map_err(sql)? {
            Ok(info) if short.contains(&info.id) => {
                let why = "its journal has lost its end";
                runs.damaged.push(StoreError::broken(db, &info.id, None, why));
            }
            Ok(info) if filter.takes(&info) => runs.sound.push(info),
            Ok(_) => {}
            Err(error) => runs.damaged.push(error),
        }
    }
    drop(query);
    moment.map_or(Ok(()), rusqlite::Transaction::commit).map_err(sql)?;
    if found != heads {
        let why = format!("it has {heads} journals and {found} runs");
        runs.damaged.push(StoreError::Damaged { path: db.to_owned(), why });
    }
    // Stable: of those that began at the same time the later ones stay first.
    runs.sound.sort_by_key(|run| std::cmp::Reverse(run.started_ms));
    runs.sound.truncate(most);
    Ok(runs)
}

/// A page of runs. Only its rows are looked at.
pub(crate) fn page(conn: &Connection, db: &Path, page: &RunsPage) -> Result<PageOfRuns, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let text = page.text.as_ref().filter(|text| !text.is_empty()).map(|text| text.to_ascii_lowercase());
    let query = format!(
        "SELECT {COLUMNS} WHERE r.key < ?1 AND (?2 IS NULL OR r.status = ?2) AND (?3 IS NULL OR r.dialect = ?3)
         AND (?4 IS NULL OR instr(lower(r.name), ?4) OR instr(lower(r.id), ?4))
         AND (?6 IS NULL OR r.begun_by = ?6) AND (NOT ?7 OR r.begun_by IS NULL) ORDER BY r.key DESC LIMIT ?5"
    );
    let mut query = conn.prepare_cached(&query).map_err(sql)?;
    let status = page.status.map(RunStatus::as_str);
    let limit = i64::from(page.limit) + 1;
    let after = page.after.unwrap_or(i64::MAX);
    let asked = (after, status, &page.dialect, text, limit, &page.parent, page.without_children);
    let rows = query.query_map(asked, |row| Ok((row.get::<_, i64>(12)?, info(row, db)))).map_err(sql)?;
    let mut found = PageOfRuns::default();
    let mut last = None;
    for (count, row) in rows.enumerate() {
        let (key, row) = row.map_err(sql)?;
        if count >= page.limit as usize {
            found.next = last;
            break;
        }
        last = Some(key);
        match row {
            Ok(info) if is_short_of_its_end(conn, key).map_err(sql)? => {
                let why = "its journal has lost its end";
                found.runs.damaged.push(StoreError::broken(db, &info.id, None, why));
            }
            Ok(info) => found.runs.sound.push(info),
            Err(error) => found.runs.damaged.push(error),
        }
    }
    Ok(found)
}

/// How many runs there are of each status.
pub(crate) fn counts(conn: &Connection, db: &Path) -> Result<Vec<(RunStatus, u64)>, StoreError> {
    let counts = || {
        conn.prepare_cached("SELECT status, count(*) FROM runs GROUP BY status")?
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?
            .collect::<rusqlite::Result<Vec<_>>>()
    };
    let counts = counts().map_err(|error| StoreError::from_sqlite(db, &error))?;
    Ok(counts.into_iter().filter_map(|(status, count)| Some((status.parse().ok()?, count))).collect())
}

/// The same as [`short_of_their_end`] of one run.
pub(super) fn is_short_of_its_end(conn: &Connection, key: i64) -> rusqlite::Result<bool> {
    conn.prepare_cached(
        "SELECT 1 FROM heads h JOIN runs r ON r.key = h.run LEFT JOIN journal j ON j.key = (h.run << 32 | h.n)
         WHERE h.run = ?1 AND h.n > r.parent_events AND (j.key IS NULL OR j.hash IS NOT h.hash)",
    )?
    .exists([key])
}

/// The runs whose journals have another event, or none, where they are known to have come to. What is before it, reading looks at.
fn short_of_their_end(conn: &Connection) -> rusqlite::Result<HashSet<String>> {
    conn.prepare_cached(
        "SELECT r.id FROM heads h JOIN runs r ON r.key = h.run LEFT JOIN journal j ON j.key = (h.run << 32 | h.n)
         WHERE h.n > r.parent_events AND (j.key IS NULL OR j.hash IS NOT h.hash)",
    )?
    .query_map([], |row| row.get(0))?
    .collect()
}
