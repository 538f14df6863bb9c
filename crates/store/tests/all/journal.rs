//! Journals, contents and group commit: E-03, E-04, E-08.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use selvedge_store::{BlobHash, Commit, Entry, Mode, Store, StoreError};

use crate::support::{event, events, journal, new_run, prefix};

fn stores() -> (tempfile::TempDir, [Store; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let disk = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    (dir, [disk, Store::memory().unwrap()])
}

#[test]
fn entries_come_back_in_order_and_unchanged() {
    let (_dir, stores) = stores();
    for store in stores {
        store.create_run(new_run("r"), events("r", 1, 1)).wait().unwrap();
        store.create_run(new_run("q"), Vec::new()).wait().unwrap();
        store.append("r", events("r", 2, 3_000)).wait().unwrap();
        store.append("q", events("q", 1, 5)).wait().unwrap();
        store.append("r", Vec::new()).wait().unwrap();
        store.append("r", vec![event("r", 3_001)]).wait().unwrap();
        assert_eq!(journal(&store, "r"), events("r", 1, 3_001));
        assert_eq!(journal(&store, "q"), events("q", 1, 5));
        let tail: Vec<Entry> = store.journal("r", 2_999).unwrap().map(Result::unwrap).collect();
        assert_eq!(tail, events("r", 2_999, 3_001));
        assert_eq!(store.journal("r", 3_002).unwrap().count(), 0);
        assert_eq!(store.journal("r", 0).unwrap().count(), 3_001);
        assert_eq!(store.last_event("r").unwrap(), 3_001);
        assert!(matches!(store.journal("x", 1), Err(StoreError::UnknownRun { .. })));
    }
}

#[test]
fn only_the_next_event_can_be_appended() {
    let (_dir, stores) = stores();
    for store in stores {
        store.create_run(new_run("r"), events("r", 1, 2)).wait().unwrap();
        let refused = |entries: Vec<Entry>| store.append("r", entries).wait().unwrap_err();
        let out_of_order = |expected, got| StoreError::OutOfOrder { run: "r".into(), expected, got };
        assert_eq!(refused(events("r", 2, 2)), out_of_order(3, 2));
        assert_eq!(refused(events("r", 4, 4)), out_of_order(3, 4));
        assert_eq!(refused(vec![event("r", 3), event("r", 5)]), out_of_order(4, 5));
        let unknown = store.append("x", events("x", 1, 1)).wait().unwrap_err();
        assert_eq!(unknown, StoreError::UnknownRun { run: "x".into() });
        assert_eq!(journal(&store, "r"), events("r", 1, 2));
    }
}

#[test]
fn a_refused_request_leaves_its_group_alone() {
    let (_dir, [store, _]) = stores();
    store.create_run(new_run("r"), Vec::new()).wait().unwrap();
    // Sent without waiting, so that many of them share a transaction.
    let commits: Vec<(bool, Commit)> = (1..=300)
        .flat_map(|n| {
            [(true, store.append("r", vec![event("r", n)])), (false, store.append("r", vec![event("r", n)]))]
        })
        .collect();
    for (good, commit) in commits {
        assert_eq!(commit.wait().is_ok(), good);
    }
    assert_eq!(journal(&store, "r"), events("r", 1, 300));
}

#[test]
fn what_was_handed_in_is_written_before_the_store_closes() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    drop(store.create_run(new_run("r"), Vec::new()));
    (1..=500).for_each(|n| drop(store.append("r", vec![event("r", n)])));
    drop(store);
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["selvedge.db"], "a clean end leaves one file");
    assert_eq!(prefix(&Store::open(dir.path(), Mode::ReadOnly).unwrap(), "r"), 500);
}

/// A log that is begun anew again and again is overwritten in place, which syncs faster than one that grows.
#[test]
fn the_log_stays_short() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    store.create_run(new_run("r"), Vec::new()).wait().unwrap();
    for n in 1..=1_500 {
        store.append("r", vec![event("r", n)]).wait().unwrap();
    }
    let log = std::fs::metadata(dir.path().join("selvedge.db-wal")).unwrap().len();
    assert!(log < 2 << 20, "{log} bytes");
    assert_eq!(prefix(&store, "r"), 1_500);
}

/// A file that grows takes longer to sync: the log grows by many pages at a time, and what they hold until they are written to
/// is no part of it.
#[test]
fn the_log_grows_in_leaps() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    store.create_run(new_run("r"), Vec::new()).wait().unwrap();
    let mut lengths = std::collections::BTreeSet::new();
    for n in 1..=300 {
        store.append("r", vec![event("r", n)]).wait().unwrap();
        lengths.insert(std::fs::metadata(dir.path().join("selvedge.db-wal")).unwrap().len());
    }
    assert!(lengths.len() <= 40, "{} lengths", lengths.len());
    let copy = tempfile::tempdir().unwrap();
    for file in ["selvedge.db", "selvedge.db-wal"] {
        std::fs::copy(dir.path().join(file), copy.path().join(file)).unwrap();
    }
    assert_eq!(prefix(&Store::open(copy.path(), Mode::ReadWrite).unwrap(), "r"), 300);
}

