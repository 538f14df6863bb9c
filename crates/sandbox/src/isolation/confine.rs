//! The program that starts a confined program: what has to be set by a process for itself, between the
//! sandbox's start and the tool's, is set here, and then this process becomes the tool.
//!
//! It is started as `LAUNCHER ORDER -- PROGRAM ARG…` with an order as JSON, usually inside bubblewrap. It has one
//! thread, and everything that fails ends it: a layer that was found to work (`probe`) is never left out silently.

mod files;
mod identity;
mod limits;
mod supervise;
pub(crate) mod syscalls;

use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, set_parent_process_death_signal, wait};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The exit code of a launcher that could not do what it was told, as of shells that cannot start a program.
pub const REFUSED: u8 = 126;
/// What a launcher writes before the reason, so that it can be told from a tool's own words.
pub(crate) const COMPLAINT: &str = "the sandbox cannot be set up: ";
/// The first argument of a launcher that makes itself a member of a control group and then starts a program:
/// `--join FOLDER -- PROGRAM ARG…`.
pub(crate) const JOIN: &str = "--join";
/// The first argument of the helper that writes the maps of a user namespace.
const MAP: &str = "--map";

/// Limits of a process, set for good.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Limits {
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) file_bytes: Option<u64>,
    pub(crate) open_files: Option<u64>,
    pub(crate) processes: Option<u64>,
    pub(crate) cpu_seconds: Option<u64>,
}

/// What to set up before the program starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Arguments that make this program a launcher: those before the order.
    pub(crate) launcher: Vec<String>,
    /// The user and group that root becomes.
    pub(crate) become_user: Option<u32>,
    /// Whether it may write files whatever their owner: only what the other layers leave visible.
    pub(crate) writes: bool,
    /// Whether the rights of this process are left as they are.
    pub(crate) keep_rights: bool,
    /// Whether the program starts calls of its own, each in a namespace.
    pub(crate) server: bool,
    /// The descriptor on which to tell that the program starts, with everything set around it.
    #[serde(default)]
    pub(crate) told: Option<i32>,
    /// Limits, unless that layer is off.
    pub(crate) limits: Option<Limits>,
    /// Landlock, unless that layer is off.
    pub(crate) files: Option<Files>,
    /// Whether dangerous system calls are refused.
    pub(crate) seccomp: bool,
    /// Whether the network may be used.
    pub(crate) network: bool,
    /// Only try every layer and say how it went.
    pub(crate) probe: bool,
}

/// What a process may reach of the file system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Files {
    /// Read and execute: the system's own, wherever its links lead.
    pub(crate) system: Vec<PathBuf>,
    /// Read and execute. These and the next are places without links.
    pub(crate) read: Vec<PathBuf>,
    /// List the names below, and no more.
    #[serde(default)]
    pub(crate) listed: Vec<PathBuf>,
    /// Everything.
    pub(crate) write: Vec<PathBuf>,
    /// Read and write what is there: devices.
    pub(crate) devices: Vec<PathBuf>,
}

/// What a probe found: of each layer, why it does not work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tried {
    pub(crate) identity: Option<String>,
    pub(crate) limits: Option<String>,
    pub(crate) landlock: Option<String>,
    pub(crate) seccomp: Option<String>,
    /// Namespaces inside the sandbox, one set for each call of a warm interpreter.
    pub(crate) nested: Option<String>,
}

/// The launcher's `main`: `args` are its arguments after those that made it a launcher. Returns only when it failed,
/// or after a probe.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match confine(args.into_iter().collect()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Nobody is left to be told when stderr is closed.
            let _ = io::Write::write_all(&mut io::stderr(), format!("{COMPLAINT}{error}\n").as_bytes());
            ExitCode::from(REFUSED)
        }
    }
}

