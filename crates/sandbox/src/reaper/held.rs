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
    failed: PipeReader,
    /// Its ends, until it has them.
    its: Handed,
}

impl Held {
    pub(super) fn new() -> io::Result<Self> {
        let ((go, goes), (failed, fails)) = (io::pipe()?, io::pipe()?);
        Ok(Self { goes, failed, its: [go.into(), fails.into()].map(Arc::<OwnedFd>::new).into() })
    }

    /// What becomes the program; arguments are its own.
    pub(super) fn command(&self, launcher: &Launcher, program: &OsStr) -> Command {
        let mut command = Command::new(&launcher.program);
        command.args(&launcher.args).arg(HELD);
        command.args(self.its.iter().map(|end| end.as_raw_fd().to_string())).arg("--").arg(program);
        command
    }

    /// What it inherits.
    pub(super) fn handed(&mut self) -> Handed {
        std::mem::take(&mut self.its)
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