#[test]
fn a_run_and_its_graph_are_one_commit() {
    let (_dir, stores) = stores();
    for store in stores {
        let before = store.commits();
        let mut run = new_run("r");
        run.graph = Some(BlobHash::of(b"graph"));
        store.create_run_with_graph(run.clone(), b"graph".to_vec(), events("r", 1, 1)).wait().unwrap();
        assert_eq!(store.commits() - before, 1);
        assert_eq!(store.get_blob(BlobHash::of(b"graph")).unwrap(), b"graph");
        assert_eq!(store.run("r").unwrap().graph, run.graph);
        run.id = "q".into();
        let other = store.create_run_with_graph(run, b"another".to_vec(), Vec::new()).wait();
        assert_eq!(other, Ok(()), "the first one is stored already");
        let mut run = new_run("p");
        run.graph = Some(BlobHash::of(b"nobody's"));
        let refused = store.create_run_with_graph(run, b"a third".to_vec(), Vec::new()).wait();
        assert!(matches!(refused, Err(StoreError::UnknownBlob { .. })), "{refused:?}");
        assert!(store.get_blob(BlobHash::of(b"a third")).is_err(), "nothing of it is kept");
    }
}

#[test]
fn a_long_log_is_moved_into_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let size = || std::fs::metadata(dir.path().join("selvedge.db")).unwrap().len();
    store.put_blob(vec![7; 2 << 20]).1.wait().unwrap();
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while size() < 2 << 20 && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(size() >= 2 << 20, "{}", size());
}

#[test]
fn a_commit_is_a_future() {
    struct Count(AtomicU32);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (_dir, [store, _]) = stores();
    let woken = Arc::new(Count(AtomicU32::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut commit = pin!(store.create_run(new_run("r"), Vec::new()));
    let mut polls = 0;
    loop {
        polls += 1;
        match commit.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => break result.unwrap(),
            Poll::Pending => {
                while woken.0.load(Ordering::SeqCst) == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }
    assert!(polls <= 2);
    store.run("r").unwrap();
}

#[test]
fn a_journal_can_be_read_while_it_is_written() {
    let (_dir, [store, _]) = stores();
    store.create_run(new_run("r"), events("r", 1, 3_000)).wait().unwrap();
    let mut reading = store.journal("r", 1).unwrap();
    let first: Vec<Entry> = reading.by_ref().take(10).map(Result::unwrap).collect();
    assert_eq!(first, events("r", 1, 10));
    store.append("r", events("r", 3_001, 3_010)).wait().unwrap();
    assert_eq!(reading.map(Result::unwrap).last(), Some(event("r", 3_010)));
}

#[test]
fn contents_are_stored_under_their_hash() {
    let (_dir, stores) = stores();
    for store in stores {
        let (hash, commit) = store.put_blob(b"abc".to_vec());
        commit.wait().unwrap();
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.to_string(), expected);
        assert_eq!(expected.parse::<BlobHash>().unwrap(), hash);
        store.put_blob(b"abc".to_vec()).1.wait().unwrap();
        assert_eq!(store.get_blob(hash).unwrap(), b"abc");
        let (empty, commit) = store.put_blob(Vec::new());
        commit.wait().unwrap();
        assert_eq!(store.get_blob(empty).unwrap(), b"");
        let other = BlobHash::of(b"other");
        assert_eq!(store.get_blob(other), Err(StoreError::UnknownBlob { hash: other.to_string() }));
    }
    for bad in ["", "ab", "zz", &"A".repeat(64), &"0".repeat(63), &"0".repeat(66)] {
        assert!(bad.parse::<BlobHash>().is_err(), "{bad}");
    }
}

/// E-08: what is said often is stored once.
#[test]
fn the_size_is_linear_in_what_was_said() {
    const SAID: usize = 200_000;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let said: String = (0..SAID / 8).map(|n| format!("{n:08}")).collect();
    let entry =
        |n| Entry { n, at_ms: 0, json: format!(r#"{{"n":{n},"content":"{said}","again":["{said}"]}}"#) };
    let entries: Vec<Entry> = (1..=100).map(entry).collect();
    for run in ["a", "b"] {
        store.create_run(new_run(run), entries.clone()).wait().unwrap();
        assert!(journal(&store, run) == entries, "every entry comes back whole");
    }
    drop(store);
    let size = std::fs::metadata(dir.path().join("selvedge.db")).unwrap().len();
    assert!(size < 2 * SAID as u64 + 100_000, "{size} bytes for {SAID} bytes said 400 times");
}

#[test]
fn huge_and_odd_entries_come_back() {
    let (_dir, stores) = stores();
    let hash = BlobHash::of(b"x");
    let texts = [
        format!("{{\"m\":\"{}\"}}", "ä\\n".repeat(6 << 20)),
        format!("\"@{hash}\""),
        format!("[\"@{hash}\",\"{}\"]", "l".repeat(5_000)),
        String::new(),
        "not json".to_owned(),
        format!("{{\"nul\":\"\0{}\"}}", "\0".repeat(5_000)),
    ];
    let entries: Vec<Entry> =
        texts.into_iter().zip(1..).map(|(json, n)| Entry { n, at_ms: i64::MIN + n as i64, json }).collect();
    for store in stores {
        store.create_run(new_run("r"), entries.clone()).wait().unwrap();
        assert!(journal(&store, "r") == entries);
    }
}
