//! What a tool of root's has made where it may write belongs to the user number of its call; once the call is over, it is
//! given to who runs Selvedge. With it goes what calls have left that ended with a Selvedge that was killed.

use super::entered::Entered;
use super::open_calls::Note;
use super::quarantine::{Before, set_aside};
use super::{Made, dropped};
use crate::exact;
use crate::spawn::KillHandle;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, chownat, openat, statat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many entries are given back after one call, the rest keeps the owner that it has; how many folders are looked into
/// that the call has changed, and how many others.
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
    Gone(KillHandle),
}

/// What a call has made is to be given back when it is over, also when its future is dropped (E-13): then as soon as all of
/// its processes are gone, and nobody waits for it.
pub(crate) struct OwnershipRestore(Option<Debt>);

struct Debt {
    before: Before,
    user: Option<u32>,
    tools: Range<u32>,
    until: Until,
    /// It is there until all is given back.
    _note: Note,
}

impl OwnershipRestore {
    /// What `user` comes to own in the places that may be written; nothing if that is who runs this process. With it what
    /// belongs there to one of the numbers that only `tools` have, if nothing lives under it any more. And what is made there
    /// that Selvedge would read as its own.
    pub(crate) fn new(
        before: Before,
        user: Option<u32>,
        tools: Range<u32>,
        note: Note,
        until: impl FnOnce() -> Option<Until>,
    ) -> Self {
        if before.roots.is_empty() {
            return Self(None);
        }
        Self(until().map(|until| Debt { before, user, tools, until, _note: note }))
    }

    /// Gives it back, now that the call is over, and says what was set aside, and what could not be.
    pub(crate) async fn settle(mut self) -> Made {
        let Some(debt) = self.0.take() else { return Made::default() };
        let roots = debt.before.roots.clone();
        let (hand, given) = tokio::sync::oneshot::channel();
        // What cannot be given back stays as it is; the call is over all the same.
        dropped::begin(move || debt.give_back(), |made| hand.send(made).err());
        given.await.unwrap_or_else(|_| {
            let left = roots.into_iter().map(|root| (root, "it was not looked through".to_owned()));
            Made { left: left.collect(), ..Made::default() }
        })
    }
}

