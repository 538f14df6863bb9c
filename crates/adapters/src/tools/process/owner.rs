//! What a tool of root's has made where it may write belongs to the user number of its call; once the call is over, it is
//! given to who runs Selvedge. With it goes what calls have left that ended with a Selvedge that was killed.

use super::Victim;
use super::aside::{Before, set_aside};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chownat, openat, statat};
use rustix::process::{getegid, geteuid};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many entries of folders are looked at after one call: the rest keeps the owner that it has.
const MOST: usize = 200_000;
/// How deep: a deeper one was not made by anybody who wants to keep it.
const DEEPEST: usize = 200;

/// How long the processes of a call that was dropped may take to end.
const ENDING: Duration = Duration::from_secs(5);

/// What tells that all processes of a call are gone.
pub(crate) enum Until {
    /// The socket on which a warm interpreter tells how a call has ended. Its end asks for that of the call.
    Told(UnixStream),
    /// A process and all under it.
    Gone(Victim),
}

/// What a call has made is to be given back when it is over, also when its future is dropped (E-13): then as soon as all of
/// its processes are gone, and nobody waits for it.
pub(crate) struct Owed(Option<Debt>);

struct Debt {
    before: Before,
    user: Option<u32>,
    tools: Range<u32>,
    until: Until,
}

impl Owed {
    /// What `user` comes to own in the places that may be written; nothing if that is who runs this process. With it what
    /// belongs there to one of the numbers that only `tools` have, if nothing lives under it any more. And what is made there
    /// that Selvedge would read as its own.
    pub(crate) fn new(
        before: Before,
        user: Option<u32>,
        tools: Range<u32>,
        until: impl FnOnce() -> Option<Until>,
    ) -> Self {
        if before.roots.is_empty() {
            return Self(None);
        }
        Self(until().map(|until| Debt { before, user, tools, until }))
    }

    /// Gives it back, now that the call is over, and says what was set aside.
    pub(crate) async fn settle(mut self) -> Vec<PathBuf> {
        let Some(debt) = self.0.take() else { return Vec::new() };
        // What cannot be given back stays as it is; the call is over all the same.
        tokio::task::spawn_blocking(move || debt.give_back()).await.unwrap_or_default()
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        let Some(debt) = self.0.take() else { return };
        let ends = debt.until.ask();
        let work = move || {
            wait(&ends);
            debt.give_back();
        };
        // Without a runtime, this process ends: it is not to wait for a tool.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn_blocking(work));
        }
    }
}

impl Until {
    /// Asks for the end of the call; the descriptors can be read when it has come.
    fn ask(&self) -> Vec<OwnedFd> {
        match self {
            Self::Told(socket) => {
                // An error means that it has ended already.
                let _ = socket.shutdown(std::net::Shutdown::Write);
                socket.try_clone().map(OwnedFd::from).into_iter().collect()
            }
            Self::Gone(victim) => {
                let ends = victim.ends();
                victim.kill();
                ends
            }
        }
    }
}

fn wait(ends: &[OwnedFd]) {
    let most = Timespec { tv_sec: ENDING.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: 0 };
    for end in ends {
        // What can't be waited for is as good as gone.
        let _ = poll(&mut [PollFd::new(end, PollFlags::IN)], Some(&most));
    }
}

impl Debt {
    fn give_back(&self) -> Vec<PathBuf> {
        // The places that are looked at first do not depend on how much else there is.
        let made = self.before.set_aside();
        let whose = Whose { user: self.user, tools: self.tools.clone(), living: OnceCell::new() };
        let mut walk = Walk { whose, before: &self.before, left: MOST, made };
        for path in self.before.roots.iter().filter_map(|path| path.canonicalize().ok()) {
            walk.below(CWD, &path, &path, DEEPEST);
        }
        walk.made
    }
}

/// What is looked at after a call, and what was found.
struct Walk<'a> {
    whose: Whose,
    before: &'a Before,
    left: usize,
    made: Vec<PathBuf>,
}

/// Whose files are given back.
struct Whose {
    user: Option<u32>,
    tools: Range<u32>,
    living: OnceCell<Option<BTreeSet<u32>>>,
}

impl Whose {
    /// Whether an owner is the call's number, or one of a call that is over and that nobody has settled.
    fn has(&self, owner: u32) -> bool {
        let is_over = || {
            let living = self.living.get_or_init(living);
            // Where nobody can say who lives, all may.
            living.as_ref().is_some_and(|living| !living.contains(&owner))
        };
        Some(owner) == self.user || self.tools.contains(&owner) && is_over()
    }
}

/// The numbers under which processes run.
fn living() -> Option<BTreeSet<u32>> {
    let mut all = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").ok()?.filter_map(Result::ok) {
        let name = entry.file_name();
        if !name.as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        // One that cannot be read has ended.
        let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        all.extend(numbers.into_iter().flat_map(str::split_whitespace).filter_map(|n| n.parse::<u32>().ok()));
    }
    (!all.is_empty()).then_some(all)
}

impl Walk<'_> {
    /// One entry and all below it, by descriptors: a link or another file that takes its name meanwhile changes nothing.
    /// `at` is its path, for people.
    fn below(&mut self, folder: impl AsFd, name: &Path, at: &Path, depth: usize) {
        let Some(rest) = self.left.checked_sub(1) else { return };
        self.left = rest;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(entry) = openat(&folder, name, flags, Mode::empty()) else { return };
        let Ok(meta) = statat(&entry, "", AtFlags::EMPTY_PATH) else { return };
        if self.whose.has(meta.st_uid) {
            let group = (meta.st_gid == meta.st_uid).then(getegid);
            // The kernel takes set-user-ID bits off as it does this.
            let _ =
                chownat(&entry, "", Some(geteuid()), group, AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW);
        }
        if FileType::from_raw_mode(meta.st_mode) == FileType::Directory && depth > 0 {
            for name in names(&entry, &self.left) {
                let at = at.join(&name);
                if self.before.kept.contains(&at) {
                    continue;
                }
                if !self.before.roots.contains(&at) && self.before.is_made(&entry, &name, self.whose.user) {
                    // What it is called now is looked at no more: it is given to its owner here.
                    self.below(&entry, &name, &at, 0);
                    set_aside(&entry, &name);
                    self.made.push(at);
                    continue;
                }
                self.below(&entry, &name, &at, depth - 1);
            }
        }
    }
}

fn names(folder: &OwnedFd, left: &usize) -> Vec<PathBuf> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(readable) = openat(folder, ".", flags, Mode::empty()) else { return Vec::new() };
    let Ok(entries) = Dir::new(readable) else { return Vec::new() };
    let name = |entry: rustix::fs::DirEntry| {
        use std::os::unix::ffi::OsStrExt;
        let name = entry.file_name().to_bytes();
        (name != b"." && name != b"..").then(|| PathBuf::from(std::ffi::OsStr::from_bytes(name)))
    };
    entries.filter_map(Result::ok).filter_map(name).take(*left).collect()
}
