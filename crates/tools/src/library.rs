//! Tools of a library: what a catalogue is told of them.
//!
//! The library itself is kept by others; a catalogue sees it as a [`LibrarySource`] of names, versions and texts.

use std::sync::Arc;

/// The `source` of a library tool's definition (C-15).
pub const LIBRARY: &str = "library";

/// Texts of tool files by version, and which versions are in use under which names.
pub trait LibrarySource: Send + Sync {
    /// The tools that may be used: bound name and version.
    fn offered(&self) -> Vec<(Arc<str>, Arc<str>)>;

    /// The text that is kept under a version, also one that is not in use any more.
    fn text(&self, version: &str) -> Option<Vec<u8>>;
}
