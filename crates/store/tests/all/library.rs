//! A-17, V-10: the library's journal, and that no change of it is ever half there.

use selvedge_store::{BlobHash, Entry, Mode, Store, StoreError};

use crate::child::{Role, kind};

/// Event `n`, which names the contents that come with it.
fn event(n: u64, contents: &[Vec<u8>]) -> Entry {
    let named: Vec<String> = contents.iter().map(|bytes| format!("\"{}\"", BlobHash::of(bytes))).collect();
    Entry { n, at_ms: n as i64, json: format!(r#"{{"n":{n},"named":[{}]}}"#, named.join(",")) }
}

/// The contents of change `n`: some of many pages.
pub(crate) fn contents(n: u64) -> Vec<Vec<u8>> {
    (0..3)
        .map(|part| format!("{n}/{part} ").repeat(1 + (n as usize * 977 + part * 4001) % 1500).into_bytes())
        .collect()
}

/// Change `n` of a test: three events with three contents.
pub(crate) fn change(n: u64) -> (Vec<Entry>, Vec<Vec<u8>>) {
    let contents = contents(n);
    let first = 3 * (n - 1) + 1;
    (vec![event(first, &contents[..1]), event(first + 1, &contents), event(first + 2, &[])], contents)
}

/// How many whole changes the library has, after making sure that nothing of another one is there.
fn whole(store: &Store) -> u64 {
    let entries = store.library(1).unwrap();
    assert_eq!(entries.len() % 3, 0, "{} events are no whole number of changes", entries.len());
    let changes = entries.len() as u64 / 3;
    for n in 1..=changes {
        let (events, contents) = change(n);
        assert_eq!(entries[3 * (n as usize - 1)..3 * n as usize], events);
        for content in contents {
            assert_eq!(
                store.get_blob(BlobHash::of(&content)).unwrap(),
                content,
                "what an event names is there"
            );
        }
    }
    for content in contents(changes + 1) {
        assert!(!store.has_blob(BlobHash::of(&content)).unwrap(), "nothing of the next change is there");
    }
    changes
}

#[test]
fn events_come_back_as_they_were_and_only_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    assert_eq!((store.library(1).unwrap(), store.last_library_event().unwrap()), (Vec::new(), 0));
    for n in 1..=3 {
        let (entries, contents) = change(n);
        store.append_library(entries, contents).wait().unwrap();
    }
    assert_eq!((whole(&store), store.last_library_event().unwrap()), (3, 9));
    assert_eq!(store.library(8).unwrap().len(), 2);

    // Who decided by an older state is refused, alone, and leaves nothing.
    let (entries, _) = change(3);
    let late = store.append_library(entries, vec![b"late".to_vec()]).wait().unwrap_err();
    assert_eq!(late, StoreError::LibraryChanged { expected: 10, got: 7 });
    assert!(!store.has_blob(BlobHash::of(b"late")).unwrap());
    assert_eq!(whole(&store), 3);

    // A large event is the text that it was.
    let large =
        Entry { n: 10, at_ms: 1, json: format!(r#"{{"text":"{}","at":"@x"}}"#, "long ".repeat(4000)) };
    store.append_library(vec![large.clone()], Vec::new()).wait().unwrap();
    drop(store);
    let store = Store::open(dir.path(), Mode::ReadOnly).unwrap();
    assert_eq!(store.library(10).unwrap(), [large]);
    assert_eq!(kind(&store.append_library(change(1).0, Vec::new()).wait().unwrap_err()), "ReadOnly");
}

#[test]
fn of_two_who_change_it_at_the_same_time_one_decides_anew() {
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let dir = dir.path();
            scope.spawn(move || {
                let store = Store::open(dir, Mode::ReadWrite).unwrap();
                for turn in 0..20 {
                    loop {
                        let n = store.last_library_event().unwrap() + 1;
                        let entry = Entry { n, at_ms: 0, json: format!("[{writer},{turn}]") };
                        match store.append_library(vec![entry], Vec::new()).wait() {
                            Ok(()) => break,
                            Err(StoreError::LibraryChanged { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    let store = Store::open(dir.path(), Mode::ReadOnly).unwrap();
    let mut said: Vec<String> = store.library(1).unwrap().into_iter().map(|entry| entry.json).collect();
    said.sort();
    said.dedup();
    assert_eq!(said.len(), 80, "each change is there, once");
}

#[test]
fn kill_9_leaves_whole_changes() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..6 {
        let role = Role::start("library", dir.path(), "");
        let mut acknowledged = 0;
        for _ in 0..1 + round * 7 {
            acknowledged = role.line().parse().unwrap();
        }
        acknowledged = role.kill().last().map_or(acknowledged, |line| line.parse().unwrap());
        let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
        assert!(whole(&store) >= acknowledged, "what was acknowledged is there");
        store.check().unwrap();
    }
}

/// Whatever of the log reached the disk before the power went.
#[test]
fn a_log_cut_at_any_write_leaves_whole_changes() {
    const CHANGES: u64 = 6;
    let source = tempfile::tempdir().unwrap();
    assert!(Role::start("library-dirty", source.path(), &CHANGES.to_string()).finish().is_empty());
    let log = std::fs::read(source.path().join("selvedge.db-wal")).unwrap();
    let db = std::fs::read(source.path().join("selvedge.db")).unwrap();
    // Frames are 4096 + 24 bytes after a header of 32: each border, and a place within each.
    let frames = (log.len() - 32) / 4120;
    let mut cuts: Vec<usize> = (0..=frames).map(|frame| 32 + frame * 4120).collect();
    cuts.extend((0..frames).map(|frame| 32 + frame * 4120 + 1 + frame * 37 % 4000));
    cuts.push(log.len());
    cuts.sort_unstable();
    let mut seen = std::collections::BTreeSet::new();
    for cut in cuts {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("selvedge.db"), &db).unwrap();
        std::fs::write(dir.path().join("selvedge.db-wal"), &log[..cut]).unwrap();
        // Cut before its first table, the folder is as good as new.
        let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
        seen.insert(whole(&store));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), (0..=CHANGES).collect::<Vec<_>>());
}
