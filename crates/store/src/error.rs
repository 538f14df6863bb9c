//! What can go wrong with a state folder, and what a person can do about it (C-04).

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rusqlite::ffi;

/// A failed request to the store. `Display` says what, where, why and what to do; [`StoreError::what`] and
/// [`StoreError::help`] give the two halves.
///
/// It is `Clone` because one failed transaction fails every request that was in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database exists but its content is not what was written (C-03: exit 4).
    Damaged {
        /// The database file.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// What was stored of a run is not what was written (E-44; C-03: exit 4).
    DamagedRun {
        /// The database file.
        path: PathBuf,
        /// The run's id.
        run: String,
        /// Its first event that is not what was written; `None` if it is something else.
        event: Option<u64>,
        /// What was found.
        why: String,
    },
    /// The database, or its log, is no longer where it was opened: what is written now, nobody finds (E-44; C-03: exit 4).
    Vanished {
        /// The file, where it was.
        path: PathBuf,
        /// Where it is now, if it was moved and can be found.
        now: Option<PathBuf>,
    },
    /// The database, or its log, was emptied while it was open: what was written is lost (E-44; C-03: exit 4).
    Emptied {
        /// The file.
        path: PathBuf,
    },
    /// The state folder was written by a newer version (C-03: exit 4).
    Newer {
        /// The database file.
        path: PathBuf,
        /// Format found in the file.
        found: u32,
        /// Newest format this version knows.
        supported: u32,
    },
    /// There is no database at that place and it was opened for reading only.
    Missing {
        /// The database file that was looked for.
        path: PathBuf,
    },
    /// Something was to be written to a folder or file that can only be read.
    ReadOnly {
        /// The state folder or database file.
        path: PathBuf,
        /// What forbids it.
        why: String,
    },
    /// No room is left: disk, quota or file-size limit.
    Full {
        /// The database file.
        path: PathBuf,
        /// Which room ran out.
        why: String,
    },
    /// Another process kept the database locked for too long.
    Locked {
        /// The database file.
        path: PathBuf,
        /// What was waited for.
        why: String,
    },
    /// Any other failure of the operating system or of SQLite.
    Io {
        /// The file or folder concerned.
        path: PathBuf,
        /// The cause as reported.
        why: String,
    },
    /// A run with this id exists already (C-12).
    AlreadyExists {
        /// The run's id.
        run: String,
    },
    /// No run has this id.
    UnknownRun {
        /// The id that was asked for.
        run: String,
    },
    /// Several runs' ids begin with the given text.
    AmbiguousRun {
        /// The text that was asked for.
        prefix: String,
        /// Some of the ids that begin with it, in order.
        candidates: Vec<String>,
    },
    /// No content is stored under this hash.
    UnknownBlob {
        /// The hash, in hexadecimal.
        hash: String,
    },
    /// Another live process, or another part of this one, drives the run (C-12).
    Driven {
        /// The run's id.
        run: String,
        /// The process that drives it, where known.
        pid: Option<u32>,
    },
    /// The entries do not continue the run's journal: someone else has written to it, or the caller has a bug.
    OutOfOrder {
        /// The run's id.
        run: String,
        /// Number the next entry must have.
        expected: u64,
        /// Number that was given.
        got: u64,
    },
    /// Events for the library's journal were decided on by an older state of it.
    LibraryChanged {
        /// Number the next event must have.
        expected: u64,
        /// Number that was given.
        got: u64,
    },
    /// The store was closed, or its writer thread is gone.
    Closed,
}

