//! Archives that somebody made by hand, and imports that somebody else is in the way of (C-14, C-20, E-18).

use crate::support::{Done, Place, calls, finish, says};
use selvedge_store::archive::{ArchiveError, ArchivedFork, ArchivedRun, Writer};
use selvedge_store::{BlobHash, Entry, ForkPoint, Mode, NewRun, RunFilter, RunStatus, Store};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// A run `r` that a script has answered, and what of it is to be archived.
fn recorded(place: &Place) -> (Store, ArchivedRun, Vec<Entry>) {
    place.plan("p.json", json!([says("a", "one"), says("b", "two {{a.output}}")]));
    place.write("s.yaml", "- when: {node: a}\n  reply: {text: first}\n- reply: {text: second}\n");
    place.run(&["run", "p.json", "--script", "s.yaml", "--run-id", "r", "--json"]).exits(0);
    let store = Store::open(&place.state(), Mode::ReadWrite).unwrap();
    let info = store.run("r").unwrap();
    let entries: Vec<Entry> = store.journal("r", 1).unwrap().map(Result::unwrap).collect();
    let row = ArchivedRun {
        id: "r".into(),
        name: info.name,
        dialect: info.dialect,
        started_ms: info.started_ms,
        graph: info.graph.map(|graph| graph.to_string()),
        scripted: true,
        options: json!({}),
        fork: None,
        events: entries.len() as u64,
    };
    (store, row, entries)
}

/// An archive with the right hashes of whatever this journal is, as `FILE`.
fn forged(place: &Place, file: &str, from: &Store, rows: &[(ArchivedRun, Vec<Entry>)]) {
    let store = Store::memory().unwrap();
    let mut blobs = BTreeSet::new();
    for (row, entries) in rows {
        let graph: BlobHash = row.graph.as_deref().unwrap().parse().unwrap();
        let content = from.get_blob(graph).unwrap();
        store.put_blob(content).1.wait().unwrap();
        blobs.insert(graph);
        let run = NewRun {
            id: row.id.clone(),
            name: row.name.clone(),
            dialect: row.dialect.clone(),
            status: RunStatus::Running,
            started_ms: 0,
            graph: Some(graph),
            scripted: true,
            options: "{}".into(),
            fork: row.fork.clone().map(|fork| ForkPoint { run: fork.run, events: fork.events }),
            parent: None,
        };
        store.create_run(run, entries.clone()).wait().unwrap();
    }
    let mut writer = Writer::new(&store);
    for (row, _) in rows {
        writer.add(row.clone(), |_| Ok::<(), ArchiveError>(())).unwrap();
    }
    let mut out = Vec::new();
    writer.write(&blobs, &mut out).unwrap();
    std::fs::write(place.work().join(file), out).unwrap();
}

fn import(place: &Place, file: &str) -> Done {
    place.run(&["import", file, "--state-dir", "other", "--json"])
}

/// What a refused import leaves: nothing.
#[track_caller]
fn nothing_in(place: &Place) {
    assert!(!place.work().join("other").exists(), "{:?}", std::fs::read_dir(place.work().join("other")));
}

