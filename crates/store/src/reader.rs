//! Reading a run's journal, page by page.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, Row};

use crate::chain::{self, Body, Chain, Head, Link, Stored};
use crate::schema::{MAX_NUMBER, journal_key, number_of};
use crate::store::Inner;
use crate::{BlobHash, Entry, StoreError, blobs, encode, index};

/// Entries read in one go.
const PAGE_ENTRIES: usize = 1024;
/// A page ends early when its text has grown to this many bytes.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Contents kept at hand for further references, in bytes.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// A run's entries in order, each looked at before it is handed out (E-44); ends after an error. Every page is read by a
/// query of its own, so a journal that is read slowly holds nothing up, and entries appended meanwhile are seen.
#[derive(Debug)]
pub struct Journal {
    store: Arc<Inner>,
    run: String,
    /// The stretches still to be read, the next one last.
    segments: Vec<Segment>,
    /// Number of the next entry.
    next: u64,
    /// The last entry that is wanted.
    until: u64,
    /// How far the journal had come when that was last noted.
    noted: Head,
    /// The hash of the entry before the next one.
    hash: Option<Link>,
    page: std::vec::IntoIter<Entry>,
    /// What comes behind the page, if that is an error.
    trouble: Option<StoreError>,
    cache: Contents,
}

/// Events `..=to` of the run `key`, of which those from `since` on have hashes. A forked run's journal is its source's
/// first stretch and then its own (E-19).
#[derive(Debug, Clone, Copy)]
struct Segment {
    key: i64,
    to: u64,
    since: Option<u64>,
}

impl Journal {
    /// The journal of a run from event `from` on.
    pub(crate) fn open(store: Arc<Inner>, run: &str, from: u64) -> Result<Self, StoreError> {
        let next = from.max(1);
        let (segments, noted, hash) = store.read(|conn| {
            let sql = |error| store.sql(&error);
            let (key, _) = index::known_key(conn, store.db(), run)?;
            let known = |key| {
                let noted = chain::noted(conn, key).map_err(sql)?;
                noted.ok_or_else(|| store.broken(run, None, "the index does not know where its journal ends"))
            };
            let noted = known(key)?;
            let mut segments = vec![Segment { key, to: MAX_NUMBER, since: noted.since }];
            let mut current = (key, MAX_NUMBER);
            // As far as there is something to read: of a source whose own events come behind what is shared there is nothing.
            let parent = |key| store.parent(conn, key);
            while let Some((source, shared)) = parent(current.0).map_err(sql)?
                && shared >= next
            {
                if source >= current.0 {
                    return Err(store.broken(run, None, "it is a fork of a later run"));
                }
                current = (source, shared.min(current.1));
                if parent(source).map_err(sql)?.is_none_or(|(_, before)| before < current.1) {
                    segments.push(Segment { key: source, to: current.1, since: known(source)?.since });
                }
            }
            let hash =
                if next == 1 { None } else { chain::hash_of(conn, key, next - 1, parent).map_err(sql)? };
            Ok((segments, noted, hash))
        })?;
        let (page, cache) = (Vec::new().into_iter(), Contents::default());
        let (run, until) = (run.to_owned(), MAX_NUMBER);
        Ok(Self { store, run, segments, next, until, noted, hash, page, trouble: None, cache })
    }

    /// The same up to event `to`: what comes behind it is not looked at, and may be damaged.
    #[must_use]
    pub fn until(mut self, to: u64) -> Self {
        self.until = to.min(self.until);
        self
    }

    /// Reads the next page; an empty one means that the journal has ended, or that there is trouble.
    fn load(&mut self) -> Vec<Entry> {
        while let Some(segment) = self.segments.last().copied() {
            if self.next > self.until {
                return Vec::new();
            }
            // A fork before its source's own fork point takes nothing from the source itself.
            if segment.to < self.next {
                self.segments.pop();
                continue;
            }
            let store = Arc::clone(&self.store);
            let mut entries = Vec::new();
            if let Err(error) = store.read(|conn| self.page(&store, conn, segment, &mut entries)) {
                // Whatever is wrong with the file is wrong at the next event.
                self.trouble = Some(match error {
                    StoreError::Damaged { why, .. } => self.store.broken(&self.run, Some(self.next), &why),
                    error => error,
                });
            }
            if !entries.is_empty() || self.trouble.is_some() {
                return entries;
            }
            self.segments.pop();
            // A stretch that others continue must be there to its end, and the last one to where it is known to have come.
            if !self.segments.is_empty() || self.next <= self.noted.n {
                let why =
                    format!("it is missing, and all behind it: the journal had {} events", self.noted.n);
                self.trouble = Some(self.store.broken(&self.run, Some(self.next), &why));
            }
        }
        Vec::new()
    }

