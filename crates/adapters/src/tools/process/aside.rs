//! What a call has made that Selvedge would read as its own configuration or state is set aside when the call is over.

use super::Policy;
use crate::tools::configuration::{is_name, is_own, places};
use crate::tools::permissions::Grant;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, StatxFlags, openat, renameat, renameat_with,
    statat, statx, unlinkat,
};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What is added to the name of what is set aside.
const ASIDE: &str = "set-aside";
/// How many of one name may lie aside; further ones are removed.
const MOST: usize = 100;
/// How much the time of a file may be behind.
const TICK: Duration = Duration::from_millis(20);

/// What there was before a call in the places that it may write.
#[derive(Debug)]
pub(crate) struct Before {
    /// These places, without links.
    pub(super) roots: Vec<PathBuf>,
    /// What no call changes.
    pub(super) kept: Vec<PathBuf>,
    absent: Vec<PathBuf>,
    /// Links, with what they lead to: a mount keeps that as it is, and not the link.
    links: Vec<(PathBuf, PathBuf)>,
    since: Duration,
    /// Whether it is also about what other programs run: not for commands, which are the user's own programs.
    unasked: bool,
}

impl Before {
    pub(crate) fn now(policy: &Policy) -> Self {
        let real = |grants: &[Grant]| grants.iter().map(|grant| grant.real.clone()).collect::<Vec<_>>();
        let roots = real(&policy.write);
        let (mut absent, mut links) = (Vec::new(), Vec::new());
        let is_ours = |place: &Path| place.file_name().is_some_and(is_own);
        let places = places(&roots, &real(&policy.read)).into_iter();
        for place in places.filter(|place| policy.unasked || is_ours(place)) {
            match std::fs::read_link(&place) {
                Ok(target) => links.push((place, target)),
                Err(_) if place.symlink_metadata().is_err() => absent.push(place),
                Err(_) => {}
            }
        }
        let hidden = policy.hidden.iter().filter_map(|path| path.canonicalize().ok());
        // Links are seen to by themselves.
        let places = links.iter().map(|(place, _)| place.clone());
        let kept = policy.kept.iter().cloned().chain(hidden).chain(places).collect();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(TICK);
        Self { roots, kept, absent, links, since, unasked: policy.unasked }
    }

    /// Sets aside what the call has made where its names are looked for first.
    pub(super) fn set_aside(&self) -> Vec<PathBuf> {
        let made = |place: &&PathBuf| place.symlink_metadata().is_ok();
        let mut found: Vec<PathBuf> = self.absent.iter().filter(made).cloned().collect();
        found.iter().for_each(|place| at(place));
        for (place, target) in &self.links {
            if std::fs::read_link(place).is_ok_and(|now| now == *target) {
                continue;
            }
            if place.symlink_metadata().is_ok() {
                at(place);
            }
            // The user's link, as it was.
            let _ = std::os::unix::fs::symlink(target, place);
            found.push(place.clone());
        }
        found
    }

    /// The same of an entry of any folder below, if it has one of the names and was made by the call: by its owner, or by when
    /// it was made.
    pub(super) fn is_made(&self, folder: impl AsFd, name: &Path, user: Option<u32>) -> bool {
        if !(is_own(name.as_os_str()) || self.unasked && is_name(name)) {
            return false;
        }
        let Ok(meta) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
        if user == Some(meta.st_uid) {
            return true;
        }
        match FileType::from_raw_mode(meta.st_mode) {
            // One that was there changes its time with each run that is kept in it.
            FileType::Directory => born(folder, name).is_some_and(|born| born >= self.since),
            _ => changed(&meta) >= self.since,
        }
    }
}

/// When an entry's content, place or owner was last changed: no program sets this time.
fn changed(meta: &Stat) -> Duration {
    let seconds = u64::try_from(meta.st_ctime).unwrap_or_default();
    Duration::from_secs(seconds).saturating_add(Duration::from_nanos(meta.st_ctime_nsec))
}

/// When a folder was made, where the file system says so.
fn born(folder: impl AsFd, name: &Path) -> Option<Duration> {
    let meta = statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME).ok()?;
    if meta.stx_mask & StatxFlags::BTIME.bits() == 0 {
        return None;
    }
    let seconds = u64::try_from(meta.stx_btime.tv_sec).ok()?;
    Some(Duration::new(seconds, meta.stx_btime.tv_nsec))
}

fn at(place: &Path) {
    let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else { return };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(folder) = openat(CWD, folder, flags, Mode::empty()) {
        set_aside(folder, Path::new(name));
    }
}

/// Gives an entry a name that nothing is read from. Nothing is lost: somebody may have made it at that moment who is no tool.
pub(super) fn set_aside(folder: impl AsFd, name: &Path) {
    let name = name.display();
    for n in 0..MOST {
        let aside = match n {
            0 => format!("{name}.{ASIDE}"),
            n => format!("{name}.{ASIDE}-{n}"),
        };
        let own = name.to_string();
        match renameat_with(&folder, &own, &folder, &aside, RenameFlags::NOREPLACE) {
            Ok(()) => return,
            Err(rustix::io::Errno::EXIST) => {}
            // A file system that can't do this.
            Err(_) if statat(&folder, &aside, AtFlags::SYMLINK_NOFOLLOW).is_ok() => {}
            Err(_) if renameat(&folder, &own, &folder, &aside).is_ok() => return,
            Err(_) => {}
        }
    }
    // A folder is left only where nothing else can be done.
    let _ = unlinkat(&folder, name.to_string(), AtFlags::empty());
}
