//! C-12: one driver a run.

use std::path::Path;

use selvedge_store::{Mode, Store, StoreError};

use crate::child::Role;

fn lock_files(dir: &Path) -> usize {
    std::fs::read_dir(dir.join("locks")).map_or(0, Iterator::count)
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
    assert_eq!(lock_files(dir.path()), 0, "a clean release leaves no file");
}

#[test]
fn any_id_can_be_driven() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let long = "x".repeat(5_000);
    let ids = ["../../etc/passwd", "", "a/b", ".", "ÄÖ\0\n", "A", "a", &long];
    let locks: Vec<_> = ids.iter().map(|id| store.drive(id).unwrap()).collect();
    assert_eq!(lock_files(dir.path()), ids.len());
    drop(locks);
    assert_eq!(lock_files(dir.path()), 0);
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
    assert_eq!(lock_files(dir.path()), 0, "the dead driver's file is gone, too");
}

#[test]
fn drivers_that_race_never_hold_one_run_together() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let dir = tempfile::tempdir().unwrap();
    let inside = AtomicU32::new(0);
    let taken = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
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
    assert_eq!(lock_files(dir.path()), 0);
}
