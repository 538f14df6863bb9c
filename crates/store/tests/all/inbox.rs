//! E-43: letters to runs that other processes drive.

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use selvedge_store::{Letter, Mode, Settled, Store, StoreError};

use crate::child::Role;
use crate::support::{event, journal, new_run};

fn letter(id: &str, run: &str) -> Letter {
    Letter { id: id.to_owned(), run: run.to_owned(), at_ms: 7, body: format!("body of {id}") }
}

fn settled(id: &str, reply: &str) -> Settled {
    Settled { id: id.to_owned(), reply: reply.to_owned() }
}

fn ids(store: &Store, run: &str) -> Vec<String> {
    store.letters(run, 10).unwrap().into_iter().map(|letter| letter.id).collect()
}

#[test]
fn e43_a_letter_is_taken_with_what_it_led_to_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    for store in [Store::open(dir.path(), Mode::ReadWrite).unwrap(), Store::memory().unwrap()] {
        for run in ["r", "other"] {
            store.create_run(new_run(run), vec![event(run, 1)]).wait().unwrap();
        }
        for (id, run) in [("a", "r"), ("b", "r"), ("c", "other")] {
            store.post(letter(id, run)).wait().unwrap();
        }
        let unknown = store.post(letter("d", "nobody")).wait().unwrap_err();
        assert!(matches!(unknown, StoreError::UnknownRun { .. }), "{unknown}");
        // The same once more is the same: who does not know whether he has sent it sends it again.
        store.post(Letter { body: "other".to_owned(), ..letter("b", "r") }).wait().unwrap();
        assert_eq!(store.letters("r", 10).unwrap(), [letter("a", "r"), letter("b", "r")]);
        assert_eq!(store.letters("r", 1).unwrap(), [letter("a", "r")]);

        // Entries that don't fit take their letters with them.
        let wrong = store.append_and_settle("r", vec![event("r", 9)], None, vec![settled("b", "taken")]);
        assert!(matches!(wrong.wait(), Err(StoreError::OutOfOrder { .. })));
        assert_eq!((ids(&store, "r"), store.settled("b")), (vec!["a".into(), "b".into()], Ok(None)));

        let replies = vec![settled("b", "taken"), settled("gone", "taken")];
        store.append_and_settle("r", vec![event("r", 2)], None, replies).wait().unwrap();
        store
            .append_and_settle("r", Vec::new(), None, vec![settled("a", "no"), settled("b", "no")])
            .wait()
            .unwrap();
        assert_eq!(store.settled("b"), Ok(Some("taken".to_owned())), "it is settled once");
        assert_eq!(store.settled("a"), Ok(Some("no".to_owned())));
        assert_eq!((ids(&store, "r"), ids(&store, "other")), (vec![], vec!["c".to_owned()]));
        assert_eq!(journal(&store, "r").len(), 2);

        store.discard("b").wait().unwrap();
        assert_eq!(store.settled("b"), Ok(None));
        store.check().unwrap();
    }
}

fn rings(store: &Store, run: &str, within: Duration) -> bool {
    let mut bell = store.bell(run);
    let began = Instant::now();
    while began.elapsed() < within {
        if bell.rung().now_or_never().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

#[test]
fn e43_a_bell_rings_for_letters_of_other_processes_and_for_no_other_run() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    for run in ["r", "other"] {
        store.create_run(new_run(run), Vec::new()).wait().unwrap();
    }
    let mut bell = store.bell("r");
    std::thread::sleep(Duration::from_millis(60));
    assert!(bell.rung().now_or_never().is_none(), "nothing was written");
    let said = Role::start("post", dir.path(), "r").finish();
    assert_eq!(said, ["posted"]);
    let began = Instant::now();
    while bell.rung().now_or_never().is_none() {
        assert!(began.elapsed() < Duration::from_secs(5), "it does not ring");
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(bell);
    // A letter that was there before anybody drove is rung for, too.
    assert!(rings(&store, "r", Duration::from_secs(5)));
    assert!(!rings(&store, "other", Duration::from_millis(100)));
    store.append_and_settle("r", Vec::new(), None, vec![settled("letter", "no")]).wait().unwrap();
    assert!(!rings(&store, "r", Duration::from_millis(100)));
}

#[test]
fn e43_a_row_that_is_garbage_is_a_letter_that_says_garbage() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    store.create_run(new_run("r"), Vec::new()).wait().unwrap();
    let other = rusqlite::Connection::open(dir.path().join("selvedge.db")).unwrap();
    other
        .execute_batch(
            "INSERT INTO inbox (id, run, at_ms, body) VALUES ('x', 1, -5, CAST(x'ff00fe' AS TEXT)), ('', 99, 0, '')",
        )
        .unwrap();
    let letters = store.letters("r", 10).unwrap();
    assert_eq!((letters.len(), letters[0].id.as_str()), (1, "x"));
    assert!(rings(&store, "r", Duration::from_secs(5)));
}
