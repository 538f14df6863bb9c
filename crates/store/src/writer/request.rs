//! What is asked of the writer, and how it is written: one transaction for a group of requests.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use crate::schema::{self, MAX_NUMBER, journal_key, number_of};
use crate::{BlobHash, Entry, NewRun, RunUpdate, StoreError, blobs, encode, index, library};

/// A request as the writer takes it: encoded and hashed by the sender, so that the writer only writes.
#[derive(Debug)]
pub(crate) struct Request {
    op: Op,
    rows: Vec<Row>,
    blobs: Vec<(BlobHash, Vec<u8>)>,
}

#[derive(Debug)]
enum Op {
    Create(NewRun),
    Append(String, Option<RunUpdate>),
    Library,
    Blobs,
}

#[derive(Debug)]
struct Row {
    n: u64,
    at_ms: i64,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Plain(String),
    Encoded(String),
}

impl Request {
    pub(crate) fn create(run: NewRun, entries: Vec<Entry>) -> Self {
        Self::new(Op::Create(run), entries)
    }

    /// The same with a content that comes with it.
    pub(crate) fn with(mut self, hash: BlobHash, bytes: Vec<u8>) -> Self {
        self.blobs.push((hash, bytes));
        self
    }

    pub(crate) fn append(run: String, entries: Vec<Entry>, update: Option<RunUpdate>) -> Self {
        Self::new(Op::Append(run, update), entries)
    }

    pub(crate) fn blob(hash: BlobHash, bytes: Vec<u8>) -> Self {
        Self { op: Op::Blobs, rows: Vec::new(), blobs: vec![(hash, bytes)] }
    }

    /// Events of the library, with the contents that they name.
    pub(crate) fn library(entries: Vec<Entry>, contents: Vec<Vec<u8>>) -> Self {
        let request = Self::new(Op::Library, entries);
        contents.into_iter().fold(request, |request, bytes| request.with(BlobHash::of(&bytes), bytes))
    }

    fn new(op: Op, entries: Vec<Entry>) -> Self {
        let mut blobs = Vec::new();
        let rows = entries
            .into_iter()
            .map(|Entry { n, at_ms, json }| match encode::encode(&json) {
                None => Row { n, at_ms, body: Body::Plain(json) },
                Some(encoded) => {
                    blobs.extend(encoded.blobs);
                    Row { n, at_ms, body: Body::Encoded(encoded.body) }
                }
            })
            .collect();
        Self { op, rows, blobs }
    }

    /// How large it is, roughly.
    pub(super) fn bytes(&self) -> usize {
        let rows = self.rows.iter().map(|row| match &row.body {
            Body::Plain(body) | Body::Encoded(body) => body.len(),
        });
        rows.sum::<usize>() + self.blobs.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }
}

/// Writes a group in one transaction. `Ok` has one answer a request: a request that is wrong by itself is refused
/// alone. `Err` means that nothing of the group was kept.
pub(super) fn commit<'a>(
    conn: &Connection,
    db: &Path,
    group: impl Iterator<Item = &'a Request>,
) -> Result<Vec<Result<(), StoreError>>, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let result =
        conn.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([])).map_err(sql).and_then(
            |_| {
                schema::still_newest(conn, db)?;
                let answers = group
                    .map(|request| match apply(conn, db, request) {
                        Err(error) if !error.is_refusal() => Err(error),
                        answer => Ok(answer),
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                conn.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])).map_err(sql)?;
                Ok(answers)
            },
        );
    if result.is_err() && !conn.is_autocommit() {
        // SQLite has rolled back by itself after most errors. If this fails too, so will the next BEGIN, which
        // comes here again.
        let _ = conn.execute_batch("ROLLBACK");
    }
    result
}

