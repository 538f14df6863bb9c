//! The one place that turns a program, its environment, its policy and its input into a running process.
//!
//! Each child leads its own process group, which is killed as a whole when the child ends, when its time is up,
//! when it writes too much, and when the future that waits for it is dropped (E-13). Nothing here blocks.

mod collect;

use crate::tools::limits::ToolLimits;
use collect::{Collected, Keep, Lines, collect};
use rustix::process::{Pid, Signal, kill_process_group};
use selvedge_runtime::ports::Watch;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};

/// How long the ends of the pipes may stay open after their process has ended: only a descendant that left the
/// process group can hold them, and it is not waited for.
const DRAIN: Duration = Duration::from_millis(500);
/// How long a process may stay after it has closed its result.
const LINGER: Duration = Duration::from_secs(2);
/// How much of a diagnostic stream is kept: its end.
const TAIL: usize = 16 << 10;

/// What a process may reach. Enforced by the isolation layer; limits are set on every child.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// Folders and files it may read, besides its scratch folder and its interpreter.
    pub read: Vec<PathBuf>,
    /// Folders and files it may write, besides its scratch folder.
    pub write: Vec<PathBuf>,
    /// Whether it may use the network.
    pub network: bool,
    /// Address space in bytes.
    pub memory_bytes: Option<u64>,
    /// The largest file in bytes.
    pub file_bytes: Option<u64>,
    /// Open files.
    pub open_files: Option<u64>,
}

impl Policy {
    /// No access beyond scratch, with the given limits.
    pub fn closed(limits: &ToolLimits) -> Self {
        Self {
            memory_bytes: limits.memory_bytes,
            file_bytes: limits.file_bytes,
            open_files: limits.open_files,
            ..Self::default()
        }
    }
}

/// The environment variables of a child.
#[derive(Clone, Debug)]
pub enum Environment {
    /// Exactly these: what tools get.
    Clean(Vec<(OsString, OsString)>),
    /// This process's own with changes, `None` removing one: only for programs of ours that run no tool's code.
    Inherited(Vec<(OsString, Option<OsString>)>),
}

/// A process to be run to its end.
#[derive(Clone)]
pub struct Launch {
    /// The program, by absolute path where it matters.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its environment variables.
    pub environment: Environment,
    /// Its working folder.
    pub cwd: PathBuf,
    /// What it reads on stdin.
    pub stdin: Vec<u8>,
    /// Its time limit.
    pub timeout: Duration,
    /// The most bytes of output: of stdout, or of both streams together with `stderr_is_output`.
    pub output_bytes: u64,
    /// Whether stderr is output too; otherwise only its end is kept, for diagnostics.
    pub stderr_is_output: bool,
    /// Whether the end of stdout is the end of the answer, after which the process is soon ended.
    pub ends_with_stdout: bool,
    /// What it may reach.
    pub policy: Policy,
    /// Who watches the lines it writes to stderr (E-15), unless stderr is output.
    pub watch: Option<Watch>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this exit code.
    Exited(i32),
    /// By a signal that was not ours.
    Signalled(i32),
    /// It had closed its result and was ended then.
    Dismissed,
    /// Its time was up.
    TimedOut,
    /// It wrote more than `output_bytes`.
    TooMuchOutput,
}

/// A process that has ended, with its whole process group.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// What it wrote to stdout.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr, or the end of that.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// The end of stderr as text, for messages.
    pub fn stderr_end(&self, bytes: usize) -> String {
        let start = self.stderr.len().saturating_sub(bytes);
        String::from_utf8_lossy(self.stderr.get(start..).unwrap_or_default()).trim().to_owned()
    }
}

/// Kills the group when dropped: the last line of E-13, whatever happens to the future that waits.
struct Group {
    child: Child,
    leader: Option<Pid>,
}

