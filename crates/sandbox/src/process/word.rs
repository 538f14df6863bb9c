//! The word of a sandbox that it runs: without it, what was written is not the tool's.

use super::Launch;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{FdFlags, fcntl_setfd};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsRawFd, RawFd};

/// A pipe on which the launcher tells, just before the tool starts, that everything around it is set.
pub(super) struct Word {
    told: PipeReader,
    tells: Option<PipeWriter>,
}

impl Word {
    /// One for a program that is started by a launcher.
    pub(super) fn of(launch: &Launch) -> io::Result<Option<Self>> {
        let confined = launch.confined.as_ref().filter(|confined| confined.isolation.is_possible());
        confined.map(|_| Self::new()).transpose()
    }

    fn new() -> io::Result<Self> {
        let (told, tells) = io::pipe()?;
        // A program that is started at this moment by others gets it too: it is of no use there, and a launcher closes it.
        fcntl_setfd(&tells, FdFlags::empty())?;
        // Nobody waits for it: it has come when the process has ended, or never.
        fcntl_setfl(&told, fcntl_getfl(&told)? | OFlags::NONBLOCK)?;
        Ok(Self { told, tells: Some(tells) })
    }

    /// The number of the descriptor that the process inherits.
    pub(super) fn number(&self) -> Option<RawFd> {
        self.tells.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// The process has been started.
    pub(super) fn given(&mut self) {
        self.tells = None;
    }

    /// Whether it has come.
    pub(super) fn came(&mut self) -> bool {
        self.told.read(&mut [0]).is_ok_and(|bytes| bytes == 1)
    }
}