impl StoreError {
    /// What happened, where and why, without advice.
    pub fn what(&self) -> String {
        match self {
            Self::Damaged { path, why } => format!("the database {} is damaged: {why}", path.display()),
            Self::DamagedRun { path, run, event: Some(n), why } => {
                format!("run \"{run}\" is damaged at event {n}: {why} (in {})", path.display())
            }
            Self::DamagedRun { path, run, event: None, why } => {
                format!("run \"{run}\" is damaged: {why} (in {})", path.display())
            }
            Self::Vanished { path, now: Some(now) } => {
                format!("the state was moved away: {} is {} now", path.display(), now.display())
            }
            Self::Vanished { path, now: None } => {
                format!("the state was deleted: {} is not the file any more that was open", path.display())
            }
            Self::Emptied { path } => {
                format!("the state was emptied: {} has lost what was in it", path.display())
            }
            Self::Newer { path, found, supported } => format!(
                "the database {} has format {found}; this version of selvedge knows formats up to {supported}",
                path.display()
            ),
            Self::Missing { path } => format!("there is no database at {}", path.display()),
            Self::ReadOnly { path, why } => format!("{} cannot be written: {why}", path.display()),
            Self::Full { path, why } => format!("no room left to write {}: {why}", path.display()),
            Self::Locked { path, why } => format!("the database {} is in use: {why}", path.display()),
            Self::Io { path, why } => format!("{} cannot be used: {why}", path.display()),
            Self::AlreadyExists { run } => format!("a run with the id \"{run}\" exists already"),
            Self::UnknownRun { run } => format!("there is no run \"{run}\""),
            Self::AmbiguousRun { prefix, candidates } => {
                format!("several runs begin with \"{prefix}\": {}", candidates.join(", "))
            }
            Self::UnknownBlob { hash } => format!("nothing is stored under the hash {hash}"),
            Self::Driven { run, pid: Some(pid) } => format!("run \"{run}\" is driven by process {pid}"),
            Self::Driven { run, pid: None } => format!("run \"{run}\" is driven by another process"),
            Self::OutOfOrder { run, expected, got } => {
                let other =
                    format!("another process has gone on with run \"{run}\", whose next event is {expected}");
                format!("{other}: event {got} of this one was not recorded")
            }
            Self::LibraryChanged { expected, got } => {
                format!("the tool library has changed meanwhile: its next event is {expected}, not {got}")
            }
            Self::Closed => "the store is closed".to_owned(),
        }
    }

    /// What a person can do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Damaged { .. } => {
                "restore the state folder from a backup, or move it away to begin with an empty one"
            }
            Self::DamagedRun { event: Some(2..), .. } => {
                "the events before it can be shown, exported and forked; the rest is in a backup, if there is one"
            }
            Self::DamagedRun { .. } => "restore the state folder from a backup",
            Self::Vanished { now: Some(_), .. } => "move it back, or name it with --state-dir",
            Self::Vanished { now: None, .. } | Self::Emptied { .. } => {
                "leave the state folder alone while runs are under way"
            }
            Self::Newer { .. } => {
                "use the selvedge that wrote it or a later one, or another folder with --state-dir"
            }
            Self::Missing { .. } => "check --state-dir, or start a run to create one",
            Self::ReadOnly { .. } => {
                "make the folder writable for this user, or choose another with --state-dir"
            }
            Self::Full { .. } => {
                "free some space (or raise the quota or file-size limit), then resume the run"
            }
            Self::Locked { .. } => "end the process that uses it, or try again later",
            Self::Io { .. } => "check the path and the disk, then try again",
            Self::AlreadyExists { .. } => "choose another id, or resume that run",
            Self::UnknownRun { .. } => "look at which runs this state folder has",
            Self::AmbiguousRun { .. } => "give more characters of the id",
            Self::UnknownBlob { .. } => "the state folder may be incomplete: restore it from a backup",
            Self::Driven { .. } => "wait for that process to end, or interrupt it",
            Self::OutOfOrder { .. } => "leave the run to that process",
            Self::LibraryChanged { .. } => "try again",
            Self::Closed => "open the store again",
        }
    }

    /// True for a request that was wrong by itself: it is refused alone, the rest of its batch goes on.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::AlreadyExists { .. }
                | Self::DamagedRun { .. }
                | Self::UnknownRun { .. }
                | Self::UnknownBlob { .. }
                | Self::OutOfOrder { .. }
                | Self::LibraryChanged { .. }
        )
    }

    /// Damage of a run at an event, or in the index.
    pub(crate) fn broken(db: &Path, run: &str, event: Option<u64>, why: &str) -> Self {
        Self::DamagedRun { path: db.to_owned(), run: run.to_owned(), event, why: why.to_owned() }
    }

    /// The same trouble with a file as another one's.
    pub(crate) fn of(mut self, file: &Path) -> Self {
        if let Self::Damaged { path, .. }
        | Self::Newer { path, .. }
        | Self::Missing { path }
        | Self::ReadOnly { path, .. }
        | Self::Full { path, .. }
        | Self::Locked { path, .. }
        | Self::Io { path, .. } = &mut self
        {
            *path = file.to_owned();
        }
        self
    }

    /// A database that can only be read, with what forbids to write it: its disk, its permissions, or whoever opened it.
    pub(crate) fn only_read(db: &Path) -> Self {
        let Err(error) = std::fs::OpenOptions::new().append(true).open(db) else {
            return Self::ReadOnly { path: db.to_owned(), why: "it was opened for reading only".to_owned() };
        };
        Self::from_io(db, &error)
    }

    /// An operating-system error at `path`, sorted into our kinds.
    pub(crate) fn from_io(path: &Path, error: &io::Error) -> Self {
        let (path, why) = (path.to_owned(), error.to_string());
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { path, why }
            }
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                Self::ReadOnly { path, why }
            }
            _ => Self::Io { path, why },
        }
    }

    /// An error of SQLite on the database `db`, sorted into our kinds.
    pub(crate) fn from_sqlite(db: &Path, error: &rusqlite::Error) -> Self {
        let (path, why) = (db.to_owned(), error.to_string());
        let rusqlite::Error::SqliteFailure(code, _) = error else {
            return match error {
                // A column of a type or text encoding that this schema never writes.
                rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..) => Self::Damaged { path, why },
                _ => Self::Io { path, why },
            };
        };
        match code.code {
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Damaged { path, why },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
                Self::Locked { path, why }
            }
            ErrorCode::ReadOnly => Self::ReadOnly { path, why },
            ErrorCode::DiskFull => Self::Full { path, why },
            ErrorCode::SystemIoFailure if is_short_read(code.extended_code) => Self::Damaged { path, why },
            ErrorCode::SystemIoFailure if is_write(code.extended_code) => match probe_write(db) {
                Err(cause) => Self::from_io(db, &cause),
                Ok(()) => Self::Io { path, why },
            },
            ErrorCode::CannotOpen => match probe_write(db) {
                Err(cause) => Self::from_io(db, &cause),
                Ok(()) => Self::Io { path, why },
            },
            // The tables are missing or have another shape than this format number promises.
            ErrorCode::Unknown => Self::Damaged { path, why },
            _ => Self::Io { path, why },
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what(), self.help())
    }
}

