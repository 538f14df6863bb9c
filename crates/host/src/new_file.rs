//! A file that a command writes for people: it is there whole, or not at all.

use crate::error::Error;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// A file that is not there yet.
pub struct NewFile<'p>(&'p Path);

impl<'p> NewFile<'p> {
    /// Names it.
    ///
    /// # Errors
    /// Something of that name is there.
    pub fn at(path: &'p Path) -> Result<Self, Error> {
        let new = Self(path);
        if path.symlink_metadata().is_ok() { Err(new.taken()) } else { Ok(new) }
    }

    /// Writes it beside its place, so that it gets there in one step; how many bytes it has.
    ///
    /// # Errors
    /// What `write` says, or it can't be written, or something of that name has come in between.
    pub fn write(
        self,
        write: impl FnOnce(&Self, &mut BufWriter<NamedTempFile>) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let unwritable = |error| self.unwritable(&error);
        let folder = self.0.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let fresh = tempfile::Builder::new().prefix(".selvedge-export-").tempfile_in(folder);
        // The name that it has on its way is nobody's business.
        let fresh = fresh.map_err(|error| match error.kind() {
            ErrorKind::NotFound => unwritable(std::io::Error::other("its folder is not there")),
            kind => unwritable(kind.into()),
        })?;
        let mut out = BufWriter::with_capacity(1 << 16, fresh);
        write(&self, &mut out)?;
        out.flush().map_err(unwritable)?;
        let fresh = out.into_inner().map_err(|error| unwritable(error.into_error()))?;
        fresh.as_file().sync_all().map_err(unwritable)?;
        let bytes = fresh.as_file().metadata().map_err(unwritable)?.len();
        fresh.persist_noclobber(self.0).map_err(|error| match error.error.kind() {
            ErrorKind::AlreadyExists => self.taken(),
            _ => unwritable(error.error),
        })?;
        Ok(bytes)
    }

    /// What is wrong where it can't be written.
    pub fn unwritable(&self, error: &std::io::Error) -> Error {
        let message = format!("{} can't be written: {error}", self.0.display());
        Error::environment("C-14", "not-written", &message).help("check the path and the room on the disk")
    }

    fn taken(&self) -> Error {
        let message = format!("{} is there already", self.0.display());
        Error::usage("C-14", "file-exists", &message)
            .help("name a file that is not there yet, or move this one away")
    }
}
