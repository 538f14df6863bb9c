//! Opening connections: the one that writes, and those that read.
//!
//! SQLite's own locks are POSIX record locks, which a process loses when it closes *any* descriptor of the file.
//! So nothing in this crate opens `selvedge.db` (or its `-shm`) other than through SQLite.
//!
//! The file comes into being whole, under another name, and gets its own by one renaming: whoever finds it finds a
//! database of ours, and one that is empty or cut off is damaged (C-03), not new.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::{StoreError, schema};

/// Name of the database in the state folder (C-14).
pub const DB_FILE: &str = "selvedge.db";

/// How long a request waits for another process's transaction.
const BUSY: Duration = Duration::from_secs(30);
/// After a checkpoint the log's file is cut to this size.
const LOG_BYTES: u32 = 32 * 1024 * 1024;
/// Prepared statements kept a connection; more than the crate has.
const STATEMENTS: usize = 48;

/// The smallest page of SQLite, and so the smallest file that is a database.
const SMALLEST: u64 = 512;

/// How a database is opened to be written.
const WRITE: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// One thread of this process creates the file: temporary names differ between processes.
static CREATE: Mutex<()> = Mutex::new(());

/// Opens the database for writing: creates folder and file if needed and brings the format up to date.
pub(crate) fn write(dir: &Path, migrations: &[&str]) -> Result<Connection, StoreError> {
    let _creating = CREATE.lock().unwrap_or_else(PoisonError::into_inner);
    fs::create_dir_all(dir).map_err(|error| StoreError::from_io(dir, &error))?;
    let db = dir.join(DB_FILE);
    if !is_there(&db)? {
        create(dir, &db, migrations)?;
    }
    let deadline = Instant::now() + BUSY;
    loop {
        match try_write(&db, migrations) {
            // Bringing an older file up to date does not always wait for a process that does the same.
            Err(StoreError::Locked { .. }) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}

/// Whether there is a database. SQLite would take a file that is shorter than a page for a new database, and remove
/// the log that belongs to it: so that is looked at first.
fn is_there(db: &Path) -> Result<bool, StoreError> {
    match fs::metadata(db) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => Err(StoreError::from_io(db, &error)),
        // A pipe would be waited for without an end.
        Ok(meta) if !meta.is_file() => {
            let what = if meta.is_dir() { "a folder" } else { "a pipe, a socket or a device" };
            let why = format!("it is {what}, and no database");
            Err(StoreError::Damaged { path: db.to_owned(), why })
        }
        Ok(meta) if meta.len() < SMALLEST => Err(cut_off(db, meta.len())),
        Ok(_) => Ok(true),
    }
}

fn cut_off(db: &Path, bytes: u64) -> StoreError {
    let why = format!("it has {bytes} bytes, which is no database: it was cut off or overwritten");
    StoreError::Damaged { path: db.to_owned(), why }
}

/// Makes the database under another name and gives it its own, unless another process was first.
fn create(dir: &Path, db: &Path, migrations: &[&str]) -> Result<(), StoreError> {
    let temporary = dir.join(format!(".{DB_FILE}-new-{}", std::process::id()));
    let io = |error: &io::Error| StoreError::from_io(db, error);
    // A process that had this number may have died over it.
    let remove = || {
        for end in ["", "-wal", "-shm", "-journal"] {
            let mut name = temporary.as_os_str().to_owned();
            name.push(end);
            // Most of them were never there.
            let _ = fs::remove_file(name);
        }
    };
    remove();
    let made = (|| {
        let file = create_private(&temporary).map_err(|error| io(&error))?;
        fill(&temporary, migrations)?;
        file.sync_all().map_err(|error| io(&error))?;
        match name_new(&temporary, db) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            named => named.map_err(|error| io(&error))?,
        }
        // The name must outlive a power cut like what is written under it (E-04); a system that can't do this for
        // folders does it unasked.
        let _ = fs::File::open(dir).and_then(|folder| folder.sync_all());
        Ok(())
    })();
    remove();
    // The one that was made is not the one that the user knows.
    made.map_err(|error: StoreError| error.of(db))
}

