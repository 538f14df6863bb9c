//! The format of `selvedge.db`, and how older formats become the newest one.
//!
//! The file is marked by `application_id` ("Slvg"); `user_version` is the format's number.
//!
//! # Format 1
//!
//! **`runs`**: the run index, one row a run.
//! - `key`: small integer that stands for the run in `journal`; never shown.
//! - `id`: the run's public id, unique (C-12).
//! - `name`, `dialect`, `status`, `started_ms`, `ended_ms`, `usage` (JSON): what `runs` lists (C-15).
//! - `graph`: hash of the compiled graph, which must be in `blobs` (E-05); `options`: JSON of what the run was
//!   started with (C-10); `scripted`: 0 or 1 (C-07).
//! - `parent`, `parent_events`: for a forked run (E-19) the run it shares its first `parent_events` events with.
//!
//! Invariants: `status` is one of [`crate::RunStatus`]'s names; `parent` is an older row, which had at least
//! `parent_events` events. Status and usage are a cache for listing; the journal is the truth (E-03).
//!
//! **`journal`**: one row an event.
//! - `key`: `runs.key` × 2³² + `n`. So one run's events are neighbours in order, a row needs no other index, and
//!   an event of up to about 4 KB stays within one page (in a `WITHOUT ROWID` table that limit is 1 KB).
//! - `at_ms`: when.
//! - `body`: `TEXT`: the event's JSON as it is; `BLOB`: the event's JSON with references to `blobs`, see
//!   `encode.rs`.
//!
//! Invariants: rows are inserted, never changed or deleted. A run's numbers begin at `parent_events` + 1 (1 if it
//! is no fork) and have no gaps. Every referenced blob is there: it is written in the same transaction or earlier.
//!
//! **`blobs`**: contents by SHA-256. `hash` is the hash of `data`. Never changed or deleted.
//!
//! # Format 2
//!
//! **`library`**: the tool library's journal (A-17), one row an event; `n` from 1 without gaps, `at_ms` and `body` as in
//! `journal`. Rows are inserted, never changed or deleted. Every version and call that an event names is in `blobs`.
//!
//! # Format 3
//!
//! What is stored proves itself (E-44), see `chain.rs`.
//!
//! **`journal.hash`**, **`library.hash`**: the hash of this event chained to the one before; null in events that an older
//! format has brought along.
//!
//! **`heads`**: one row a journal: `run` is `runs.key`, or 0 for the library; `n` and `hash` are those of its last event when that
//! was noted (where a run stops, and every so many events), so that an end that is lost is missed; `since` is its first event
//! that has a hash, null if none has.
//!
//! **`runs.seal`**: the hash of the row; null in rows that nothing has been written to since an older format.
//!
//! # Format 4
//!
//! **`inbox`**: commands of processes to runs that others drive (E-43), see `inbox.rs`; `id` is the sender's, `run` is
//! `runs.key`, `at_ms` when it was given, `body` the command, `reply` what became of it, null until then. Rows go once their sender has read
//! that, so there are few; the journal is the record.
//!
//! # Format 5
//!
//! **`runs.begun_by`**: the id of the run that began this one (E-39), null where a person did. The index on it has only the runs that have one.
//!
//! # Format 6
//!
//! **`hooks`**: who is told what becomes of runs (S-09), see `outbox.rs`: `id` is the server's name for it, `owner` stands for the files that say so, `statuses` are names of [`crate::RunStatus`]
//! between spaces.
//!
//! **`deliveries`**: what they are owed, one row for each of them and each event with which a run (`runs.key`) came to stand so, written with that event. Rows
//! go once they have arrived.
//!
//! # Format 7
//!
//! An index on `runs.status`: how many runs there are of each status is counted without their rows.
//!
//! # Format 8
//!
//! **`timers`**: when the next timer of a run that waits is due (E-37), one row for each such run (`runs.key`), written with the status.
//! It only says which runs to look at, and when: the journal has the timers.

use std::path::Path;

use rusqlite::Connection;

use crate::StoreError;

/// Marks the file as ours ("Slvg").
const APPLICATION_ID: i32 = 0x536c_7667;

