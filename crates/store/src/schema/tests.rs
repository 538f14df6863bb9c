use std::path::Path;

use rusqlite::Connection;

use super::{MAX_NUMBER, MIGRATIONS, journal_key, number_of, version};
use crate::{Mode, Store, StoreError, open};

const DB: &str = "selvedge.db";

fn text(conn: &Connection, sql: &str) -> String {
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn an_older_format_is_migrated_step_by_step() {
    let dir = tempfile::tempdir().unwrap();
    let first = &["CREATE TABLE notes (a TEXT) STRICT; INSERT INTO notes VALUES ('kept')"];
    drop(open::write(dir.path(), first).unwrap());

    let later = &[first[0], "ALTER TABLE notes ADD COLUMN b TEXT", "UPDATE notes SET b = a || ' and moved'"];
    let conn = open::write(dir.path(), later).unwrap();
    assert_eq!(text(&conn, "SELECT b FROM notes"), "kept and moved");
    assert_eq!(version(&conn, Path::new(DB), 3), Ok(3));

    // Opening again changes nothing.
    drop(conn);
    let conn = open::write(dir.path(), later).unwrap();
    assert_eq!(text(&conn, "SELECT b FROM notes"), "kept and moved");
}

#[test]
fn a_migration_that_fails_leaves_the_old_format() {
    let dir = tempfile::tempdir().unwrap();
    let first = &["CREATE TABLE notes (a TEXT) STRICT"];
    drop(open::write(dir.path(), first).unwrap());
    let broken = &[first[0], "CREATE TABLE more (a TEXT)", "CREATE TABLE more (a TEXT)"];
    assert!(open::write(dir.path(), broken).is_err());

    let conn = open::write(dir.path(), first).unwrap();
    assert_eq!(version(&conn, Path::new(DB), 1), Ok(1));
    assert_eq!(text(&conn, "SELECT group_concat(name) FROM sqlite_schema"), "notes");
}

#[test]
fn a_newer_format_is_refused_and_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let mut newer = MIGRATIONS.to_vec();
    newer.push("CREATE TABLE future (a TEXT)");
    drop(open::write(dir.path(), &newer).unwrap());
    let path = dir.path().join(DB);
    let before = std::fs::read(&path).unwrap();

    for mode in [Mode::ReadWrite, Mode::ReadOnly] {
        let error = Store::open(dir.path(), mode).unwrap_err();
        let supported = MIGRATIONS.len() as u32;
        assert_eq!(error, StoreError::Newer { path: path.clone(), found: supported + 1, supported });
        let message = error.to_string();
        assert!(message.contains("selvedge.db") && message.contains("--state-dir"), "{message}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_format_that_becomes_newer_under_an_open_store_is_not_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let mut newer = MIGRATIONS.to_vec();
    newer.push("CREATE TABLE future (a TEXT)");
    drop(open::write(dir.path(), &newer).unwrap());
    let error = store.put_blob(b"late".to_vec()).1.wait().unwrap_err();
    assert!(matches!(error, StoreError::Newer { .. }), "{error}");
}

#[test]
fn a_database_of_another_program_is_refused_and_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(DB);
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("CREATE TABLE theirs (a TEXT)").unwrap();
    drop(conn);
    let before = std::fs::read(&path).unwrap();
    for mode in [Mode::ReadWrite, Mode::ReadOnly] {
        let error = Store::open(dir.path(), mode).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn journal_keys_order_events_by_run_and_number() {
    let key = |run, n| journal_key(run, n).unwrap();
    assert!(key(1, 1) < key(1, 2) && key(1, MAX_NUMBER) < key(2, 0));
    assert_eq!(number_of(key(7, 12)), 12);
    assert_eq!(number_of(key(i64::from(i32::MAX), MAX_NUMBER)), MAX_NUMBER);
    assert_eq!(journal_key(1, MAX_NUMBER + 1), None);
    assert_eq!(journal_key(i64::from(i32::MAX) + 1, 1), None);
    assert_eq!(journal_key(-1, 1), None);
}
