//! C-03: a damaged state folder is recognised, said to be damaged, and never written to.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use selvedge_store::{Mode, Store, StoreError};

use crate::support::{events, new_run};

fn sample(dir: &Path) -> std::path::PathBuf {
    let store = Store::open(dir, Mode::ReadWrite).unwrap();
    store.create_run(new_run("r"), events("r", 1, 2_000)).wait().unwrap();
    let long = format!("[\"{}\"]", "long ".repeat(2_000));
    let entry = selvedge_store::Entry { n: 2_001, at_ms: 1, json: long };
    store.append("r", vec![entry]).wait().unwrap();
    dir.join("selvedge.db")
}

/// Opens for reading and reads everything.
fn read_all(dir: &Path) -> Result<usize, StoreError> {
    let store = Store::open(dir, Mode::ReadOnly)?;
    let entries = store.journal("r", 1)?.collect::<Result<Vec<_>, _>>()?;
    store.check()?;
    Ok(entries.len())
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(bytes).unwrap();
}

#[track_caller]
fn assert_damaged<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    let error = result.unwrap_err();
    let damaged = matches!(error, StoreError::Damaged { .. } | StoreError::DamagedRun { .. });
    assert!(damaged, "{error:?}");
    let message = error.to_string();
    assert!(message.contains("selvedge.db") && message.contains("backup"), "{message}");
}

#[test]
fn a_file_that_is_no_database() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("selvedge.db"), "these are notes, not a database\n".repeat(300)).unwrap();
    assert_damaged(Store::open(dir.path(), Mode::ReadWrite));
    assert_damaged(Store::open(dir.path(), Mode::ReadOnly));
}

#[test]
fn a_file_cut_short() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let size = std::fs::metadata(&path).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(size / 2).unwrap();
    assert_damaged(read_all(dir.path()));
}

#[test]
fn a_file_without_anything_in_it() {
    for (bytes, log) in [(0, false), (0, true), (1, false), (1, true), (100, false), (511, true)] {
        let dir = tempfile::tempdir().unwrap();
        let path = sample(dir.path());
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(bytes).unwrap();
        let wal = dir.path().join("selvedge.db-wal");
        match log {
            true => std::fs::write(&wal, "what was not yet in the file").unwrap(),
            false => drop(std::fs::remove_file(&wal)),
        }
        assert_damaged(Store::open(dir.path(), Mode::ReadWrite));
        assert_damaged(Store::open(dir.path(), Mode::ReadOnly));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), bytes, "nothing was written");
        assert_eq!(wal.exists(), log, "the log is evidence");
    }
    // A database with nothing in it is none of ours either: ours come into being whole.
    let dir = tempfile::tempdir().unwrap();
    let conn = rusqlite::Connection::open(dir.path().join("selvedge.db")).unwrap();
    conn.execute_batch("CREATE TABLE t (a); DROP TABLE t").unwrap();
    assert_damaged(Store::open(dir.path(), Mode::ReadWrite));
    assert_damaged(Store::open(dir.path(), Mode::ReadOnly));
}

#[test]
fn who_looks_while_it_is_created_sees_no_damage() {
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        std::thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| Store::open(&state, Mode::ReadWrite).unwrap());
            }
            for _ in 0..200 {
                match Store::open(&state, Mode::ReadOnly) {
                    Ok(_) | Err(StoreError::Missing { .. }) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
        });
        let left: Vec<_> = std::fs::read_dir(&state).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().contains("-new-")), "{left:?}");
    }
}

#[test]
fn pages_of_noise() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let pages = std::fs::metadata(&path).unwrap().len() / 4096;
    for page in 1..pages {
        overwrite(&path, page * 4096, &[0xa5; 4096]);
    }
    assert_damaged(read_all(dir.path()));
}

#[test]
fn a_missing_event_a_missing_content_and_a_changed_content() {
    let cases = [
        "DELETE FROM journal WHERE key % 4294967296 = 700",
        "DELETE FROM blobs",
        "UPDATE blobs SET data = CAST('other' AS BLOB)",
        "UPDATE journal SET body = 7 WHERE key % 4294967296 = 9",
        "UPDATE journal SET body = CAST('\"@nonsense\"' AS BLOB) WHERE key % 4294967296 = 9",
        "UPDATE journal SET body = CAST(x'22fffe22' AS TEXT) WHERE key % 4294967296 = 9",
        "DROP TABLE journal",
    ];
    for case in cases {
        let dir = tempfile::tempdir().unwrap();
        let path = sample(dir.path());
        assert_eq!(read_all(dir.path()), Ok(2_001));
        rusqlite::Connection::open(&path).unwrap().execute_batch(case).unwrap();
        assert_damaged(read_all(dir.path()));
    }
}

#[test]
fn a_run_with_an_unknown_status() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    rusqlite::Connection::open(&path).unwrap().execute_batch("UPDATE runs SET status = 'dancing'").unwrap();
    let store = Store::open(dir.path(), Mode::ReadOnly).unwrap();
    assert_damaged(store.run("r"));
    assert_eq!(store.runs(&Default::default()).unwrap().damaged.len(), 1);
}