fn is_short_read(extended: i32) -> bool {
    matches!(extended, ffi::SQLITE_IOERR_SHORT_READ | ffi::SQLITE_IOERR_CORRUPTFS | ffi::SQLITE_IOERR_DATA)
}

fn is_write(extended: i32) -> bool {
    matches!(
        extended,
        ffi::SQLITE_IOERR_WRITE
            | ffi::SQLITE_IOERR_FSYNC
            | ffi::SQLITE_IOERR_DIR_FSYNC
            | ffi::SQLITE_IOERR_TRUNCATE
            | ffi::SQLITE_IOERR_SHMOPEN
            | ffi::SQLITE_IOERR_SHMSIZE
            | ffi::SQLITE_IOERR_SHMMAP
    )
}

/// Finds out why a write beside `db` failed. SQLite reports quotas and file-size limits as a plain "disk I/O
/// error" and keeps the operating system's code to itself, so the same is tried once more: some bytes at the
/// offset where the database's files end, in a file of our own (opening SQLite's would drop its locks).
fn probe_write(db: &Path) -> io::Result<()> {
    const PROBE_BYTES: usize = 64 * 1024;
    let dir = db.parent().unwrap_or(Path::new("."));
    std::fs::metadata(dir)?;
    let mut wal = db.as_os_str().to_owned();
    wal.push("-wal");
    let size = |p: &Path| std::fs::metadata(p).map(|m| m.len()).unwrap_or(0);
    let end = size(db).max(size(Path::new(&wal)));
    let probe = dir.join(format!(".selvedge-probe-{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&probe)?;
    let written = file
        .seek(SeekFrom::Start(end))
        .and_then(|_| file.write_all(&[0; PROBE_BYTES]))
        .and_then(|()| file.sync_all());
    // The probe is of no use afterwards; a failed removal must not hide what was found.
    let _ = std::fs::remove_file(&probe);
    written
}
