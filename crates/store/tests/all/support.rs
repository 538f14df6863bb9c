//! What the tests share.

use selvedge_store::{Entry, NewRun, RunStatus, Store};

/// A run with nothing special about it.
pub(crate) fn new_run(id: &str) -> NewRun {
    NewRun {
        id: id.to_owned(),
        name: format!("name of {id}"),
        dialect: "plan".to_owned(),
        status: RunStatus::Running,
        started_ms: 1_000,
        graph: None,
        scripted: false,
        options: "{}".to_owned(),
        fork: None,
        parent: None,
    }
}

/// Event `n` of `run`; its text tells which it is.
pub(crate) fn event(run: &str, n: u64) -> Entry {
    Entry { n, at_ms: 1_000 + n as i64, json: format!(r#"{{"kind":"test","run":"{run}","n":{n}}}"#) }
}

/// Events `from..=to` of `run`.
pub(crate) fn events(run: &str, from: u64, to: u64) -> Vec<Entry> {
    (from..=to).map(|n| event(run, n)).collect()
}

/// The whole journal of `run`.
pub(crate) fn journal(store: &Store, run: &str) -> Vec<Entry> {
    store.journal(run, 1).unwrap().collect::<Result<_, _>>().unwrap()
}

/// How many events `run` has, after making sure that they are the first ones, unchanged; 0 if it does not exist.
pub(crate) fn prefix(store: &Store, run: &str) -> u64 {
    match store.journal(run, 1) {
        Err(selvedge_store::StoreError::UnknownRun { .. }) => 0,
        journal => {
            let entries: Vec<Entry> = journal.unwrap().collect::<Result<_, _>>().unwrap();
            assert_eq!(entries, events(run, 1, entries.len() as u64));
            entries.len() as u64
        }
    }
}
