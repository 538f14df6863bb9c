//! What is asked of the writer, and how it is written: one transaction for a group of requests.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::adopt::adopt;
use super::ends::{End, Ends};
use crate::chain::{self, Digest, Head};
use crate::schema::{MAX_NUMBER, journal_key};
use crate::{
    BlobHash, Delivery, Entry, Hook, InboxEntry, NewRun, RunStatus, RunUpdate, Settled, Store, StoreError,
    blobs, encode, inbox, index, outbox,
};

/// A request as the writer takes it: encoded and hashed by the sender, so that the writer only writes.
#[derive(Debug)]
pub(crate) struct Request {
    op: Op,
    rows: Vec<Row>,
    blobs: Vec<(BlobHash, Vec<u8>)>,
    settled: Vec<Settled>,
}

#[derive(Debug)]
enum Op {
    Create(NewRun),
    Append(String, Option<RunUpdate>),
    Library,
    Blobs,
    PutInboxEntry(InboxEntry),
    RemoveInboxEntry(String),
    Hooks(String, Vec<Hook>),
    /// Whether it is to be tried again, else it is owed no more.
    Delivery(Delivery, bool),
    Adopt(Store, Adopted),
}

/// What is taken over of another store.
#[derive(Debug)]
pub(crate) struct Adopted {
    /// Runs that are here already and have come further there: the first event that is missing here.
    pub(crate) further: Vec<(String, u64)>,
    /// Runs that are not here, the source of a fork before it.
    pub(crate) new: Vec<String>,
}

#[derive(Debug)]
struct Row {
    n: u64,
    at_ms: i64,
    body: Body,
    digest: Digest,
}

#[derive(Debug)]
enum Body {
    Plain(String),
    Encoded(String),
}

impl Row {
    /// What is stored of it: `TEXT` as it is, `BLOB` with references.
    fn body(&self) -> ValueRef<'_> {
        match &self.body {
            Body::Plain(json) => ValueRef::Text(json.as_bytes()),
            Body::Encoded(body) => ValueRef::Blob(body.as_bytes()),
        }
    }
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

    /// The same that settles entries of the inbox (E-43).
    pub(crate) fn settling(self, settled: Vec<Settled>) -> Self {
        Self { settled, ..self }
    }

    pub(crate) fn blob(hash: BlobHash, bytes: Vec<u8>) -> Self {
        Self::new(Op::Blobs, Vec::new()).with(hash, bytes)
    }

    pub(crate) fn put_inbox_entry(entry: InboxEntry) -> Self {
        Self::new(Op::PutInboxEntry(entry), Vec::new())
    }

    pub(crate) fn remove_inbox_entry(id: String) -> Self {
        Self::new(Op::RemoveInboxEntry(id), Vec::new())
    }

    pub(crate) fn hooks(owner: String, hooks: Vec<Hook>) -> Self {
        Self::new(Op::Hooks(owner, hooks), Vec::new())
    }

    pub(crate) fn delivery(delivery: Delivery, again: bool) -> Self {
        Self::new(Op::Delivery(delivery, again), Vec::new())
    }

    /// Runs of another store, with all its contents.
    pub(crate) fn adopt(from: Store, adopted: Adopted) -> Self {
        Self::new(Op::Adopt(from, adopted), Vec::new())
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
                None => {
                    let digest = Digest::plain(json.as_bytes());
                    Row { n, at_ms, body: Body::Plain(json), digest }
                }
                Some(encoded) => {
                    blobs.extend(encoded.blobs);
                    let digest = Digest::encoded(encoded.body.as_bytes());
                    Row { n, at_ms, body: Body::Encoded(encoded.body), digest }
                }
            })
            .collect();
        Self { op, rows, blobs, settled: Vec::new() }
    }

    /// Whether somebody is told that a run has come to a stop once this is written.
    pub(super) fn is_an_end(&self) -> bool {
        matches!(&self.op, Op::Append(_, Some(RunUpdate { status: Some(_), .. })) | Op::Adopt(..))
    }

    /// How large it is, roughly.
    pub(super) fn bytes(&self) -> usize {
        let rows = self.rows.iter().map(|row| match &row.body {
            Body::Plain(body) | Body::Encoded(body) => body.len(),
        });
        let entry = if let Op::PutInboxEntry(entry) = &self.op { entry.body.len() } else { 0 };
        rows.sum::<usize>() + entry + self.blobs.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }
}

/// Writes a group in one transaction. `Ok` has one answer a request: a request that is wrong by itself is refused
/// alone. `Err` means that nothing of the group was kept.
pub(super) fn commit<'a>(
    conn: &Connection,
    db: &Path,
    ends: &mut Ends,
    group: impl Iterator<Item = &'a Request>,
) -> Result<Vec<Result<(), StoreError>>, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let result =
        conn.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([])).map_err(sql).and_then(
            |_| {
                ends.begin(conn, db)?;
                let answers = group
                    .map(|request| match apply(conn, db, ends, request) {
                        Err(error) if !error.is_refusal() => Err(error),
                        answer => Ok(answer),
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                conn.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])).map_err(sql)?;
                Ok(answers)
            },
        );
    if result.is_err() {
        ends.forget();
        if !conn.is_autocommit() {
            // SQLite has rolled back by itself after most errors. If this fails too, so will the next BEGIN, which
            // comes here again.
            let _ = conn.execute_batch("ROLLBACK");
        }
    }
    result
}

