//! `replay` (E-18) and `export` (C-14).

use super::world::{completed, failed, killed, place, waiting};
use crate::support::{Place, finish, says};
use selvedge_store::{Entry, Mode, NewRun, Store};
use serde_json::{Value, json};
use std::io::Read;

fn replays(place: &Place, id: &str) -> Value {
    let replayed = place.run(&["replay", id, "--json"]).exits(0).json();
    assert_eq!((&replayed["run_id"], &replayed["diverged"]), (&json!(id), &Value::Null));
    replayed
}

/// A copy of a run with another journal.
fn copy(place: &Place, from: &str, to: &str, change: impl FnOnce(&mut Vec<Entry>)) {
    let store = Store::open(&place.state(), Mode::ReadWrite).unwrap();
    let mut entries: Vec<Entry> = store.journal(from, 1).unwrap().map(Result::unwrap).collect();
    change(&mut entries);
    let info = store.run(from).unwrap();
    let run = NewRun {
        id: to.to_owned(),
        name: info.name,
        dialect: info.dialect,
        status: info.status,
        started_ms: info.started_ms,
        graph: info.graph,
        scripted: info.scripted,
        options: info.options,
        fork: None,
        parent: None,
    };
    store.create_run(run, entries).wait().unwrap();
}

#[test]
fn runs_of_every_status_replay() {
    let place = place();
    completed(&place, "completed");
    let replayed = replays(&place, "completed");
    let events = place.run(&["show", "completed", "--events", "--json"]).json();
    let events = events["events"].as_array().unwrap();
    assert_eq!(replayed["events"], json!(events.len()));
    // A start, two tool calls, three replies.
    assert_eq!(replayed["inputs"], json!(6));
    waiting(&place, "waiting");
    replays(&place, "waiting");
    killed(&place, "killed");
    replays(&place, "killed");
    failed(&place, "resumed");
    replays(&place, "resumed");
    place.write("ok", "");
    place.run(&["resume", "resumed"]).exits(0);
    replays(&place, "resumed");
    let ask = place.run(&["show", "waiting", "--json"]).json()["asks"][0]["ask"].as_str().unwrap().to_owned();
    place.run(&["answer", "waiting", &ask, "no"]).exits(1);
    replays(&place, "waiting");
    place.run(&["cancel", "killed"]).exits(0);
    replays(&place, "killed");
    let text = place.run(&["replay", "killed"]).exits(0).stdout;
    assert!(text.contains("agrees"), "{text}");
}

#[test]
fn retries_and_new_caps_replay() {
    let place = place();
    place.plan("p.json", json!([says("a", "x"), says("b", "y")]));
    place.write(
        "s.yaml",
        "- when: {nth: 1}\n  reply: {error: {status: 503, message: busy}}\n- reply: {text: fine}\n",
    );
    // The attempt that failed is a call as well (E-20).
    let args = ["run", "p.json", "--script", "s.yaml", "--run-id", "r", "--budget", "calls=2", "--json"];
    assert_eq!(place.run(&args).exits(1).json()["fault"]["kind"], "budget_exceeded");
    replays(&place, "r");
    place.run(&["resume", "r", "--budget", "calls=9"]).exits(0);
    replays(&place, "r");
    let text = place.run(&["export", "r"]).exits(0).stdout;
    assert!(text.contains("\"retried\"") && text.contains("\"budget_set\""), "{text}");
    let events = place.run(&["show", "r", "--events"]).exits(0).stdout;
    assert_eq!(events.lines().count(), text.lines().count() + 1);
}

#[test]
fn a_journal_that_ends_anywhere_replays_as_far_as_it_goes() {
    let place = place();
    completed(&place, "r");
    let events = replays(&place, "r")["events"].as_u64().unwrap();
    for end in 1..events {
        let id = format!("first-{end}");
        copy(&place, "r", &id, |entries| entries.truncate(usize::try_from(end).unwrap()));
        assert_eq!(replays(&place, &id)["events"], json!(end));
    }
}

