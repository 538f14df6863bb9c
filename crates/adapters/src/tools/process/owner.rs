//! What a tool of root's has made where it may write belongs to the user number of its call; once the call is over, it is
//! given to who runs Selvedge.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chownat, openat, statat};
use rustix::process::{getegid, geteuid};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// How many entries of folders are looked at after one call: the rest keeps the owner that it has.
const MOST: usize = 200_000;
/// How deep: a deeper one was not made by anybody who wants to keep it.
const DEEPEST: usize = 200;

/// Gives what `user` owns below `paths` to who runs this process.
pub(crate) async fn give_back(paths: &[PathBuf], user: Option<u32>) {
    let Some(user) = user.filter(|_| !paths.is_empty()) else { return };
    let paths = paths.to_vec();
    let work = move || {
        let mut left = MOST;
        for path in paths.iter().filter_map(|path| path.canonicalize().ok()) {
            below(CWD, &path, user, DEEPEST, &mut left);
        }
    };
    // What cannot be given back stays as it is; the call is over all the same.
    let _ = tokio::task::spawn_blocking(work).await;
}

/// One entry and all below it, by descriptors: a link or another file that takes its name meanwhile changes nothing.
fn below(folder: impl AsFd, name: &Path, user: u32, depth: usize, left: &mut usize) {
    let Some(rest) = left.checked_sub(1) else { return };
    *left = rest;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(entry) = openat(&folder, name, flags, Mode::empty()) else { return };
    let Ok(meta) = statat(&entry, "", AtFlags::EMPTY_PATH) else { return };
    if meta.st_uid == user {
        let group = (meta.st_gid == user).then(getegid);
        // The kernel takes set-user-ID bits off as it does this.
        let _ = chownat(&entry, "", Some(geteuid()), group, AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW);
    }
    if FileType::from_raw_mode(meta.st_mode) == FileType::Directory && depth > 0 {
        for name in names(&entry, left) {
            below(&entry, &name, user, depth - 1, left);
        }
    }
}

fn names(folder: &OwnedFd, left: &usize) -> Vec<PathBuf> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(readable) = openat(folder, ".", flags, Mode::empty()) else { return Vec::new() };
    let Ok(entries) = Dir::new(readable) else { return Vec::new() };
    let name = |entry: rustix::fs::DirEntry| {
        use std::os::unix::ffi::OsStrExt;
        let name = entry.file_name().to_bytes();
        (name != b"." && name != b"..").then(|| PathBuf::from(std::ffi::OsStr::from_bytes(name)))
    };
    entries.filter_map(Result::ok).filter_map(name).take(*left).collect()
}
