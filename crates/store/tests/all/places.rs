//! Folders that cannot be used, and folders used by several at once.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;

use selvedge_store::{Mode, Store, StoreError};

use crate::child::{Role, command, kind};
use crate::support::{events, new_run, prefix};

#[test]
fn nothing_to_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("none");
    assert_eq!(kind(&Store::open(&path, Mode::ReadOnly).unwrap_err()), "Missing");
    assert!(!path.exists(), "reading creates nothing");
    // Left behind by a process that died while it created the database.
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join(".selvedge.db-new-1"), "").unwrap();
    assert_eq!(kind(&Store::open(&path, Mode::ReadOnly).unwrap_err()), "Missing");
    Store::open(&path, Mode::ReadWrite).unwrap();
    Store::open(&path, Mode::ReadOnly).unwrap();
}

#[test]
fn a_folder_below_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = Store::open(&file.join("state"), Mode::ReadWrite).unwrap_err();
    assert_eq!(kind(&error), "Io");
    assert!(error.to_string().contains("file/state"), "{error}");
    assert_eq!(kind(&Store::open(&file.join("state"), Mode::ReadOnly).unwrap_err()), "Missing");
}

#[test]
fn only_its_user_may_read_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let _store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    for file in ["selvedge.db", "selvedge.db-wal"] {
        assert_eq!(std::fs::metadata(dir.path().join(file)).unwrap().mode() & 0o777, 0o600, "{file}");
    }
}

/// Runs the role `places` as a user that the folder's permissions bind (root is not bound by them).
fn as_a_user(dir: &Path) -> Vec<String> {
    let open = tempfile::tempdir().unwrap();
    std::fs::set_permissions(open.path(), Permissions::from_mode(0o755)).unwrap();
    let exe = open.path().join("tests");
    std::fs::copy(std::env::current_exe().unwrap(), &exe).unwrap();
    let mut command = command(&exe, "places", dir, "");
    if std::fs::metadata(open.path()).unwrap().uid() == 0 {
        command.uid(65_534).gid(65_534);
    }
    command.current_dir("/");
    Role::spawn(command).finish()
}

#[test]
fn a_folder_that_can_only_be_read() {
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    let dir = place.path().join("state ?#%");
    let store = Store::open(&dir, Mode::ReadWrite).unwrap();
    store.create_run(new_run("r"), events("r", 1, 3)).wait().unwrap();
    drop(store);
    std::fs::set_permissions(dir.join("selvedge.db"), Permissions::from_mode(0o444)).unwrap();
    std::fs::set_permissions(&dir, Permissions::from_mode(0o555)).unwrap();

    assert_eq!(as_a_user(&dir), ["ReadOnly", "reads 3", "ReadOnly", "ReadOnly"]);

    // Nothing there, and nothing can be made.
    let empty = place.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    std::fs::set_permissions(&empty, Permissions::from_mode(0o555)).unwrap();
    assert_eq!(as_a_user(&empty), ["ReadOnly", "Missing"]);
    std::fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_store_opened_for_reading_sees_what_others_write_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let writing = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let reading = Store::open(dir.path(), Mode::ReadOnly).unwrap();
    writing.create_run(new_run("r"), events("r", 1, 3)).wait().unwrap();
    assert_eq!(prefix(&reading, "r"), 3);
    let error = reading.append("r", events("r", 4, 4)).wait().unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }));
    assert_eq!(prefix(&writing, "r"), 3);
}

#[test]
fn two_stores_of_one_process_on_one_folder() {
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for run in ["a", "b", "c", "d"] {
            let dir = dir.path();
            scope.spawn(move || {
                let store = Store::open(dir, Mode::ReadWrite).unwrap();
                store.create_run(new_run(run), Vec::new()).wait().unwrap();
                for n in 1..=50 {
                    store.append(run, events(run, n, n)).wait().unwrap();
                }
                assert_eq!(prefix(&store, run), 50);
            });
        }
    });
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    assert_eq!(store.runs(&Default::default()).unwrap().sound.len(), 4);
}

#[test]
fn processes_that_create_and_write_one_folder_at_the_same_time() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("new");
    let roles: Vec<Role> = ["a", "b", "c"].iter().map(|run| Role::start("burst", &state, run)).collect();
    for role in roles {
        assert_eq!(role.finish(), ["done"]);
    }
    let store = Store::open(&state, Mode::ReadWrite).unwrap();
    for run in ["a", "b", "c"] {
        assert_eq!(prefix(&store, run), 200);
    }
}
