//! Places of the file system that were granted, and what nobody can grant.

use std::collections::HashMap;
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
        Resolver::default().grant(name)
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
    Resolver::default().settle(path)
}

/// What paths mean at one moment: of folders that several of them lie in, each is looked at once.
#[derive(Debug, Default)]
pub struct Resolver {
    /// Where each that is there leads, by how it was written.
    known: HashMap<PathBuf, PathBuf>,
}

impl Resolver {
    /// The place that a path means ([`Grant::of`]).
    pub fn grant(&mut self, name: impl Into<PathBuf>) -> Option<Grant> {
        let name = name.into();
        self.settle(&name).map(|real| Grant { name, real })
    }

    /// [`settle`] of all of these that mean a place.
    pub fn settle_all<'p>(&mut self, paths: impl IntoIterator<Item = &'p PathBuf>) -> Vec<PathBuf> {
        paths.into_iter().filter_map(|path| self.settle(path)).collect()
    }

    /// [`settle`].
    pub fn settle(&mut self, path: &Path) -> Option<PathBuf> {
        let path = std::path::absolute(path).ok()?;
        let (mut written, mut real, mut there) = (PathBuf::new(), PathBuf::new(), true);
        for part in path.components() {
            written.push(part);
            match part {
                _ if there => there = self.enter(&written, &mut real, part)?,
                Component::Normal(name) => real.push(name),
                _ => return None,
            }
        }
        // A file with a slash behind it names nothing.
        let folder = there && path.as_os_str().as_encoded_bytes().ends_with(b"/");
        (!folder || real.is_dir()).then_some(real)
    }

    /// Goes one name further from a place without links, and says whether something is there; `None` where nothing can be.
    fn enter(&mut self, written: &Path, real: &mut PathBuf, part: Component<'_>) -> Option<bool> {
        if let Some(known) = self.known.get(written) {
            real.clone_from(known);
            return Some(true);
        }
        match part {
            Component::Normal(name) => {
                real.push(name);
                match real.symlink_metadata() {
                    // A link to nowhere exists as itself, and may come to lead anywhere.
                    Ok(found) if found.is_symlink() => *real = real.canonicalize().ok()?,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(false),
                    Err(_) => return None,
                }
            }
            Component::ParentDir => {
                if !real.is_dir() {
                    return None;
                }
                real.pop();
            }
            other => real.push(other),
        }
        self.known.insert(written.to_owned(), real.clone());
        Some(true)
    }
}

#[cfg(test)]
mod tests;