impl Drop for OwnershipRestore {
    fn drop(&mut self) {
        let Some(debt) = self.0.take() else { return };
        let ends = debt.until.ask();
        let work = move || {
            wait(&ends);
            debt.give_back()
        };
        dropped::begin(work, Some);
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
            Self::Gone(handle) => {
                let ends = handle.ends();
                handle.kill();
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
    fn give_back(&self) -> Made {
        look_through(&self.before, self.user, &self.tools)
    }
}

/// Gives back what `user` has come to own, and sets aside what is not a tool's to make.
pub(super) fn look_through(before: &Before, user: Option<u32>, tools: &Range<u32>) -> Made {
    // The places that are looked at first do not depend on how much else there is.
    let made = before.set_aside(user);
    let whose = Whose { user, tools: tools.clone(), living: OnceCell::new() };
    let mut walk = Walk { whose, before, files: MOST, fresh: MOST, others: MOST, made };
    for path in &before.roots {
        let (around, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
        // Behind what has become a link, nothing is granted.
        let Ok(around) = exact::hold(around) else { continue };
        if let Err(why) = walk.below(around, Path::new(name), path, DEEPEST) {
            walk.made.fail(path, why);
        }
    }
    walk.made
}

/// What is looked at after a call, and what was found.
struct Walk<'a> {
    whose: Whose,
    before: &'a Before,
    /// How many more files may be given back.
    files: usize,
    /// How many more folders are looked into: such that the call has made or changed, and others.
    fresh: usize,
    others: usize,
    made: Made,
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
pub(super) fn living() -> Option<BTreeSet<u32>> {
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
    fn below(&mut self, folder: impl AsFd, name: &Path, at: &Path, depth: usize) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&folder, name, flags, Mode::empty());
        let found = opened.and_then(|entry| Ok((statat(&entry, "", AtFlags::EMPTY_PATH)?, entry)));
        let (meta, entry) = match found {
            Err(Errno::NOENT) => return Ok(()),
            found => found?,
        };
        self.entry(entry, &meta, at, depth);
        Ok(())
    }

    fn entry(&mut self, entry: OwnedFd, meta: &Stat, at: &Path, depth: usize) {
        self.give(&entry, meta);
        if FileType::from_raw_mode(meta.st_mode) == FileType::Directory {
            self.inside(entry, meta, at, depth);
        }
    }

    /// One entry.
    fn give(&self, entry: &OwnedFd, meta: &Stat) {
        if self.whose.has(meta.st_uid) {
            let group = (meta.st_gid == meta.st_uid).then(getegid);
            // The kernel takes set-user-ID bits off as it does this.
            let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
            let _ = chownat(entry, "", Some(geteuid()), group, flags);
        }
    }

    /// Sets an entry aside, and looks through it: under its new name it is a folder as any other. One that keeps its name keeps
    /// its owner: by that it is known for what it is.
    fn aside(&mut self, folder: &Entered, name: &Path, at: &Path, depth: usize) {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let entry = openat(folder, name, flags, Mode::empty());
        let done = set_aside(folder, name);
        let is_aside = done.is_ok();
        self.made.add(at, done);
        if let (true, Ok(entry)) = (is_aside, entry)
            && let Ok(meta) = statat(&entry, "", AtFlags::EMPTY_PATH)
        {
            self.entry(entry, &meta, at, depth);
        }
    }

    /// All that is in a folder. Nothing was made in one that the call has not changed, and nothing is given back there that
    /// its owner is kept from; into one that it has changed, the way is cleared.
    fn inside(&mut self, entry: OwnedFd, meta: &Stat, at: &Path, depth: usize) {
        let changed = self.before.is_fresh(meta);
        let fresh = self.whose.user == Some(meta.st_uid) || changed;
        let left = if fresh { &mut self.fresh } else { &mut self.others };
        let Some(depth) = left.checked_sub(1).and_then(|rest| {
            *left = rest;
            depth.checked_sub(1)
        }) else {
            if fresh {
                self.made.leave(at, "there are more folders, or deeper ones, than are looked through");
            }
            return;
        };
        // What keeps us from a folder of somebody else's has kept the call from it too.
        let told = fresh && (geteuid().is_root() || geteuid().as_raw() == meta.st_uid);
        let folder = Entered::new(entry, meta, fresh);
        if let Some(name) = self.before.sprung(&folder, at, self.whose.user) {
            self.aside(&folder, name, &at.join(name), depth);
        }
        let found = match self.entries(&folder) {
            Ok(found) => found,
            Err(why) => {
                if told {
                    self.made.fail(at, why);
                }
                return;
            }
        };
        for name in found {
            let at = at.join(&name);
            if self.before.kept.contains(&at) {
                continue;
            }
            let ours = self.before.is_ours(&name) && !self.before.roots.contains(&at);
            let is_made = ours.then(|| self.before.is_made(&folder, &name, self.whose.user, changed));
            let done = match is_made.transpose() {
                Ok(Some(true)) => {
                    self.aside(&folder, &name, &at, depth);
                    Ok(())
                }
                Ok(_) => self.below(&folder, &name, &at, depth),
                Err(why) => Err(why),
            };
            if let (Err(why), true) = (done, told) {
                self.made.fail(&at, why);
            }
        }
    }

    /// The entries of a folder that are to be looked at: folders, names that are ours, and, as far as somebody else may own
    /// them, files.
    fn entries(&mut self, folder: &Entered) -> Result<Vec<PathBuf>, Errno> {
        let mut found = Vec::new();
        for entry in folder.entries()? {
            let entry = entry?;
            let name = Path::new(OsStr::from_bytes(entry.file_name().to_bytes()));
            if [Path::new("."), Path::new("..")].contains(&name) {
                continue;
            }
            let whole = matches!(entry.file_type(), FileType::Directory | FileType::Unknown)
                || self.before.is_ours(name);
            if !whole {
                let Some(rest) = self.files.checked_sub(1).filter(|_| self.whose.user.is_some()) else {
                    continue;
                };
                self.files = rest;
            }
            found.push(name.to_owned());
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
