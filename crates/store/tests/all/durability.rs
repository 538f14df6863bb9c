//! E-04, E-05: what was acknowledged is there after any end of the process; what is there is a prefix.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use selvedge_store::{Mode, Store};

use crate::child::{Role, limited};
use crate::support::{event, new_run, prefix};

const RUNS: [&str; 3] = ["a", "b", "c"];

#[test]
fn kill_9_loses_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..4 {
        let role = Role::start("append", dir.path(), &RUNS.join(","));
        let mut acknowledged: HashMap<String, u64> = HashMap::new();
        let mut note = |line: &str| {
            let (run, n) = line.split_once(' ').unwrap();
            acknowledged.insert(run.to_owned(), n.parse().unwrap());
        };
        for _ in 0..20 + round * 37 {
            note(&role.line());
        }
        role.kill().iter().for_each(|line| note(line));

        let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
        for run in RUNS {
            let found = prefix(&store, run);
            let least = acknowledged.get(run).copied().unwrap_or(0);
            assert!(found >= least, "round {round}, run {run}: {found} events, {least} were acknowledged");
        }
        store.check().unwrap();
    }
}

#[test]
fn a_log_cut_anywhere_gives_a_prefix() {
    const EVENTS: u64 = 60;
    let source = tempfile::tempdir().unwrap();
    let dead = Role::start("dirty", source.path(), &EVENTS.to_string()).finish();
    assert!(dead.is_empty());
    let log = std::fs::read(source.path().join("selvedge.db-wal")).unwrap();
    let db = std::fs::read(source.path().join("selvedge.db")).unwrap();
    assert!(log.len() > 20 * 4096, "the log holds the events");

    let mut seen = std::collections::BTreeSet::new();
    // Frames are 4096 + 24 bytes after a header of 32: cuts inside headers, on borders and inside pages.
    let mut cuts: Vec<usize> = (0..log.len()).step_by(1373).collect();
    cuts.extend(
        (0..log.len() / 4120).flat_map(|frame| [32 + frame * 4120, 33 + frame * 4120, 55 + frame * 4120]),
    );
    cuts.extend([1, 31, log.len() - 1, log.len()]);
    cuts.sort_unstable();
    // As the role `dirty` commits them.
    let whole: Vec<u64> =
        std::iter::successors(Some(0), |n| Some(EVENTS.min(n + 1 + n % 4))).take(64).collect();
    let mut before = 0;
    for cut in cuts {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("selvedge.db"), &db).unwrap();
        std::fs::write(dir.path().join("selvedge.db-wal"), &log[..cut]).unwrap();
        let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
        let found = prefix(&store, "r");
        assert!(found >= before && found <= EVENTS, "cut at {cut}: {found} events after {before}");
        assert!(whole.contains(&found), "cut at {cut}: {found} events are no whole number of commits");
        before = found;
        seen.insert(found);
        // The store goes on from there.
        if found > 0 {
            store.append("r", vec![event("r", found + 1)]).wait().unwrap();
            assert_eq!(prefix(&store, "r"), found + 1);
        }
    }
    assert_eq!(before, EVENTS);
    assert!(seen.len() > 10, "the cuts fell on many states: {seen:?}");
}

#[test]
fn a_log_with_flipped_bits_gives_a_prefix() {
    let source = tempfile::tempdir().unwrap();
    Role::start("dirty", source.path(), "12").finish();
    let log = std::fs::read(source.path().join("selvedge.db-wal")).unwrap();
    let db = std::fs::read(source.path().join("selvedge.db")).unwrap();
    for at in (40..log.len()).step_by(3001) {
        let dir = tempfile::tempdir().unwrap();
        let mut bad = log.clone();
        bad[at] ^= 0x10;
        std::fs::write(dir.path().join("selvedge.db"), &db).unwrap();
        std::fs::write(dir.path().join("selvedge.db-wal"), &bad).unwrap();
        prefix(&Store::open(dir.path(), Mode::ReadWrite).unwrap(), "r");
    }
}

#[test]
fn a_full_disk_is_a_clear_error_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    store.create_run(new_run("r"), Vec::new()).wait().unwrap();
    drop(store);

    let lines = Role::spawn(limited("fill", dir.path(), "r", 4096)).finish();
    let [acknowledged, kind, message, readable] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(kind, "Full", "{message}");
    assert!(message.contains("selvedge.db") && message.contains("free some space"), "{message}");
    assert_eq!(acknowledged, readable);
    let acknowledged: u64 = acknowledged.parse().unwrap();
    assert!(acknowledged > 5);

    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    assert_eq!(store.last_event("r").unwrap(), acknowledged);
    store.append("r", vec![event("r", acknowledged + 1)]).wait().unwrap();
    assert_eq!(store.last_event("r").unwrap(), acknowledged + 1);
    store.check().unwrap();
    assert!(names(dir.path()).iter().all(|name| !name.contains("probe")), "{:?}", names(dir.path()));
}

/// A real full disk that gets room again, with the same store open all the time. Needs the right to mount.
#[test]
fn a_full_disk_that_gets_room_again_is_written_to_by_the_same_store() {
    let place = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(place.path()) else { return };
    let store = Store::open(&disk.0, Mode::ReadWrite).unwrap();
    store.create_run(new_run("r"), Vec::new()).wait().unwrap();
    let ballast = disk.0.join("ballast");
    let _ = std::fs::write(&ballast, vec![1; 16 << 20]);

    let mut n = 0;
    let error = loop {
        match store.append("r", vec![event("r", n + 1)]).wait() {
            Ok(()) => n += 1,
            Err(error) => break error,
        }
        assert!(n < 100_000);
    };
    assert_eq!(crate::child::kind(&error), "Full", "{error}");
    assert_eq!(prefix(&store, "r"), n);

    std::fs::remove_file(&ballast).unwrap();
    store.append("r", vec![event("r", n + 1)]).wait().unwrap();
    assert_eq!(prefix(&store, "r"), n + 1);
}

struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(at).stderr(std::process::Stdio::null());
        mount.status().ok()?.success().then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn names(dir: &Path) -> Vec<String> {
    std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
}
