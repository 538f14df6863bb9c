//! What a call has made that Selvedge would read as its own configuration or state is set aside when the call is over.

use super::Made;
use super::entered::Entered;
use super::repository::{is_repository, runs_nothing, sprung};
use crate::configuration::{is_name, is_own, places};
use crate::exact;
use crate::grant::Grant;
use crate::policy::Policy;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, StatxFlags, openat, readlinkat, renameat,
    renameat_with, statat, statx, symlinkat, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What is added to the name of what is set aside.
const ASIDE: &str = "set-aside";
/// How many of one name may lie aside; further files are removed.
const MOST: usize = 100;
/// How much the time of a file may be behind.
const TICK: Duration = Duration::from_millis(20);

/// What there was before a call in the places that it may write.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Before {
    /// These places, without links.
    #[serde(with = "paths")]
    pub(super) roots: Vec<PathBuf>,
    /// What no call changes.
    #[serde(with = "paths")]
    pub(super) kept: Vec<PathBuf>,
    /// Places granted by their own names, or as the repositories that they were.
    #[serde(with = "paths")]
    meant: Vec<PathBuf>,
    #[serde(with = "paths")]
    absent: Vec<PathBuf>,
    /// Links, with what they lead to: a mount keeps that as it is, and not the link.
    #[serde(with = "pairs")]
    links: Vec<(PathBuf, PathBuf)>,
    since: Duration,
    /// What was made later was not made by the call: for one whose end nobody saw.
    #[serde(skip)]
    pub(super) until: Option<Duration>,
    /// Whether it is also about what other programs run: not for commands, which are the user's own programs.
    unasked: bool,
}

impl Before {
    pub(crate) fn now(policy: &Policy) -> Self {
        let real = |grants: &[Grant]| grants.iter().map(|grant| grant.real.clone()).collect::<Vec<_>>();
        let roots = real(&policy.write);
        let (mut absent, mut links) = (Vec::new(), Vec::new());
        let is_ours = |place: &Path| place.file_name().is_some_and(is_own);
        let places = places(&roots, &real(&policy.read), policy.here.as_ref()).into_iter();
        for place in places.filter(|place| policy.unasked || is_ours(place)) {
            match std::fs::read_link(&place) {
                Ok(target) => links.push((place, target)),
                Err(_) if place.symlink_metadata().is_err() => absent.push(place),
                Err(_) => {}
            }
        }
        absent.extend(policy.unmade.iter().filter(|place| place.symlink_metadata().is_err()).cloned());
        let hidden = policy.hidden.iter().filter_map(|path| path.canonicalize().ok());
        // Links are seen to by themselves.
        let places = links.iter().map(|(place, _)| place.clone());
        let kept = policy.kept.iter().cloned().chain(hidden).chain(places).collect();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(TICK);
        let meant = roots.iter().filter(|root| is_name(root) || is_repository(root)).cloned().collect();
        Self { roots, kept, meant, absent, links, since, until: None, unasked: policy.unasked }
    }

    /// Sets aside what the call, which ran as `user`, has made where its names are looked for first.
    pub(super) fn set_aside(&self, user: Option<u32>) -> Made {
        let mut made = Made::default();
        let mut tell = |place: &PathBuf, done: Result<Option<bool>, Errno>| match done {
            Ok(Some(true)) => made.aside.push(place.clone()),
            Ok(_) => {}
            Err(why) => made.fail(place, why),
        };
        for place in &self.absent {
            let done = self.at(place, |folder, name| match there(folder, name)? {
                true if !self.is_later(folder, name, user) => set_aside(folder, name).map(|()| true),
                _ => Ok(false),
            });
            tell(place, done);
        }
        for (place, target) in &self.links {
            let done = self.at(place, |folder, name| {
                let now = readlinkat(folder, name, Vec::new());
                if now.is_ok_and(|now| now.as_bytes() == target.as_os_str().as_encoded_bytes())
                    || self.is_later(folder, name, user)
                {
                    return Ok(false);
                }
                match there(folder, name)? {
                    true => set_aside(folder, name)?,
                    // Who took it away, nobody knows any more; nothing is read there.
                    false if self.until.is_some() => return Ok(false),
                    false => {}
                }
                // The user's link, as it was.
                symlinkat(target, folder, name).map(|()| true)
            });
            tell(place, done);
        }
        made
    }