fn confine(args: Vec<OsString>) -> io::Result<u8> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "an order and a program are expected");
    let (first, rest) = args.split_first().ok_or_else(wrong)?;
    if first == MAP {
        return identity::write_maps(rest.first().and_then(|pid| pid.to_str()).ok_or_else(wrong)?)
            .map(|()| 0);
    }
    if first == crate::supervisor::SUPERVISE {
        return supervise::supervise(rest);
    }
    if first == JOIN {
        let (folder, program) = rest.split_first().ok_or_else(wrong)?;
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("cgroups: {error}"));
        std::fs::write(PathBuf::from(folder).join("cgroup.procs"), "0").map_err(failed)?;
        let (program, args) = program.get(1..).and_then(<[_]>::split_first).ok_or_else(wrong)?;
        let error = Command::new(program).args(args).exec();
        return Err(io::Error::new(error.kind(), format!("{}: {error}", PathBuf::from(program).display())));
    }
    let order: Order = serde_json::from_str(first.to_str().ok_or_else(wrong)?)?;
    if order.probe {
        let tried = serde_json::to_vec(&probe(&order))?;
        return io::Write::write_all(&mut io::stdout(), &tried).map(|()| 0);
    }
    let (program, arguments) = match rest.split_first() {
        Some((dashes, rest)) if dashes == OsStr::new("--") => rest.split_first().ok_or_else(wrong)?,
        _ => return Err(wrong()),
    };
    let layer = |name: &str, done: io::Result<()>| done.map_err(|e| io::Error::other(format!("{name}: {e}")));
    // Opened anew, it is not handed on.
    let told = order.told.map(|number| File::options().write(true).open(format!("/proc/self/fd/{number}")));
    let told =
        told.transpose().map_err(|e| io::Error::new(e.kind(), format!("the word that it runs: {e}")))?;
    let told = close_inherited(told)?;
    if order.limits.is_some() {
        // Where memory runs out, the kernel ends tools before anything else. Who has become another user can't say so.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    }
    layer("identity", identity::enter(&order))?;
    // Bubblewrap has asked for it, and the kernel has forgotten as this process became somebody else: it is to end with its
    // parent, however that ends, and all of the sandbox with it (E-13).
    layer("parent", set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into))?;
    if let Some(limits) = &order.limits {
        layer("limits", limits::set(limits))?;
    }
    layer("privileges", rustix::thread::set_no_new_privs(true).map_err(Into::into))?;
    if let Some(files) = &order.files {
        layer("landlock", files::restrict(files, order.network))?;
    }
    if order.seccomp {
        layer("seccomp", syscalls::restrict(order.network, order.server))?;
    }
    let mut command = Command::new(program);
    // Bubblewrap sets it.
    command.args(arguments).env_remove("PWD");
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", program.display()));
    let tell = |word: Option<File>| word.map_or(Ok(()), |mut word| io::Write::write_all(&mut word, b"1"));
    if std::process::id() == 1 {
        let tool = command.spawn().map_err(failed)?.id();
        tell(told)?;
        return first_process(tool);
    }
    tell(told)?;
    Err(failed(command.exec()))
}

/// What the first process of a namespace has to do: it takes note of each process that ends, and ends with the one that it
/// was started for; the kernel then ends all others.
fn first_process(tool: u32) -> io::Result<u8> {
    for descriptor in 0..3 {
        // Who reads from the tool is not to wait for this process.
        let _ = nix::unistd::close(descriptor);
    }
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if i64::from(pid.as_raw_nonzero().get()) == i64::from(tool) => {
                let code =
                    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
                return Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(REFUSED));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Applies every layer to this process, whatever comes of the others.
fn probe(order: &Order) -> Tried {
    let why = |done: io::Result<()>| done.err().map(|e| e.to_string());
    Tried {
        identity: why(identity::enter(order)),
        limits: why(limits::set(order.limits.as_ref().unwrap_or(&Limits::default()))),
        nested: if order.server { why(identity::nest()) } else { Some("not tried".into()) },
        landlock: why(rustix::thread::set_no_new_privs(true).map_err(Into::into).and_then(|()| {
            order.files.as_ref().map_or(Ok(()), |files| files::restrict(files, order.network))
        })),
        seccomp: why(syscalls::restrict(order.network, false)),
    }
}

/// Closes every descriptor but the three standard ones: those that this process's ancestors forgot to close are no
/// business of a tool. But for one, which this process has opened itself.
fn close_inherited(own: Option<File>) -> io::Result<Option<File>> {
    let kept = own.as_ref().map(AsRawFd::as_raw_fd);
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().filter_map(Result::ok);
    let open: Vec<i32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2 && Some(*descriptor) != kept) {
        // The one of the listing itself is closed already.
        let _ = nix::unistd::close(descriptor);
    }
    Ok(own)
}