#[track_caller]
fn refused(place: &Place, file: &str, code: &str, words: &str) {
    let done = import(place, file).exits(4);
    let error = done.error();
    assert_eq!(error["code"], code, "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(words), "{message} has no {words:?}");
    assert!(!done.stderr.contains("internal error"), "{done:#?}");
    nothing_in(place);
}

#[test]
fn a_journal_that_does_not_follow_from_its_inputs_is_refused() {
    let place = Place::new();
    let (store, row, entries) = recorded(&place);
    type Change = fn(&mut Vec<Entry>);
    let changes: [(Change, &str); 8] = [
        (|all| all[1].json = all[1].json.replace("the task", "another task"), "event 2 does not follow"),
        (|all| drop(all.remove(3)), "does not follow"),
        (|all| all.swap(2, 3), "does not follow"),
        (|all| all[4].at_ms += 1, "event 5 does not follow"),
        (|all| all[0].json = all[1].json.clone(), "event 1 has no place there"),
        (|all| all[5].json = all[0].json.clone(), "event 6 has no place there"),
        (
            |all| all[5].json = r#"{"kind":"forked","source":"r","events":9}"#.into(),
            "event 6 has no place there",
        ),
        (|all| all[5].json = r#"{"kind":"tomorrow"}"#.into(), "event 6 can't be read"),
    ];
    for (at, (change, words)) in changes.into_iter().enumerate() {
        let mut entries = entries.clone();
        change(&mut entries);
        for (n, entry) in (1..).zip(&mut entries) {
            entry.n = n;
        }
        let row = ArchivedRun { events: entries.len() as u64, ..row.clone() };
        let file = format!("{at}.tar");
        forged(&place, &file, &store, &[(row, entries)]);
        let code = if at == 7 { "run-unreadable" } else { "archive-damaged" };
        refused(&place, &file, code, words);
    }
    // A reply is an input: what it says, nobody can know better.
    let mut entries = entries;
    entries.iter_mut().for_each(|entry| entry.json = entry.json.replace("first", "forged"));
    forged(&place, "input.tar", &store, &[(row, entries)]);
    assert_eq!(import(&place, "input.tar").exits(0).json()["result"], "new");
}

#[test]
fn a_fork_of_nothing_that_is_there_is_refused() {
    let place = Place::new();
    let (store, row, entries) = recorded(&place);
    let fork = |source: &str, events: u64| Entry {
        n: 5,
        at_ms: entries.last().unwrap().at_ms,
        json: json!({"kind": "forked", "source": source, "events": events}).to_string(),
    };
    let last = entries.len() as u64;
    for (at, event) in [fork("f", 4), fork("none", 4), fork("r", last + 1)].into_iter().enumerate() {
        let child = ArchivedRun {
            id: "f".into(),
            fork: Some(ArchivedFork { run: "r".into(), events: 4 }),
            events: 5,
            ..row.clone()
        };
        let file = format!("{at}.tar");
        forged(&place, &file, &store, &[(row.clone(), entries.clone()), (child, vec![event])]);
        refused(&place, &file, "archive-damaged", "event 5 has no place there");
    }
}

#[test]
fn a_newer_run_and_a_newer_archive_are_told() {
    let place = Place::new();
    let (store, row, mut entries) = recorded(&place);
    place.run(&["export", "r", "--archive", "r.tar"]).exits(0);
    let bytes = std::fs::read(place.work().join("r.tar")).unwrap();
    let at = bytes.windows(21).position(|window| window == b"\"selvedge_archive\": 1").unwrap() + 20;
    let mut newer = bytes.clone();
    newer[at] = b'2';
    std::fs::write(place.work().join("newer.tar"), newer).unwrap();
    refused(&place, "newer.tar", "archive-newer", "newer version");
    let mut start: Value = serde_json::from_str(&entries[0].json).unwrap();
    start["edition"] = json!(99);
    entries[0].json = start.to_string();
    forged(&place, "edition.tar", &store, &[(row, entries)]);
    refused(&place, "edition.tar", "run-newer", "edition 99");
}

#[test]
fn an_archive_that_was_cut_or_changed_leaves_nothing() {
    let place = Place::new();
    recorded(&place);
    place.run(&["export", "r", "--archive", "r.tar"]).exits(0);
    let bytes = std::fs::read(place.work().join("r.tar")).unwrap();
    let len = bytes.len();
    for cut in [600, len / 2, len - 2000] {
        std::fs::write(place.work().join("cut.tar"), &bytes[..cut]).unwrap();
        refused(&place, "cut.tar", "archive-damaged", "");
    }
    for cut in [len - 1025, len - 1024, len - 1000, len - 512, len - 1] {
        std::fs::write(place.work().join("cut.tar"), &bytes[..cut]).unwrap();
        refused(&place, "cut.tar", "archive-damaged", "cut off");
    }
    // Two blocks of zeros end it. `tar` may add further ones, and nothing else follows.
    let mut longer = bytes.clone();
    longer.extend([0; 4096]);
    std::fs::write(place.work().join("padded.tar"), &longer).unwrap();
    place.run(&["import", "padded.tar", "--state-dir", "padded"]).exits(0);
    for (at, name) in [(len - 512, "one"), (len, "two"), (len + 4095, "later")] {
        let mut more = longer.clone();
        more[at] = b'x';
        std::fs::write(place.work().join("more.tar"), &more).unwrap();
        refused(&place, "more.tar", "archive-damaged", "something follows its end");
        std::fs::write(place.work().join("more.tar"), [&bytes[..], name.as_bytes()].concat()).unwrap();
        refused(&place, "more.tar", "archive-damaged", "something follows its end");
    }
    let at = bytes.windows(5).rposition(|window| window == b"first").unwrap();
    let mut changed = bytes;
    changed[at] = b'F';
    std::fs::write(place.work().join("changed.tar"), &changed).unwrap();
    refused(&place, "changed.tar", "archive-damaged", "of run r is not what was written");
    // A folder that was there before stays, with what it holds.
    place.run(&["run", "p.json", "--script", "s.yaml", "--run-id", "own", "--state-dir", "other"]).exits(0);
    import(&place, "changed.tar").exits(4);
    let store = Store::open(&place.work().join("other"), Mode::ReadOnly).unwrap();
    assert_eq!(store.runs(&RunFilter::default()).unwrap().sound.len(), 1);
    assert_eq!(left(&place), ["lock"]);
}

/// What lies where archives are unpacked.
fn left(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.work().join("other/imports")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn what_a_killed_import_left_is_cleared_and_imports_take_turns() {
    let place = Place::new();
    recorded(&place);
    place.run(&["export", "r", "--archive", "r.tar"]).exits(0);
    let dead = place.work().join("other/imports/run-dead");
    std::fs::create_dir_all(&dead).unwrap();
    std::fs::write(dead.join("selvedge.db"), "half").unwrap();
    let args = ["import", "r.tar", "--state-dir", "other", "--json"];
    let all: Vec<_> = (0..4).map(|_| place.start(&args)).collect();
    let mut results: Vec<Value> =
        all.into_iter().map(|child| finish(child).exits(0).json()["result"].clone()).collect();
    results.sort_by_key(Value::to_string);
    assert_eq!(results, ["new", "unchanged", "unchanged", "unchanged"]);
    assert_eq!(left(&place), ["lock"]);
    place.run(&["replay", "r", "--state-dir", "other"]).exits(0);
}

/// C-20: what a forged graph says of a tool says nothing. `shell` is neither pure nor without approval here.
#[test]
fn a_forged_definition_is_not_believed() {
    let place = Place::new();
    place.plan("p.json", json!([calls("a", "shell", json!({"command": "touch ran"}))]));
    place.run(&["run", "p.json", "--run-id", "r", "--json"]).exits(3);
    let store = Store::open(&place.state(), Mode::ReadWrite).unwrap();
    let info = store.run("r").unwrap();
    let entries: Vec<Entry> = store.journal("r", 1).unwrap().map(Result::unwrap).collect();
    let mut graph: Value = serde_json::from_slice(&store.get_blob(info.graph.unwrap()).unwrap()).unwrap();
    let tool = &mut graph["tools"]["shell"];
    assert_eq!(tool["approval"], true);
    tool.as_object_mut().unwrap().remove("approval");
    tool["effects"] = json!("pure");
    let (hash, stored) = store.put_blob(graph.to_string().into_bytes());
    stored.wait().unwrap();
    let start = entries[0].json.replace(&info.graph.unwrap().to_string(), &hash.to_string());
    let row = ArchivedRun {
        id: "forged".into(),
        name: "n".into(),
        dialect: "plan".into(),
        started_ms: 0,
        graph: Some(hash.to_string()),
        scripted: false,
        // What a stranger would like to be allowed.
        options: json!({"allow_write": ["/"], "allow_network": true, "cwd": "/", "document": "/etc/x"}),
        fork: None,
        events: 1,
    };
    forged(&place, "f.tar", &store, &[(row, vec![Entry { json: start, ..entries[0].clone() }])]);
    import(&place, "f.tar").exits(0);
    let other = Store::open(&place.work().join("other"), Mode::ReadOnly).unwrap();
    let options: Value = serde_json::from_str(&other.run("forged").unwrap().options).unwrap();
    let kept = (&options["allow_write"], &options["allow_network"], &options["cwd"], &options["document"]);
    assert_eq!(kept, (&json!([]), &json!(false), &json!(""), &json!("x")));
    let untrusted = |args: &[&str]| {
        let mut command = place.command(args);
        command.env("SELVEDGE_TRUST", "");
        finish(command.spawn().unwrap())
    };
    let state = ["--state-dir", "other", "--json"];
    let done = untrusted(&[&["resume", "forged"], &state[..]].concat()).exits(4);
    assert_eq!(done.error()["code"], "not-trusted", "{done:#?}");
    // A fork takes `shell` as it is here, so that a person is asked.
    let done = untrusted(&[&["fork", "forged"], &state[..]].concat()).exits(3);
    assert_eq!(done.json()["asks"][0]["node"], "a", "{done:#?}");
    assert!(!Path::new(&place.work().join("ran")).exists());
}
