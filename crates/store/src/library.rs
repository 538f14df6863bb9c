//! The tool library's journal: one for the whole state folder, beside those of the runs.
//!
//! What is handed in at once, events and the contents that they name, becomes visible at once (V-10): a crash leaves the
//! library as it was before or as it is after. Whoever decided on events by an older state of it is refused.

use rusqlite::{Connection, OptionalExtension};

use crate::chain::{self, Body, Chain, Head, Link, Stored};
use crate::store::Inner;
use crate::{BlobHash, Commit, Entry, Store, StoreError, blobs, encode};

/// Where the library's journal ends.
fn head(conn: &Connection) -> rusqlite::Result<Head> {
    Ok(chain::noted(conn, chain::LIBRARY)?.unwrap_or(Head::EMPTY))
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
        self.inner().read(|conn| head(conn).map(|head| head.n).map_err(|error| self.inner().sql(&error)))
    }

    /// Whether a content is stored, and is what was stored: one that was damaged is mended by storing it again (E-44).
    pub fn has_blob(&self, hash: BlobHash) -> Result<bool, StoreError> {
        self.inner().read(|conn| match blobs::load(conn, self.inner().db(), hash) {
            Ok(_) => Ok(true),
            Err(StoreError::UnknownBlob { .. } | StoreError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        })
    }
}

fn read(store: &Inner, conn: &Connection, from: u64) -> Result<Vec<Entry>, StoreError> {
    let sql = |error| store.sql(&error);
    let damaged = |n: u64, why: &str| {
        let before = n.saturating_sub(1);
        store
            .damaged(format!("event {n} of the tool library: {why}; the {before} events before it are sound"))
    };
    // First, so that what is appended meanwhile is no more than it says.
    let head = head(conn).map_err(sql)?;
    let from = from.max(1);
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let before: Option<Link> = conn
        .prepare_cached("SELECT hash FROM library WHERE n = ?1")
        .and_then(|mut query| query.query_row([number(from - 1)], |row| row.get(0)).optional())
        .map_err(sql)?
        .flatten();
    let mut chain = Chain::new(chain::LIBRARY, head.since, before);
    let mut query = conn
        .prepare_cached("SELECT n, at_ms, body, hash FROM library WHERE n >= ?1 ORDER BY n")
        .map_err(sql)?;
    let mut rows = query.query([number(from)]).map_err(sql)?;
    let mut entries = Vec::new();
    for n in from.. {
        let broken = |why: &str| damaged(n, why);
        let Some(row) = rows.next().map_err(|error| broken(&error.to_string()))? else {
            return if n > head.n { Ok(entries) } else { Err(broken("it is missing")) };
        };
        let found: i64 = row.get(0).map_err(sql)?;
        if u64::try_from(found) != Ok(n) {
            return Err(broken(&format!("it is missing: event {found} stands in its place")));
        }
        let at_ms = row.get(1).map_err(|_| broken("its time is none"))?;
        let (body, hash) = (row.get_ref(2).map_err(sql)?, row.get_ref(3).map_err(sql)?);
        let body = chain.follow(&Stored { n, at_ms, body, hash }).map_err(broken)?;
        if n == head.n && head.since.is_some() && chain.last() != head.hash {
            return Err(broken("the index has noted another hash for it"));
        }
        let json = match body {
            Body::Plain(json) => json.to_owned(),
            Body::Encoded(body) => encode::decode(
                body,
                |hash, out| {
                    let bytes = blobs::load(conn, store.db(), hash).map_err(|error| broken(&error.what()))?;
                    let text = String::from_utf8(bytes).map_err(|_| broken("its content is no text"))?;
                    out.push_str(&text);
                    Ok(())
                },
                || broken("it can't be decoded"),
            )?,
        };
        entries.push(Entry { n, at_ms, json });
    }
    Ok(entries)
}
