//! C-12: one driver a run.

use std::path::Path;

use selvedge_store::{Mode, Store, StoreError};

use crate::child::Role;

/// The lock files, and what is in all of them.
fn lock_files(dir: &Path) -> (usize, u64) {
    let files: Vec<_> = std::fs::read_dir(dir.join("locks")).unwrap().map(Result::unwrap).collect();
    (files.len(), files.iter().map(|file| file.metadata().unwrap().len()).sum())
}

#[test]
fn a_second_driver_is_refused_until_the_first_lets_go() {
    let dir = tempfile::tempdir().unwrap();
    let on_disk = || Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let memory = Store::memory().unwrap();
    for (store, other) in [(on_disk(), on_disk()), (memory.clone(), memory)] {
        assert!(!store.is_driven("r").unwrap());
        let lock = store.drive("r").unwrap();
        assert!(store.is_driven("r").unwrap() && other.is_driven("r").unwrap());
        let pid = Some(std::process::id());
        assert_eq!(other.drive("r").unwrap_err(), StoreError::Driven { run: "r".into(), pid });
        let unrelated = other.drive("q").unwrap();
        drop(lock);
        assert!(!other.is_driven("r").unwrap() && other.is_driven("q").unwrap());
        drop(other.drive("r").unwrap());
        drop(unrelated);
    }
}

/// However many runs are driven, there are few files, and they stay empty.
#[test]
fn many_runs_share_a_few_lock_files() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let (store, other) = (open(), open());
    let id = |n: u32| format!("run {n}");
    let mut locks: Vec<_> = (0..2000).map(|n| store.drive(&id(n)).unwrap()).collect();
    let (files, bytes) = lock_files(dir.path());
    assert!(files <= 64 && bytes == 0, "{files} files of {bytes} bytes");
    assert!((0..2000).all(|n| other.is_driven(&id(n)).unwrap()));
    // Each is free by itself.
    let kept = locks.split_off(1000);
    drop(locks);
    assert!((0..2000).all(|n| other.is_driven(&id(n)).unwrap() == (n >= 1000)));
    let others: Vec<_> = (0..1000).map(|n| other.drive(&id(n)).unwrap()).collect();
    assert!([0, 500, 999].iter().all(|n| store.drive(&id(*n)).is_err()), "the other store has them");
    drop((kept, others));
    assert!((0..2000).all(|n| !store.is_driven(&id(n)).unwrap()));
}

/// A store that closes, or was only read from, frees nothing that another one of its process holds.
#[test]
fn what_one_store_holds_another_one_does_not_let_go() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let lock = store.drive("r").unwrap();
    let reader = Store::open(dir.path(), Mode::ReadOnly).unwrap();
    assert!(reader.is_driven("r").unwrap());
    assert!(matches!(reader.drive("q"), Err(StoreError::ReadOnly { .. })));
    drop(reader);
    let other = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    assert!(other.drive("r").is_err());
    drop(other);
    assert!(Store::open(dir.path(), Mode::ReadWrite).unwrap().drive("r").is_err());
    // The lock outlives its store.
    drop(store);
    let again = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    assert!(again.drive("r").is_err());
    drop(lock);
    drop(again.drive("r").unwrap());
}

/// E-04: where the locks were deleted another driver may take the run; its events decide.
#[test]
fn locks_that_were_deleted_keep_nobody_out() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let lock = store.drive("r").unwrap();
    std::fs::remove_dir_all(dir.path().join("locks")).unwrap();
    let other = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    assert!(!other.is_driven("r").unwrap());
    let taken = other.drive("r").unwrap();
    // The first one's end frees nothing of the second's, and what it takes from now on counts.
    drop(lock);
    assert!(store.is_driven("r").unwrap() && store.drive("r").is_err());
    drop(taken);
    let back = store.drive("r").unwrap();
    assert!(other.drive("r").is_err());
    drop(back);
}

#[test]
fn any_id_can_be_driven() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let long = "x".repeat(5_000);
    let ids = ["../../etc/passwd", "", "a/b", ".", "ÄÖ\0\n", "A", "a", &long];
    let locks: Vec<_> = ids.iter().map(|id| store.drive(id).unwrap()).collect();
    assert!(ids.iter().all(|id| store.is_driven(id).unwrap()));
    drop(locks);
    assert!(!ids.iter().any(|id| store.is_driven(id).unwrap()));
}

#[test]
fn a_dead_process_drives_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let role = Role::start("drive", dir.path(), "r");
    let said = role.line();
    let pid: u32 = said.strip_prefix("driving ").unwrap().parse().unwrap();
    let refused = store.drive("r").unwrap_err();
    assert_eq!(refused, StoreError::Driven { run: "r".into(), pid: Some(pid) });
    assert!(refused.to_string().contains(&pid.to_string()));
    assert!(store.is_driven("r").unwrap());
    assert_eq!(Role::start("drive", dir.path(), "r").line(), "Driven");

    role.kill();
    assert!(!store.is_driven("r").unwrap());
    drop(store.drive("r").unwrap());
}

#[test]
fn drivers_that_race_never_hold_one_run_together() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let dir = tempfile::tempdir().unwrap();
    let inside = AtomicU32::new(0);
    let taken = AtomicU32::new(0);
    let open = || Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let shared = open();
    std::thread::scope(|scope| {
        for n in 0..6 {
            // Some have a store of their own.
            let store = if n % 2 == 0 { shared.clone() } else { open() };
            let (inside, taken) = (&inside, &taken);
            scope.spawn(move || {
                for _ in 0..300 {
                    let _ = store.is_driven("r").unwrap();
                    if let Ok(lock) = store.drive("r") {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        taken.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(lock);
                    }
                }
            });
        }
    });
    assert!(taken.load(Ordering::SeqCst) > 100);
}
