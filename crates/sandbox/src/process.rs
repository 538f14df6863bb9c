//! The one place that turns a program, its environment, its policy and its input into a running process.
//!
//! A confined child has a namespace of processes, which ends as a whole; any other leads its own process group, which is
//! killed as a whole: when the child ends, when its time is up, when it writes too much, and when the future that waits
//! for it is dropped (E-13). Nothing here blocks.

mod attend;
mod collect;
mod dropped;
#[cfg(target_os = "linux")]
mod entered;
mod finished;
mod made;
#[cfg(target_os = "linux")]
mod open_calls;
#[cfg(target_os = "linux")]
mod owner;
mod pipes;
#[cfg(target_os = "linux")]
mod quarantine;
#[cfg(target_os = "linux")]
mod repository;
mod room;
mod scratch;
mod stragglers;
#[cfg(target_os = "linux")]
mod word;

use crate::isolation::{Isolation, Start};
use crate::policy::Policy;
use crate::spawn::{Guard, Handed, KillHandle, started};
use crate::supervisor::{Supervised, Supervisor};
pub use attend::Talk;
pub(crate) use attend::{Pipes, attend};
pub use collect::{TAIL, Tail};
pub use dropped::finish_dropped_calls;
pub use finished::Finished;
pub use made::Made;
#[cfg(target_os = "linux")]
pub(crate) use open_calls::Note;
#[cfg(target_os = "linux")]
pub use open_calls::{Left, no_more_calls, note_calls_in, settle_killed_calls};
#[cfg(target_os = "linux")]
pub(crate) use owner::{OwnershipRestore, Until};
use pipes::pipes;
pub(crate) use pipes::talking;
#[cfg(target_os = "linux")]
pub(crate) use quarantine::Before;
pub use room::MOST_ENTRIES;
pub(crate) use room::Room;
use rustix::process::Pid;
pub(crate) use scratch::{Own, sweep};
pub use scratch::{Scratch, scratch_root};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
pub use stragglers::Stragglers;
use tokio::process::Command;
use tokio::time::{Instant, timeout_at};

/// Who is told each line that a process prints, or writes to stderr, where that is no output.
pub type Watch = Arc<dyn Fn(&str) + Send + Sync>;

/// How long the ends of the pipes may stay open after their process has ended: only a descendant that left the
/// process group can hold them, and it is not waited for.
const DRAIN: Duration = Duration::from_millis(500);
/// How long a sandbox may take to end with all that is in it.
const REAP: Duration = Duration::from_secs(3);

/// A process to be run to its end.
#[derive(Clone)]
pub struct Launch {
    /// The program, by absolute path where it matters.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its environment variables: exactly these.
    pub environment: Vec<(OsString, OsString)>,
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
    /// Whether it is ended if this process is killed. What is confined is anyway; else only what may take long should.
    pub bound: bool,
    /// Whether its stdin is a socket on which it answers, and stdout is for what it prints. After the end of the answer it is
    /// soon ended.
    pub answers: bool,
    /// What it may reach.
    pub policy: Policy,
    /// How that is enforced; `None` only for programs that run no tool's code, and commands of the user's own.
    pub confined: Option<Confined>,
    /// Who watches the lines it prints, and writes to stderr (E-15), unless that is output.
    pub watch: Option<Watch>,
    /// What it inherits besides its streams.
    pub handed: Handed,
    /// The tool whose call it is; empty for a program of ours.
    pub tool: String,
}

impl Launch {
    /// A program of ours, which runs no tool's code: the lightest policy, nobody watches, no input, in `cwd`.
    pub fn own(
        program: PathBuf,
        args: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
        cwd: PathBuf,
    ) -> Self {
        Self {
            program,
            args,
            environment,
            cwd,
            stdin: Vec::new(),
            timeout: Duration::from_secs(60),
            output_bytes: 64 << 20,
            stderr_is_output: false,
            bound: false,
            answers: false,
            policy: Policy::default(),
            confined: None,
            watch: None,
            handed: Handed::default(),
            tool: String::new(),
        }
    }
}

