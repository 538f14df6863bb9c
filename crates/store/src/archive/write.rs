//! Writing an archive: what is in it is measured first, and then written as it is read, so that no journal is held in memory.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;

use sha2::{Digest, Sha256};

use super::{
    ArchiveError, ArchivedRun, BLOCK, FORMAT, MANIFEST, MOST_BLOBS, MOST_BYTES, MOST_LISTED, MOST_NESTED,
    MOST_RUNS, Manifest, SUMS, journal_name, nesting,
};
use crate::{BlobHash, Entry, Proof, Store, StoreError};

/// What is to be in an archive.
pub struct Writer<'s> {
    store: &'s Store,
    runs: Vec<ArchivedRun>,
    journals: Vec<Measured>,
}

/// A file that is not written yet.
struct Measured {
    bytes: u64,
    hash: String,
}

impl<'s> Writer<'s> {
    /// An archive of runs of this store.
    pub fn new(store: &'s Store) -> Self {
        Self { store, runs: Vec::new(), journals: Vec::new() }
    }

    /// Puts a run in, the source of a fork before it, and shows its events to `see`.
    ///
    /// # Errors
    /// Its journal is damaged, it is more than an archive may hold, or `see` refuses an event.
    pub fn add<E: From<ArchiveError>>(
        &mut self,
        run: ArchivedRun,
        mut see: impl FnMut(&Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.runs.len() >= MOST_RUNS {
            let what = format!("an archive holds at most {MOST_RUNS} runs, and this one is a fork of more");
            return Err(ArchiveError::Limit(what).into());
        }
        let (mut bytes, mut hash) = (0, Sha256::new());
        lines(self.store, &run, |entry, line| {
            let too = entry.json.len() as u64 > MOST_BYTES || nesting(&entry.json) > MOST_NESTED;
            if too {
                let what = format!("event {} of run {} is too large for an archive", entry.n, run.id);
                return Err(ArchiveError::Limit(what).into());
            }
            bytes += line.len() as u64;
            hash.update(line);
            see(entry)
        })?;
        self.journals.push(Measured { bytes, hash: hex(hash) });
        self.runs.push(run);
        Ok(())
    }

    /// Writes it, with these contents. The last run that was put in is the one that it is of.
    ///
    /// # Errors
    /// A content is not there or too large, or `out` can't be written.
    pub fn write(self, blobs: &BTreeSet<BlobHash>, out: &mut impl Write) -> Result<(), ArchiveError> {
        if blobs.len() > MOST_BLOBS {
            let what =
                format!("an archive holds at most {MOST_BLOBS} contents, and the run has {}", blobs.len());
            return Err(ArchiveError::Limit(what));
        }
        let Self { store, runs, journals } = self;
        let run = runs.last().map(|run| run.id.clone()).unwrap_or_default();
        let manifest = Manifest { selvedge_archive: FORMAT, run, runs };
        let mut text =
            serde_json::to_string_pretty(&manifest).map_err(|error| ArchiveError::Io(error.to_string()))?;
        text.push('\n');
        if text.len() as u64 > MOST_LISTED || nesting(&text) > MOST_NESTED {
            return Err(ArchiveError::Limit(
                "what the run was started with is too large for an archive".into(),
            ));
        }
        let mut sums = String::new();
        let mut listed = |hash: &str, name: &str| {
            // Writing to a text can't fail.
            let _ = writeln!(sums, "{hash}  {name}");
        };
        listed(&BlobHash::of(text.as_bytes()).to_string(), MANIFEST);
        for hash in blobs {
            listed(&hash.to_string(), &format!("blobs/{hash}"));
        }
        for (at, journal) in journals.iter().enumerate() {
            listed(&journal.hash, &journal_name(at));
        }
        file(out, MANIFEST, text.as_bytes())?;
        file(out, SUMS, sums.as_bytes())?;
        for hash in blobs {
            let content = store.get_blob(*hash)?;
            if content.len() as u64 > MOST_BYTES {
                return Err(ArchiveError::Limit(format!("the content {hash} is too large for an archive")));
            }
            file(out, &format!("blobs/{hash}"), &content)?;
        }
        for ((at, run), journal) in manifest.runs.iter().enumerate().zip(&journals) {
            head(out, &journal_name(at), journal.bytes)?;
            lines(store, run, |_, line| out.write_all(line).map_err(io))?;
            pad(out, journal.bytes)?;
        }
        out.write_all(&[0; 2 * BLOCK]).map_err(io)
    }
}

/// Shows a run's own events to `see`, each with its line.
fn lines<E: From<ArchiveError>>(
    store: &Store,
    run: &ArchivedRun,
    mut see: impl FnMut(&Entry, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let store_error = |error: StoreError| E::from(error.into());
    let mut proof = Proof::of(&run.id);
    for entry in store.journal(&run.id, run.first()).map_err(store_error)?.until(run.events) {
        let entry = entry.map_err(store_error)?;
        let hash = proof.push(&entry);
        let Entry { n, at_ms, json } = &entry;
        let line = format!("{{\"n\":{n},\"at\":{at_ms},\"hash\":\"{hash}\",\"event\":{json}}}\n");
        see(&entry, line.as_bytes())?;
    }
    Ok(())
}

fn file(out: &mut impl Write, name: &str, content: &[u8]) -> Result<(), ArchiveError> {
    head(out, name, content.len() as u64)?;
    out.write_all(content).map_err(io)?;
    pad(out, content.len() as u64)
}

/// What stands before a file: nothing of it says where or when.
fn head(out: &mut impl Write, name: &str, bytes: u64) -> Result<(), ArchiveError> {
    let mut header = tar::Header::new_ustar();
    header.set_path(name).map_err(io)?;
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    out.write_all(header.as_bytes()).map_err(io)
}

fn pad(out: &mut impl Write, bytes: u64) -> Result<(), ArchiveError> {
    let over = (bytes % BLOCK as u64) as usize;
    let zeros = [0; BLOCK];
    let missing = if over == 0 { 0 } else { BLOCK - over };
    out.write_all(zeros.get(..missing).unwrap_or_default()).map_err(io)
}

fn io(error: std::io::Error) -> ArchiveError {
    ArchiveError::Io(error.to_string())
}

pub(super) fn hex(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a text can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
