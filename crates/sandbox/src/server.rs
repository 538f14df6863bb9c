//! A confined program that is started once and makes a process for each call that it is sent: calls share what it has
//! loaded, and nothing else.
//!
//! It has a socket of packets as its stdin. The first packet is the `Setup`, as JSON; then it says `ready KIB`, with the memory
//! that it takes. What a call is sent is in [`Call::run`].

mod call;

use crate::isolation::bubblewrap::{Inside, SHARED_MEMORY_BYTES};
use crate::isolation::confine::syscalls;
use crate::isolation::groups::{Group, Groups};
use crate::isolation::view::{SHARED_MEMORY, View, make_writable};
use crate::isolation::{Isolation, Start};
use crate::policy::Policy;
use crate::process::{Own, sweep};
use crate::spawn::{Guard, KillHandle, started};
pub use call::Call;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg,
    socketpair,
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How many calls the server makes the processes of ahead: a server knows the number.
const SPARES: usize = 2;
/// What a call's process may do with files whatever their owner, where Selvedge runs as root.
const READ_ALL: u64 = 1 << 2;
const WRITE_ALL: u64 = 1 << 1 | 1 << 3;

/// The first packet: what holds for every call.
#[derive(Serialize)]
struct Setup {
    /// Programs of seccomp in the kernel's form, as hexadecimal text: what a call gives up beyond its server.
    filters: Vec<String>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    devices: Vec<PathBuf>,
    network: bool,
    limits: Limits,
    /// Whether each call has a control group, whose entrance comes ahead of it.
    grouped: bool,
    /// The rights that calls keep.
    rights: u64,
    /// Bytes of named memory that the processes of a call share.
    shared_memory: u64,
    /// What its own program is told besides.
    #[serde(flatten)]
    more: Map<String, Value>,
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

/// A program that serves calls.
#[derive(Clone, Debug)]
pub struct Program<'a> {
    /// Its file.
    pub program: &'a Path,
    /// Its arguments.
    pub args: &'a [OsString],
    /// What it and its calls may reach.
    pub policy: &'a Policy,
    /// What it is told besides, in its setup.
    pub setup: Map<String, Value>,
    /// How long it may take to be ready.
    pub starting: Duration,
}

/// A server that is ready for calls. Dropping it ends it, and every call under it.
#[derive(Debug)]
pub struct Server {
    control: UnixStream,
    /// Where its calls' scratch folders are made: the only folder of ours that it sees.
    base: Own,
    /// What its calls may reach.
    policy: Policy,
    /// Its own control group, and those of the calls to come, in their order: the server has the entrances of these.
    groups: Option<(Groups, Group)>,
    ahead: tokio::sync::Mutex<VecDeque<Group>>,
    bytes: AtomicU64,
    busy: AtomicUsize,
    last: Mutex<Instant>,
    ended: AtomicBool,
    guard: Guard,
    _child: Child,
}

impl Server {
    /// Starts a server, and waits until it is ready. Until then, `heard` is told what else it says.
    ///
    /// # Errors
    /// It cannot be started, ends early or takes too long.
    pub async fn start(
        isolation: &Isolation,
        program: Program<'_>,
        scratch_root: PathBuf,
        heard: impl FnMut(&str) + Send,
    ) -> io::Result<Self> {
        let policy = program.policy;
        let found = isolation.found().await;
        let base = Own::warm(&scratch_root)?;
        // What others left there, while it starts.
        drop(tokio::task::spawn_blocking(move || sweep(&scratch_root)));
        make_writable(&policy.write);
        let inside = Inside {
            program: program.program,
            args: program.args,
            cwd: base.path(),
            scratch: base.path(),
            policy,
            cpu_seconds: None,
            server: true,
            told: None,
        };
        let Start { program: file, args, sandbox, group, handed, .. } = isolation.start(found, &inside)?;
        let (ours, its) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut command = Command::new(file);
        command.args(args).current_dir("/").env_clear();
        command.envs([("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8")]);
        command.env("HOME", base.path()).env("TMPDIR", base.path());
        command.stdin(Stdio::from(its)).stdout(Stdio::null()).stderr(Stdio::null());
        command.kill_on_drop(true);
        let child = started(command, handed).await?;
        let guard = Guard(Some(KillHandle::of(&child, sandbox)));
        let control = std::os::unix::net::UnixStream::from(ours);
        control.set_nonblocking(true)?;
        let server = Self {
            control: UnixStream::from_std(control)?,
            base,
            policy: policy.clone(),
            groups: found.groups.clone().zip(group),
            ahead: tokio::sync::Mutex::default(),
            bytes: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
            ended: AtomicBool::new(false),
            guard,
            _child: child,
        };
        let mut ahead = VecDeque::new();
        let mut entrances = Vec::new();
        if let Some((groups, _)) = &server.groups {
            for _ in 0..SPARES {
                let group = groups.limited(policy)?;
                entrances.push(group.entrance()?);
                ahead.push_back(group);
            }
        }
        *server.ahead.lock().await = ahead;
        let entrances: Vec<_> = entrances.iter().map(AsFd::as_fd).collect();
        let setup =
            Setup { more: program.setup, ..setup(policy, server.base.path(), server.groups.is_some())? };
        server.send(&serde_json::to_vec(&setup)?, &entrances).await?;
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the server takes too long to start");
        timeout(program.starting, server.ready(heard)).await.map_err(late)??;
        Ok(server)
    }

