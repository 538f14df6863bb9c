//! What is stored proves itself (E-44): each event has a hash of itself and of the hash before it, the index notes where each
//! journal has come to, and each row of the run index is sealed.
//!
//! The hash is XXH3 with 64 bits: it finds what disks, memory and editors do to a file. It is no signature: who writes to
//! the file on purpose can write the hashes, too. Contents have SHA-256 for a name, and that is looked at when they are read.

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension};
use twox_hash::XxHash3_64;

use crate::Entry;
use crate::schema::{MAX_NUMBER, journal_key, number_of};

/// The run key under which `heads` has the library's journal.
pub(crate) const LIBRARY: i64 = 0;

/// After how many events the end of a run's journal is noted, between its stops.
const NOTE_EVERY: u64 = 64;

/// The hash of an event and of everything before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link(u64);

/// The hash of an event's stored body, which tells a plain text from one with references.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) fn plain(body: &[u8]) -> Self {
        Self(XxHash3_64::oneshot(body))
    }

    pub(crate) fn encoded(body: &[u8]) -> Self {
        Self(!XxHash3_64::oneshot(body))
    }
}

impl Link {
    /// What the first hashed event of a journal is chained to, where no hash is before it.
    fn root(run: i64) -> Self {
        Self(XxHash3_64::oneshot(format!("selvedge journal {run}").as_bytes()))
    }

    /// The hash of the event behind this one.
    pub(crate) fn next(self, n: u64, at_ms: i64, body: Digest) -> Self {
        let parts = [self.0, n, at_ms.cast_unsigned(), body.0].map(u64::to_be_bytes);
        Self(XxHash3_64::oneshot(parts.as_flattened()))
    }

    /// The hash of a row: of its values, each with its length.
    pub(crate) fn seal<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> Self {
        let mut bytes = Vec::with_capacity(512);
        for value in values {
            let length = value.map_or(u64::MAX, |value| value.len() as u64);
            bytes.extend(length.to_be_bytes());
            bytes.extend(value.unwrap_or_default());
        }
        Self(XxHash3_64::oneshot(&bytes))
    }
}

impl ToSql for Link {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.0.cast_signed()))
    }
}

impl FromSql for Link {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64().map(|hash| Self(hash.cast_unsigned()))
    }
}

/// The chain of a run's events as it is told outside of a state folder, where a run has an id and no number.
#[derive(Debug, Clone, Copy)]
pub struct Proof(Link);

impl Proof {
    /// What the first event of a run's own is chained to.
    pub fn of(run: &str) -> Self {
        Self(Link(XxHash3_64::oneshot(run.as_bytes())))
    }

    /// The hash of the next event, as 16 hexadecimal digits.
    pub fn push(&mut self, entry: &Entry) -> String {
        self.0 = self.0.next(entry.n, entry.at_ms, Digest::plain(entry.json.as_bytes()));
        format!("{:016x}", self.0.0)
    }
}

/// The end of a journal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    /// Number of the last event.
    pub(crate) n: u64,
    /// The first event that has a hash.
    pub(crate) since: Option<u64>,
    /// The last event's hash.
    pub(crate) hash: Option<Link>,
}

/// The end of a journal as it was noted last. The journal may have come further since (see [`end`]), never less far.
pub(crate) fn noted(conn: &Connection, run: i64) -> rusqlite::Result<Option<Head>> {
    conn.prepare_cached("SELECT n, since, hash FROM heads WHERE run = ?1")?
        .query_row([run], |row| {
            let since: Option<i64> = row.get(1)?;
            let n = row.get::<_, i64>(0)?.unsigned_abs();
            Ok(Head { n, since: since.map(i64::unsigned_abs), hash: row.get(2)? })
        })
        .optional()
}

/// Where the journal of a run ends whose end was noted as `noted`.
pub(crate) fn end(conn: &Connection, run: i64, noted: Head) -> rusqlite::Result<Head> {
    let (Some(first), Some(last)) = (journal_key(run, noted.n + 1), journal_key(run, MAX_NUMBER)) else {
        return Ok(noted);
    };
    let further = conn
        .prepare_cached(
            "SELECT key, hash FROM journal WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1",
        )?
        .query_row((first, last), |row| {
            Ok(Head { n: number_of(row.get(0)?), since: noted.since, hash: row.get(1)? })
        })
        .optional()?;
    Ok(further.unwrap_or(noted))
}

