//! A server's process: in a clean environment and a group of its own, which ends as a whole (E-13).

use super::config::Hidden;
use super::error::{ServerError, line};
use super::message::Reader;
use super::pipe::{Ended, Input, Noise, Pipe, Why, tell};
use crate::command::dir_relative;
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::spawn::{Handed, KillHandle};
use selvedge_sandbox::supervisor::{Supervised, Supervisor};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// The variables of ours that a server gets: where programs and a person's own files are, and how to write to them.
/// None of them holds a key.
const INHERITED: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "XDG_CACHE_HOME",
];
/// How much of stderr is kept: its end.
const TAIL: usize = 8 << 10;
/// How long a server may take to end when its stdin is closed.
const LEAVE: Duration = Duration::from_millis(1000);
/// How long the news of its end may take after its output has ended.
const NEWS: Duration = Duration::from_millis(500);

/// A running server. Dropped, it is killed with everything under it.
pub(super) struct Process {
    handle: Arc<Mutex<Option<KillHandle>>>,
    ended: watch::Receiver<Option<Why>>,
    /// How the process itself ended, if it did.
    status: watch::Receiver<Option<ExitStatus>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    noise: Noise,
    input: Input,
}

/// A program to be started.
pub(super) struct Start<'a> {
    pub(super) server: &'a str,
    pub(super) program: &'a str,
    pub(super) args: &'a [Hidden],
    pub(super) env: &'a BTreeMap<String, Hidden>,
    pub(super) dir: &'a Path,
    /// Of which it is given some variables.
    pub(super) process: &'a ProcessEnv,
    /// Reads the messages.
    pub(super) reader: &'a Reader,
    /// Starts it, and ends it with all that it has started.
    pub(super) supervisor: &'a Supervisor,
}

impl Process {
    /// Starts a server.
    ///
    /// # Errors
    /// There is no such program, or it can't be run.
    pub(super) async fn start(start: Start<'_>) -> Result<(Self, Pipe), ServerError> {
        let started = spawn(&start).await.map_err(|error| not_started(&start, &error))?;
        let Supervised { mut child, handle, .. } = started;
        let handle = Arc::new(Mutex::new(Some(handle)));
        let (ended, has_ended) = watch::channel(None);
        let (exited, status) = watch::channel(None);
        let (stderr, noise) = (Arc::<Mutex<Vec<u8>>>::default(), Noise::default());
        let input: Input = Arc::new(tokio::sync::Mutex::new(child.stdin.take()));
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let lacking = || ServerError::lasting(format!("the MCP server `{}` has no stdout", start.server));
        let pipe = Pipe::new(
            Arc::clone(&input),
            output.ok_or_else(lacking)?,
            start.reader.clone(),
            noise.clone(),
            Ended::clone(&ended),
        );
        if let Some(errors) = errors {
            tokio::spawn(keep_tail(errors, Arc::clone(&stderr)));
        }
        tokio::spawn(attend(child, Arc::clone(&handle), exited, ended));
        Ok((Self { handle, ended: has_ended, status, stderr, noise, input }, pipe))
    }