/// Writes one request. Everything that could refuse it is checked before the first row is written.
fn apply(conn: &Connection, db: &Path, request: &Request) -> Result<(), StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let key = match &request.op {
        Op::Blobs => None,
        Op::Library => {
            let next = library::last(conn).map_err(sql)? + 1;
            for (expected, row) in (next..).zip(&request.rows) {
                if row.n != expected || i64::try_from(row.n).is_err() {
                    return Err(StoreError::LibraryChanged { expected, got: row.n });
                }
            }
            None
        }
        Op::Append(id, update) => {
            let (key, shared) = index::key(conn, id)
                .map_err(sql)?
                .ok_or_else(|| StoreError::UnknownRun { run: id.clone() })?;
            if !request.rows.is_empty() {
                in_order(id, last(conn, key, shared).map_err(sql)? + 1, &request.rows)?;
            }
            if let Some(update) = update {
                known(conn, db, update.graph)?;
                index::update(conn, key, update).map_err(sql)?;
            }
            Some(key)
        }
        Op::Create(run) => Some(create(conn, db, run, request)?),
    };
    for (hash, bytes) in &request.blobs {
        blobs::insert(conn, *hash, bytes).map_err(sql)?;
    }
    if matches!(request.op, Op::Library) {
        return insert_library(conn, &request.rows).map_err(sql);
    }
    let Some(key) = key else { return Ok(()) };
    let mut insert =
        conn.prepare_cached("INSERT INTO journal (key, at_ms, body) VALUES (?1, ?2, ?3)").map_err(sql)?;
    for row in &request.rows {
        // Without the check SQLite would choose a key by itself.
        let key = journal_key(key, row.n).ok_or_else(|| too_many(db))?;
        match &row.body {
            Body::Plain(json) => insert.execute((key, row.at_ms, json)),
            Body::Encoded(body) => insert.execute((key, row.at_ms, body.as_bytes())),
        }
        .map_err(sql)?;
    }
    Ok(())
}

/// Writes rows of the library's journal, whose numbers were checked.
fn insert_library(conn: &Connection, rows: &[Row]) -> rusqlite::Result<()> {
    let mut insert = conn.prepare_cached("INSERT INTO library (n, at_ms, body) VALUES (?1, ?2, ?3)")?;
    for row in rows {
        let n = row.n.cast_signed();
        match &row.body {
            Body::Plain(json) => insert.execute((n, row.at_ms, json))?,
            Body::Encoded(body) => insert.execute((n, row.at_ms, body.as_bytes()))?,
        };
    }
    Ok(())
}

fn create(conn: &Connection, db: &Path, run: &NewRun, request: &Request) -> Result<i64, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    // C-12: an id names one run for ever.
    if index::key(conn, &run.id).map_err(sql)?.is_some() {
        return Err(StoreError::AlreadyExists { run: run.id.clone() });
    }
    let mut shared = 0;
    let mut parent = None;
    if let Some(fork) = &run.fork {
        let (key, inherited) = index::key(conn, &fork.run)
            .map_err(sql)?
            .ok_or_else(|| StoreError::UnknownRun { run: fork.run.clone() })?;
        let last = last(conn, key, inherited).map_err(sql)?;
        if fork.events > last {
            let run = fork.run.clone();
            return Err(StoreError::OutOfOrder { run, expected: last, got: fork.events });
        }
        shared = fork.events;
        parent = Some(key);
    }
    in_order(&run.id, shared + 1, &request.rows)?;
    if !request.blobs.iter().any(|(hash, _)| Some(*hash) == run.graph) {
        known(conn, db, run.graph)?;
    }
    index::insert(conn, run, parent).map_err(sql)
}

/// Number of a run's last event, `shared` if it has none of its own.
pub(crate) fn last(conn: &Connection, run: i64, shared: u64) -> rusqlite::Result<u64> {
    let key: Option<i64> = conn
        .prepare_cached("SELECT key FROM journal WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1")?
        .query_row((journal_key(run, 0), journal_key(run, MAX_NUMBER)), |row| row.get(0))
        .optional()?;
    Ok(key.map_or(shared, number_of))
}

fn too_many(db: &Path) -> StoreError {
    let why = "it has more runs than its format can number".to_owned();
    StoreError::Full { path: db.to_owned(), why }
}

/// Refuses entries that do not follow each other from `expected` on.
fn in_order(run: &str, expected: u64, rows: &[Row]) -> Result<(), StoreError> {
    for (expected, row) in (expected..).zip(rows) {
        if row.n != expected || row.n > MAX_NUMBER {
            return Err(StoreError::OutOfOrder { run: run.to_owned(), expected, got: row.n });
        }
    }
    Ok(())
}

/// Refuses a graph that is not stored (E-05).
fn known(conn: &Connection, db: &Path, graph: Option<BlobHash>) -> Result<(), StoreError> {
    match graph {
        Some(hash) if !blobs::exists(conn, hash).map_err(|error| StoreError::from_sqlite(db, &error))? => {
            Err(StoreError::UnknownBlob { hash: hash.to_string() })
        }
        _ => Ok(()),
    }
}