/// Enforces a policy on a process and all that it starts.
#[derive(Clone, Debug)]
pub struct Confined {
    /// What this machine gives.
    pub isolation: Isolation,
    /// The folder that is the process's own.
    pub scratch: PathBuf,
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
    /// It had more in its scratch folder than it may.
    TooMuchScratch,
}

/// Runs a process to its end and returns how it went.
///
/// # Errors
/// Only when the program cannot be started, or what is to confine it.
pub async fn run(launch: Launch) -> io::Result<Finished> {
    #[cfg(target_os = "linux")]
    let before = Before::now(&launch.policy);
    #[cfg(target_os = "linux")]
    let mut word = word::Word::of(&launch)?;
    #[cfg(target_os = "linux")]
    let told = word.as_ref().and_then(word::Word::number);
    #[cfg(not(target_os = "linux"))]
    let told = None;
    let (talk_end, stdin) = match launch.answers.then(talking).transpose()? {
        Some((ours, its)) => (Some(ours), Stdio::from(its)),
        None => (None, Stdio::piped()),
    };
    let start = start(&launch, told).await?;
    #[cfg(target_os = "linux")]
    let tools =
        launch.confined.as_ref().map(|confined| confined.isolation.unassigned_uids()).unwrap_or_default();
    #[cfg(target_os = "linux")]
    let note = Note::of(&before, start.user, &tools, &launch.tool)?;
    let Supervised { mut child, program, handle } = spawn(&launch, &start, stdin).await?;
    let mut guard = Guard(Some(handle.clone()));
    #[cfg(target_os = "linux")]
    let owed = OwnershipRestore::new(before, start.user, tools, note, || Some(Until::Gone(handle.clone())));
    if launch.confined.is_none() {
        limit(program, &launch.policy);
    }
    let pipes = pipes(&mut child, talk_end);
    let talk = Talk {
        stdin: launch.stdin,
        timeout: launch.timeout,
        output_bytes: launch.output_bytes,
        stderr_is_output: launch.stderr_is_output,
        answers: launch.answers,
        watch: launch.watch,
    };
    let waiting = async { child.wait().await.map_or(End::Exited(-1), ended) };
    let room = launch.confined.as_ref().and_then(|confined| Room::of(&launch.policy, &confined.scratch));
    #[cfg(target_os = "linux")]
    word.iter_mut().for_each(word::Word::given);
    #[cfg_attr(not(target_os = "linux"), expect(unused_mut, reason = "nothing is set aside there"))]
    let mut finished = attend(talk, pipes, room, waiting, || start.kill(&handle)).await;
    #[cfg(target_os = "linux")]
    let refused = word.is_some_and(|mut word| !word.came())
        && matches!(finished.end, End::Exited(_) | End::Signalled(_) | End::Dismissed);
    #[cfg(target_os = "linux")]
    if let (true, Some(Confined { isolation, .. })) = (refused, &launch.confined) {
        isolation.forget();
    }
    // Reap a process that was killed just now, so that it, and the sandbox with all in it, is gone when the caller
    // goes on. A reaped leader's number may be given to another process: from here on nobody is to be killed by it.
    if timeout_at(Instant::now() + REAP, child.wait()).await.is_err() {
        handle.kill_group();
        if timeout_at(Instant::now() + DRAIN, child.wait()).await.is_err() {
            return Ok(finished);
        }
    }
    guard.0 = None;
    #[cfg(target_os = "linux")]
    {
        finished.made = owed.settle().await;
        if refused {
            return Err(finished.refusal());
        }
    }
    Ok(finished)
}

async fn spawn(launch: &Launch, start: &Start, stdin: Stdio) -> io::Result<Supervised> {
    let set = |command: &mut Command| {
        // A sandbox changes to it inside.
        command.current_dir(if start.sandbox { Path::new("/") } else { &launch.cwd });
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env_clear().envs(launch.environment.iter().map(|(name, value)| (name, value)));
    };
    let handed = start.handed.clone();
    if launch.bound || start.is_loose(launch) {
        let supervisor = Supervisor::of_this_process();
        return supervisor.start(start.program.as_os_str(), &start.args, handed, set).await;
    }
    let mut command = Command::new(&start.program);
    set(command.args(&start.args));
    command.kill_on_drop(true);
    let child = started(command, handed).await?;
    let handle = KillHandle::of(&child, start.sandbox);
    Ok(Supervised { program: handle.leader, child, handle })
}

