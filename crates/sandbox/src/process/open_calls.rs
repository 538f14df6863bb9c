//! Notes of the calls under way that may write. A process that is killed looks through nothing any more: by its notes,
//! the next command does what the end of these calls would have done, before it reads anything that they may have made.
//!
//! Each process has a folder of notes, locked as long as it lives, with a file `alive` that it touches; a note is there from
//! before a call's process starts until what the call has made is looked through.

use super::Made;
use super::owner::{living, look_through};
use super::quarantine::Before;
use super::scratch::{is_taken, locked};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a process touches as long as it lives, and how often.
const ALIVE: &str = "alive";
const EVERY: Duration = Duration::from_millis(500);
/// What was made so long after the last touch was not made by a tool of a process that is gone: a busy machine may be late.
const LATE: Duration = Duration::from_secs(2);
/// How long the processes of a call may take to end after the process that ran it was killed.
const ENDING: Duration = Duration::from_millis(500);
const ENDING_USER: Duration = Duration::from_secs(5);
/// What the name of a note that is written whole ends with.
const WHOLE: &str = "json";

static OURS: OnceLock<Ours> = OnceLock::new();

/// The notes of this process.
struct Ours {
    folder: PathBuf,
    next: AtomicU64,
    /// Its end is the end of this process.
    _lock: File,
}

#[derive(Serialize, Deserialize)]
struct Noted {
    tool: String,
    /// Under which number the tool runs, and the numbers that only tools have.
    user: Option<u32>,
    tools: Range<u32>,
    before: Before,
}

/// The note of a call, there until this is dropped.
#[derive(Debug)]
pub(crate) struct Note(Option<PathBuf>);

/// What was left of a call whose process was killed.
#[derive(Debug)]
pub struct Left {
    /// Whose call it was.
    pub tool: String,
    /// What of it was set aside, and what could not be.
    pub made: Made,
    /// Its note, which is gone if nothing is left to be done.
    pub note: PathBuf,
}