/// Notes the end of a journal.
pub(crate) fn note(conn: &Connection, run: i64, head: Head) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO heads (run, n, since, hash) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (run) DO UPDATE SET n = excluded.n, since = excluded.since, hash = excluded.hash",
    )?
    .execute((run, head.n.cast_signed(), head.since.map(u64::cast_signed), head.hash))?;
    Ok(())
}

impl Head {
    /// That of a journal without events.
    pub(crate) const EMPTY: Self = Self { n: 0, since: None, hash: None };

    /// Whether a journal whose noted end is `noted` has come so far that it is to be noted anew. Not at every commit: the
    /// row is in a page of its own, which each commit would write.
    pub(crate) fn is_far_from(&self, noted: Self) -> bool {
        self.n - noted.n >= NOTE_EVERY || noted.since != self.since
    }

    /// Chains one more event to the journal of `run`, and returns its hash.
    pub(crate) fn push(&mut self, run: i64, n: u64, at_ms: i64, body: Digest) -> Link {
        let next = self.hash.unwrap_or_else(|| Link::root(run)).next(n, at_ms, body);
        *self = Self { n, since: self.since.or(Some(n)), hash: Some(next) };
        next
    }
}

/// The stored hash of event `n` of a run, which may be one of its source's: `parent` says which that is.
pub(crate) fn hash_of(
    conn: &Connection,
    run: i64,
    n: u64,
    parent: impl Fn(i64) -> rusqlite::Result<Option<(i64, u64)>>,
) -> rusqlite::Result<Option<Link>> {
    let mut owner = run;
    while let Some((parent, shared)) = parent(owner)?
        && n <= shared
        && parent < owner
    {
        owner = parent;
    }
    let Some(key) = journal_key(owner, n) else { return Ok(None) };
    let hash = conn
        .prepare_cached("SELECT hash FROM journal WHERE key = ?1")?
        .query_row([key], |row| row.get::<_, Option<Link>>(0))
        .optional()?;
    Ok(hash.flatten())
}

/// Follows a stretch of a journal, event by event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain {
    run: i64,
    since: Option<u64>,
    /// The hash of the event before.
    last: Option<Link>,
}

/// An event as it is stored.
pub(crate) struct Stored<'a> {
    pub(crate) n: u64,
    pub(crate) at_ms: i64,
    pub(crate) body: ValueRef<'a>,
    pub(crate) hash: ValueRef<'a>,
}

impl Chain {
    /// The events of `run`, of which those from `since` on have hashes; `last` is the hash before them.
    pub(crate) fn new(run: i64, since: Option<u64>, last: Option<Link>) -> Self {
        Self { run, since, last }
    }

    /// The hash of the last event that was followed.
    pub(crate) fn last(&self) -> Option<Link> {
        self.last
    }

    /// The text of the next event, if it is what was written; else why it is not. A body with references comes as
    /// [`Body::Encoded`].
    pub(crate) fn follow<'a>(&mut self, event: &Stored<'a>) -> Result<Body<'a>, &'static str> {
        let (body, digest) = match event.body {
            ValueRef::Text(text) => (Body::Plain(utf8(text)?), Digest::plain(text)),
            ValueRef::Blob(text) => (Body::Encoded(utf8(text)?), Digest::encoded(text)),
            _ => return Err("it is no text"),
        };
        let hashed = self.since.is_some_and(|since| event.n >= since);
        let stored = match event.hash {
            ValueRef::Null => None,
            value => Some(Link::column_result(value).map_err(|_| CHANGED)?),
        };
        if !hashed {
            // Of an older format: as it is.
            self.last = None;
            return if stored.is_none() { Ok(body) } else { Err(CHANGED) };
        }
        let before = self.last.unwrap_or_else(|| Link::root(self.run));
        let next = before.next(event.n, event.at_ms, digest);
        if stored != Some(next) {
            return Err(CHANGED);
        }
        self.last = Some(next);
        Ok(body)
    }
}

/// A stored body.
pub(crate) enum Body<'a> {
    Plain(&'a str),
    Encoded(&'a str),
}

const CHANGED: &str = "it is not what was written: its hash is another one";

fn utf8(bytes: &[u8]) -> Result<&str, &'static str> {
    std::str::from_utf8(bytes).map_err(|_| "it is not what was written: it is no text")
}