    /// Waits until the server has ended, or has written what ends the conversation.
    pub(super) async fn ended(&self) {
        let mut ended = self.ended.clone();
        if ended.wait_for(Option::is_some).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// What became of it, with the end of what it wrote to stderr, as the rest of a sentence: "ended with exit code 1:
    /// …".
    pub(super) async fn fate(&self) -> String {
        let mut status = self.status.clone();
        let why = self.ended.borrow().clone();
        let mut fate = match why {
            // It still runs, and is ended for it.
            Some(Why::Broken(why)) => format!("was ended: {why}"),
            _ => match timeout(NEWS, status.wait_for(Option::is_some)).await.map(|status| status.map(|s| *s))
            {
                Ok(Ok(Some(status))) => of_status(status),
                _ => "closed its output".to_owned(),
            },
        };
        fate.push_str(&self.said());
        fate
    }

    /// What it wrote where people may look: the end of stderr, and what of stdout was no protocol.
    pub(super) fn said(&self) -> String {
        let errors = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let start = errors.len().saturating_sub(TAIL);
        let errors = String::from_utf8_lossy(errors.get(start..).unwrap_or_default());
        let tail: String = {
            let count = errors.trim().chars().count();
            errors.trim().chars().skip(count.saturating_sub(2000)).collect()
        };
        let noise = self.noise.said();
        match (tail.is_empty(), noise.is_empty()) {
            (true, true) => String::new(),
            (false, _) => format!("; its stderr ends with: {}", line(&tail)),
            (true, false) => format!("; it wrote to its stdout, where only the protocol belongs: {noise}"),
        }
    }

    /// Lets the server go: it is told by its stdin, and killed if it does not.
    pub(super) async fn close(&self) {
        if let Ok(mut input) = timeout(LEAVE, self.input.lock()).await {
            drop(input.take());
        }
        let mut status = self.status.clone();
        let _ = timeout(LEAVE, status.wait_for(Option::is_some)).await;
        self.kill();
    }

    fn kill(&self) {
        if let Some(handle) = self.handle.lock().unwrap_or_else(PoisonError::into_inner).take() {
            handle.kill();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn spawn(start: &Start<'_>) -> io::Result<Supervised> {
    let program = dir_relative(start.dir, start.program);
    let args = start.args.iter().map(|arg| &arg.0);
    let set = |command: &mut Command| {
        command.current_dir(start.dir).env_clear();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in INHERITED {
            let value = start.process.variable(name);
            let value =
                value.or_else(|| (name == "PATH").then(|| OsStr::new("/usr/local/bin:/usr/bin:/bin")));
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.envs(start.env.iter().map(|(name, value)| (name, &value.0)));
    };
    start.supervisor.start(program.as_os_str(), args, Handed::default(), set).await
}

/// Waits for the process, ends what it leaves behind, and tells how it went.
async fn attend(
    mut child: Child,
    handle: Arc<Mutex<Option<KillHandle>>>,
    exited: watch::Sender<Option<ExitStatus>>,
    ended: Ended,
) {
    let status = child.wait().await;
    // From here on its number may be another process's: it is killed once more and never again.
    if let Some(handle) = handle.lock().unwrap_or_else(PoisonError::into_inner).take() {
        handle.kill();
    }
    exited.send_replace(Some(status.unwrap_or_else(|_| ExitStatus::from_raw(0))));
    // What it has written by now is read first: the end of its output tells by itself.
    tokio::time::sleep(NEWS).await;
    tell(&ended, Why::Closed);
}

async fn keep_tail(mut stream: impl AsyncRead + Unpin, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
        // Cut only now and then: each byte is moved a bounded number of times.
        if kept.len() > 2 * TAIL {
            let surplus = kept.len() - TAIL;
            kept.drain(..surplus);
        }
    }
}

fn of_status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// What to install for a program that is not there.
fn remedy(program: &str) -> String {
    let bare = program.rsplit('/').next().unwrap_or(program);
    match bare {
        "npx" | "node" | "npm" => "install Node.js, or name the program by its path".to_owned(),
        "uvx" | "uv" => "install uv, or name the program by its path".to_owned(),
        "docker" | "podman" => format!("install {bare}, or name the program by its path"),
        _ => "check its name, install it, or name it by its path".to_owned(),
    }
}

fn not_started(start: &Start<'_>, error: &io::Error) -> ServerError {
    let Start { server, program, dir, .. } = start;
    if error.kind() != io::ErrorKind::NotFound {
        let message = format!("the MCP server `{server}` can't be started: {program}: {error}");
        return ServerError::lasting(message).help("check that the program may be run");
    }
    if !dir.is_dir() {
        let message =
            format!("the MCP server `{server}` can't be started: there is no folder {}", dir.display());
        return ServerError::lasting(message).help("correct `cwd`");
    }
    let place = if program.contains('/') { "here" } else { "on PATH" };
    ServerError::lasting(format!(
        "the MCP server `{server}` can't be started: there is no `{program}` {place}"
    ))
    .help(remedy(program))
}
