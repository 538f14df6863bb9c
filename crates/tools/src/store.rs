//! Content hashes, and files that are named by them.

use selvedge_sandbox::files::write_whole;
use sha2::{Digest, Sha256};
use std::io;
use std::path::Path;

/// The sha256 of some bytes, in lower-case hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let digest = Sha256::digest(bytes);
    let mut text = String::with_capacity(64);
    for byte in digest.iter() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Whether a text is a content hash as [`sha256`] writes them, and so a safe file name.
pub(crate) fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Writes a file named by its content, unless it is there as it should be.
pub(crate) fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match std::fs::read(path) {
        Ok(found) if found == bytes => Ok(()),
        _ => write_whole(path, bytes),
    }
}

/// A version's text from the cache, if it is there as it should be.
pub(crate) async fn text_of(cache: &Path, version: &str) -> Option<Vec<u8>> {
    let text = tokio::fs::read(cache.join(format!("{version}.py"))).await.ok()?;
    (sha256(&text) == version).then_some(text)
}
