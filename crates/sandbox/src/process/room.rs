//! How much a call may leave in its scratch folder while it runs: the size of each file is limited by the kernel,
//! the sum of them is looked at now and then.

use crate::policy::Policy;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// All files of a call together, in sizes of the largest that it may write.
const FILES_OF_LARGEST: u64 = 4;
/// Files and folders of a call, and how deep they may be in each other.
pub const MOST_ENTRIES: u64 = 200_000;
const DEEPEST: usize = 64;
/// How often it is looked at; where looking takes long, it is idle ten times as long.
const EVERY: Duration = Duration::from_millis(250);
const IDLE: u32 = 10;

/// A scratch folder and the bytes that it may come to hold.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    folder: PathBuf,
    bytes: u64,
}

impl Policy {
    /// The bytes that a call may have in its scratch folder; `None` where files may be of any size.
    pub fn scratch_bytes(&self) -> Option<u64> {
        self.file_bytes.map(|bytes| bytes.saturating_mul(FILES_OF_LARGEST))
    }
}

impl Room {
    /// What a policy gives a call in its folder.
    pub(crate) fn of(policy: &Policy, folder: &Path) -> Option<Self> {
        Some(Self { folder: folder.to_owned(), bytes: policy.scratch_bytes()? })
    }

    /// Waits until there is more in it than there may be; without a folder, for ever.
    pub(super) async fn exceeded(room: Option<Self>) {
        let Some(room) = room else { return std::future::pending().await };
        let mut pause = EVERY;
        loop {
            sleep(pause).await;
            let (begun, room) = (Instant::now(), room.clone());
            // It fails only when the process is being shut down.
            if tokio::task::spawn_blocking(move || room.is_exceeded()).await.unwrap_or_default() {
                return;
            }
            pause = EVERY.max(begun.elapsed().saturating_mul(IDLE));
        }
    }

    fn is_exceeded(&self) -> bool {
        let mut used = Used::default();
        if let Ok(folder) = open(CWD, &self.folder) {
            used.add(&folder, DEEPEST);
        }
        used.bytes > self.bytes || used.entries > MOST_ENTRIES || used.too_deep
    }
}

#[derive(Default)]
struct Used {
    bytes: u64,
    entries: u64,
    too_deep: bool,
}

impl Used {
    /// What is in a folder. Its tool may change it meanwhile: by descriptors, nothing else is ever looked at.
    fn add(&mut self, folder: &OwnedFd, depth: usize) {
        let Ok(entries) = Dir::read_from(folder) else { return };
        for entry in entries.map_while(Result::ok) {
            let name = entry.file_name();
            if [&b"."[..], b".."].contains(&name.to_bytes()) {
                continue;
            }
            self.entries = self.entries.saturating_add(1);
            if self.entries > MOST_ENTRIES || self.too_deep {
                return;
            }
            let Ok(meta) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            // What takes room: a file with holes is smaller than it looks, one with several names is one.
            let blocks = u64::try_from(meta.st_blocks).unwrap_or_default().saturating_mul(512);
            self.bytes = self.bytes.saturating_add(blocks / meta.st_nlink.max(1));
            if FileType::from_raw_mode(meta.st_mode) == FileType::Directory {
                match depth.checked_sub(1) {
                    Some(depth) => {
                        if let Ok(inner) = open(folder, name) {
                            self.add(&inner, depth);
                        }
                    }
                    None => self.too_deep = true,
                }
            }
        }
    }
}

fn open(folder: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}
