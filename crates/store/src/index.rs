//! The run index: what `runs` lists and what a resume needs besides the journal (C-12, C-15).

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use rusqlite::{Connection, OptionalExtension, Row};

use crate::{BlobHash, StoreError};

/// Where a run stands (C-02).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunStatus {
    /// Driven, or to be resumed.
    Running,
    /// Waits for a person.
    Waiting,
    /// Ended with a result.
    Completed,
    /// Ended with a fault.
    Failed,
    /// Ended by a person.
    Cancelled,
}

impl RunStatus {
    /// The status's name in every JSON output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for RunStatus {
    type Err = String;

    /// Fails with a message that lists the names.
    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Running, Self::Waiting, Self::Completed, Self::Failed, Self::Cancelled];
        all.into_iter().find(|status| status.as_str() == text).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|status| status.as_str()).collect();
            format!("\"{text}\" is no status; the statuses are {}", names.join(", "))
        })
    }
}

/// The place where a forked run leaves its source (E-19).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPoint {
    /// The source run's id.
    pub run: String,
    /// How many of its events the fork shares. The fork's own events begin after them.
    pub events: u64,
}

/// A run to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its id, never used before (C-12).
    pub id: String,
    /// Name for people, the document's for example.
    pub name: String,
    /// Dialect of its document (C-11).
    pub dialect: String,
    /// Where it stands.
    pub status: RunStatus,
    /// When it began, in milliseconds since 1970 (UTC).
    pub started_ms: i64,
    /// Its compiled graph, stored before with [`crate::Store::put_blob`] (E-05).
    pub graph: Option<BlobHash>,
    /// True if a scripted model answers (C-07), or answered before it was forked.
    pub scripted: bool,
    /// What it was started with, as JSON (C-10). No secrets.
    pub options: String,
    /// Its source, if it is a fork.
    pub fork: Option<ForkPoint>,
}

/// A change to a run's row, written together with the entries that cause it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunUpdate {
    /// A new status and, if the run has ended, when. `(Running, None)` makes an ended run a running one again.
    pub status: Option<(RunStatus, Option<i64>)>,
    /// What the run has used so far, as JSON.
    pub usage: Option<String>,
    /// The graph that drives it from now on.
    pub graph: Option<BlobHash>,
    /// New options, as JSON.
    pub options: Option<String>,
    /// A scripted model answers from here on (C-07); what a row says of it is never taken back.
    pub scripted: bool,
}

/// A run as the index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo {
    /// Its id.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Dialect of its document.
    pub dialect: String,
    /// Where it stands, as of its last update.
    pub status: RunStatus,
    /// When it began, in milliseconds since 1970 (UTC).
    pub started_ms: i64,
    /// When it ended, if it has.
    pub ended_ms: Option<i64>,
    /// What it has used, as JSON; `{}` before the first update.
    pub usage: String,
    /// Its compiled graph.
    pub graph: Option<BlobHash>,
    /// True if a scripted model answers, or has answered since it began.
    pub scripted: bool,
    /// What it was started with, as JSON.
    pub options: String,
    /// Its source, if it is a fork.
    pub fork: Option<ForkPoint>,
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs of this status (`--status`, `--waiting`).
    pub status: Option<RunStatus>,
    /// At most so many, the latest ones.
    pub limit: Option<u32>,
}

const COLUMNS: &str = "r.id, r.name, r.dialect, r.status, r.started_ms, r.ended_ms, r.usage, r.graph, r.scripted, \
                       r.options, p.id, r.parent_events FROM runs r LEFT JOIN runs p ON p.key = r.parent";

/// How many ids an ambiguous beginning shows.
const CANDIDATES: usize = 10;

/// The small number that stands for a run, and the number of events it shares with its source.
pub(crate) fn key(conn: &Connection, id: &str) -> rusqlite::Result<Option<(i64, u64)>> {
    conn.prepare_cached("SELECT key, parent_events FROM runs WHERE id = ?1")?
        .query_row([id], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))
        .optional()
}

/// A run's source: its key, and the number of events shared with it.
pub(crate) fn parent(conn: &Connection, key: i64) -> rusqlite::Result<Option<(i64, u64)>> {
    let row: (Option<i64>, i64) = conn
        .prepare_cached("SELECT parent, parent_events FROM runs WHERE key = ?1")?
        .query_row([key], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(row.0.map(|parent| (parent, row.1.unsigned_abs())))
}

/// Adds a run; the caller has checked that its id is free. Returns its key.
pub(crate) fn insert(conn: &Connection, run: &NewRun, parent: Option<i64>) -> rusqlite::Result<i64> {
    let shared = run.fork.as_ref().map_or(0, |fork| i64::try_from(fork.events).unwrap_or(i64::MAX));
    conn.prepare_cached(
        "INSERT INTO runs (id, name, dialect, status, started_ms, usage, graph, scripted, options, parent, \
         parent_events) VALUES (?1, ?2, ?3, ?4, ?5, '{}', ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute((
        &run.id,
        &run.name,
        &run.dialect,
        run.status.as_str(),
        run.started_ms,
        run.graph.as_ref().map(BlobHash::as_bytes),
        run.scripted,
        &run.options,
        parent,
        shared,
    ))?;
    Ok(conn.last_insert_rowid())
}

