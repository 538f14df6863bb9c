//! One server of warm interpreters: a sandboxed process that is sent calls over a socket.

use super::Key;
use crate::tools::isolation::bubblewrap::{Inside, SHARED_MEMORY_BYTES};
use crate::tools::isolation::confine::syscalls;
use crate::tools::isolation::view::{View, make_writable};
use crate::tools::isolation::{Isolation, Start};
use crate::tools::process::{Guard, Policy, Victim, started};
use crate::tools::python::worker::FLAGS;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg,
    socketpair,
};
use serde::Serialize;
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

const SERVER: &str = concat!(include_str!("../worker.py"), include_str!("server.py"));
/// How long an interpreter may take to get warm: as long as it takes to import pydantic on a busy machine.
const STARTING: Duration = Duration::from_secs(30);
/// What a call's process may do with files whatever their owner, where Selvedge runs as root.
const READ_ALL: u64 = 1 << 2;
const WRITE_ALL: u64 = 1 << 1 | 1 << 3;

/// The first packet: what holds for every call.
#[derive(Serialize)]
struct Setup {
    /// Programs of seccomp in the kernel's form, as hexadecimal text.
    filters: Vec<String>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    devices: Vec<PathBuf>,
    network: bool,
    limits: Limits,
    /// The rights that calls keep.
    rights: u64,
    /// Bytes of named memory that the processes of a call share.
    shared_memory: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "UPPERCASE")]
struct Limits {
    core: u64,
    #[serde(rename = "AS")]
    address_space: Option<u64>,
    data: Option<u64>,
    fsize: Option<u64>,
    nofile: Option<u64>,
    nproc: Option<u64>,
}

/// A server that is ready for calls. Dropping it ends it, and every call under it.
#[derive(Debug)]
pub(crate) struct Server {
    control: UnixStream,
    sending: tokio::sync::Mutex<()>,
    /// Where its calls' scratch folders are made: the only folder of ours that it sees.
    base: tempfile::TempDir,
    /// What its calls may write besides.
    writable: Vec<PathBuf>,
    busy: AtomicUsize,
    last: Mutex<Instant>,
    ended: AtomicBool,
    guard: Guard,
    _child: Child,
}

impl Server {
    pub(super) async fn start(isolation: &Isolation, key: &Key, scratch_root: PathBuf) -> io::Result<Self> {
        let found = isolation.found().await;
        let base = tempfile::Builder::new().prefix("selvedge-warm-").tempdir_in(scratch_root)?;
        make_writable(&key.policy.write);
        let args: Vec<OsString> = FLAGS.iter().map(Into::into).chain([SERVER.into()]).collect();
        let inside = Inside {
            program: &key.python,
            args: &args,
            cwd: base.path(),
            scratch: base.path(),
            policy: &key.policy,
            cpu_seconds: None,
            server: true,
        };
        let Start { program, args, sandbox, .. } = isolation.start(found, &inside)?;
        let (ours, its) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut command = Command::new(program);
        command.args(args).current_dir("/").env_clear();
        command.envs([("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8")]);
        command.env("HOME", base.path()).env("TMPDIR", base.path());
        command.stdin(Stdio::from(its)).stdout(Stdio::null()).stderr(Stdio::null());
        let child = started(command).await?;
        let guard = Guard(Some(Victim::of(&child, sandbox)));
        let control = std::os::unix::net::UnixStream::from(ours);
        control.set_nonblocking(true)?;
        let server = Self {
            control: UnixStream::from_std(control)?,
            sending: tokio::sync::Mutex::default(),
            base,
            writable: key.policy.write.clone(),
            busy: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
            ended: AtomicBool::new(false),
            guard,
            _child: child,
        };
        server.send(&serde_json::to_vec(&setup(&key.policy, server.base.path())?)?, &[]).await?;
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the interpreter takes too long to start");
        timeout(STARTING, server.ready()).await.map_err(late)??;
        Ok(server)
    }

    async fn ready(&self) -> io::Result<()> {
        loop {
            self.control.readable().await?;
            let mut word = [0; 16];
            match self.control.try_read(&mut word) {
                Ok(count) if word.get(..count) == Some(b"ready") => return Ok(()),
                Ok(_) => return Err(io::Error::other("the interpreter ended before it was ready")),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Sends one packet with descriptors.
    pub(super) async fn send(&self, packet: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let _one_at_a_time = self.sending.lock().await;
        loop {
            self.control.writable().await?;
            let sent = self.control.try_io(Interest::WRITABLE, || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
                let mut ancillary = SendAncillaryBuffer::new(&mut space);
                if !descriptors.is_empty() {
                    ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
                }
                let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                Ok(sendmsg(self.control.as_fd(), &[IoSlice::new(packet)], &mut ancillary, flags)?)
            });
            match sent {
                Ok(_) => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => {
                    self.ended.store(true, Ordering::Release);
                    return Err(e);
                }
            }
        }
    }

    pub(super) fn base(&self) -> &Path {
        self.base.path()
    }

    pub(super) fn writable(&self) -> &[PathBuf] {
        &self.writable
    }

    /// Marks a call as begun, until the result is dropped.
    pub(super) fn busy(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::AcqRel);
        Busy(self)
    }

    /// How long it has had nothing to do; `None` while it has.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        let idle = self.busy.load(Ordering::Acquire) == 0;
        idle.then(|| self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed())
    }

    /// Notes that it answers no more.
    pub(super) fn give_up(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Before its folder is removed.
        drop(std::mem::replace(&mut self.guard, Guard(None)));
    }
}

/// A call under way.
pub(super) struct Busy<'a>(&'a Server);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

fn setup(policy: &Policy, base: &Path) -> io::Result<Setup> {
    let mut files = View::new(policy, &[]).files(true);
    // Shared memory and scratch are each call's own: rules for them come with the call.
    files
        .write
        .retain(|path| path != Path::new(crate::tools::isolation::view::SHARED_MEMORY) && path != base);
    Ok(Setup {
        filters: syscalls::encoded(&syscalls::programs(policy.network, false)?),
        read: files.read,
        write: files.write,
        devices: files.devices,
        network: policy.network,
        limits: Limits {
            core: 0,
            address_space: policy.memory_bytes,
            data: policy.memory_bytes,
            fsize: policy.file_bytes,
            nofile: policy.open_files,
            nproc: policy.processes,
        },
        rights: if policy.write.is_empty() { READ_ALL } else { WRITE_ALL },
        shared_memory: SHARED_MEMORY_BYTES,
    })
}
