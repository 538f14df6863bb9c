//! Small files that are written whole or not at all.

use std::io::{self, Write};
use std::path::Path;

/// Writes a file so that readers, also in other processes, see all of it or nothing.
///
/// # Errors
/// The folder cannot be made, or the file not written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("a file needs a folder"))?;
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}
