//! Programs that end with this process, however it ends, together with all that they have started (E-13, A-39). A process of its own,
//! the supervisor, starts each of them.

use crate::launcher::Launcher;
use crate::spawn::{Handed, KillHandle, started};
use rustix::process::Pid;
use std::ffi::OsStr;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The first argument of a launcher that supervises: `--supervise LIFE STARTED -- PROGRAM ARG…`, with the numbers of two descriptors.
/// It starts the program once it can read a byte from LIFE, and ends all of it when LIFE ends. To STARTED it writes the program's
/// number, or the negative number of the error that kept it from starting.
pub(crate) const SUPERVISE: &str = "--supervise";

/// How long a supervisor may take to start its program.
const STARTING: Duration = Duration::from_secs(30);

/// The supervisors of this process.
static SUPERVISOR: OnceLock<Supervisor> = OnceLock::new();

/// Starts supervised programs.
#[derive(Clone, Debug)]
pub struct Supervisor(Option<Launcher>);

/// A supervised program.
pub struct Supervised {
    /// The supervisor, which ends as its program does.
    pub child: Child,
    /// The program itself.
    pub program: Option<Pid>,
    /// Ends all of it. When the last clone is dropped, it ends as well.
    pub handle: KillHandle,
}

/// The pipe that keeps a program alive.
#[derive(Debug)]
pub(crate) struct Lifeline(Mutex<Option<PipeWriter>>);

impl Lifeline {
    /// Ends the program and all that it has started.
    pub(crate) fn cut(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Makes it known how supervisors are started; the first launcher that is told is taken.
pub(crate) fn started_as(launcher: &Launcher) {
    SUPERVISOR.get_or_init(|| Supervisor::new(Some(launcher.clone())));
}

impl Supervisor {
    /// One that is started as this launcher. Without a launcher, without `/proc`, and on other systems than Linux, programs are started
    /// without a supervisor: they outlive a process that is killed, and what has left their process group outlives them.
    pub fn new(launcher: Option<Launcher>) -> Self {
        Self(launcher.filter(|_| cfg!(target_os = "linux") && Path::new("/proc/self/fd").exists()))
    }

    /// The one of this process.
    pub(crate) fn of_this_process() -> Self {
        SUPERVISOR.get().cloned().unwrap_or_else(|| Self::new(None))
    }

    /// Starts a program; `set` says the rest of how it is started.
    ///
    /// # Errors
    /// It cannot be started.
    pub async fn start(
        &self,
        program: &OsStr,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        handed: Handed,
        set: impl FnOnce(&mut Command),
    ) -> io::Result<Supervised> {
        let Some(launcher) = &self.0 else {
            let mut command = Command::new(program);
            set(command.args(args));
            command.kill_on_drop(true);
            let child = started(command, handed).await?;
            let handle = KillHandle::of(&child, false);
            return Ok(Supervised { program: handle.leader, child, handle });
        };
        let ((life, writer), (news, tells)) = (io::pipe()?, io::pipe()?);
        let ends: Handed = [life.into(), tells.into()].map(Arc::<OwnedFd>::new).into();
        let mut command = Command::new(&launcher.program);
        command.args(&launcher.args).arg(SUPERVISE);
        command.args(ends.iter().map(|end| end.as_raw_fd().to_string())).arg("--").arg(program);
        set(command.args(args));
        let child = started(command, [handed, ends].concat()).await?;
        let lifeline = Arc::new(Lifeline(Mutex::new(Some(writer))));
        let handle = KillHandle::supervised(&child, Arc::clone(&lifeline));
        let program = lifeline.begin(news).await?;
        Ok(Supervised { child, program, handle })
    }
}

impl Lifeline {
    /// Lets the program start, and says which process it is.
    pub(crate) async fn begin(&self, news: PipeReader) -> io::Result<Option<Pid>> {
        if let Some(writer) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            writer.write_all(b"1")?;
        }
        let mut number = [0; 4];
        let mut news = Receiver::from_owned_fd(news.into())?;
        timeout(STARTING, news.read_exact(&mut number)).await??;
        match i32::from_ne_bytes(number) {
            program @ 1.. => Ok(Pid::from_raw(program)),
            error => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        }
    }
}
