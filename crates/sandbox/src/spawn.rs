//! Starting a process, and ending it with everything under it.

use crate::supervisor::Lifeline;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use tokio::process::{Child, Command};

/// A process that can be killed with everything under it.
#[derive(Clone, Debug)]
pub struct KillHandle {
    pub(crate) leader: Option<Pid>,
    /// Whether it may be bubblewrap, whose only child is the first process of the sandbox.
    sandbox: bool,
    /// Of a supervised program, what keeps it alive: the process is its supervisor.
    lifeline: Option<Arc<Lifeline>>,
}

impl KillHandle {
    /// This child, which leads a process group, or may be a sandbox.
    pub fn of(child: &Child, sandbox: bool) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { leader, sandbox, lifeline: None }
    }

    /// This supervisor and its program.
    pub(crate) fn supervised(child: &Child, lifeline: Arc<Lifeline>) -> Self {
        Self { lifeline: Some(lifeline), ..Self::of(child, false) }
    }

    /// Kills all of it. Of a sandbox, the first process is killed: with it the kernel ends every other one in there, and
    /// bubblewrap ends after all of them.
    pub fn kill(&self) {
        if let Some(lifeline) = &self.lifeline {
            return lifeline.cut();
        }
        let inner = if self.sandbox { self.children() } else { Vec::new() };
        for pid in &inner {
            let _ = kill_process(*pid, Signal::KILL);
        }
        if inner.is_empty() {
            self.kill_group();
        }
    }

    /// What can be read when all of it is gone: the first process of a sandbox ends after every other one in there.
    #[cfg(target_os = "linux")]
    pub(crate) fn ends(&self) -> Vec<OwnedFd> {
        let inner = if self.sandbox { self.children() } else { Vec::new() };
        let all = if inner.is_empty() { self.leader.into_iter().collect() } else { inner };
        all.into_iter().filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()).collect()
    }

    /// Kills the process group.
    pub(crate) fn kill_group(&self) {
        if let Some(leader) = self.leader {
            // An error means that nobody of the group is left.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }

    fn children(&self) -> Vec<Pid> {
        let Some(leader) = self.leader.map(Pid::as_raw_nonzero) else { return Vec::new() };
        let list =
            std::fs::read_to_string(format!("/proc/{leader}/task/{leader}/children")).unwrap_or_default();
        list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
    }
}

/// Kills when dropped: the last line of E-13, whatever happens to the future that waits.
#[derive(Debug)]
pub(crate) struct Guard(pub(crate) Option<KillHandle>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.kill();
            // The future that would have waited is gone: what is left of the sandbox ends with its leader.
            if handle.sandbox {
                handle.kill_group();
            }
        }
    }
}

type Task = Box<dyn FnOnce() + Send>;

/// Open files that a process inherits under the numbers that they have here.
pub type Handed = Vec<Arc<OwnedFd>>;

/// Starts a process from a thread that lives as long as this process: the kernel ends a sandbox with the *thread* that
/// started it, and threads of a runtime come and go. It inherits what is handed to it, and nobody else does who is started here.
///
/// # Errors
/// It cannot be started.
pub async fn started(mut command: Command, handed: Handed) -> io::Result<Child> {
    static STARTER: OnceLock<Option<Sender<Task>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, tasks) = channel::<Task>();
        let run = move || tasks.into_iter().for_each(|task| task());
        std::thread::Builder::new().name("starter".into()).spawn(run).ok().map(|_| sender)
    });
    command.process_group(0);
    let runtime = tokio::runtime::Handle::current();
    let (answer, answered) = tokio::sync::oneshot::channel();
    let task = move || {
        let _inside = runtime.enter();
        let child = inherited(&handed, FdFlags::empty()).and_then(|()| command.spawn());
        // What this leaves open, a launcher closes: no tool has it.
        let _ = inherited(&handed, FdFlags::CLOEXEC);
        // Nobody waits any more: the child is killed as it is dropped.
        let _ = answer.send(child);
    };
    let gone = || io::Error::other("no thread can be started");
    starter.as_ref().ok_or_else(gone)?.send(Box::new(task)).map_err(|_| gone())?;
    answered.await.map_err(|_| gone())?
}

fn inherited(handed: &[Arc<OwnedFd>], flags: FdFlags) -> io::Result<()> {
    handed.iter().try_for_each(|file| fcntl_setfd(file, flags)).map_err(Into::into)
}
