//! Environments that are there: marked while they are used, and removed when nobody has used them for long.
//!
//! Beside `<hash>/` lie `<hash>.txt`, the versions and hashes, which are kept; `<hash>.lock`, held by who builds; and
//! `<hash>.use`, held by every process that uses it: its time is that of the last use.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(86_400);
/// When an environment that nobody uses is removed.
const UNUSED: Duration = Duration::from_secs(30 * 86_400);
/// When more than this is kept, those that were not used for the longest time are removed.
const MOST_BYTES: u64 = 10 << 30;
/// The age at which a half-made environment has no builder any more: builds take minutes.
const ABANDONED: Duration = DAY;

/// What is kept under a folder of environments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// How many environments.
    pub count: usize,
    /// Bytes on disk. What `uv` has linked from its own cache counts in full.
    pub bytes: u64,
}

/// What is kept in the shared cache `folder`.
pub fn stored(folder: &Path) -> Stored {
    let all = environments(&folder.join("envs"));
    Stored { count: all.len(), bytes: all.iter().map(|place| size(place)).sum() }
}

/// When environments are removed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keep {
    pub(super) unused: Duration,
    pub(super) bytes: u64,
}

impl Default for Keep {
    fn default() -> Self {
        Self { unused: UNUSED, bytes: MOST_BYTES }
    }
}

/// Marks an environment as used, for as long as the result lives: nobody removes it. `None` where that can't be
/// written down: whoever can't write there removes nothing either.
pub(super) fn mark(place: &Path) -> Option<File> {
    let file = lock_file(&place.with_extension("use")).ok()?;
    file.lock_shared().ok()?;
    // The lock is what counts; without the time it is that of the first use.
    let _ = file.set_modified(SystemTime::now());
    Some(file)
}

/// Removes what nobody needs any more, at most once a day.
pub(super) fn sweep(envs: &Path, keep: Keep) {
    let stamp = envs.join(".swept");
    if age(&stamp).is_some_and(|age| age < DAY) {
        return;
    }
    if std::fs::write(&stamp, "").is_ok() {
        remove_abandoned(envs);
        remove_unused(envs, keep);
    }
}

/// What builders and sweepers that were killed have left.
fn remove_abandoned(envs: &Path) {
    for entry in std::fs::read_dir(envs).into_iter().flatten().filter_map(Result::ok) {
        let name = entry.file_name();
        let ours = [".new-", ".old-"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix));
        if ours && age(&entry.path()).is_some_and(|age| age > ABANDONED) {
            // Another process may be removing it too.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn remove_unused(envs: &Path, keep: Keep) {
    let last = |place: &Path| age(&place.with_extension("use")).or_else(|| age(place)).unwrap_or_default();
    let mut all: Vec<_> =
        environments(envs).into_iter().map(|place| (last(&place), size(&place), place)).collect();
    all.sort();
    let mut total: u64 = all.iter().map(|(_, bytes, _)| bytes).sum();
    for (age, bytes, place) in all.iter().rev() {
        if (*age > keep.unused || total > keep.bytes) && remove(envs, place) {
            total = total.saturating_sub(*bytes);
        }
    }
}

/// Removes an environment unless somebody uses or builds it.
fn remove(envs: &Path, place: &Path) -> bool {
    let Ok(building) = lock_file(&place.with_extension("lock")) else { return false };
    let Ok(using) = lock_file(&place.with_extension("use")) else { return false };
    if building.try_lock().is_err() || using.try_lock().is_err() {
        return false;
    }
    // Gone at once for all others, however long it takes to remove.
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let aside = envs.join(format!(".old-{name}"));
    if std::fs::rename(place, &aside).is_err() {
        return false;
    }
    drop((building, using));
    // The files of locks stay: who has opened one must find the others in the same.
    std::fs::remove_dir_all(aside).is_ok()
}

fn lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path)
}

fn age(path: &Path) -> Option<Duration> {
    // A time to come is no age.
    std::fs::metadata(path).ok()?.modified().ok()?.elapsed().ok()
}

/// The folders of environments.
fn environments(envs: &Path) -> Vec<PathBuf> {
    let is_one = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit()) && entry.path().is_dir()
    };
    let all = std::fs::read_dir(envs).into_iter().flatten().filter_map(Result::ok);
    all.filter(is_one).map(|entry| entry.path()).collect()
}

/// Bytes of all files under a folder; links are not followed.
fn size(folder: &Path) -> u64 {
    let (mut total, mut open) = (0, vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().filter_map(Result::ok) {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => open.push(entry.path()),
                Ok(meta) => total += meta.len(),
                Err(_) => {}
            }
        }
    }
    total
}
