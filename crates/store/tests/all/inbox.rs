//! E-43: entries for runs that other processes drive.

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use selvedge_store::{InboxEntry, Mode, Settled, Store, StoreError};

use crate::child::Role;
use crate::support::{event, journal, new_run};

fn entry(id: &str, run: &str) -> InboxEntry {
    InboxEntry { id: id.to_owned(), run: run.to_owned(), at_ms: 7, body: format!("body of {id}") }
}

fn settled(id: &str, reply: &str) -> Settled {
    Settled { id: id.to_owned(), reply: reply.to_owned() }
}

fn ids(store: &Store, run: &str) -> Vec<String> {
    store.inbox_entries(run, 10).unwrap().into_iter().map(|entry| entry.id).collect()
}

#[test]
fn e43_an_entry_is_taken_with_what_it_led_to_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    for store in [Store::open(dir.path(), Mode::ReadWrite).unwrap(), Store::memory().unwrap()] {
        for run in ["r", "other"] {
            store.create_run(new_run(run), vec![event(run, 1)]).wait().unwrap();
        }
        for (id, run) in [("a", "r"), ("b", "r"), ("c", "other")] {
            store.put_inbox_entry(entry(id, run)).wait().unwrap();
        }
        let unknown = store.put_inbox_entry(entry("d", "nobody")).wait().unwrap_err();
        assert!(matches!(unknown, StoreError::UnknownRun { .. }), "{unknown}");
        // The same once more is the same: who does not know whether he has sent it sends it again.
        store.put_inbox_entry(InboxEntry { body: "other".to_owned(), ..entry("b", "r") }).wait().unwrap();
        assert_eq!(store.inbox_entries("r", 10).unwrap(), [entry("a", "r"), entry("b", "r")]);
        assert_eq!(store.inbox_entries("r", 1).unwrap(), [entry("a", "r")]);

        // Events that don't fit settle nothing.
        let wrong = store.append_and_settle("r", vec![event("r", 9)], None, vec![settled("b", "taken")]);
        assert!(matches!(wrong.wait(), Err(StoreError::OutOfOrder { .. })));
        assert_eq!((ids(&store, "r"), store.inbox_reply("b")), (vec!["a".into(), "b".into()], Ok(None)));

        let replies = vec![settled("b", "taken"), settled("gone", "taken")];
        store.append_and_settle("r", vec![event("r", 2)], None, replies).wait().unwrap();
        store
            .append_and_settle("r", Vec::new(), None, vec![settled("a", "no"), settled("b", "no")])
            .wait()
            .unwrap();
        assert_eq!(store.inbox_reply("b"), Ok(Some("taken".to_owned())), "it is settled once");
        assert_eq!(store.inbox_reply("a"), Ok(Some("no".to_owned())));
        assert_eq!((ids(&store, "r"), ids(&store, "other")), (vec![], vec!["c".to_owned()]));
        assert_eq!(journal(&store, "r").len(), 2);

        store.remove_inbox_entry("b").wait().unwrap();
        assert_eq!(store.inbox_reply("b"), Ok(None));
        store.check().unwrap();
    }
}

fn changes(store: &Store, run: &str, within: Duration) -> bool {
    let mut watch = store.watch_inbox(run);
    let began = Instant::now();
    while began.elapsed() < within {
        if watch.changed().now_or_never().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

#[test]
fn e43_a_watch_is_notified_of_entries_of_other_processes_and_of_no_other_run() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    for run in ["r", "other"] {
        store.create_run(new_run(run), Vec::new()).wait().unwrap();
    }
    let mut watch = store.watch_inbox("r");
    std::thread::sleep(Duration::from_millis(60));
    assert!(watch.changed().now_or_never().is_none(), "nothing was written");
    let said = Role::start("put", dir.path(), "r").finish();
    assert_eq!(said, ["put"]);
    let began = Instant::now();
    while watch.changed().now_or_never().is_none() {
        assert!(began.elapsed() < Duration::from_secs(5), "nobody is notified");
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(watch);
    // So is who watches only after it was put.
    assert!(changes(&store, "r", Duration::from_secs(5)));
    assert!(!changes(&store, "other", Duration::from_millis(100)));
    store.append_and_settle("r", Vec::new(), None, vec![settled("entry", "no")]).wait().unwrap();
    assert!(!changes(&store, "r", Duration::from_millis(100)));
}

#[test]
fn e43_a_row_that_is_garbage_is_an_entry_that_says_garbage() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    store.create_run(new_run("r"), Vec::new()).wait().unwrap();
    let other = rusqlite::Connection::open(dir.path().join("selvedge.db")).unwrap();
    other
        .execute_batch(
            "INSERT INTO inbox (id, run, at_ms, body) VALUES ('x', 1, -5, CAST(x'ff00fe' AS TEXT)), ('', 99, 0, '')",
        )
        .unwrap();
    let entries = store.inbox_entries("r", 10).unwrap();
    assert_eq!((entries.len(), entries[0].id.as_str()), (1, "x"));
    assert!(changes(&store, "r", Duration::from_secs(5)));
}
