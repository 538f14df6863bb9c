//! Where the journals end that the writer writes to, so that a commit does not look for what the one before has found.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::Connection;

use crate::chain::{self, Head};
use crate::{StoreError, index, schema};

/// As many runs as are remembered: a run that is still written to and was forgotten is looked up again.
const RUNS: usize = 65_536;

/// The ends of journals, as they are in the transaction that is open.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// What SQLite says of the database as this connection saw it last: another number if somebody else has written to it.
    version: Option<i64>,
    runs: HashMap<String, End>,
}

/// The end of a run's journal.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    /// Stands for the run.
    pub(super) key: i64,
    /// The end as it was noted last (see [`chain::noted`]).
    pub(super) noted: Head,
    /// The end as it is.
    pub(super) head: Head,
}

impl Ends {
    /// Forgets everything if somebody else has written to the database, who may even have changed its format. To be called
    /// once in each transaction, before anything else.
    pub(super) fn begin(&mut self, conn: &Connection, db: &Path) -> Result<(), StoreError> {
        let version = conn
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut query| query.query_row([], |row| row.get(0)))
            .map_err(|error| StoreError::from_sqlite(db, &error))?;
        if self.version != Some(version) {
            self.forget();
            schema::still_newest(conn, db)?;
            self.version = Some(version);
        }
        Ok(())
    }

    /// Forgets everything: what was written may not have been kept.
    pub(super) fn forget(&mut self) {
        self.version = None;
        self.forget_runs();
    }

    /// Forgets the ends of all runs: some may not have been kept.
    pub(super) fn forget_runs(&mut self) {
        self.runs.clear();
    }

    /// The end of a run's journal.
    pub(super) fn of(&mut self, conn: &Connection, db: &Path, run: &str) -> Result<End, StoreError> {
        if let Some(end) = self.runs.get(run) {
            return Ok(*end);
        }
        let sql = |error| StoreError::from_sqlite(db, &error);
        let (key, _) = index::known_key(conn, db, run)?;
        let noted = chain::noted(conn, key).map_err(sql)?.ok_or_else(|| {
            StoreError::broken(db, run, None, "the index does not know where its journal ends")
        })?;
        Ok(End { key, noted, head: chain::end(conn, key, noted).map_err(sql)? })
    }

    /// Remembers it.
    pub(super) fn moved(&mut self, run: &str, end: End) {
        match self.runs.get_mut(run) {
            Some(known) => *known = end,
            None => {
                if self.runs.len() >= RUNS {
                    self.runs.clear();
                }
                self.runs.insert(run.to_owned(), end);
            }
        }
    }

    /// Nothing more is expected of a run that has come to a stop.
    pub(super) fn ended(&mut self, run: &str) {
        self.runs.remove(run);
    }
}
