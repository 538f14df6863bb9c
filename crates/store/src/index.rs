//! The run index: what `runs` lists and what a resume needs besides the journal (C-12, C-15).

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use rusqlite::{Connection, OptionalExtension, Row};

use crate::chain::Link;
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
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Running, Self::Waiting, Self::Completed, Self::Failed, Self::Cancelled];

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
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|status| status.as_str()).collect();
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
    /// The run that began it, if one did (E-39).
    pub parent: Option<String>,
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
    /// The run that began it, if one did (E-39).
    pub parent: Option<String>,
}

/// The runs of a state folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runs {
    /// Those that were asked for, latest first.
    pub sound: Vec<RunInfo>,
    /// What is wrong with the others.
    pub damaged: Vec<StoreError>,
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs of this status (`--status`, `--waiting`).
    pub status: Option<RunStatus>,
    /// At most so many, the latest ones.
    pub limit: Option<u32>,
    /// Runs that other runs began, too (E-39).
    pub children: bool,
}

impl RunFilter {
    fn takes(&self, info: &RunInfo) -> bool {
        self.status.is_none_or(|status| status == info.status) && (self.children || info.parent.is_none())
    }
}

/// Which runs to look at, a page at a time: latest recorded first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunsPage {
    /// Only runs of this status.
    pub status: Option<RunStatus>,
    /// Only runs of this dialect.
    pub dialect: Option<String>,
    /// Only runs with this in their names or ids; ASCII letters in either case.
    pub text: Option<String>,
    /// Only runs that this one began.
    pub parent: Option<String>,
    /// Only runs that no other run began.
    pub without_children: bool,
    /// Only those behind a page that was looked at before.
    pub after: Option<i64>,
    /// At most so many.
    pub limit: u32,
}

/// A page of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageOfRuns {
    /// The runs, and what is wrong with those of the page that are damaged.
    pub runs: Runs,
    /// What [`RunsPage::after`] takes for the next page, if there is one.
    pub next: Option<i64>,
}

/// Not by joins: SQLite plans those anew for each key that they are asked with, which takes longer than the answer.
const COLUMNS: &str = "r.id, r.name, r.dialect, r.status, r.started_ms, r.ended_ms, r.usage, r.graph, r.scripted, \
                       r.options, (SELECT p.id FROM runs p WHERE p.key = r.parent), r.parent_events, r.key, r.seal, \
                       (SELECT h.since FROM heads h WHERE h.run = r.key), r.begun_by FROM runs r";

/// How many ids an ambiguous beginning shows.
const CANDIDATES: usize = 10;

/// The small number that stands for a run, and the number of events it shares with its source.
pub(crate) fn key(conn: &Connection, id: &str) -> rusqlite::Result<Option<(i64, u64)>> {
    conn.prepare_cached("SELECT key, parent_events FROM runs WHERE id = ?1")?
        .query_row([id], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))
        .optional()
}

/// [`key`] of a run that must be there.
pub(crate) fn known_key(conn: &Connection, db: &Path, id: &str) -> Result<(i64, u64), StoreError> {
    key(conn, id).map_err(|error| StoreError::from_sqlite(db, &error))?.ok_or_else(|| unknown(conn, db, id))
}

/// Why there is no run of that id. That the index of ids does not lead to one proves nothing if it is damaged.
fn unknown(conn: &Connection, db: &Path, id: &str) -> StoreError {
    match find(conn, db, id) {
        Err(StoreError::UnknownRun { .. } | StoreError::AmbiguousRun { .. }) | Ok(_) => {
            StoreError::UnknownRun { run: id.to_owned() }
        }
        Err(error) => error,
    }
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
    // The key that SQLite would choose: the seal has it in it.
    let key = conn
        .prepare_cached("SELECT coalesce(max(key), 0) + 1 FROM runs")?
        .query_row([], |row| row.get::<_, i64>(0))?;
    let info = RunInfo {
        id: run.id.clone(),
        name: run.name.clone(),
        dialect: run.dialect.clone(),
        status: run.status,
        started_ms: run.started_ms,
        ended_ms: None,
        usage: "{}".to_owned(),
        graph: run.graph,
        scripted: run.scripted,
        options: run.options.clone(),
        fork: run.fork.clone(),
        parent: run.parent.clone(),
    };
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

/// One run by its exact id.
pub(crate) fn get(conn: &Connection, db: &Path, id: &str) -> Result<RunInfo, StoreError> {
    let info = conn
        .prepare_cached(&format!("SELECT {COLUMNS} WHERE r.id = ?1"))
        .and_then(|mut query| query.query_row([id], |row| Ok(info(row, db))).optional())
        .map_err(|error| StoreError::from_sqlite(db, &error))?
        .ok_or_else(|| unknown(conn, db, id))??;
    if info.id == id {
        Ok(info)
    } else {
        Err(StoreError::broken(db, id, None, "the index of ids leads to another run"))
    }
}

/// Runs, latest first. All rows are looked at, in the order of the table: a wrong status or a damaged index hides none.
pub(crate) fn list(conn: &Connection, db: &Path, filter: &RunFilter) -> Result<Runs, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
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
    runs.sound.truncate(filter.limit.map_or(usize::MAX, |limit| limit as usize));
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
fn is_short_of_its_end(conn: &Connection, key: i64) -> rusqlite::Result<bool> {
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

/// The id that `text` means: the run of exactly that id, else one of the latest by its number, else the only one that
/// begins with it. Where it is not the id, all rows are looked at: a damaged one might be the one that is meant.
pub(crate) fn find(conn: &Connection, db: &Path, text: &str) -> Result<String, StoreError> {
    if key(conn, text).map_err(|error| StoreError::from_sqlite(db, &error))?.is_some() {
        return Ok(text.to_owned());
    }
    let runs = list(conn, db, &RunFilter { children: true, ..RunFilter::default() })?;
    if let Some(damaged) = runs.damaged.into_iter().next() {
        return Err(damaged);
    }
    if let Some(back) = back_from_latest(text) {
        let mut own = runs.sound.into_iter().filter(|run| run.parent.is_none());
        return own
            .nth(back as usize)
            .map(|run| run.id)
            .ok_or_else(|| StoreError::UnknownRun { run: text.to_owned() });
    }
    if let Some(lost) = runs.sound.iter().find(|run| run.id == text) {
        return Err(StoreError::broken(db, &lost.id, None, "the index of ids does not lead to it"));
    }
    let mut meant = runs.sound;
    meant.retain(|run| !text.is_empty() && run.id.starts_with(text));
    // The beginning of a run is that of all it began, too.
    if meant.iter().any(|run| run.parent.is_none()) {
        meant.retain(|run| run.parent.is_none());
    }
    let mut ids: Vec<String> = meant.into_iter().map(|run| run.id).collect();
    let unknown = || StoreError::UnknownRun { run: text.to_owned() };
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

/// How many runs before the latest one: `@` and `@last` are that one, `@-1` the one before it.
fn back_from_latest(text: &str) -> Option<u32> {
    match text.strip_prefix('@')? {
        "" | "last" => Some(0),
        back => back.strip_prefix('-')?.parse().ok(),
    }
}

/// A row, if it is what was written.
fn info(row: &Row<'_>, db: &Path) -> Result<RunInfo, StoreError> {
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