    /// Reads a page into `entries`, as far as there is no trouble.
    fn page(
        &mut self,
        store: &Inner,
        conn: &Connection,
        segment: Segment,
        entries: &mut Vec<Entry>,
    ) -> Result<(), StoreError> {
        let sql = |error| store.sql(&error);
        let to = segment.to.min(self.until);
        let (Some(first), Some(last)) = (journal_key(segment.key, self.next), journal_key(segment.key, to))
        else {
            return Ok(());
        };
        let mut query = conn
            .prepare_cached(
                "SELECT key, at_ms, body, hash FROM journal WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3",
            )
            .map_err(sql)?;
        let mut rows = query.query((first, last, PAGE_ENTRIES as i64)).map_err(sql)?;
        let mut chain = Chain::new(segment.key, segment.since, self.hash);
        let mut bytes = 0;
        // No step further than is wanted: the row behind may be on a page that can't be read.
        while self.next <= to
            && let Some(row) = rows.next().map_err(sql)?
        {
            let entry = self.entry(store, conn, row, &mut chain)?;
            self.next += 1;
            self.hash = chain.last();
            bytes += entry.json.len();
            entries.push(entry);
            if bytes >= PAGE_BYTES {
                break;
            }
        }
        Ok(())
    }

    /// The next entry, if this row is it and what was written.
    fn entry(
        &mut self,
        store: &Inner,
        conn: &Connection,
        row: &Row<'_>,
        chain: &mut Chain,
    ) -> Result<Entry, StoreError> {
        let sql = |error| store.sql(&error);
        let (n, cache) = (self.next, &mut self.cache);
        let broken = |why: &str| store.broken(&self.run, Some(n), why);
        let found = number_of(row.get(0).map_err(sql)?);
        if found != n {
            return Err(broken(&format!("it is missing: event {found} stands in its place")));
        }
        let at_ms = row.get(1).map_err(|_| broken("its time is none"))?;
        let (body, hash) = (row.get_ref(2).map_err(sql)?, row.get_ref(3).map_err(sql)?);
        let body = chain.follow(&Stored { n, at_ms, body, hash }).map_err(broken)?;
        if n == self.noted.n && self.noted.since.is_some() && chain.last() != self.noted.hash {
            return Err(broken("the index has noted another hash for it"));
        }
        let json = match body {
            Body::Plain(json) => json.to_owned(),
            Body::Encoded(body) => encode::decode(
                body,
                |hash, out| cache.append(store, conn, hash, out).map_err(|why| broken(&why)),
                || broken("it can't be decoded"),
            )?,
        };
        Ok(Entry { n, at_ms, json })
    }
}

impl Iterator for Journal {
    type Item = Result<Entry, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(entry) = self.page.next() {
            return Some(Ok(entry));
        }
        if self.trouble.is_none() {
            self.page = self.load().into_iter();
            if let Some(entry) = self.page.next() {
                return Some(Ok(entry));
            }
        }
        let trouble = self.trouble.take()?;
        self.segments.clear();
        Some(Err(trouble))
    }
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
    ) -> Result<(), String> {
        if let Some(text) = self.known.get(&hash) {
            out.push_str(text);
            return Ok(());
        }
        let bytes = blobs::load(conn, store.db(), hash).map_err(|error| match error {
            StoreError::UnknownBlob { hash } => format!("its content {hash} is missing"),
            StoreError::Damaged { why, .. } => why,
            error => error.what(),
        })?;
        let text = String::from_utf8(bytes).map_err(|_| format!("its content {hash} is no text"))?;
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
