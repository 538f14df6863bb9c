//! Runs in one file, to be taken to another state folder (C-14): a tar archive, which holds in this order
//!
//! 1. `manifest.json`: the format's number, the run, and the rows of all runs that its journal needs ([`ArchivedRun`]), the source
//!    of a fork before it;
//! 2. `SHA256SUMS`: the hash of every other file, as `sha256sum` writes them;
//! 3. `blobs/HASH`: contents, in the order of their names;
//! 4. `journals/1.jsonl` and so on: each run's own events, one a line: `{"n":…,"at":…,"hash":"…","event":…}`, where `hash` is the
//!    event's in the chain of its run ([`Proof`](crate::Proof)).
//!
//! Nothing in it depends on the state folder it comes from or on the time, so the same run is the same file. Whoever reads one expects
//! exactly these files in this order, and makes no path of any name in it.

mod read;
mod write;

pub use read::read;
pub use write::Writer;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StoreError;

/// The format that is written, and the newest that is read.
pub const FORMAT: u32 = 1;
/// Runs of one archive: a fork, its source, that one's source and so on.
pub const MOST_RUNS: usize = 10_000;
/// Contents of one archive.
pub const MOST_BLOBS: usize = 100_000;
/// Bytes of one content or one event, which are held in memory.
pub const MOST_BYTES: u64 = 128 << 20;
/// Bytes of the manifest, and of the list of hashes.
const MOST_LISTED: u64 = 16 << 20;
/// Objects and arrays inside each other: those of the deepest values that there can be, and what is around them.
const MOST_NESTED: usize = 1_100;

const MANIFEST: &str = "manifest.json";
const SUMS: &str = "SHA256SUMS";
const BLOCK: usize = 512;

/// What an archive holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The format's number.
    pub selvedge_archive: u32,
    /// The run that was exported: the last of `runs`.
    pub run: String,
    /// The run and those that its journal needs, the source of a fork before it.
    pub runs: Vec<ArchivedRun>,
}

/// A run as it is moved. Where it stands and what it has used is not told: its events say that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchivedRun {
    /// Its id.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Dialect of its document.
    pub dialect: String,
    /// When it began, in milliseconds since 1970 (UTC).
    pub started_ms: i64,
    /// Hash of its compiled graph.
    pub graph: Option<String>,
    /// Whether a scripted model answered (C-07).
    pub scripted: bool,
    /// What it was started with.
    pub options: Value,
    /// Its source, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<ArchivedFork>,
    /// The last of its events that is in the archive.
    pub events: u64,
}

impl ArchivedRun {
    /// The first event that is its own and not its source's.
    pub fn first(&self) -> u64 {
        self.fork.as_ref().map_or(1, |fork| fork.events.saturating_add(1))
    }
}

/// Where a fork leaves its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchivedFork {
    /// The source's id.
    pub run: String,
    /// How many of its events the fork shares.
    pub events: u64,
}

/// Why an archive can't be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// The file is something else.
    #[error("this is no archive of a run: {0}")]
    Foreign(String),
    /// A later version wrote it.
    #[error(
        "a newer version wrote this archive: it has format {found}, and this version knows those up to {FORMAT}"
    )]
    Newer {
        /// Its format.
        found: u64,
    },
    /// It is not what was written.
    #[error("the archive is damaged: {0}")]
    Damaged(String),
    /// More than an archive may hold.
    #[error("{0}")]
    Limit(String),
    /// The system refused to read or write it.
    #[error("{0}")]
    Io(String),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The name of the journal of the run at this place of the manifest.
fn journal_name(at: usize) -> String {
    format!("journals/{}.jsonl", at + 1)
}

/// How deep the objects and arrays of a JSON text lie in each other.
fn nesting(json: &str) -> usize {
    let (mut depth, mut deepest, mut text, mut escaped) = (0usize, 0, false, false);
    for byte in json.bytes() {
        if text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => text = true,
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