/// The journal that a request writes to.
struct Target<'r> {
    key: i64,
    /// The end as it was noted last; `None`: it is noted whatever comes.
    noted: Option<Head>,
    head: Head,
    /// The run whose end is remembered.
    remembered: Option<&'r str>,
}

/// Writes one request. Everything that could refuse it is checked before the first row is written.
pub(super) fn apply(
    conn: &Connection,
    db: &Path,
    ends: &mut Ends,
    request: &Request,
) -> Result<(), StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let target = match &request.op {
        Op::Blobs => None,
        Op::PutInboxEntry(entry) => {
            inbox::insert(conn, db, entry)?;
            None
        }
        Op::RemoveInboxEntry(id) => {
            inbox::delete(conn, id).map_err(sql)?;
            None
        }
        Op::Hooks(owner, hooks) => {
            outbox::set(conn, owner, hooks).map_err(sql)?;
            None
        }
        Op::Delivery(delivery, again) => {
            outbox::change(conn, db, delivery, *again)?;
            None
        }
        Op::Adopt(from, adopted) => {
            adopt(conn, db, ends, from, adopted)?;
            None
        }
        Op::Library => {
            let head = chain::noted(conn, chain::LIBRARY).map_err(sql)?.unwrap_or(Head::EMPTY);
            for (expected, row) in (head.n + 1..).zip(&request.rows) {
                if row.n != expected || i64::try_from(row.n).is_err() {
                    return Err(StoreError::LibraryChanged { expected, got: row.n });
                }
            }
            Some(Target { key: chain::LIBRARY, noted: None, head, remembered: None })
        }
        Op::Append(id, update) => {
            let End { key, noted, head } = ends.of(conn, db, id)?;
            in_order(id, head.n + 1, &request.rows)?;
            if let Some(update) = update {
                known(conn, db, update.graph)?;
                index::update(conn, db, key, update)?;
                if let (Some((status, _)), Some(last)) = (update.status, request.rows.last())
                    && status != RunStatus::Running
                {
                    outbox::owe(conn, (key, last.n, last.at_ms), status).map_err(sql)?;
                }
            } else if head.since.is_none() && !request.rows.is_empty() {
                // Of an older format: from here on its row proves itself, too.
                index::update(conn, db, key, &RunUpdate::default())?;
            }
            let noted = (!request.is_an_end()).then_some(noted);
            Some(Target { key, noted, head, remembered: Some(id) })
        }
        Op::Create(run) => {
            let (key, head) = create(conn, db, ends, run, request)?;
            Some(Target { key, noted: None, head, remembered: Some(&run.id) })
        }
    };
    for (hash, bytes) in &request.blobs {
        blobs::insert(conn, *hash, bytes).map_err(sql)?;
    }
    inbox::settle(conn, &request.settled).map_err(sql)?;
    match target {
        Some(target) => append(conn, db, ends, request, target),
        None => Ok(()),
    }
}

/// Writes a request's events.
fn append(
    conn: &Connection,
    db: &Path,
    ends: &mut Ends,
    request: &Request,
    target: Target<'_>,
) -> Result<(), StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let Target { key, noted, mut head, remembered } = target;
    let insert = if matches!(request.op, Op::Library) { INSERT_LIBRARY } else { INSERT };
    let mut insert = conn.prepare_cached(insert).map_err(sql)?;
    for row in &request.rows {
        let hash = head.push(key, row.n, row.at_ms, row.digest);
        // Without the check SQLite would choose a key by itself. The library is run 0: its keys are its numbers.
        let key = journal_key(key, row.n).ok_or_else(|| too_many(db))?;
        insert.execute((key, row.at_ms, ToSqlOutput::Borrowed(row.body()), hash)).map_err(sql)?;
    }
    let noted = match noted {
        Some(noted) if !head.is_far_from(noted) => noted,
        _ => {
            chain::note(conn, key, head).map_err(sql)?;
            head
        }
    };
    match remembered {
        Some(run) if request.is_an_end() => ends.ended(run),
        Some(run) => ends.moved(run, End { key, noted, head }),
        None => {}
    }
    Ok(())
}

const INSERT: &str = "INSERT INTO journal (key, at_ms, body, hash) VALUES (?1, ?2, ?3, ?4)";
const INSERT_LIBRARY: &str = "INSERT INTO library (n, at_ms, body, hash) VALUES (?1, ?2, ?3, ?4)";

fn create(
    conn: &Connection,
    db: &Path,
    ends: &mut Ends,
    run: &NewRun,
    request: &Request,
) -> Result<(i64, Head), StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    // C-12: an id names one run for ever.
    if index::key(conn, &run.id).map_err(sql)?.is_some() {
        return Err(StoreError::AlreadyExists { run: run.id.clone() });
    }
    let mut head = Head::EMPTY;
    let mut parent = None;
    if let Some(fork) = &run.fork {
        let End { key, head: Head { n: last, .. }, .. } = ends.of(conn, db, &fork.run)?;
        if fork.events > last {
            let run = fork.run.clone();
            return Err(StoreError::OutOfOrder { run, expected: last, got: fork.events });
        }
        let hash = chain::hash_of(conn, key, fork.events, |key| index::parent(conn, key)).map_err(sql)?;
        head = Head { n: fork.events, since: None, hash };
        parent = Some(key);
    }
    head.since = Some(head.n + 1);
    in_order(&run.id, head.n + 1, &request.rows)?;
    if !request.blobs.iter().any(|(hash, _)| Some(*hash) == run.graph) {
        known(conn, db, run.graph)?;
    }
    let key = index::insert(conn, run, parent).map_err(sql)?;
    Ok((key, head))
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
