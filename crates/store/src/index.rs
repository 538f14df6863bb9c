//! The run index: what `runs` lists and what a resume needs besides the journal (C-12, C-15).

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use rusqlite::{Connection, OptionalExtension};

use crate::{BlobHash, StoreError};

mod find;
mod latest;
mod list;
mod row;
mod timers;

pub(crate) use find::find;
pub(crate) use list::{children, counts, list, named, page};
use row::{COLUMNS, info};
pub(crate) use row::{insert, update};
pub(crate) use timers::due;

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

impl NewRun {
    /// The row that it has once it is written.
    pub fn info(&self) -> RunInfo {
        RunInfo {
            id: self.id.clone(),
            name: self.name.clone(),
            dialect: self.dialect.clone(),
            status: self.status,
            started_ms: self.started_ms,
            ended_ms: None,
            usage: "{}".to_owned(),
            graph: self.graph,
            scripted: self.scripted,
            options: self.options.clone(),
            fork: self.fork.clone(),
            parent: self.parent.clone(),
        }
    }
}

/// A change to a run's row, written together with the entries that cause it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunUpdate {
    /// A new status and, if the run has ended, when. `(Running, None)` makes an ended run a running one again.
    pub status: Option<(RunStatus, Option<i64>)>,
    /// With a new status: when the next timer of a run that waits is due (E-37), in milliseconds since 1970 (UTC).
    pub due_ms: Option<i64>,
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
    /// Only runs with this in their names, in whatever case.
    pub name: Option<String>,
    /// At most so many, the latest ones: what is behind them is not looked at.
    pub limit: Option<u32>,
    /// Runs that other runs began, too (E-39).
    pub children: bool,
}

impl RunFilter {
    fn takes(&self, info: &RunInfo) -> bool {
        let named =
            |part: &String| part.is_empty() || info.name.to_lowercase().contains(&part.to_lowercase());
        self.status.is_none_or(|status| status == info.status)
            && (self.children || info.parent.is_none())
            && self.name.as_ref().is_none_or(named)
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
