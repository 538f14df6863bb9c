//! One server of warm interpreters: a sandboxed process that is sent calls over a socket.

use super::Key;
use super::imports::Import;
use crate::tools::isolation::bubblewrap::{Inside, SHARED_MEMORY_BYTES};
use crate::tools::isolation::confine::syscalls;
use crate::tools::isolation::groups::{Group, Groups};
use crate::tools::isolation::view::{View, make_writable};
use crate::tools::isolation::{Isolation, Start};
use crate::tools::process::{Guard, Own, Policy, Victim, started, sweep};
use crate::tools::python::worker::FLAGS;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg,
    socketpair,
};
use serde::Serialize;
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

const SERVER: &str =
    concat!(include_str!("../worker.py"), include_str!("sandbox.py"), include_str!("server.py"));
/// How many calls the server makes the processes of ahead: `SPARES` in server.py.
const SPARES: usize = 2;
/// How long an interpreter may take to get warm: as long as it takes to import pydantic on a busy machine.
const STARTING: Duration = Duration::from_secs(30);
/// How many modules that can't be imported ahead are found one after the other; then there are none.
const CULPRITS: usize = 3;
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
    /// What is imported before the first call.
    imports: Vec<Import>,
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
    /// Where its calls' scratch folders are made: the only folder of ours that it sees.
    base: Own,
    /// What its calls may reach.
    policy: Policy,
    /// Its own control group, and those of the calls to come, in their order: the server has the entrances of these.
    groups: Option<(Groups, Group)>,
    ahead: tokio::sync::Mutex<VecDeque<Group>>,
    /// What it was to import, whatever came of it.
    tried: Vec<Import>,
    bytes: AtomicU64,
    busy: AtomicUsize,
    last: Mutex<Instant>,
    ended: AtomicBool,
    guard: Guard,
    _child: Child,
}

impl Server {
    /// Starts a server that has imported what tools import. Without what does not work: packages that take too long for it, end
    /// their interpreter or start threads are for each call to import, and do the others no harm.
    pub(super) async fn start(
        isolation: &Isolation,
        key: &Key,
        scratch_root: PathBuf,
        wanted: Vec<Import>,
    ) -> io::Result<Self> {
        let mut imports = wanted.clone();
        for left in (0..=CULPRITS).rev() {
            let mut reached = None;
            let root = scratch_root.clone();
            match Self::start_with(isolation, key, root, imports.clone(), &mut reached).await {
                Ok(mut server) => {
                    server.tried = wanted;
                    return Ok(server);
                }
                Err(error) if imports.is_empty() => return Err(error),
                Err(_) => match reached.filter(|reached| left > 1 && *reached < imports.len()) {
                    Some(culprit) => drop(imports.remove(culprit)),
                    None => imports.clear(),
                },
            }
        }
        Err(io::Error::other("the interpreter does not get warm"))
    }

    async fn start_with(
        isolation: &Isolation,
        key: &Key,
        scratch_root: PathBuf,
        imports: Vec<Import>,
        reached: &mut Option<usize>,
    ) -> io::Result<Self> {
        let found = isolation.found().await;
        let base = Own::warm(&scratch_root)?;
        // What others left there, while the interpreter starts.
        drop(tokio::task::spawn_blocking(move || sweep(&scratch_root)));
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
            told: None,
        };
        let Start { program, args, sandbox, group, handed, .. } = isolation.start(found, &inside)?;
        let (ours, its) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut command = Command::new(program);
        command.args(args).current_dir("/").env_clear();
        command.envs([("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8")]);
        command.env("HOME", base.path()).env("TMPDIR", base.path());
        command.stdin(Stdio::from(its)).stdout(Stdio::null()).stderr(Stdio::null());
        let child = started(command, handed).await?;
        let guard = Guard(Some(Victim::of(&child, sandbox)));
        let control = std::os::unix::net::UnixStream::from(ours);
        control.set_nonblocking(true)?;
        let server = Self {
            control: UnixStream::from_std(control)?,
            base,
            policy: key.policy.clone(),
            groups: found.groups.clone().zip(group),
            ahead: tokio::sync::Mutex::default(),
            tried: Vec::new(),
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
                let group = groups.limited(&key.policy)?;
                entrances.push(group.entrance()?);
                ahead.push_back(group);
            }
        }
        *server.ahead.lock().await = ahead;
        let entrances: Vec<_> = entrances.iter().map(AsFd::as_fd).collect();
        let setup = Setup { imports, ..setup(&key.policy, server.base.path(), server.groups.is_some())? };
        server.send(&serde_json::to_vec(&setup)?, &entrances).await?;
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the interpreter takes too long to start");
        timeout(STARTING, server.ready(reached)).await.map_err(late)??;
        Ok(server)
    }

    /// Waits until it is ready, and takes note of its size, and of the import that it is at.
    async fn ready(&self, reached: &mut Option<usize>) -> io::Result<()> {
        loop {
            self.control.readable().await?;
            let mut words = [0; 32];
            match self.control.try_read(&mut words) {
                Ok(count) => {
                    let words = String::from_utf8_lossy(words.get(..count).unwrap_or_default());
                    if let Some(number) = words.strip_prefix("import ") {
                        *reached = number.parse().ok();
                        continue;
                    }
                    let size = words.strip_prefix("ready ").and_then(|kib| kib.parse::<u64>().ok());
                    let early = || io::Error::other("the interpreter ended before it was ready");
                    self.bytes.store(size.ok_or_else(early)?.saturating_mul(1024), Ordering::Release);
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Sends a call, and with it the entrance of the control group that a later one gets. Its own group is the one that
    /// the server was given longest ago; it ends when the result is dropped.
    pub(super) async fn call(
        &self,
        packet: &[u8],
        descriptors: [BorrowedFd<'_>; 4],
    ) -> io::Result<Option<Group>> {
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

    /// Whether it was to import this.
    pub(super) fn has_tried(&self, import: &Import) -> bool {
        self.tried.contains(import)
    }

    pub(super) fn base(&self) -> &Path {
        self.base.path()
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Marks a call as begun, until the result is dropped.
    pub(super) fn busy(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::AcqRel);
        Busy(self)
    }

    /// The memory that it took when it was ready.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
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

fn setup(policy: &Policy, base: &Path, grouped: bool) -> io::Result<Setup> {
    let mut files = View::new(policy, &[])?.files(true);
    // Shared memory and scratch are each call's own: rules for them come with the call.
    files
        .write
        .retain(|path| path != Path::new(crate::tools::isolation::view::SHARED_MEMORY) && path != base);
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
        imports: Vec::new(),
    })
}
