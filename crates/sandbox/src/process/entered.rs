//! Folders as their owner may use them, whatever a tool has made of their modes.

use rustix::fs::{Dir, Mode, OFlags, RawMode, Stat, chmod, openat};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// A folder that is looked into. It is named by its descriptor: nobody can put another one in its place.
pub(super) struct Entered {
    place: OwnedFd,
    /// The mode that it had, where its owner had not all rights to it: it has it again afterwards.
    mode: Option<Mode>,
}

impl Entered {
    /// One that was opened by its place only; with all its owner's rights if it is to `take` them.
    pub(super) fn new(place: OwnedFd, meta: &Stat, take: bool) -> Self {
        let mode = Mode::from_raw_mode(meta.st_mode);
        let lacks = take && !mode.contains(Mode::RWXU);
        // Of another owner: root needs no mode, and whoever has not the rights is told by what he tries next.
        let taken = lacks && change(&place, mode | Mode::RWXU).is_ok();
        Self { place, mode: taken.then_some(mode) }
    }

    /// What is in it.
    pub(super) fn entries(&self) -> rustix::io::Result<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Dir::new(openat(&self.place, ".", flags, Mode::empty())?)
    }
}

impl AsFd for Entered {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.place.as_fd()
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(mode) = self.mode {
            // Whoever could take the rights can give them back.
            let _ = change(&self.place, mode);
        }
    }
}

fn change(place: &OwnedFd, mode: Mode) -> rustix::io::Result<()> {
    // Without the kind of file.
    let mode = Mode::from_raw_mode(mode.as_raw_mode() & RawMode::from(0o7777u16));
    chmod(Path::new("/proc/self/fd").join(place.as_raw_fd().to_string()), mode)
}
