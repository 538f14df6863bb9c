//! A run in one file, which another state folder takes in: with its journal, its compiled document, its tools' texts, and for a fork with
//! what it refers to of its sources (C-14). Nothing of it is run by that.

mod chain;
mod export;
mod import;
mod moments;
mod proved;
mod staging;
mod texts;

pub use export::{Exported, export};
pub use import::{Found, Imported, import};

use crate::error::{Error, ErrorKind};
use selvedge_store::StoreError;
use selvedge_store::archive::ArchiveError;
use std::path::Path;

/// What is wrong with the archive at a path.
fn failed(file: &Path, error: ArchiveError) -> Error {
    let (kind, code, help) = match &error {
        ArchiveError::Store(StoreError::UnknownBlob { .. }) => {
            return Error::environment("E-44", "run-damaged", &error.to_string());
        }
        ArchiveError::Store(error) => return error.clone().into(),
        ArchiveError::Foreign(_) => (
            ErrorKind::Usage,
            "no-archive",
            "name a file that an export of the run has written as an archive, where the run is",
        ),
        ArchiveError::Newer { .. } => {
            (ErrorKind::Environment, "archive-newer", "use the selvedge that wrote it or a later one")
        }
        ArchiveError::Damaged(_) => (
            ErrorKind::Environment,
            "archive-damaged",
            "get the file anew, or write it anew where the run is",
        ),
        ArchiveError::Limit(_) => (
            ErrorKind::Environment,
            "archive-limit",
            "an export without an archive gives the journal of a run of any size",
        ),
        ArchiveError::Io(_) => (ErrorKind::Environment, "archive", "check the path and the room on the disk"),
    };
    let message = format!("{}: {error}", file.display());
    Error::new(kind, "C-14", code, &message).help(help)
}

/// An error of an archive, or of what is done with what is in it.
enum Failure {
    Archive(ArchiveError),
    Other(Error),
}

impl Failure {
    fn about(self, file: &Path) -> Error {
        match self {
            Self::Archive(error) => failed(file, error),
            Self::Other(error) => error,
        }
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

#[cfg(test)]
mod tests;