#[test]
fn the_first_event_that_differs_is_shown_from_both_sides() {
    let place = place();
    completed(&place, "r");
    copy(&place, "r", "changed", |entries| {
        // A derived event: its inputs are as they were.
        let prompt = entries.iter_mut().find(|entry| entry.json.contains("And now?")).unwrap();
        prompt.json = prompt.json.replace("And now?", "And then?");
    });
    let done = place.run(&["replay", "changed", "--json"]).exits(1);
    let diverged = &done.json()["diverged"];
    let n = diverged["n"].as_u64().unwrap();
    assert_eq!(diverged["expected"]["event"]["body"]["text"][1], "And then?");
    assert_eq!(diverged["derived"]["event"]["body"]["text"][1], "And now?");
    let text = place.run(&["replay", "changed"]).exits(1).stdout;
    let told = [format!("at event {n}"), "And then?".to_owned(), "And now?".to_owned()];
    assert!(told.iter().all(|part| text.contains(part.as_str())), "{text}");
    // An event too many: nothing is derived there.
    copy(&place, "r", "longer", |entries| {
        let (n, last) = (entries.len() as u64 + 1, entries.last().unwrap().clone());
        entries.push(Entry { n, ..last });
    });
    let diverged = place.run(&["replay", "longer", "--json"]).exits(1).json()["diverged"].clone();
    assert_eq!(
        (&diverged["expected"]["event"]["kind"], &diverged["derived"]),
        (&json!("ended"), &Value::Null)
    );
    // Bytes count, not values.
    copy(&place, "r", "spaced", |entries| {
        let started = entries.iter_mut().find(|entry| entry.json.contains("node_started")).unwrap();
        started.json = started.json.replace(":", ": ");
    });
    place.run(&["replay", "spaced"]).exits(1);
    // So does the time: what follows from an input has its time.
    copy(&place, "r", "later", |entries| entries[2].at_ms += 1);
    place.run(&["replay", "later"]).exits(1);
    // An event of a version to come.
    copy(&place, "r", "newer", |entries| entries[3].json = "{\"kind\":\"unheard_of\"}".to_owned());
    place.run(&["replay", "newer"]).exits(4);
    place.run(&["export", "newer"]).exits(0);
}

#[test]
fn an_export_is_the_journal_line_by_line() {
    let place = place();
    completed(&place, "r");
    let text = place.run(&["export", "r"]).exits(0).stdout;
    let store = Store::open(&place.state(), Mode::ReadOnly).unwrap();
    let entries: Vec<Entry> = store.journal("r", 1).unwrap().map(Result::unwrap).collect();
    assert_eq!(text.lines().count(), entries.len());
    for (line, entry) in text.lines().zip(entries) {
        let event: Value = serde_json::from_str(line).unwrap();
        let keys: Vec<&str> = event.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!((&keys[..3], &event["n"]), (&["n", "at", "kind"][..], &json!(entry.n)));
        assert!(line.ends_with(&entry.json[1..]), "an event's own text is not changed: {line}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = place();
    completed(&place, "r");
    // More than a pipe holds.
    copy(&place, "r", "long", |entries| {
        for n in entries.len() as u64 + 1..5000 {
            entries.push(Entry {
                n,
                at_ms: 0,
                json: format!("{{\"kind\":\"filler\",\"text\":\"{:0200}\"}}", n),
            });
        }
    });
    let mut child = place.start(&["export", "long"]);
    let mut first = [0; 10];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut first).unwrap();
    assert_eq!(&first[..6], b"{\"n\":1");
    drop(stdout);
    let done = finish(child).exits(0);
    assert_eq!(done.stderr, "");
}

/// A run that a later version began, whose events mean what this one does not know, is refused by whoever folds it.
#[test]
fn e42_a_run_of_a_newer_edition_is_not_read_in_another_meaning() {
    let place = place();
    completed(&place, "now");
    copy(&place, "now", "later", |entries| {
        let edition = format!("\"edition\":{}", selvedge_engine::EDITION);
        assert!(entries[0].json.contains(&edition), "{}", entries[0].json);
        entries[0].json = entries[0].json.replace(&edition, "\"edition\":99");
    });
    for words in [
        &["show", "later"][..],
        &["show", "later", "--events"],
        &["show", "later", "--at", "3"],
        &["replay", "later"],
        &["explain", "later"],
        &["resume", "later"],
        &["cancel", "later"],
        &["fork", "later", "--at", "4", "--script", "sums.yaml"],
    ] {
        let done = place.run(words).exits(4);
        assert_eq!(done.stdout, "", "{words:?}");
        for part in ["recorded by a newer version", "edition 99", "selvedge export later"] {
            assert!(done.stderr.contains(part), "{words:?}: {}", done.stderr);
        }
        let error = place.run(&[words, &["--json"]].concat()).exits(4);
        let error: Value = serde_json::from_str(error.stderr.lines().last().unwrap()).unwrap();
        assert_eq!((&error["error"]["rule"], &error["error"]["code"]), (&json!("E-42"), &json!("run-newer")));
    }
    // What is stored is printed as it is, and no other run is in the way.
    assert!(place.run(&["export", "later"]).exits(0).stdout.contains("\"edition\":99"));
    assert!(place.run(&["runs"]).exits(0).stdout.contains("now"));
}