/// From here on, calls of this process are noted in a folder of its own in `around`: the user's, which no tool can write.
///
/// # Errors
/// Where no such folder can be made or locked.
pub fn note_calls_in(around: &Path) -> io::Result<()> {
    if OURS.get().is_some() {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(around)?;
    // Nobody takes it for one that was left behind before it is locked.
    let _making = alone(around)?;
    let folder = tempfile::Builder::new().prefix("process-").tempdir_in(around)?;
    let lock = locked(folder.path())?;
    let alive = File::create(folder.path().join(ALIVE))?;
    let touch = move || {
        // Until the process ends.
        while alive.set_modified(SystemTime::now()).is_ok() {
            std::thread::sleep(EVERY);
        }
    };
    std::thread::Builder::new().name("alive".into()).spawn(touch)?;
    let ours = Ours { folder: folder.keep(), next: AtomicU64::new(0), _lock: lock };
    // Of two at the same time, the folder of the second one is empty, and is removed by a later command.
    let _ = OURS.set(ours);
    Ok(())
}

/// Removes this process's folder, if no call is left in it that is not looked through: for the end of the process.
pub fn no_more_calls() {
    if let Some(ours) = OURS.get()
        && notes(&ours.folder).is_ok_and(|notes| notes.is_empty())
    {
        // What stays is empty, and is removed by a later command.
        let _ = std::fs::remove_dir_all(&ours.folder);
    }
}

impl Note {
    /// Where nothing is noted.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Notes a call that is about to start; nothing if it may not write, or if no calls are noted.
    ///
    /// # Errors
    /// When the note cannot be written: such a call is not to start.
    pub(crate) fn of(before: &Before, user: Option<u32>, tools: &Range<u32>, tool: &str) -> io::Result<Self> {
        let Some(ours) = OURS.get().filter(|_| !before.roots.is_empty()) else { return Ok(Self(None)) };
        let name = ours.folder.join(ours.next.fetch_add(1, Ordering::Relaxed).to_string());
        let note = Self(Some(name.with_extension(WHOLE)));
        let noted = Noted { tool: tool.to_owned(), user, tools: tools.clone(), before: before.clone() };
        let written = std::fs::write(&name, serde_json::to_vec(&noted)?)
            .and_then(|()| std::fs::rename(&name, name.with_extension(WHOLE)));
        written.map_err(|why| {
            io::Error::other(format!("the call can't be noted in {}: {why}", ours.folder.display()))
        })?;
        Ok(note)
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // A bug while it was looked through has not looked through it.
        if let Some(file) = self.0.take().filter(|_| !std::thread::panicking()) {
            // One that stays is looked through once more.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Does for the calls of killed processes that are noted in `around` what their end would have done. What the user has made since
/// is left alone. To be called before anything is read that a tool may have made.
///
/// # Errors
/// Where the notes can't be looked for. What can't be set aside is in what is returned, and its note stays.
pub fn settle_killed_calls(around: &Path) -> io::Result<Vec<Left>> {
    let mut left = Vec::new();
    let owner = match std::fs::symlink_metadata(around) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(left),
        meta => meta?.uid(),
    };
    // Another user's are no business of this one's, whose rights may be greater.
    if owner != geteuid().as_raw() || folders(around)?.is_empty() {
        return Ok(left);
    }
    // Two commands that start at the same time: the second one goes on when all is done.
    let _alone = alone(around)?;
    for folder in folders(around)? {
        match locked(&folder) {
            Ok(_lock) => settle(&folder, &mut left)?,
            // Of a living process, or removed by it just now.
            Err(why) if is_taken(&why) => {}
            Err(why) => return Err(why),
        }
    }
    Ok(left)
}

/// What one killed process has left.
fn settle(folder: &Path, left: &mut Vec<Left>) -> io::Result<()> {
    let notes = notes(folder)?;
    // It is there before any note is.
    let alive = folder.join(ALIVE).metadata().and_then(|meta| meta.modified()).ok();
    if !notes.is_empty() && alive.is_none_or(|at| at.elapsed().is_ok_and(|ago| ago < 2 * EVERY)) {
        std::thread::sleep(ENDING);
    }
    let until = alive.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map(|at| at + LATE);
    let mut open = false;
    for note in notes {
        let (tool, made) = match read(&note) {
            Ok(noted) => noted.settle(until),
            Err(why) => {
                let mut made = Made::default();
                made.leave(&note, format!("this note of a call can't be read: {why}"));
                (String::new(), made)
            }
        };
        if made.left.is_empty() {
            std::fs::remove_file(&note)?;
        }
        open |= !made.left.is_empty();
        if !made.is_empty() {
            left.push(Left { tool, made, note });
        }
    }
    if open { Ok(()) } else { std::fs::remove_dir_all(folder) }
}

impl Noted {
    fn settle(mut self, until: Option<Duration>) -> (String, Made) {
        self.before.until = until;
        let lives = |user: &u32| living().is_none_or(|living| living.contains(user));
        let begun = Instant::now();
        while self.user.as_ref().is_some_and(lives) && begun.elapsed() < ENDING_USER {
            std::thread::sleep(EVERY / 10);
        }
        // Another process may have given its number to a call of its own.
        let user = self.user.filter(|user| !lives(user));
        (self.tool, look_through(&self.before, user, &self.tools))
    }
}

fn read(note: &Path) -> io::Result<Noted> {
    Ok(serde_json::from_slice(&std::fs::read(note)?)?)
}

/// The lock on the folder around those of all processes.
fn alone(around: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(around, flags, Mode::empty())?;
    flock(&folder, FlockOperation::LockExclusive)?;
    Ok(folder)
}

fn folders(around: &Path) -> io::Result<Vec<PathBuf>> {
    let all = std::fs::read_dir(around)?.map(|entry| entry.map(|entry| entry.path()));
    Ok(all.collect::<io::Result<Vec<_>>>()?.into_iter().filter(|path| path.is_dir()).collect())
}

/// The notes that were written whole; of the others, no process was started.
fn notes(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let all = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut notes = all.collect::<io::Result<Vec<_>>>()?;
    notes.retain(|path| path.extension().is_some_and(|end| end == WHOLE));
    notes.sort();
    Ok(notes)
}
