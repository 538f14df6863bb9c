//! The run that a person means (C-12).

use std::path::Path;

use rusqlite::Connection;

use super::latest::{count, journals, of_key};
use super::{RunFilter, key, list};
use crate::StoreError;

/// How many ids an ambiguous beginning shows.
const CANDIDATES: usize = 10;

/// The id that `text` means: the run of exactly that id, else one of the latest by its number, else the only one that
/// begins with it. Where the index of ids knows none, all rows are looked at: a damaged one might be the one that is meant.
pub(crate) fn find(conn: &Connection, db: &Path, text: &str) -> Result<String, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    if key(conn, text).map_err(sql)?.is_some() {
        return Ok(text.to_owned());
    }
    let unknown = || StoreError::UnknownRun { run: text.to_owned() };
    if let Some(back) = back_from_latest(text) {
        let limit = Some(back.saturating_add(1));
        let runs = list(conn, db, &RunFilter { limit, ..RunFilter::default() })?;
        if let Some(damaged) = runs.damaged.into_iter().next() {
            return Err(damaged);
        }
        return runs.sound.into_iter().nth(back as usize).map(|run| run.id).ok_or_else(unknown);
    }
    let mut meant = begun_with(conn, db, text)?;
    if meant.is_empty() {
        let runs = list(conn, db, &RunFilter { children: true, ..RunFilter::default() })?;
        if let Some(damaged) = runs.damaged.into_iter().next() {
            return Err(damaged);
        }
        if let Some(lost) = runs.sound.iter().find(|run| run.id == text) {
            return Err(StoreError::broken(db, &lost.id, None, "the index of ids does not lead to it"));
        }
        let begun = runs.sound.into_iter().filter(|run| !text.is_empty() && run.id.starts_with(text));
        meant = begun.map(|run| (run.id, run.parent.is_none())).collect();
    }
    // The beginning of a run is that of all it began, too.
    if meant.iter().any(|(_, own)| *own) {
        meant.retain(|(_, own)| *own);
    }
    let mut ids: Vec<String> = meant.into_iter().map(|(id, _)| id).collect();
    ids.sort_unstable();
    ids.truncate(CANDIDATES);
    match (ids.pop(), ids.is_empty()) {
        (None, _) => Err(unknown()),
        (Some(only), true) => Ok(only),
        (Some(last), false) => {
            ids.push(last);
            Err(StoreError::AmbiguousRun { prefix: text.to_owned(), candidates: ids })
        }
    }
}

/// The ids that begin with this, as their index has them, and whether a person began those runs. None if it has not as many ids as there are
/// journals, or one that is not that of the row it leads to.
fn begun_with(conn: &Connection, db: &Path, text: &str) -> Result<Vec<(String, bool)>, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    // The index of ids is what this counts.
    let whole = count(conn, "SELECT count(id) FROM runs").map_err(sql)? == journals(conn).map_err(sql)?;
    if text.is_empty() || !whole {
        return Ok(Vec::new());
    }
    // No text that begins so is behind this one.
    let end = format!("{text}\u{10ffff}");
    let mut query = conn
        .prepare_cached("SELECT id, key FROM runs WHERE id >= ?1 AND id < ?2 ORDER BY id")
        .map_err(sql)?;
    let mut found = Vec::new();
    for row in query.query_map([text, &end], |row| Ok((row.get(0)?, row.get(1)?))).map_err(sql)? {
        let (id, key): (String, i64) = row.map_err(sql)?;
        match of_key(conn, db, key).map_err(sql)? {
            Some(Ok(info)) if info.id == id => found.push((id, info.parent.is_none())),
            _ => return Ok(Vec::new()),
        }
    }
    Ok(found)
}

/// How many runs before the latest one: `@` and `@last` are that one, `@-1` the one before it.
fn back_from_latest(text: &str) -> Option<u32> {
    match text.strip_prefix('@')? {
        "" | "last" => Some(0),
        back => back.strip_prefix('-')?.parse().ok(),
    }
}
