//! The run index: C-12, C-15, E-19.

use selvedge_store::{BlobHash, ForkPoint, NewRun, RunFilter, RunStatus, RunUpdate, Store, StoreError};

use crate::support::{event, events, journal, new_run};

#[test]
fn a_run_comes_back_as_it_was_created_and_updated() {
    let store = Store::memory().unwrap();
    let (graph, _) = store.put_blob(b"graph".to_vec());
    let options = r#"{"max_parallel": 3}"#.to_owned();
    let run = NewRun { graph: Some(graph), scripted: true, options: options.clone(), ..new_run("r") };
    store.create_run(run, Vec::new()).wait().unwrap();
    let info = store.run("r").unwrap();
    assert_eq!((info.id.as_str(), info.name.as_str(), info.dialect.as_str()), ("r", "name of r", "plan"));
    assert_eq!((info.status, info.started_ms, info.ended_ms), (RunStatus::Running, 1_000, None));
    assert_eq!((info.graph, info.scripted, info.options, info.fork), (Some(graph), true, options, None));

    let usage = r#"{"model_calls":2}"#.to_owned();
    let update = RunUpdate {
        status: Some((RunStatus::Failed, Some(2_000))),
        usage: Some(usage.clone()),
        ..RunUpdate::default()
    };
    store.append_and_update("r", events("r", 1, 2), update).wait().unwrap();
    let info = store.run("r").unwrap();
    assert_eq!(
        (info.status, info.ended_ms, info.usage.as_str()),
        (RunStatus::Failed, Some(2_000), usage.as_str())
    );

    // Resumed: it runs again, and what is not mentioned stays.
    let update = RunUpdate { status: Some((RunStatus::Running, None)), ..RunUpdate::default() };
    store.update_run("r", update).wait().unwrap();
    let info = store.run("r").unwrap();
    assert_eq!((info.status, info.ended_ms, info.usage), (RunStatus::Running, None, usage));
    assert_eq!((info.graph, info.scripted), (Some(graph), true));
}

/// C-07: once a script has answered, the row says so for good.
#[test]
fn a_run_that_a_script_drives_later_is_scripted_for_good() {
    let store = Store::memory().unwrap();
    store.create_run(new_run("r"), Vec::new()).wait().unwrap();
    assert!(!store.run("r").unwrap().scripted);
    for scripted in [false, true, false] {
        store.update_run("r", RunUpdate { scripted, ..RunUpdate::default() }).wait().unwrap();
    }
    assert!(store.run("r").unwrap().scripted);
}

#[test]
fn an_id_is_used_once() {
    let store = Store::memory().unwrap();
    store.create_run(new_run("r"), events("r", 1, 1)).wait().unwrap();
    let error = store.create_run(new_run("r"), events("other", 1, 3)).wait().unwrap_err();
    assert_eq!(error, StoreError::AlreadyExists { run: "r".into() });
    assert_eq!(journal(&store, "r"), events("r", 1, 1));
}

#[test]
fn a_refused_update_changes_neither_row_nor_journal() {
    let store = Store::memory().unwrap();
    store.create_run(new_run("r"), events("r", 1, 2)).wait().unwrap();
    let update = RunUpdate { status: Some((RunStatus::Completed, Some(9))), ..RunUpdate::default() };
    let error = store.append_and_update("r", events("r", 4, 5), update.clone()).wait().unwrap_err();
    assert_eq!(error, StoreError::OutOfOrder { run: "r".into(), expected: 3, got: 4 });
    let missing = RunUpdate { graph: Some(BlobHash::of(b"not stored")), ..update };
    let error = store.append_and_update("r", events("r", 3, 3), missing).wait().unwrap_err();
    assert!(matches!(error, StoreError::UnknownBlob { .. }));
    assert_eq!(store.run("r").unwrap().status, RunStatus::Running);
    assert_eq!(store.last_event("r").unwrap(), 2);
}