impl Group {
    fn kill(&self) {
        if let Some(leader) = self.leader {
            // An error means that nobody of the group is left.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a process to its end and returns how it went.
///
/// # Errors
/// Only when the program cannot be started.
pub async fn run(launch: Launch) -> io::Result<Finished> {
    let deadline = Instant::now() + launch.timeout;
    let mut group = spawn(&launch)?;
    limit(group.leader, &launch.policy);
    let (stdin, stdout, stderr) =
        (group.child.stdin.take(), group.child.stdout.take(), group.child.stderr.take());
    let input = launch.stdin;
    let feed = async move {
        if let Some(mut pipe) = stdin {
            // A process that does not read its input is its own affair.
            let _ = pipe.write_all(&input).await;
        }
    };
    let output = Collected::shared();
    let errors = if launch.stderr_is_output { output.sibling() } else { Collected::shared() };
    let errors_kept =
        if launch.stderr_is_output { Keep::Head(launch.output_bytes) } else { Keep::Tail(TAIL) };
    let end = {
        let reading_output = collect(stdout, output.clone(), Keep::Head(launch.output_bytes), None);
        let reading_errors = collect(stderr, errors.clone(), errors_kept, launch.watch.map(Lines::new));
        let streams = async { tokio::join!(feed, reading_output, reading_errors) };
        let closed = async {
            if !launch.ends_with_stdout {
                std::future::pending::<()>().await;
            }
            output.closed().await;
            sleep(LINGER).await;
        };
        tokio::pin!(streams);
        let mut streams_done = false;
        let mut waiting = Box::pin(async {
            tokio::select! {
                biased;
                () = output.overflowed() => End::TooMuchOutput,
                () = errors.overflowed() => End::TooMuchOutput,
                status = group.child.wait() => status.map_or(End::Exited(-1), ended),
                () = closed => End::Dismissed,
            }
        });
        let end = loop {
            tokio::select! {
                end = timeout_at(deadline, &mut waiting) => break end.unwrap_or(End::TimedOut),
                _ = &mut streams, if !streams_done => streams_done = true,
            }
        };
        drop(waiting);
        group.kill();
        if !streams_done {
            let _ = timeout_at(Instant::now() + DRAIN, &mut streams).await;
        }
        // What was still in the pipes counts too.
        if end != End::TimedOut && (output.is_over() || errors.is_over()) { End::TooMuchOutput } else { end }
    };
    // Reap a process that was killed just now, so that it is gone when the caller goes on. A reaped leader's
    // number may be given to another process: from here on nobody is to be killed by it.
    if timeout_at(Instant::now() + DRAIN, group.child.wait()).await.is_ok() {
        group.leader = None;
    }
    Ok(Finished { end, stdout: output.take(), stderr: errors.take() })
}

fn spawn(launch: &Launch) -> io::Result<Group> {
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).current_dir(&launch.cwd);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    match &launch.environment {
        Environment::Clean(variables) => {
            command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
        }
        Environment::Inherited(changes) => {
            for (name, value) in changes {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
        }
    }
    command.process_group(0).kill_on_drop(true);
    let child = command.spawn()?;
    let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    Ok(Group { child, leader })
}

/// Sets the child's limits from outside, before it has been given any input.
#[cfg(target_os = "linux")]
fn limit(leader: Option<Pid>, policy: &Policy) {
    use rustix::process::{Resource, Rlimit, prlimit};
    let limits = [
        (Resource::Core, Some(0)),
        (Resource::As, policy.memory_bytes),
        (Resource::Fsize, policy.file_bytes),
        (Resource::Nofile, policy.open_files),
    ];
    for (resource, most) in limits {
        if let (Some(_), Some(most)) = (leader, most) {
            // A stricter limit that the process has already stays in force when this is refused.
            let _ = prlimit(leader, resource, Rlimit { current: Some(most), maximum: Some(most) });
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn limit(_leader: Option<Pid>, _policy: &Policy) {}

fn ended(status: ExitStatus) -> End {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exited(code),
        (None, Some(signal)) => End::Signalled(signal),
        (None, None) => End::Exited(-1),
    }
}

/// A fresh folder of one call, removed when dropped.
#[derive(Debug)]
pub struct Scratch(Option<tempfile::TempDir>, PathBuf);

impl Scratch {
    /// Makes a scratch folder, readable by its owner only, under `root` or the system's folder for such.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub async fn new(root: Option<PathBuf>) -> io::Result<Self> {
        let made = tokio::task::spawn_blocking(move || {
            let root = root.unwrap_or_else(std::env::temp_dir);
            tempfile::Builder::new().prefix("selvedge-").tempdir_in(root)
        });
        let dir = made.await.map_err(io::Error::other)??;
        let path = dir.path().to_owned();
        Ok(Self(Some(dir), path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.1
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(dir) = self.0.take() {
            match tokio::runtime::Handle::try_current() {
                // Removing many files takes time; a closure that never runs still drops the folder.
                Ok(handle) => drop(handle.spawn_blocking(move || drop(dir))),
                Err(_) => drop(dir),
            }
        }
    }
}

/// The variables of a tool's process: a search path, its scratch folder as home, and nothing inherited.
pub fn clean_variables(search_path: OsString, scratch: &Path, effect: &str) -> Environment {
    let pairs: [(&str, OsString); 6] = [
        ("PATH", search_path),
        ("HOME", scratch.into()),
        ("TMPDIR", scratch.into()),
        ("LANG", "C.UTF-8".into()),
        ("LC_ALL", "C.UTF-8".into()),
        // The idempotency key (E-05).
        ("SELVEDGE_EFFECT_ID", effect.into()),
    ];
    Environment::Clean(pairs.into_iter().map(|(name, value)| (name.into(), value)).collect())
}