/// Writes an empty database of the newest format into a file that nobody else knows yet. It is thrown away if this does
/// not come to its end, so that it needs no journal, and nothing is on the disk before the caller says so: of all that
/// a first run does before its first request, a database with a journal of its own took the most.
fn fill(temporary: &Path, migrations: &[&str]) -> Result<(), StoreError> {
    let sql = |error| StoreError::from_sqlite(temporary, &error);
    let conn = Connection::open_with_flags(temporary, WRITE).map_err(sql)?;
    prepare(&conn).map_err(sql)?;
    conn.pragma_update(None, "journal_mode", "off").map_err(sql)?;
    conn.pragma_update(None, "synchronous", "off").map_err(sql)?;
    schema::migrate(&conn, temporary, migrations)?;
    conn.pragma_update(None, "journal_mode", "wal").map_err(sql)?;
    conn.close().map_err(|(_, error)| sql(error))
}

/// Gives a file a name that nobody has.
fn name_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            Err(error) if error == rustix::io::Errno::EXIST => return Err(error.into()),
            // File systems that can't: a second link does the same where there are links.
            Err(_) => {}
        }
    }
    fs::hard_link(from, to)
}

fn try_write(db: &Path, migrations: &[&str]) -> Result<Connection, StoreError> {
    let sql = |error| StoreError::from_sqlite(db, &error);
    let conn = Connection::open_with_flags(db, WRITE).map_err(sql)?;
    prepare(&conn).map_err(sql)?;
    // SQLite quietly opens for reading what it may not write.
    if conn.is_readonly("main").map_err(sql)? {
        return Err(StoreError::only_read(db));
    }
    // Before anything is written: a newer format, damage or another program's file stays as it is.
    let newest = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    let found = schema::version(&conn, db, newest)?;
    if found == 0 {
        return Err(empty(db));
    }
    conn.pragma_update(None, "journal_mode", "wal").map_err(sql)?;
    conn.pragma_update(None, "synchronous", "full").map_err(sql)?;
    conn.pragma_update(None, "journal_size_limit", LOG_BYTES).map_err(sql)?;
    if found < newest {
        schema::migrate(&conn, db, migrations)?;
    }
    Ok(conn)
}

/// Opens the database for reading.
pub(crate) fn read(dir: &Path) -> Result<Connection, StoreError> {
    let db = dir.join(DB_FILE);
    if !is_there(&db)? {
        return Err(StoreError::Missing { path: db });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let first = Connection::open_with_flags(&db, flags).and_then(|conn| probe(&conn).map(|()| conn));
    let conn = match first {
        Err(error) if is_cannot_open(&error) && log_is_empty(&db) => {
            // A database with write-ahead log needs its helper files even for reading, and a read-only folder
            // does not let SQLite make them. Without a log there is nobody who could be writing.
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(immutable_uri(&db), flags)
                .and_then(|conn| probe(&conn).map(|()| conn))
                .map_err(|error| StoreError::from_sqlite(&db, &error))?
        }
        other => other.map_err(|error| StoreError::from_sqlite(&db, &error))?,
    };
    let newest = u32::try_from(schema::MIGRATIONS.len()).unwrap_or(u32::MAX);
    match schema::version(&conn, &db, newest)? {
        found if found == newest => Ok(conn),
        0 => Err(empty(&db)),
        // An older format is read as it is.
        found => {
            let views = schema::views(found).unwrap_or_default();
            conn.execute_batch(&views).map_err(|error| StoreError::from_sqlite(&db, &error))?;
            Ok(conn)
        }
    }
}

fn empty(db: &Path) -> StoreError {
    let why = "it is empty: what was in it is gone".to_owned();
    StoreError::Damaged { path: db.to_owned(), why }
}

/// Opens a database that lives in memory and is gone with its connection.
pub(crate) fn memory() -> Result<Connection, StoreError> {
    let db = PathBuf::from(":memory:");
    let sql = |error| StoreError::from_sqlite(&db, &error);
    let conn = Connection::open_in_memory().map_err(sql)?;
    prepare(&conn).map_err(sql)?;
    schema::migrate(&conn, &db, schema::MIGRATIONS)?;
    Ok(conn)
}

fn prepare(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(BUSY)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    // Finds damaged pages when they are read instead of when they are used.
    conn.pragma_update(None, "cell_size_check", true)
}

fn probe(conn: &Connection) -> rusqlite::Result<()> {
    prepare(conn)?;
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

fn is_cannot_open(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

fn log_is_empty(db: &Path) -> bool {
    let mut log = db.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(log).map_or(true, |meta| meta.len() == 0)
}

/// `file:` address of `db` with everything escaped that SQLite would take for syntax.
fn immutable_uri(db: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in db.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

/// Creates the file for this user alone: journals hold whole conversations. SQLite gives its helper files the
/// same rights.
fn create_private(db: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(db)
}
