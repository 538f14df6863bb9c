//! A file that a command writes for people: it is there whole, or not at all.

use crate::error::Error;
use std::fs::Permissions;
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::NamedTempFile;

/// A file that is not there yet: for its owner alone, unless it is [shared](Self::shared).
pub struct NewFile<'p> {
    path: &'p Path,
    mode: u32,
}

impl<'p> NewFile<'p> {
    /// Names it.
    ///
    /// # Errors
    /// Something of that name is there.
    pub fn at(path: &'p Path) -> Result<Self, Error> {
        let new = Self { path, mode: 0o600 };
        if path.symlink_metadata().is_ok() { Err(new.taken()) } else { Ok(new) }
    }

    /// Whoever may read new files here may read it.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { mode: 0o666, ..self }
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
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        // The system takes away from it what the umask has.
        let mode = Permissions::from_mode(self.mode);
        let fresh =
            tempfile::Builder::new().prefix(".selvedge-export-").permissions(mode).tempfile_in(folder);
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
        fresh.persist_noclobber(self.path).map_err(|error| match error.error.kind() {
            ErrorKind::AlreadyExists => self.taken(),
            _ => unwritable(error.error),
        })?;
        Ok(bytes)
    }

    /// What is wrong where it can't be written.
    pub fn unwritable(&self, error: &std::io::Error) -> Error {
        let message = format!("{} can't be written: {error}", self.path.display());
        Error::environment("C-14", "not-written", &message).help("check the path and the room on the disk")
    }

    fn taken(&self) -> Error {
        let message = format!("{} is there already", self.path.display());
        Error::usage("C-14", "file-exists", &message)
            .help("name a file that is not there yet, or move this one away")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C-14, S-31: a file is there whole or not at all, replaces none, and is read by whom it is meant for.
    #[test]
    fn c14_a_file_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str| at(name).metadata().unwrap().permissions().mode() & 0o777;
        let text = |new: &NewFile<'_>, out: &mut BufWriter<NamedTempFile>| {
            out.write_all(b"text").map_err(|error| new.unwritable(&error))
        };
        std::fs::write(at("as others"), "").unwrap();
        assert_eq!(NewFile::at(&at("own")).unwrap().write(text).unwrap(), 4);
        assert_eq!(NewFile::at(&at("shared")).unwrap().shared().write(text).unwrap(), 4);
        assert_eq!((mode("own"), mode("shared")), (0o600, mode("as others")));
        let code = |error: Error| error.diagnostics[0].code.to_string();
        assert_eq!(NewFile::at(&at("own")).err().map(code).unwrap(), "file-exists");
        let fails = |new: &NewFile<'_>, _: &mut BufWriter<NamedTempFile>| {
            Err(new.unwritable(&std::io::Error::other("full")))
        };
        assert_eq!(NewFile::at(&at("half")).unwrap().write(fails).err().map(code).unwrap(), "not-written");
        // Somebody was faster.
        let late = at("late");
        let new = NewFile::at(&late).unwrap();
        std::fs::write(&late, "theirs").unwrap();
        assert_eq!(new.write(text).err().map(code).unwrap(), "file-exists");
        assert_eq!(std::fs::read_to_string(&late).unwrap(), "theirs");
        assert_eq!(folder.path().read_dir().unwrap().count(), 4, "and nothing is left behind");
    }
}
