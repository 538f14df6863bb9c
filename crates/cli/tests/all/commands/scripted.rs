//! Which runs say that a script answered (C-02, C-07).

use super::endpoint::{reply, serve};
use crate::support::{Done, Place, finish, says};
use serde_json::json;
use std::time::{Duration, Instant};

/// A plan of two nodes, the second behind a person's yes if told so, and a script that answers both.
fn place(approval: bool) -> Place {
    let place = Place::new();
    let mut second = says("b", "two {{a.output}}");
    second["thread_id"] = json!("other");
    second["require_approval"] = json!(approval);
    place.plan("plan.json", json!([says("a", "one"), second]));
    place.write("s.yaml", "- reply: {text: hi}\n");
    place
}

/// An endpoint that answers every request so.
fn refusing() -> String {
    serve(400, json!({"error": {"message": "no"}}).to_string()).0
}

/// What a run says of itself, printed by its command and later.
#[track_caller]
fn scripted(place: &Place, run: &str, printed: &Done) -> bool {
    let shown = place.run(&["show", run, "--json"]).json();
    assert_eq!(shown["scripted"], printed.json()["scripted"], "{run}");
    shown["scripted"].as_bool().unwrap()
}

#[test]
fn a_run_that_goes_on_with_a_script_is_scripted_for_good() {
    let place = place(false);
    let begun = place.run(&["run", "plan.json", "--base-url", &refusing(), "--run-id", "r", "--json"]);
    assert!(!scripted(&place, "r", &begun.exits(1)));
    let done = place.run(&["resume", "r", "--script", "s.yaml", "--json"]);
    assert!(scripted(&place, "r", &done.exits(0)));
    let again = place.run(&["resume", "r", "--json"]);
    assert!(scripted(&place, "r", &again.exits(0)));
}

#[test]
fn an_answer_may_bring_the_script() {
    let place = place(true);
    let url = serve(200, reply("hello")).0;
    let begun = place.run(&["run", "plan.json", "--base-url", &url, "--run-id", "r", "--json"]).exits(3);
    assert!(!scripted(&place, "r", &begun));
    let ask = begun.json()["asks"][0]["ask"].as_str().unwrap().to_owned();
    let done = place.run(&["answer", "r", &ask, "yes", "--script", "s.yaml", "--json"]);
    assert!(scripted(&place, "r", &done.exits(0)));
}

/// Whatever becomes of the process.
#[test]
fn a_run_is_scripted_before_the_script_answers() {
    let place = place(false);
    place
        .write("late.yaml", "- {when: {node: b}, reply: {text: hi, delay_ms: 60000}}\n- reply: {text: hi}\n");
    place.run(&["run", "plan.json", "--base-url", &refusing(), "--run-id", "r"]).exits(1);
    let mut child = place.start(&["resume", "r", "--script", "late.yaml"]);
    let deadline = Instant::now() + Duration::from_secs(30);
    while !place.run(&["show", "r", "--json"]).json()["results"]["a"]["is_success"]
        .as_bool()
        .unwrap_or_default()
    {
        assert!(Instant::now() < deadline, "the first node ends");
    }
    child.kill().unwrap();
    finish(child).exits(-1);
    assert_eq!(place.run(&["show", "r", "--json"]).json()["scripted"], true);
}

/// A fork onto an endpoint is scripted only with what a script has answered in what it goes on with.
#[test]
fn a_fork_says_what_holds_for_it() {
    let place = place(false);
    place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r"]).exits(0);
    place.plan("other.json", json!([says("a", "another")]));
    let url = serve(200, reply("hello")).0;
    let events = place.run(&["show", "r", "--events", "--json"]).json();
    let last = |kind: &str, node: &str| {
        let all = events["events"].as_array().unwrap();
        all.iter().rfind(|e| e["kind"] == kind && e["node"] == node).unwrap()["n"].to_string()
    };
    let finished = last("node_finished", "a");
    let (edit_text, edit_reply) = (format!("{}=Yo", 2), format!("{}=Yo", last("appended", "b")));
    for (id, edits, expected) in [
        ("anew", &["--at", "1"][..], false),
        ("text", &["--set-message", &edit_text], false),
        ("document", &["--document", "other.json"], false),
        ("kept", &["--at", &finished], true),
        ("reply", &["--set-message", &edit_reply], true),
        ("end", &[], true),
    ] {
        let fork = ["fork", "r", "--base-url", &url, "--run-id", id, "--json"];
        let done = place.run(&[&fork[..], edits].concat()).exits(0);
        assert_eq!(scripted(&place, id, &done), expected, "{id}: {done:#?}");
        let texts = serde_json::to_string(&done.json()["threads"]).unwrap();
        assert_eq!(texts.contains("\"hi\""), expected, "{id}: {texts}");
    }
    // A fork of a fork that left the script behind, and one that comes back to it.
    let done = place.run(&["fork", "anew", "--run-id", "f", "--json"]).exits(0);
    assert!(!scripted(&place, "f", &done));
    let done = place.run(&["fork", "anew", "--script", "s.yaml", "--run-id", "g", "--json"]).exits(0);
    assert!(scripted(&place, "g", &done));
}
