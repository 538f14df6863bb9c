use std::path::Path;

use rusqlite::Connection;

use super::{MAX_NUMBER, MIGRATIONS, journal_key, number_of, version};
use crate::{Entry, ForkPoint, Mode, NewRun, RunFilter, RunStatus, Store, StoreError, open};

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

/// A folder as format `format` left it: a run of 30 events, which has completed.
fn older(dir: &Path, format: usize) {
    let conn = open::write(dir, &MIGRATIONS[..format]).unwrap();
    conn.execute_batch(
        "INSERT INTO runs (id, name, dialect, status, started_ms, ended_ms, usage, scripted, options, parent_events)
         VALUES ('old', 'name of old', 'plan', 'completed', 5, 6, '{}', 0, '{}', 0);
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 30)
         INSERT INTO journal (key, at_ms, body) SELECT (1 << 32) + n, n, '{\"n\":' || n || '}' FROM n",
    )
    .unwrap();
    if format >= 3 {
        // Of a run that an even older format has left.
        conn.execute_batch("INSERT INTO heads (run, n) VALUES (1, 30)").unwrap();
    }
}

fn new_run(id: &str) -> NewRun {
    NewRun {
        id: id.to_owned(),
        name: "a fork".to_owned(),
        dialect: "plan".to_owned(),
        status: RunStatus::Running,
        started_ms: 0,
        graph: None,
        scripted: false,
        options: "{}".to_owned(),
        fork: None,
        parent: None,
    }
}

fn entry(n: u64) -> Entry {
    Entry { n, at_ms: n as i64, json: format!("{{\"n\":{n}}}") }
}

fn read(store: &Store, run: &str) -> Result<Vec<Entry>, StoreError> {
    store.journal(run, 1)?.collect()
}

/// E-44: older journals are read as they are, by who may only read them too.
#[test]
fn an_older_folder_is_read_as_it_is() {
    for format in [1, 2, 3] {
        let dir = tempfile::tempdir().unwrap();
        older(dir.path(), format);
        let before = std::fs::read(dir.path().join(DB)).unwrap();
        let store = Store::open(dir.path(), Mode::ReadOnly).unwrap();
        assert_eq!(read(&store, "old").unwrap(), (1..=30).map(entry).collect::<Vec<_>>());
        assert_eq!(store.last_event("old"), Ok(30));
        assert_eq!(store.runs(&RunFilter::default()).unwrap().sound, [store.run("old").unwrap()]);
        assert_eq!(store.library(1), Ok(Vec::new()));
        assert_eq!(store.check(), Ok(()));
        drop(store);
        assert_eq!(std::fs::read(dir.path().join(DB)).unwrap(), before, "nothing was written");
    }
}

/// A run that goes on proves what is new; its end proves itself from the day on which the folder was brought up to date.
#[test]
fn an_older_run_that_goes_on_proves_what_is_new() {
    let damages = [
        ("SELECT 1", None),
        ("UPDATE journal SET body = '{\"n\":9}' WHERE key % 4294967296 = 33", Some(33)),
        ("UPDATE journal SET hash = NULL WHERE key % 4294967296 = 31", Some(31)),
        ("DELETE FROM journal WHERE key % 4294967296 = 35", Some(35)),
        ("DELETE FROM journal WHERE key % 4294967296 > 20", Some(21)),
        ("UPDATE runs SET name = 'x'", None),
    ];
    for (damage, bad) in damages {
        let dir = tempfile::tempdir().unwrap();
        older(dir.path(), 2);
        let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
        store.append("old", (31..=35).map(entry).collect()).wait().unwrap();
        let fork = Some(ForkPoint { run: "old".to_owned(), events: 33 });
        let fork = NewRun { fork, ..new_run("fork") };
        store.create_run(fork, vec![entry(34)]).wait().unwrap();
        drop(store);
        Connection::open(dir.path().join(DB)).unwrap().execute_batch(damage).unwrap();
        let store = Store::open(dir.path(), Mode::ReadOnly).unwrap();
        match (read(&store, "old"), bad) {
            (Ok(entries), None) => assert_eq!(entries.len(), 35),
            (Err(StoreError::DamagedRun { event, .. }), Some(_)) => assert_eq!(event, bad, "{damage}"),
            (found, _) => panic!("{damage}: {found:?}"),
        }
        assert_eq!(read(&store, "fork").is_err(), bad.is_some_and(|bad| bad <= 33), "{damage}");
        assert_eq!(store.run("old").is_err(), damage.contains("UPDATE runs"), "{damage}");
    }
    let dir = tempfile::tempdir().unwrap();
    older(dir.path(), 2);
    drop(Store::open(dir.path(), Mode::ReadWrite).unwrap());
    let cut = "DELETE FROM journal WHERE key % 4294967296 = 30";
    Connection::open(dir.path().join(DB)).unwrap().execute_batch(cut).unwrap();
    let store = Store::open(dir.path(), Mode::ReadOnly).unwrap();
    assert!(matches!(read(&store, "old"), Err(StoreError::DamagedRun { event: Some(30), .. })));
}
