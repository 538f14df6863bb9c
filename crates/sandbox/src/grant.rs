//! Places of the file system that were granted, and what nobody can grant.

use std::io;
use std::path::{Component, Path, PathBuf};

/// What is Selvedge's own in a state folder: hidden from tools even where the folder itself was granted.
pub const OURS: [&str; 6] =
    ["cache", "locks", "selvedge.db", "selvedge.db-wal", "selvedge.db-shm", "selvedge.db-journal"];

/// Programs and libraries of the system: read by every tool.
pub const PROGRAMS: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// Whether a place in a state folder is one of these, or in one.
pub fn is_ours(state: &Path, real: &Path) -> bool {
    OURS.iter().any(|name| real.starts_with(state.join(name)))
}

/// A place that was granted: the name by which tools know it, and where that led when it was checked. Only the latter is
/// ever opened, without following links: what is put in its place later grants nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// As it was written, absolute.
    pub name: PathBuf,
    /// Without links.
    pub real: PathBuf,
}

impl Grant {
    /// The place that a path means now; `None` where it can't be said.
    pub fn of(name: impl Into<PathBuf>) -> Option<Self> {
        let name = name.into();
        settle(&name).map(|real| Self { name, real })
    }
}

/// The reason of a failed file operation, without the system's error number.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        io::ErrorKind::PermissionDenied => "the system denies access".to_owned(),
        _ => error.to_string(),
    }
}

/// Whether a place is the system as a whole, or made by the kernel: no sandbox has it, so that it can't be granted.
pub fn is_system(real: &Path) -> bool {
    real == Path::new("/") || ["/proc", "/dev"].iter().any(|own| real.starts_with(own))
}

/// Resolves all links of the part of a path that exists and appends the rest, which must be plain names:
/// after a missing folder, `..` means nothing. `None` where no such place can be named.
pub fn settle(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let mut existing = path.as_path();
    let mut missing = Vec::new();
    loop {
        match existing.canonicalize() {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Some(real);
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                // A link to nowhere exists as itself, and may come to lead anywhere.
                if existing.symlink_metadata().is_ok() {
                    return None;
                }
                match existing.components().next_back()? {
                    Component::Normal(name) => missing.push(name),
                    _ => return None,
                }
                existing = existing.parent()?;
            }
            Err(_) => return None,
        }
    }
}
