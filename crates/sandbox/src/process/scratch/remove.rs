//! Removing a folder whatever a tool has made of it: folders in each other by the thousand, on which the standard
//! library's way runs out of stack or of open files, and such whose modes keep their owner out.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RawMode, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// How many names of a folder are taken at a time.
const NAMES: usize = 4096;

/// Removes a folder and all in it; links are removed, never followed.
///
/// A folder that is not empty gives the folders in it to the outermost one before it is removed itself: so nothing is ever
/// deeper than two, and three descriptors are enough.
///
/// # Errors
/// The first thing that can't be removed, as where the file system refuses it; what else is there may stay with it.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let root = open(CWD, path)?;
    let (mut moved, mut failed) = (0, None);
    // Each pass finds what the one before has moved here.
    while failed.is_none() {
        let names = names(&root)?;
        if names.is_empty() {
            return Ok(unlinkat(CWD, path, AtFlags::REMOVEDIR)?);
        }
        for name in names {
            if let Err(e) = one(&root, &name, &mut moved) {
                failed = Some(e);
            }
        }
    }
    Err(failed.unwrap_or(Errno::NOTEMPTY).into())
}

/// Removes an entry of the outermost folder, and moves the folders in it there.
fn one(root: &OwnedFd, name: &CString, moved: &mut u64) -> Result<(), Errno> {
    if unlinked(root, name)? {
        return Ok(());
    }
    let folder = open(root, name)?;
    loop {
        let names = names(&folder)?;
        if names.is_empty() {
            return unlinkat(root, name, AtFlags::REMOVEDIR);
        }
        for inner in names {
            if !unlinked(&folder, &inner)? {
                // To have another folder around it, a folder must be writable itself.
                drop(open(&folder, &inner)?);
                give_up(&folder, &inner, root, moved)?;
            }
        }
    }
}

/// Moves a folder to the outermost one, under a name that is free.
fn give_up(folder: &OwnedFd, name: &CString, root: &OwnedFd, moved: &mut u64) -> Result<(), Errno> {
    loop {
        *moved += 1;
        match renameat(folder, name, root, format!(".{moved}")) {
            // Something of the tool's has this name.
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
            other => return other,
        }
    }
}

/// Removes a file, or a folder if it is empty: `false` if it is not.
fn unlinked(folder: &OwnedFd, name: &CString) -> Result<bool, Errno> {
    let kind = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(true),
        stat => FileType::from_raw_mode(stat?.st_mode),
    };
    let flags = if kind == FileType::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    match unlinkat(folder, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Opens a folder, and sees to it that its owner may do everything in it.
fn open(folder: impl AsFd, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Without any right to it, and so that nobody can put another one in its place.
    let place = openat(&folder, name, flags | OFlags::PATH, Mode::empty())?;
    let mode = statat(&place, "", AtFlags::EMPTY_PATH)?.st_mode;
    if Mode::from_raw_mode(mode) & Mode::RWXU != Mode::RWXU {
        let own = format!("/proc/self/fd/{}", place.as_raw_fd());
        let all: RawMode = Mode::RWXU.as_raw_mode();
        // Of another owner: root needs no mode.
        let _ = std::fs::set_permissions(own, std::fs::Permissions::from_mode(all));
    }
    openat(&place, ".", flags | OFlags::RDONLY, Mode::empty())
}

/// Some of the names in a folder.
fn names(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let entries = Dir::read_from(folder)?;
    let name = |entry: rustix::io::Result<rustix::fs::DirEntry>| match entry {
        Ok(entry) if [&b"."[..], b".."].contains(&entry.file_name().to_bytes()) => None,
        Ok(entry) => Some(Ok(entry.file_name().to_owned())),
        Err(e) => Some(Err(e)),
    };
    entries.filter_map(name).take(NAMES).collect()
}
