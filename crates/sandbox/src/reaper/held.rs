//! A program that is held until the reaper knows of it: a launcher that becomes it when it is told to, and ends when
//! nobody can tell it any more.

use super::HELD;
use crate::launcher::Launcher;
use crate::spawn::Handed;
use std::ffi::OsStr;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio::time::timeout;

/// How long it may take until it has become the program. A process of ours that was started by others at the same
/// moment may keep its pipe open, so that its end says nothing.
const BECOMING: Duration = Duration::from_secs(2);

/// The pipes to a program that is held.
pub(super) struct Held {
    goes: PipeWriter,
    go: Option<PipeReader>,
    failed: PipeReader,
    fails: Option<PipeWriter>,
}

impl Held {
    pub(super) fn new() -> io::Result<Self> {
        let ((go, goes), (failed, fails)) = (io::pipe()?, io::pipe()?);
        Ok(Self { goes, go: Some(go), failed, fails: Some(fails) })
    }

    /// What becomes the program; arguments are its own.
    pub(super) fn command(&self, launcher: &Launcher, program: &OsStr) -> Command {
        let numbers = [self.go.as_ref().map(AsRawFd::as_raw_fd), self.fails.as_ref().map(AsRawFd::as_raw_fd)];
        let mut command = Command::new(&launcher.program);
        command.args(&launcher.args).arg(HELD);
        command.args(numbers.into_iter().flatten().map(|number| number.to_string())).arg("--").arg(program);
        command
    }

    /// What it inherits.
    pub(super) fn handed(&mut self) -> Handed {
        let go = self.go.take().map(OwnedFd::from);
        let fails = self.fails.take().map(OwnedFd::from);
        go.into_iter().chain(fails).map(Arc::new).collect()
    }

    /// Lets it become the program.
    ///
    /// # Errors
    /// It can't be.
    pub(super) async fn go(mut self) -> io::Result<()> {
        self.goes.write_all(b"1")?;
        let mut error = [0; 4];
        let mut failed = Receiver::from_owned_fd(self.failed.into())?;
        match timeout(BECOMING, failed.read_exact(&mut error)).await {
            Ok(Ok(_)) => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(error))),
            _ => Ok(()),
        }
    }
}