    /// Does something with an entry of a folder that may be written: the folders on the way are entered one after the other, with
    /// rights that a tool may have taken from their owner. `None` where there is no such folder.
    fn at<T>(
        &self,
        place: &Path,
        deed: impl FnOnce(&Entered, &Path) -> Result<T, Errno>,
    ) -> Result<Option<T>, Errno> {
        let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else { return Ok(None) };
        let around = self.roots.iter().filter(|root| folder.starts_with(root));
        let Some(root) = around.min_by_key(|root| root.components().count()) else { return Ok(None) };
        let mut way = Vec::new();
        let rest = folder.strip_prefix(root).unwrap_or(Path::new(""));
        let steps = rest.components().filter(|part| matches!(part, Component::Normal(_)));
        for step in std::iter::once(root.as_path()).chain(steps.map(|part| Path::new(part.as_os_str()))) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = match way.last() {
                None => exact::open(step, flags)
                    .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)),
                Some(folder) => openat(folder, step, flags, Mode::empty()),
            };
            let opened = match opened {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                opened => opened?,
            };
            let meta = statat(&opened, "", AtFlags::EMPTY_PATH)?;
            let take = self.is_fresh(&meta);
            way.push(Entered::new(opened, &meta, take));
        }
        way.last().map(|folder| deed(folder, Path::new(name))).transpose()
    }

    /// Whether an entry was made or changed since the call began: no program sets this time.
    pub(super) fn is_fresh(&self, meta: &Stat) -> bool {
        changed_at(meta) >= self.since
    }

    /// Whether an entry, not of the call's `user`, was made when the call was over.
    fn is_later(&self, folder: impl AsFd, name: &Path, user: Option<u32>) -> bool {
        let Some(until) = self.until else { return false };
        let theirs =
            statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|meta| user == Some(meta.st_uid));
        !theirs && born(folder, name).is_some_and(|born| born > until)
    }

    /// Whether an entry may not be made, by its name.
    pub(super) fn is_ours(&self, name: &Path) -> bool {
        is_own(name.as_os_str()) || self.unasked && is_name(name)
    }

    /// Whether an entry is to be set aside that the call has made under one of the names.
    pub(super) fn is_made(
        &self,
        folder: impl AsFd,
        name: &Path,
        user: Option<u32>,
        changed: bool,
    ) -> Result<bool, Errno> {
        // A clone may be what the user has asked for. Where people and their programs are already, it is set aside.
        Ok(self.is_of_call(&folder, name, user, changed)?
            && !(name == Path::new(".git") && runs_nothing(&folder, name)))
    }

    /// What of a folder is to be set aside so that git does not take it for a repository whose programs it runs: the call has
    /// made it one, under whatever name.
    pub(super) fn sprung(&self, folder: impl AsFd, at: &Path, user: Option<u32>) -> Option<&'static Path> {
        if !self.unasked || self.meant.iter().any(|root| at.starts_with(root)) {
            return None;
        }
        let made = |folder: BorrowedFd<'_>, name: &Path, changed| {
            // What can't be told is taken for the worse.
            self.is_of_call(folder, name, user, changed).unwrap_or(true)
        };
        sprung(folder, at, made)
    }

    /// Whether an entry was made by the call, or was given its name: by its owner, or by when that was. `changed`: whether
    /// entries came into its folder since the call began, or went.
    fn is_of_call(
        &self,
        folder: impl AsFd,
        name: &Path,
        user: Option<u32>,
        changed: bool,
    ) -> Result<bool, Errno> {
        let meta = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(false),
            meta => meta?,
        };
        let born = born(&folder, name);
        // What the user changes later is no newer for it, where that can be told.
        let until = self.until.filter(|_| born.is_some()).unwrap_or(Duration::MAX);
        let within = |time: Duration| (self.since..=until).contains(&time);
        Ok(user == Some(meta.st_uid)
            || born.is_some_and(within)
            || within(changed_at(&meta))
                // One that was there changes its time with each run that is kept in it; one that has got its name since
                // has changed the folder around it, too.
                && (changed || FileType::from_raw_mode(meta.st_mode) != FileType::Directory))
    }
}

fn there(folder: impl AsFd, name: &Path) -> Result<bool, Errno> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(false),
        meta => meta.map(|_| true),
    }
}

/// When an entry was last changed, or given another name.
fn changed_at(meta: &Stat) -> Duration {
    let seconds = u64::try_from(meta.st_ctime).unwrap_or_default();
    Duration::from_secs(seconds).saturating_add(Duration::from_nanos(meta.st_ctime_nsec))
}

/// When an entry was made, where the file system says so.
fn born(folder: impl AsFd, name: &Path) -> Option<Duration> {
    let meta = statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME).ok()?;
    if meta.stx_mask & StatxFlags::BTIME.bits() == 0 {
        return None;
    }
    let seconds = u64::try_from(meta.stx_btime.tv_sec).ok()?;
    Some(Duration::new(seconds, meta.stx_btime.tv_nsec))
}

/// Gives an entry a name that nothing is read from. Nothing is lost: somebody may have made it at that moment who is no tool.
///
/// # Errors
/// It still has its name.
pub(super) fn set_aside(folder: impl AsFd, name: &Path) -> Result<(), Errno> {
    for n in 0..MOST {
        let mut aside = name.as_os_str().to_owned();
        aside.push(match n {
            0 => format!(".{ASIDE}"),
            n => format!(".{ASIDE}-{n}"),
        });
        match renameat_with(&folder, name, &folder, &aside, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => {}
            // A file system that can't do this.
            Err(Errno::INVAL) => match there(&folder, Path::new(&aside))? {
                true => {}
                false => return renameat(&folder, name, &folder, &aside),
            },
            Err(why) => return Err(why),
        }
    }
    // A folder can't be removed so.
    unlinkat(folder, name, AtFlags::empty())
}

/// Paths need not be UTF-8.
mod paths {
    use super::*;
    use serde::{Deserializer, Serializer};
    use std::ffi::OsString;

    pub(super) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| path.as_os_str()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<OsString>::deserialize(from)?.into_iter().map(PathBuf::from).collect())
    }
}

/// The same for pairs of them.
mod pairs {
    use super::*;
    use serde::{Deserializer, Serializer};
    use std::ffi::OsString;

    pub(super) fn serialize<S: Serializer>(pairs: &[(PathBuf, PathBuf)], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(pairs.iter().map(|(one, other)| (one.as_os_str(), other.as_os_str())))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(PathBuf, PathBuf)>, D::Error> {
        let pairs = Vec::<(OsString, OsString)>::deserialize(from)?;
        Ok(pairs.into_iter().map(|(one, other)| (one.into(), other.into())).collect())
    }
}
