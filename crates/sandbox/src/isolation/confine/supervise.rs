//! The process that starts a program and ends with it, after all that the program has started (E-13, A-39).
//!
//! It is the subreaper of the program: a process whose parent has ended becomes a child of the supervisor, also one in a session of its
//! own. So all that is left can be found among its children. It ends them when the program has ended, and when Selvedge closes the pipe
//! that keeps the program alive, as the kernel does when Selvedge is killed.

use super::REFUSED;
use nix::sys::signal::SigSet;
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper,
    setrlimit, wait,
};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

/// How long what the program has left behind may take to end.
const ENDING: Duration = Duration::from_secs(2);
/// The wait between two looks at what is left.
const PAUSE: Duration = Duration::from_millis(2);

/// Starts a program when it is told to, and returns the program's exit code when all of it has ended; `args` are those of
/// [`SUPERVISE`](crate::supervisor::SUPERVISE).
pub(super) fn supervise(args: &[OsString]) -> io::Result<u8> {
    let [life, started, _, program, args @ ..] = args else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "two descriptors and a program are expected",
        ));
    };
    let mut life = taken(life, OpenOptions::new().read(true))?;
    let mut started = taken(started, OpenOptions::new().write(true))?;
    set_child_subreaper(Some(getpid()))?;
    if life.read(&mut [0])? == 0 {
        return Ok(REFUSED);
    }
    let program = match Command::new(program).args(args).process_group(0).spawn() {
        Ok(program) => program.id(),
        Err(error) => {
            started.write_all(&error.raw_os_error().unwrap_or(1).saturating_neg().to_ne_bytes())?;
            return Err(error);
        }
    };
    // From here on only SIGKILL ends this process before its work is done. The program would have inherited that.
    let blocked = SigSet::all().thread_block();
    // The caller may have dropped the call meanwhile. The program is then ended like any other.
    let is_awaited = started.write_all(&program.cast_signed().to_ne_bytes()).is_ok();
    drop(started);
    // The program's streams and what else it inherits are its own: their ends are to be seen when it closes them.
    close_all_but(&life);
    let watches = Builder::new().spawn(move || {
        let _ = life.read_to_end(&mut Vec::new());
        loop {
            kill_children();
            sleep(PAUSE);
        }
    });
    if !is_awaited || watches.is_err() || blocked.is_err() {
        kill_children();
    }
    let status = ended(program)?;
    end_children();
    Ok(exit_code(status))
}

/// Waits until the program has ended.
fn ended(program: u32) -> io::Result<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().cast_unsigned() == program => {
                return Ok(status);
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Ends what is left. What has ended gives its own children to this process, so that they are next.
fn end_children() {
    let until = Instant::now() + ENDING;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => continue,
            Ok(None) if Instant::now() < until => {}
            Ok(None) | Err(_) => return,
        }
        kill_children();
        sleep(PAUSE);
    }
}

/// Kills the children of this process. None of their numbers can be another's: only this process waits for them.
fn kill_children() {
    for pid in children().unwrap_or_else(found_children) {
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The children of this process as the kernel lists them, or `None` if it keeps no such list. One that comes meanwhile may be missing.
fn children() -> Option<Vec<i32>> {
    let mut all = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task").ok()?.filter_map(Result::ok) {
        let listed = std::fs::read_to_string(thread.path().join("children")).ok()?;
        all.extend(listed.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Some(all)
}

/// The children of this process, by the parent of every process.
fn found_children() -> Vec<i32> {
    let own = getpid().as_raw_nonzero().get();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| parent_of(*pid) == Some(own)).collect()
}

/// The parent of a process.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Its name, in parentheses, may hold anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Ends as the program did: by the same signal, or with its exit code.
fn exit_code(status: WaitStatus) -> u8 {
    if let Some(signal) = status.terminating_signal() {
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        let _ = SigSet::all().thread_unblock();
        // A shell has each signal's own effect, which this process has not (`SIGPIPE`).
        let _ = Command::new("/bin/sh").args(["-c", &format!("kill -{signal} $$")]).exec();
        return u8::try_from(128 + signal).unwrap_or(REFUSED);
    }
    status.exit_status().and_then(|code| u8::try_from(code).ok()).unwrap_or(REFUSED)
}

/// Closes every descriptor but one.
fn close_all_but(kept: &File) {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().filter_map(Result::ok);
    let open: Vec<i32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor != kept.as_raw_fd()) {
        // The one of the listing itself is closed already.
        let _ = nix::unistd::close(descriptor);
    }
}

/// An inherited descriptor, opened anew so that it is not handed on.
fn taken(number: &OsStr, how: &OpenOptions) -> io::Result<File> {
    let file = how.open(Path::new("/proc/self/fd").join(number))?;
    if let Some(inherited) = number.to_str().and_then(|number| number.parse::<i32>().ok()) {
        let _ = nix::unistd::close(inherited);
    }
    Ok(file)
}
