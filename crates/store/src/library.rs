//! The tool library's journal: one for the whole state folder, beside those of the runs.
//!
//! What is handed in at once, events and the contents that they name, becomes visible at once (V-10): a crash leaves the
//! library as it was before or as it is after. Whoever decided on events by an older state of it is refused.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};

use crate::store::Inner;
use crate::{BlobHash, Commit, Entry, Store, StoreError, blobs, encode};

/// Number of the library's last event; 0 while it has none.
pub(crate) fn last(conn: &Connection) -> rusqlite::Result<u64> {
    let n: Option<i64> = conn
        .prepare_cached("SELECT max(n) FROM library")?
        .query_row([], |row| row.get(0))
        .optional()?
        .flatten();
    Ok(n.map_or(0, |n| n.unsigned_abs()))
}

impl Store {
    /// Appends to the library's journal, with contents that are stored under their hashes in the same commit (V-10).
    ///
    /// Fails with [`StoreError::LibraryChanged`] unless the entries continue the journal: somebody else was faster. Read
    /// the library again, and decide anew.
    pub fn append_library(&self, entries: Vec<Entry>, contents: Vec<Vec<u8>>) -> Commit {
        self.send(crate::writer::Request::library(entries, contents))
    }

    /// The library's events from number `from` on (1 is the first), in order.
    pub fn library(&self, from: u64) -> Result<Vec<Entry>, StoreError> {
        self.inner().read(|conn| read(self.inner(), conn, from))
    }

    /// Number of the library's last event; 0 while it has none.
    pub fn last_library_event(&self) -> Result<u64, StoreError> {
        self.inner().read(|conn| last(conn).map_err(|error| self.inner().sql(&error)))
    }

    /// Whether a content is stored.
    pub fn has_blob(&self, hash: BlobHash) -> Result<bool, StoreError> {
        self.inner().read(|conn| blobs::exists(conn, hash).map_err(|error| self.inner().sql(&error)))
    }
}

fn read(store: &Inner, conn: &Connection, from: u64) -> Result<Vec<Entry>, StoreError> {
    let sql = |error| store.sql(&error);
    let mut query =
        conn.prepare_cached("SELECT n, at_ms, body FROM library WHERE n >= ?1 ORDER BY n").map_err(sql)?;
    let from = from.max(1);
    let mut rows = query.query([i64::try_from(from).unwrap_or(i64::MAX)]).map_err(sql)?;
    let mut entries = Vec::new();
    for expected in from.. {
        let Some(row) = rows.next().map_err(sql)? else { break };
        let n: i64 = row.get(0).map_err(sql)?;
        if u64::try_from(n) != Ok(expected) {
            return Err(store.damaged(format!("the library has event {n} where event {expected} must be")));
        }
        let text = |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes).map(str::to_owned);
            text.map_err(|_| store.damaged(format!("event {n} of the library is not text")))
        };
        let json = match row.get_ref(2).map_err(sql)? {
            ValueRef::Text(json) => text(json)?,
            ValueRef::Blob(body) => encode::decode(
                &text(body)?,
                |hash, out| {
                    out.push_str(&text(&blobs::load(conn, store.db(), hash)?)?);
                    Ok(())
                },
                || store.damaged(format!("event {n} of the library cannot be decoded")),
            )?,
            _ => return Err(store.damaged(format!("event {n} of the library is not text"))),
        };
        entries.push(Entry { n: expected, at_ms: row.get(1).map_err(sql)?, json });
    }
    Ok(entries)
}