/// Changes a run's row.
pub(crate) fn update(conn: &Connection, key: i64, change: &RunUpdate) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "UPDATE runs SET status = coalesce(?2, status), ended_ms = iif(?2 IS NULL, ended_ms, ?3), \
         usage = coalesce(?4, usage), graph = coalesce(?5, graph), options = coalesce(?6, options), \
         scripted = max(scripted, ?7) WHERE key = ?1",
    )?
    .execute((
        key,
        change.status.map(|(status, _)| status.as_str()),
        change.status.and_then(|(_, ended)| ended),
        &change.usage,
        change.graph.as_ref().map(BlobHash::as_bytes),
        &change.options,
        change.scripted,
    ))?;
    Ok(())
}

/// One run by its exact id.
pub(crate) fn get(conn: &Connection, db: &Path, id: &str) -> Result<RunInfo, StoreError> {
    conn.prepare_cached(&format!("SELECT {COLUMNS} WHERE r.id = ?1"))
        .and_then(|mut query| query.query_row([id], info).optional())
        .map_err(|error| StoreError::from_sqlite(db, &error))?
        .ok_or_else(|| StoreError::UnknownRun { run: id.to_owned() })?
        .or_damaged(db)
}

/// Runs, latest first.
pub(crate) fn list(conn: &Connection, db: &Path, filter: &RunFilter) -> Result<Vec<RunInfo>, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let mut query = conn
        .prepare_cached(&format!(
            "SELECT {COLUMNS} WHERE ?1 IS NULL OR r.status = ?1 ORDER BY r.started_ms DESC, r.key DESC LIMIT ?2"
        ))
        .map_err(sql)?;
    let limit = filter.limit.map_or(-1, i64::from);
    let rows = query.query_map((filter.status.map(RunStatus::as_str), limit), info).map_err(sql)?;
    rows.map(|row| row.map_err(sql)?.or_damaged(db)).collect()
}

/// The id that `text` means: the run of exactly that id, else one of the latest by its number, else the only one that
/// begins with it.
pub(crate) fn find(conn: &Connection, db: &Path, text: &str) -> Result<String, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let mut query =
        conn.prepare_cached("SELECT id FROM runs WHERE id >= ?1 ORDER BY id LIMIT ?2").map_err(sql)?;
    let rows = query.query_map((text, CANDIDATES as i64), |row| row.get::<_, String>(0)).map_err(sql)?;
    let mut candidates = Vec::new();
    for id in rows {
        let id = id.map_err(sql)?;
        if id == text {
            return Ok(id);
        }
        // Ids are sorted by their bytes, so those with one beginning are neighbours.
        if text.is_empty() || !id.starts_with(text) {
            break;
        }
        candidates.push(id);
    }
    if let Some(back) = back_from_latest(text) {
        let nth = "SELECT id FROM runs ORDER BY started_ms DESC, key DESC LIMIT 1 OFFSET ?1";
        let found = conn
            .prepare_cached(nth)
            .and_then(|mut query| query.query_row([back], |row| row.get(0)).optional());
        return found.map_err(sql)?.ok_or_else(|| StoreError::UnknownRun { run: text.to_owned() });
    }
    match candidates.pop() {
        None => Err(StoreError::UnknownRun { run: text.to_owned() }),
        Some(only) if candidates.is_empty() => Ok(only),
        Some(last) => {
            candidates.push(last);
            Err(StoreError::AmbiguousRun { prefix: text.to_owned(), candidates })
        }
    }
}

/// How many runs before the latest one: `@` and `@last` are that one, `@-1` the one before it.
fn back_from_latest(text: &str) -> Option<u32> {
    match text.strip_prefix('@')? {
        "" | "last" => Some(0),
        back => back.strip_prefix('-')?.parse().ok(),
    }
}

/// A row whose texts may turn out not to be what this crate writes.
struct RawInfo(Result<RunInfo, String>);

impl RawInfo {
    fn or_damaged(self, db: &Path) -> Result<RunInfo, StoreError> {
        self.0.map_err(|why| StoreError::Damaged { path: db.to_owned(), why })
    }
}

fn info(row: &Row<'_>) -> rusqlite::Result<RawInfo> {
    let id: String = row.get(0)?;
    let status = match row.get_ref(3)?.as_str()?.parse() {
        Ok(status) => status,
        Err(why) => return Ok(RawInfo(Err(format!("run \"{id}\": {why}")))),
    };
    let graph = match row.get_ref(7)?.as_blob_or_null()?.map(BlobHash::from_bytes) {
        Some(None) => return Ok(RawInfo(Err(format!("run \"{id}\": its graph's hash has a wrong length")))),
        graph => graph.flatten(),
    };
    let parent: Option<String> = row.get(10)?;
    let events = row.get::<_, i64>(11)?.unsigned_abs();
    Ok(RawInfo(Ok(RunInfo {
        id,
        name: row.get(1)?,
        dialect: row.get(2)?,
        status,
        started_ms: row.get(4)?,
        ended_ms: row.get(5)?,
        usage: row.get(6)?,
        graph,
        scripted: row.get(8)?,
        options: row.get(9)?,
        fork: parent.map(|run| ForkPoint { run, events }),
    })))
}