#[test]
fn a_graph_must_be_stored_before_its_run() {
    let store = Store::memory().unwrap();
    let run = NewRun { graph: Some(BlobHash::of(b"graph")), ..new_run("r") };
    let error = store.create_run(run.clone(), Vec::new()).wait().unwrap_err();
    assert!(matches!(error, StoreError::UnknownBlob { .. }));
    assert!(matches!(store.run("r"), Err(StoreError::UnknownRun { .. })));
    let (_, stored) = store.put_blob(b"graph".to_vec());
    store.create_run(run, Vec::new()).wait().unwrap();
    stored.wait().unwrap();
}

/// E-37: a run is due from its timer on, for as long as it waits.
#[test]
fn e37_runs_are_due_by_their_timers() {
    let store = Store::memory().unwrap();
    for id in ["a", "b", "c"] {
        store.create_run(new_run(id), Vec::new()).wait().unwrap();
    }
    let child = NewRun { parent: Some("a".to_owned()), ..new_run("child") };
    store.create_run(child, Vec::new()).wait().unwrap();
    let stands = |id: &str, status, due_ms| {
        let update = RunUpdate { status: Some((status, None)), due_ms, ..RunUpdate::default() };
        store.update_run(id, update).wait().unwrap();
    };
    for (id, due_ms) in [("a", Some(20)), ("b", Some(10)), ("c", None), ("child", Some(5))] {
        stands(id, RunStatus::Waiting, due_ms);
    }
    assert_eq!(store.due_runs(9).unwrap(), []);
    assert_eq!(store.due_runs(10).unwrap(), [("b".to_owned(), 10)]);
    assert_eq!(store.due_runs(20).unwrap(), [("b".to_owned(), 10), ("a".to_owned(), 20)]);
    stands("a", RunStatus::Waiting, Some(30));
    stands("b", RunStatus::Completed, None);
    assert_eq!(store.due_runs(29).unwrap(), []);
    assert_eq!(store.due_runs(30).unwrap(), [("a".to_owned(), 30)]);
}

#[test]
fn runs_are_listed_latest_first_and_filtered() {
    let store = Store::memory().unwrap();
    let statuses = [RunStatus::Waiting, RunStatus::Completed, RunStatus::Waiting];
    for (index, status) in statuses.into_iter().enumerate() {
        let run = NewRun { status, started_ms: index as i64, ..new_run(&index.to_string()) };
        store.create_run(run, Vec::new()).wait().unwrap();
    }
    let ids = |status, limit| -> Vec<String> {
        store
            .runs(&RunFilter { status, limit, ..RunFilter::default() })
            .unwrap()
            .sound
            .into_iter()
            .map(|run| run.id)
            .collect()
    };
    assert_eq!(ids(None, None), ["2", "1", "0"]);
    assert_eq!(ids(Some(RunStatus::Waiting), None), ["2", "0"]);
    assert_eq!(ids(Some(RunStatus::Waiting), Some(1)), ["2"]);
    assert!(ids(Some(RunStatus::Cancelled), None).is_empty());
}

#[test]
fn a_beginning_names_a_run_if_it_is_the_only_one() {
    let store = Store::memory().unwrap();
    for id in ["abc", "abcd", "abx", "b%", "bé"] {
        store.create_run(new_run(id), Vec::new()).wait().unwrap();
    }
    assert_eq!(store.find_run("abc").unwrap(), "abc", "the exact id wins");
    assert_eq!(store.find_run("abcd").unwrap(), "abcd");
    assert_eq!(store.find_run("abx").unwrap(), "abx");
    assert_eq!(store.find_run("b%").unwrap(), "b%");
    assert_eq!(store.find_run("bé").unwrap(), "bé");
    let candidates = vec!["abc".into(), "abcd".into(), "abx".into()];
    assert_eq!(store.find_run("ab"), Err(StoreError::AmbiguousRun { prefix: "ab".into(), candidates }));
    for unknown in ["", "%", "z", "abcde", "_"] {
        assert_eq!(store.find_run(unknown), Err(StoreError::UnknownRun { run: unknown.into() }));
    }
}