/// `MIGRATIONS[i]` makes format `i + 1` of format `i`; format 0 is an empty file. A released migration is never
/// edited: a change of format is a new entry at the end.
pub(crate) const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE runs (
        key INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        dialect TEXT NOT NULL,
        status TEXT NOT NULL,
        started_ms INTEGER NOT NULL,
        ended_ms INTEGER,
        usage TEXT NOT NULL,
        graph BLOB,
        scripted INTEGER NOT NULL,
        options TEXT NOT NULL,
        parent INTEGER REFERENCES runs (key),
        parent_events INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX runs_by_start ON runs (started_ms);
    CREATE TABLE journal (
        key INTEGER PRIMARY KEY,
        at_ms INTEGER NOT NULL,
        body ANY NOT NULL
    ) STRICT;
    CREATE TABLE blobs (
        key INTEGER PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        data BLOB NOT NULL
    ) STRICT;
",
    "
    CREATE TABLE library (
        n INTEGER PRIMARY KEY,
        at_ms INTEGER NOT NULL,
        body ANY NOT NULL
    ) STRICT;
",
    "
    ALTER TABLE journal ADD COLUMN hash INTEGER;
    ALTER TABLE library ADD COLUMN hash INTEGER;
    ALTER TABLE runs ADD COLUMN seal INTEGER;
    CREATE TABLE heads (
        run INTEGER PRIMARY KEY,
        n INTEGER NOT NULL,
        since INTEGER,
        hash INTEGER
    ) STRICT;
    INSERT INTO heads (run, n)
        SELECT key, coalesce((SELECT max(key) & 4294967295 FROM journal
            WHERE key BETWEEN (runs.key << 32) AND (runs.key << 32 | 4294967295)), parent_events) FROM runs;
    INSERT INTO heads (run, n) SELECT 0, coalesce(max(n), 0) FROM library;
",
    "
    CREATE TABLE inbox (
        id TEXT PRIMARY KEY,
        run INTEGER NOT NULL,
        at_ms INTEGER NOT NULL,
        body TEXT NOT NULL,
        reply TEXT
    ) STRICT, WITHOUT ROWID;
",
    "
    ALTER TABLE runs ADD COLUMN begun_by TEXT;
    CREATE INDEX runs_by_parent ON runs (begun_by) WHERE begun_by IS NOT NULL;
",
    "
    CREATE TABLE hooks (
        id TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        statuses TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE deliveries (
        hook TEXT NOT NULL,
        run INTEGER NOT NULL,
        n INTEGER NOT NULL,
        status TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        attempts INTEGER NOT NULL,
        next_ms INTEGER NOT NULL,
        PRIMARY KEY (hook, run, n)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX deliveries_by_time ON deliveries (hook, next_ms);
",
    "
    CREATE INDEX runs_by_status ON runs (status);
",
    "
    CREATE TABLE timers (
        run INTEGER PRIMARY KEY,
        due_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX timers_by_time ON timers (due_ms);
",
];

/// What makes a database of an older format look like one of the newest to those who only read it: views of their own
/// connection, by format. Nothing is written, so that an archive nobody can write to can be looked at.
pub(crate) fn views(found: u32) -> Option<String> {
    let library = match found {
        1 => "SELECT NULL AS n, NULL AS at_ms, NULL AS body, NULL AS hash WHERE 0",
        2 => "SELECT n, at_ms, body, NULL AS hash FROM main.library",
        3 | 4 => {
            return Some("CREATE TEMP VIEW runs AS SELECT *, NULL AS begun_by FROM main.runs;".to_owned());
        }
        _ => return None,
    };
    Some(format!(
        "CREATE TEMP VIEW library AS {library};
         CREATE TEMP VIEW journal AS SELECT key, at_ms, body, NULL AS hash FROM main.journal;
         CREATE TEMP VIEW runs AS SELECT *, NULL AS seal, NULL AS begun_by FROM main.runs;
         CREATE TEMP VIEW heads AS
            SELECT key AS run, coalesce((SELECT max(j.key) & 4294967295 FROM main.journal j
                WHERE j.key BETWEEN (r.key << 32) AND (r.key << 32 | 4294967295)), parent_events) AS n,
                NULL AS since, NULL AS hash FROM main.runs r
            UNION ALL SELECT 0, coalesce((SELECT max(n) FROM temp.library), 0), NULL, NULL;"
    ))
}

/// Number of bits that an event's number takes in a journal key.
const NUMBER_BITS: u32 = 32;
/// Largest event number. The limit of events a run (E-28, `events`) is far below.
pub(crate) const MAX_NUMBER: u64 = (1 << NUMBER_BITS) - 1;

/// The journal key of event `n` of the run `run`, or `None` if the numbers are beyond the format.
pub(crate) fn journal_key(run: i64, n: u64) -> Option<i64> {
    let run = u32::try_from(run).ok().filter(|run| *run <= i32::MAX as u32)?;
    let n = i64::from(u32::try_from(n).ok()?);
    Some((i64::from(run) << NUMBER_BITS) | n)
}

/// The event number within a journal key.
pub(crate) fn number_of(key: i64) -> u64 {
    key as u64 & MAX_NUMBER
}

/// The format of an open database. Fails if it is newer than `supported`, damaged, or not ours.
pub(crate) fn version(conn: &Connection, db: &Path, supported: u32) -> Result<u32, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let damaged = |why: &str| StoreError::Damaged { path: db.to_owned(), why: why.to_owned() };
    let (found, application, tables) = marks(conn).map_err(sql)?;
    if application != i64::from(APPLICATION_ID) && (application != 0 || found != 0 || tables != 0) {
        return Err(damaged("it is a database of another program"));
    }
    if found == 0 && tables != 0 {
        return Err(damaged("it has tables but no format number"));
    }
    let found = u32::try_from(found).map_err(|_| damaged("its format number is negative"))?;
    if found > supported {
        return Err(StoreError::Newer { path: db.to_owned(), found, supported });
    }
    Ok(found)
}

/// Fails if a newer version has migrated the file since this process opened it. One look at one number, since
/// every transaction begins with it.
pub(crate) fn still_newest(conn: &Connection, db: &Path) -> Result<(), StoreError> {
    let newest = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    let found = conn
        .prepare_cached("PRAGMA user_version")
        .and_then(|mut query| query.query_row([], |row| row.get::<_, i64>(0)))
        .map_err(|error| StoreError::from_sqlite(db, &error))?;
    if found == i64::from(newest) { Ok(()) } else { version(conn, db, newest).map(drop) }
}

/// Brings an open database to the newest format of `migrations`, in one transaction: a crash leaves the old
/// format. Of two processes that open an old database at the same time one migrates and the other waits for it.
pub(crate) fn migrate(conn: &Connection, db: &Path, migrations: &[&str]) -> Result<(), StoreError> {
    let newest = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    if version(conn, db, newest)? == newest {
        return Ok(());
    }
    let sql = |error| StoreError::from_sqlite(db, &error);
    conn.execute_batch("BEGIN IMMEDIATE").map_err(sql)?;
    let result = version(conn, db, newest).and_then(|found| {
        for migration in migrations.iter().skip(found as usize) {
            conn.execute_batch(migration).map_err(sql)?;
        }
        conn.pragma_update(None, "application_id", APPLICATION_ID).map_err(sql)?;
        conn.pragma_update(None, "user_version", newest).map_err(sql)?;
        conn.execute_batch("COMMIT").map_err(sql)
    });
    if result.is_err() && !conn.is_autocommit() {
        // The first error is the one to report; an open transaction ends with the connection anyway.
        let _ = conn.execute_batch("ROLLBACK");
    }
    result
}

/// `user_version`, `application_id` and the number of tables, as of one moment: another process may be creating
/// the database right now. Counting the tables reads the schema, which finds most damage before anything is
/// written.
fn marks(conn: &Connection) -> rusqlite::Result<(i64, i64, i64)> {
    let moment = if conn.is_autocommit() { Some(conn.unchecked_transaction()?) } else { None };
    let read = |sql| conn.prepare_cached(sql)?.query_row([], |row| row.get(0));
    let marks = (
        read("PRAGMA user_version")?,
        read("PRAGMA application_id")?,
        read("SELECT count(*) FROM sqlite_schema")?,
    );
    moment.map_or(Ok(()), rusqlite::Transaction::commit)?;
    Ok(marks)
}

#[cfg(test)]
mod tests;
