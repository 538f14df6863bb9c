//! Reading a run's journal, page by page.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::schema::{MAX_NUMBER, journal_key, number_of};
use crate::store::Inner;
use crate::{BlobHash, Entry, StoreError, blobs, encode, index};

/// Entries read in one go.
const PAGE_ENTRIES: usize = 1024;
/// A page ends early when its text has grown to this many bytes.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Contents kept at hand for further references, in bytes.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// A run's entries in order; ends after an error. Every page is read by a query of its own, so a journal that is
/// read slowly holds nothing up, and entries appended meanwhile are seen.
#[derive(Debug)]
pub struct Journal {
    store: Arc<Inner>,
    /// The stretches still to be read, the next one last.
    segments: Vec<Segment>,
    /// Number of the next entry.
    next: u64,
    page: std::vec::IntoIter<Entry>,
    cache: Contents,
}

/// Events `..=to` of the run `key`. A forked run's journal is its source's first stretch and then its own (E-19).
#[derive(Debug, Clone, Copy)]
struct Segment {
    key: i64,
    to: u64,
}

impl Journal {
    /// The journal of a run from event `from` on.
    pub(crate) fn open(store: Arc<Inner>, run: &str, from: u64) -> Result<Self, StoreError> {
        let segments = store.read(|conn| {
            let sql = |error| store.sql(&error);
            let (key, _) = index::key(conn, run)
                .map_err(sql)?
                .ok_or_else(|| StoreError::UnknownRun { run: run.to_owned() })?;
            let mut segments = vec![Segment { key, to: MAX_NUMBER }];
            let mut current = (key, MAX_NUMBER);
            while let Some((parent, shared)) = index::parent(conn, current.0).map_err(sql)? {
                if parent >= current.0 {
                    return Err(store.damaged(format!("run \"{run}\" is a fork of a later run")));
                }
                current = (parent, shared.min(current.1));
                segments.push(Segment { key: parent, to: current.1 });
            }
            Ok(segments)
        })?;
        let next = from.max(1);
        Ok(Self { store, segments, next, page: Vec::new().into_iter(), cache: Contents::default() })
    }

    /// Reads the next page; an empty one means that the journal has ended.
    fn load(&mut self) -> Result<Vec<Entry>, StoreError> {
        let store = Arc::clone(&self.store);
        while let Some(segment) = self.segments.last().copied() {
            // A fork before its source's own fork point takes nothing from the source itself.
            if segment.to < self.next {
                self.segments.pop();
                continue;
            }
            let entries = store.read(|conn| page(&store, conn, segment, self.next, &mut self.cache))?;
            if let Some(last) = entries.last() {
                self.next = last.n + 1;
                return Ok(entries);
            }
            self.segments.pop();
            if !self.segments.is_empty() {
                // A stretch that others continue must be there to its end.
                return Err(store.damaged(format!("event {} of a forked run is missing", self.next)));
            }
        }
        Ok(Vec::new())
    }
}

impl Iterator for Journal {
    type Item = Result<Entry, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(entry) = self.page.next() {
            return Some(Ok(entry));
        }
        match self.load() {
            Ok(entries) => {
                self.page = entries.into_iter();
                self.page.next().map(Ok)
            }
            Err(error) => {
                self.segments.clear();
                Some(Err(error))
            }
        }
    }
}

fn page(
    store: &Inner,
    conn: &Connection,
    segment: Segment,
    from: u64,
    cache: &mut Contents,
) -> Result<Vec<Entry>, StoreError> {
    let sql = |error| store.sql(&error);
    let (Some(first), Some(last)) = (journal_key(segment.key, from), journal_key(segment.key, segment.to))
    else {
        return Ok(Vec::new());
    };
    let mut query = conn
        .prepare_cached(
            "SELECT key, at_ms, body FROM journal WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3",
        )
        .map_err(sql)?;
    let mut rows = query.query((first, last, PAGE_ENTRIES as i64)).map_err(sql)?;
    let mut entries = Vec::new();
    let mut bytes = 0;
    let mut expected = from;
    while let Some(row) = rows.next().map_err(sql)? {
        let n = number_of(row.get(0).map_err(sql)?);
        if n != expected {
            return Err(store.damaged(format!("a journal has event {n} where event {expected} must be")));
        }
        let utf8 =
            |bytes| std::str::from_utf8(bytes).map_err(|_| store.damaged(format!("event {n} is not text")));
        let json = match row.get_ref(2).map_err(sql)? {
            ValueRef::Text(text) => utf8(text)?.to_owned(),
            ValueRef::Blob(body) => encode::decode(
                utf8(body)?,
                |hash, out| cache.append(store, conn, hash, out),
                || store.damaged(format!("event {n} cannot be decoded")),
            )?,
            _ => return Err(store.damaged(format!("event {n} is not text"))),
        };
        bytes += json.len();
        entries.push(Entry { n, at_ms: row.get(1).map_err(sql)?, json });
        if bytes >= PAGE_BYTES {
            break;
        }
        expected += 1;
    }
    Ok(entries)
}

/// Contents that were loaded before, so that one that is referred to often is read once.
#[derive(Debug, Default)]
struct Contents {
    known: HashMap<BlobHash, String>,
    bytes: usize,
}

impl Contents {
    fn append(
        &mut self,
        store: &Inner,
        conn: &Connection,
        hash: BlobHash,
        out: &mut String,
    ) -> Result<(), StoreError> {
        if let Some(text) = self.known.get(&hash) {
            out.push_str(text);
            return Ok(());
        }
        let bytes = blobs::load(conn, store.db(), hash).map_err(|error| match error {
            StoreError::UnknownBlob { hash } => {
                store.damaged(format!("a journal refers to the missing content {hash}"))
            }
            error => error,
        })?;
        let text =
            String::from_utf8(bytes).map_err(|_| store.damaged(format!("the content {hash} is not text")))?;
        out.push_str(&text);
        if self.bytes + text.len() > CACHE_BYTES {
            self.known.clear();
            self.bytes = 0;
        }
        self.bytes += text.len();
        self.known.insert(hash, text);
        Ok(())
    }
}