#[test]
fn the_latest_runs_are_named_by_how_far_back_they_are() {
    let store = Store::memory().unwrap();
    assert_eq!(store.find_run("@"), Err(StoreError::UnknownRun { run: "@".into() }));
    // The last but one has been given a name that would mean another one.
    for (started_ms, id) in [(3, "new"), (1, "old"), (2, "@-2")] {
        store.create_run(NewRun { started_ms, ..new_run(id) }, Vec::new()).wait().unwrap();
    }
    for (text, id) in [("@", "new"), ("@last", "new"), ("@-0", "new"), ("@-1", "@-2"), ("@-2", "@-2")] {
        assert_eq!(store.find_run(text).unwrap(), id, "{text}");
    }
    for unknown in ["@-3", "@-99999999999", "@+1", "@1", "@latest"] {
        assert_eq!(store.find_run(unknown), Err(StoreError::UnknownRun { run: unknown.into() }));
    }
}

#[test]
fn a_fork_shares_the_events_before_it() {
    let store = Store::memory().unwrap();
    let fork = |id: &str, of: &str, events| NewRun {
        fork: Some(ForkPoint { run: of.into(), events }),
        ..new_run(id)
    };
    store.create_run(new_run("a"), events("a", 1, 5)).wait().unwrap();
    store.create_run(fork("b", "a", 3), events("b", 4, 6)).wait().unwrap();
    store.create_run(fork("c", "b", 5), Vec::new()).wait().unwrap();
    store.create_run(fork("d", "b", 2), events("d", 3, 3)).wait().unwrap();
    store.create_run(fork("e", "a", 0), events("e", 1, 1)).wait().unwrap();
    // The source goes on: its forks do not see it.
    store.append("a", events("a", 6, 9)).wait().unwrap();
    store.append("c", vec![event("c", 6)]).wait().unwrap();

    let joined = |parts: &[(&str, u64, u64)]| -> Vec<_> {
        parts.iter().flat_map(|(run, from, to)| events(run, *from, *to)).collect()
    };
    assert_eq!(journal(&store, "a"), events("a", 1, 9));
    assert_eq!(journal(&store, "b"), joined(&[("a", 1, 3), ("b", 4, 6)]));
    assert_eq!(journal(&store, "c"), joined(&[("a", 1, 3), ("b", 4, 5), ("c", 6, 6)]));
    assert_eq!(journal(&store, "d"), joined(&[("a", 1, 2), ("d", 3, 3)]));
    assert_eq!(journal(&store, "e"), events("e", 1, 1));
    let from_four: Vec<_> = store.journal("c", 4).unwrap().map(Result::unwrap).collect();
    assert_eq!(from_four, joined(&[("b", 4, 5), ("c", 6, 6)]));
    assert_eq!(store.last_event("c").unwrap(), 6);
    assert_eq!(store.run("c").unwrap().fork, Some(ForkPoint { run: "b".into(), events: 5 }));

    let beyond = store.create_run(fork("x", "a", 10), Vec::new()).wait();
    assert!(matches!(beyond, Err(StoreError::OutOfOrder { .. })));
    let unknown = store.create_run(fork("x", "none", 0), Vec::new()).wait();
    assert_eq!(unknown, Err(StoreError::UnknownRun { run: "none".into() }));
    let wrong = store.create_run(fork("x", "a", 3), events("x", 1, 1)).wait();
    assert_eq!(wrong, Err(StoreError::OutOfOrder { run: "x".into(), expected: 4, got: 1 }));
    assert!(store.run("x").is_err());
}

#[test]
fn statuses_are_those_of_the_command_line() {
    for name in ["running", "waiting", "completed", "failed", "cancelled"] {
        assert_eq!(name.parse::<RunStatus>().unwrap().to_string(), name);
    }
    assert!("done".parse::<RunStatus>().unwrap_err().contains("completed"));
}
