//! Opening the place that was checked, and no other: no part of a path is followed where it is a link, so that what
//! is put into a name between a check and its use is an error, and leads nowhere.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

/// How folders on the way are opened: only to go on from there.
#[cfg(target_os = "linux")]
const ON_THE_WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
const ON_THE_WAY: OFlags = OFlags::DIRECTORY;

/// Opens an absolute path without links and without `..`.
///
/// # Errors
/// Also where a part of it is a link by now.
pub fn open(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let Some(name) = real.file_name() else { return step(CWD, real.as_os_str(), flags) };
    step(folder(real.parent().unwrap_or(real), false)?, name, flags)
}

/// Only to have hold of it, whatever it is.
///
/// # Errors
/// As [`open`].
#[cfg(target_os = "linux")]
pub(crate) fn hold(real: &Path) -> io::Result<OwnedFd> {
    open(real, OFlags::PATH)
}

/// What is there, without following it.
///
/// # Errors
/// As [`open`].
pub fn stat(real: &Path) -> io::Result<Stat> {
    let Some(name) = real.file_name() else { return Ok(fstat(open(real, ON_THE_WAY)?)?) };
    Ok(statat(folder(real.parent().unwrap_or(real), false)?, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Makes a folder and those around it, where they are not there.
///
/// # Errors
/// As [`open`].
pub fn make_folder(real: &Path) -> io::Result<OwnedFd> {
    folder(real, true)
}

/// Makes an empty file with the folders around it, where it is not there.
///
/// # Errors
/// As [`open`].
pub fn make_file(real: &Path) -> io::Result<()> {
    let (Some(around), Some(name)) = (real.parent(), real.file_name()) else { return Ok(()) };
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder(around, true)?, name, flags, Mode::from_raw_mode(0o666))?;
    Ok(())
}

fn folder(real: &Path, make: bool) -> io::Result<OwnedFd> {
    let mut parts = real.components();
    if parts.next() != Some(Component::RootDir) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut at = step(CWD, OsStr::new("/"), ON_THE_WAY)?;
    for part in parts {
        let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
        at = match step(&at, name, ON_THE_WAY) {
            Err(error) if make && error.kind() == io::ErrorKind::NotFound => {
                match mkdirat(&at, name, Mode::from_raw_mode(0o777)) {
                    // Somebody else was first.
                    Ok(()) | Err(Errno::EXIST) => step(&at, name, ON_THE_WAY)?,
                    Err(error) => return Err(error.into()),
                }
            }
            stepped => stepped?,
        };
    }
    Ok(at)
}

fn step(at: impl AsFd, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    let next = openat(at, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    // To have hold of a link is not to follow it.
    if FileType::from_raw_mode(fstat(&next)?.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP.into());
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// a link in any part of a path is an error, and nothing is made behind it.
    #[test]
    fn links_are_not_followed_in_any_part_of_a_path() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/in")).unwrap();
        std::fs::write(root.join("real/in/file"), "x").unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("file", root.join("real/in/last")).unwrap();
        assert!(open(&root.join("real/in/file"), OFlags::RDONLY).is_ok());
        for path in ["link", "link/in", "link/in/file", "real/in/last", "real/../real/in"] {
            assert!(open(&root.join(path), OFlags::RDONLY).is_err(), "{path}");
            assert!(hold(&root.join(path)).is_err(), "{path}");
        }
        assert!(make_folder(&root.join("link/new")).is_err() && make_file(&root.join("link/new")).is_err());
        assert!(make_file(&root.join("real/in/last")).is_err());
        assert!(!root.join("real/new").exists());
        make_file(&root.join("a/b/file")).unwrap();
        make_file(&root.join("real/in/file")).unwrap();
        make_folder(&root.join("a/b/c")).unwrap();
        assert!(root.join("a/b/file").is_file() && root.join("a/b/c").is_dir());
        assert_eq!(std::fs::read_to_string(root.join("real/in/file")).unwrap(), "x", "it stays as it is");
    }
}