    /// Waits until it is ready, and takes note of its size.
    async fn ready(&self, mut heard: impl FnMut(&str) + Send) -> io::Result<()> {
        loop {
            self.control.readable().await?;
            let mut words = [0; 32];
            match self.control.try_read(&mut words) {
                Ok(count) => {
                    let words = String::from_utf8_lossy(words.get(..count).unwrap_or_default());
                    if let Some(size) = words.strip_prefix("ready ").and_then(|kib| kib.parse::<u64>().ok()) {
                        self.bytes.store(size.saturating_mul(1024), Ordering::Release);
                        return Ok(());
                    }
                    if words.is_empty() {
                        return Err(io::Error::other("the server ended before it was ready"));
                    }
                    heard(&words);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Sends a call, and with it the entrance of the control group that a later one gets. Its own group is the one that
    /// the server was given longest ago; it ends when the result is dropped.
    async fn call(&self, packet: &[u8], descriptors: [BorrowedFd<'_>; 4]) -> io::Result<Option<Group>> {
        // Held while it is sent: calls are taken in the order of their groups.
        let mut ahead = self.ahead.lock().await;
        let Some((groups, _)) = &self.groups else {
            return self.send(packet, &descriptors).await.map(|()| None);
        };
        let later = groups.limited(&self.policy)?;
        let entrance = later.entrance()?;
        let [talk, stdout, stderr, told] = descriptors;
        self.send(packet, &[talk, stdout, stderr, told, entrance.as_fd()]).await?;
        ahead.push_back(later);
        Ok(ahead.pop_front())
    }

    /// Sends one packet with descriptors.
    async fn send(&self, packet: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        loop {
            self.control.writable().await?;
            let sent = self.control.try_io(Interest::WRITABLE, || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
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

    fn base(&self) -> &Path {
        self.base.path()
    }

    fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Marks a call as begun, until the result is dropped.
    fn busy(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::AcqRel);
        Busy(self)
    }

    /// The memory that it took when it was ready.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// How long it has had nothing to do; `None` while it has.
    pub fn idle_for(&self) -> Option<Duration> {
        let idle = self.busy.load(Ordering::Acquire) == 0;
        idle.then(|| self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed())
    }

    /// Notes that it answers no more.
    fn give_up(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Whether it answers no more.
    pub fn has_ended(&self) -> bool {
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
struct Busy<'a>(&'a Server);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

fn setup(policy: &Policy, base: &Path, grouped: bool) -> io::Result<Setup> {
    let mut files = View::new(policy, &[])?.files(true);
    // Shared memory and scratch are each call's own: rules for them come with the call.
    files.write.retain(|path| path != Path::new(SHARED_MEMORY) && path != base);
    Ok(Setup {
        filters: syscalls::encoded(&syscalls::for_tools()?),
        read: [files.system, files.read].concat(),
        write: files.write,
        devices: files.devices,
        network: policy.network,
        grouped,
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
        more: Map::new(),
    })
}