impl Start {
    /// Whether a tool's processes are neither in a namespace nor in a control group that ends as a whole.
    fn is_loose(&self, launch: &Launch) -> bool {
        #[cfg(target_os = "linux")]
        let grouped = self.group.is_some();
        #[cfg(not(target_os = "linux"))]
        let grouped = false;
        launch.confined.is_some() && !self.sandbox && !grouped
    }

    /// Ends the process that was started and all that it started.
    fn kill(&self, handle: &KillHandle) {
        handle.kill();
        #[cfg(target_os = "linux")]
        if let Some(group) = &self.group {
            group.kill();
        }
    }
}

/// The program as it is, or with what confines it around it.
#[cfg(target_os = "linux")]
async fn start(launch: &Launch, told: Option<i32>) -> io::Result<Start> {
    use crate::isolation::bubblewrap::Inside;
    use crate::isolation::view::make_writable;
    let Some(Confined { isolation, scratch }) = &launch.confined else {
        return Ok(plain(launch));
    };
    let found = isolation.found().await;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    make_writable(&launch.policy.write);
    isolation.start(
        found,
        &Inside {
            program: &launch.program,
            args: &launch.args,
            cwd: &launch.cwd,
            scratch,
            policy: &launch.policy,
            // Nobody works longer than all cores do until the time limit.
            cpu_seconds: Some((launch.timeout.as_secs() + 2).saturating_mul(cores)),
            server: false,
            told,
        },
    )
}

#[cfg(not(target_os = "linux"))]
async fn start(launch: &Launch, _told: Option<i32>) -> io::Result<Start> {
    Ok(plain(launch))
}

fn plain(launch: &Launch) -> Start {
    Start { handed: launch.handed.clone(), ..Start::plain(launch.program.clone(), launch.args.clone()) }
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

/// Where a tool's process finds programs: the user's own search path says things about the user.
pub const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A search path with a folder ahead of the usual ones.
pub fn search_path(first: Option<&Path>) -> OsString {
    let usual = || std::env::split_paths(SEARCH_PATH);
    let mut path = OsString::new();
    if let Some(first) = first.filter(|first| first.is_absolute() && !usual().any(|folder| folder == **first))
    {
        path.push(first);
        path.push(":");
    }
    path.push(SEARCH_PATH);
    path
}

/// The variables of a tool's process: a search path, its scratch folder as home, and nothing inherited.
pub fn clean_variables(search_path: OsString, scratch: &Path, effect: &str) -> Vec<(OsString, OsString)> {
    let pairs: [(&str, OsString); 6] = [
        ("PATH", search_path),
        ("HOME", scratch.into()),
        ("TMPDIR", scratch.into()),
        ("LANG", "C.UTF-8".into()),
        ("LC_ALL", "C.UTF-8".into()),
        // The idempotency key (E-05).
        ("SELVEDGE_EFFECT_ID", effect.into()),
    ];
    pairs.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// The same in a sandbox, whose user has no entry in any list of users: programs ask for a name all the same.
pub fn sandboxed_variables(search_path: OsString, scratch: &Path, effect: &str) -> Vec<(OsString, OsString)> {
    let user = [("USER", "tool"), ("LOGNAME", "tool")];
    // Root's tools are somebody else, to whom git would say that the document's folder is another one's.
    let foreign =
        [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "safe.directory"), ("GIT_CONFIG_VALUE_0", "*")];
    let foreign = foreign.into_iter().filter(|_| rustix::process::geteuid().is_root());
    let more = user.into_iter().chain(foreign).map(|(name, value)| (name.into(), value.into()));
    clean_variables(search_path, scratch, effect).into_iter().chain(more).collect()
}
