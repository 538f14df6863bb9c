//! Limits of documents (`E-28`), as the `[limits]` section of the configuration sets them.

use selvedge_engine::schema::STEPS;

/// The deepest nesting that any setting of `json_nesting` can allow.
///
/// Trees of JSON are walked and dropped recursively, so depth must stay far below what a thread's stack holds.
pub const MAX_JSON_NESTING: usize = 1_000;

/// The largest document that any setting of `document_bytes` can allow: places are 32-bit offsets.
pub const MAX_DOCUMENT_BYTES: u64 = u32::MAX as u64 - 1;

/// The deepest that any setting of `subgraph_depth` can let documents, forks and loops lie in each other: they are read and
/// compiled recursively, too.
pub const MAX_SUBGRAPH_DEPTH: usize = 64;

/// Limits of one document; the defaults are those of `E-28`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentLimits {
    /// Most bytes of a document file (`document_bytes`, default 64 MiB).
    pub document_bytes: u64,
    /// Most nodes of a document (`nodes`, default 100,000).
    pub nodes: usize,
    /// Most objects and arrays inside each other (`json_nesting`, default 128).
    pub json_nesting: usize,
    /// Most steps of reading a schema, and of holding a value against it (`schema_steps`, default 5,000,000).
    pub schema_steps: u64,
    /// Most documents, forks and loops inside each other (`subgraph_depth`, default 32), as of frames.
    pub subgraph_depth: usize,
}

impl Default for DocumentLimits {
    fn default() -> Self {
        DocumentLimits {
            document_bytes: 64 * 1024 * 1024,
            nodes: 100_000,
            json_nesting: 128,
            schema_steps: STEPS,
            subgraph_depth: 32,
        }
    }
}

impl DocumentLimits {
    /// The limit on bytes in force: the setting, or [`MAX_DOCUMENT_BYTES`] if that is less.
    pub fn bytes_in_force(&self) -> u64 {
        self.document_bytes.min(MAX_DOCUMENT_BYTES)
    }

    /// The limit on nesting in force: the setting, or [`MAX_JSON_NESTING`] if that is less.
    pub fn nesting_in_force(&self) -> usize {
        self.json_nesting.min(MAX_JSON_NESTING)
    }

    /// The limit on documents, forks and loops inside each other in force: the setting, or [`MAX_SUBGRAPH_DEPTH`] if that is less.
    pub fn depth_in_force(&self) -> usize {
        self.subgraph_depth.min(MAX_SUBGRAPH_DEPTH)
    }
}
