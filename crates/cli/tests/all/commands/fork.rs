//! Forks (E-19, E-29, C-13): from any event, with and without edits.

use super::endpoint::{Seen, reply, serve};
use super::recovery::stuck;
use crate::support::{Done, Place, calls, says};
use serde_json::{Value, json};

const SCRIPT: &str = "
- {when: {node: a}, reply: {text: first}}
- {when: {node: b, contains: B}, reply: {text: second}}
- {when: {node: b}, reply: {text: other}}
- {when: {node: c, nth: 1}, reply: {text: third}}
- {when: {node: c, nth: 2}, reply: {text: third again}}
";

/// A run `r` of three nodes: `b` is on a thread of its own, `c` reads the result of `a`.
fn recorded() -> Place {
    let place = Place::new();
    let on = |id: &str, prompt: &str, thread: &str| {
        let mut node = says(id, prompt);
        node["thread_id"] = json!(thread);
        node
    };
    place.plan("plan.json", json!([on("a", "A", "x"), on("b", "B", "y"), on("c", "C {{a.output}}", "z")]));
    place.write("s.yaml", SCRIPT);
    place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r", "--json"]).exits(0);
    place
}

fn events(place: &Place, run: &str) -> Vec<Value> {
    let shown = place.run(&["show", run, "--events", "--json"]).exits(0).json();
    shown["events"].as_array().unwrap().clone()
}

/// The number of the event of this kind at this node.
fn event(place: &Place, run: &str, kind: &str, node: &str) -> u64 {
    let all = events(place, run);
    let found = all.iter().rfind(|event| event["kind"] == kind && event["node"] == node);
    found.unwrap_or_else(|| panic!("no {kind} of {node}: {all:?}"))["n"].as_u64().unwrap()
}

fn same_end(run: &Value, source: &Value) {
    for part in ["status", "output", "fault", "threads", "data_out", "results", "metadata", "warnings"] {
        assert_eq!(run[part], source[part], "{part}");
    }
}

fn calls_made(done: &Done) -> u64 {
    done.json()["usage"]["model_calls"].as_u64().unwrap()
}

#[test]
fn a_fork_at_any_event_without_edits_asks_nobody() {
    let place = recorded();
    let source = place.run(&["show", "r", "--json"]).exits(0).json();
    let last = events(&place, "r").len();
    for at in 1..=last {
        let (at, id) = (at.to_string(), format!("f{at}"));
        let done = place.run(&["fork", "r", "--at", &at, "--run-id", &id, "--json"]).exits(0);
        same_end(&done.json(), &source);
        assert_eq!((&done.json()["run_id"], calls_made(&done)), (&json!(id), 0), "forked at {at}");
        place.run(&["replay", &id]).exits(0);
    }
    // Without --at it is the last event; the source is as it was.
    same_end(&place.run(&["fork", "r", "--json"]).exits(0).json(), &source);
    assert_eq!(place.run(&["show", "r", "--json"]).exits(0).json(), source);
    assert_eq!(events(&place, "r").len(), last);
}

#[test]
fn a_fork_of_what_has_ended_says_that_nothing_is_left() {
    let place = recorded();
    let last = events(&place, "r").len();
    let told = place.run(&["fork", "r", "--model", "other", "--script", "s.yaml", "--quiet"]).exits(0).stderr;
    let note =
        format!("nothing is left to run after event {last}: use --at 1 to ask the new model everything");
    assert!(told.contains(&note), "{told}");
    assert!(!place.run(&["fork", "r", "--at", "1"]).exits(0).stderr.contains("nothing is left"));
}

/// A fork's times are its own; the shared nodes keep theirs in JSON.
#[test]
fn times_and_words_of_a_fork_agree_wherever_they_stand() {
    let place = recorded();
    let last = events(&place, "r").len();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let at = event(&place, "r", "node_finished", "a").to_string();
    let told = place.run(&["fork", "r", "--at", &at, "--run-id", "f"]).exits(0).stderr;
    let words = format!("r: shares events 1–{at}, reuses from all its {last}");
    let shown = place.run(&["show", "f"]).exits(0).stdout;
    let journal = place.run(&["show", "f", "--events"]).exits(0).stdout;
    for text in [&told, &shown, &journal] {
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&words), "{words}: {text}");
    }
    let took = shown.split("took ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
    let explained = place.run(&["explain", "f"]).exits(0).stdout;
    assert!(explained.contains(&format!("reused, {took}\n")), "{took}: {explained}");
    assert!(!explained.contains("leave out"), "the time before the fork is none of its own: {explained}");
    let node = |run: &str| place.run(&["explain", run, "--json"]).exits(0).json()["nodes"][0].clone();
    assert_eq!(node("f")["started"], node("r")["started"]);
    let page = place.run(&["explain", "f", "--node", "a"]).exits(0).stdout;
    assert!(page.contains("in run r"), "{page}");
}

#[test]
fn a_fork_of_a_fork_of_a_fork_is_a_run_like_any_other() {
    let place = recorded();
    let source = place.run(&["show", "r", "--json"]).exits(0).json();
    let mut of = "r".to_owned();
    for n in 0..16 {
        let id = format!("g{n}");
        let at = (n * 7 % events(&place, &of).len() + 1).to_string();
        let done = place.run(&["fork", &of, "--at", &at, "--run-id", &id, "--json"]).exits(0);
        same_end(&done.json(), &source);
        assert_eq!(calls_made(&done), 0);
        of = id;
    }
    place.run(&["replay", &of]).exits(0);
    same_end(&place.run(&["show", &of, "--json"]).exits(0).json(), &source);
    let first = &events(&place, &of)[0];
    assert_eq!(first["kind"], "started", "its journal begins with the first source's");
    let lines = place.run(&["export", &of]).exits(0).stdout.lines().count();
    assert_eq!(lines, events(&place, &of).len());
    let page = place.run(&["show", &of]).exits(0).stdout;
    assert!(page.contains("fork of   g14: shares event"), "{page}");
}

#[test]
fn only_what_depends_on_an_edited_reply_is_asked_again() {
    let place = recorded();
    let n = event(&place, "r", "appended", "a");
    let edit = format!("{n}=FIRST");
    let done = place.run(&["fork", "r", "--set-message", &edit, "--run-id", "f", "--json"]).exits(0);
    let run = done.json();
    assert_eq!(run["results"]["a"]["output"], "FIRST");
    assert_eq!(run["threads"]["z"][1]["content"], "C FIRST");
    // `nth` counts the requests of the fork's own history: this one is the first of `c` (C-07).
    assert_eq!((&run["output"], calls_made(&done)), (&json!("third"), 1), "{run}");
    place.run(&["replay", "f"]).exits(0);
    assert_eq!(place.run(&["show", "r", "--json"]).exits(0).json()["results"]["a"]["output"], "first");
}

/// E-35, D-09: effects and edits name a node by its id in any script.
#[test]
fn a_reply_of_a_node_with_an_id_in_another_script_can_be_edited() {
    let place = Place::new();
    let id = "bước-节点_नाम";
    place.plan("plan.json", json!([says(id, "A")]));
    place.write("s.yaml", "- {reply: {text: first}}\n");
    place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r", "--json"]).exits(0);
    let edit = format!("{}=FIRST", event(&place, "r", "appended", id));
    let done = place.run(&["fork", "r", "--set-message", &edit, "--run-id", "f", "--json"]).exits(0);
    assert_eq!(done.json()["results"][id]["output"], "FIRST");
    place.run(&["replay", "f"]).exits(0);
}

#[test]
fn only_what_depends_on_an_edited_prompt_is_asked_again() {
    let place = recorded();
    let all = events(&place, "r");
    let prompt = all.iter().find(|e| e["kind"] == "appended" && e["node"] == "b").unwrap()["n"].clone();
    let edit = format!("{prompt}=exactly {{{{this}}}}");
    let done = place.run(&["fork", "r", "--set-message", &edit, "--run-id", "f", "--json"]).exits(0);
    let run = done.json();
    assert_eq!(run["threads"]["y"][1]["content"], "exactly {{this}}", "a text is no template");
    assert_eq!((&run["results"]["b"]["output"], calls_made(&done)), (&json!("other"), 1));
    place.run(&["replay", "f"]).exits(0);
}

#[test]
fn only_what_depends_on_an_edited_document_is_asked_again() {
    let place = recorded();
    let document = std::fs::read_to_string(place.work().join("plan.json")).unwrap();
    place.write("edited.json", &document.replace("\"C ", "\"See "));
    let fork = ["fork", "r", "--document", "edited.json", "--json", "--run-id"];
    let done = place.run(&[&fork[..], &["f"]].concat()).exits(0);
    assert_eq!((&done.json()["threads"]["z"][1]["content"], calls_made(&done)), (&json!("See first"), 1));
    place.run(&["replay", "f"]).exits(0);
    // A fork of it keeps to its document, wherever it leaves.
    for at in ["1", "9"] {
        let again = place.run(&["fork", "f", "--at", at, "--json"]).exits(0);
        same_end(&again.json(), &done.json());
        assert_eq!(calls_made(&again), 0);
    }
    // A node put in front moves nobody's answers.
    let mut moved: Value = serde_json::from_str(&document).unwrap();
    let mut front = says("front", "new");
    front["thread_id"] = json!("w");
    moved["nodes"].as_array_mut().unwrap().insert(0, front);
    for node in moved["nodes"].as_array_mut().unwrap() {
        node.as_object_mut().unwrap().remove("node_id");
    }
    let text = moved.to_string().replace("a.output", "n2.output");
    place.write("moved.json", &text);
    place.write("t.yaml", "- {when: {contains: new}, reply: {text: hello}}");
    let fork = ["fork", "r", "--document", "moved.json", "--script", "t.yaml", "--json"];
    let done = place.run(&fork).exits(0);
    assert_eq!((&done.json()["results"]["n1"]["output"], calls_made(&done)), (&json!("hello"), 1));
}

#[test]
fn a_wrong_document_makes_no_run() {
    let place = recorded();
    place.write("wrong.json", r#"{"task": "t", "nodes": [{"node_type": "llm-first"}]}"#);
    let done = place.run(&["fork", "r", "--document", "wrong.json", "--json"]).exits(2);
    assert_eq!((done.error()["file"].clone(), done.stdout.as_str()), (json!("wrong.json"), ""));
    let runs = place.run(&["runs", "--json"]).exits(0).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn wrong_calls_are_exit_2_and_say_what_would_be_right() {
    let place = recorded();
    let last = events(&place, "r").len();
    let over = (last + 1).to_string();
    for (args, code, help) in [
        (vec!["--at", over.as_str()], "unknown-event", format!("1 to {last}")),
        (vec!["--at", "0"], "usage", "--help".into()),
        (vec!["--set-message", "x"], "bad-message", "appended".into()),
        (vec!["--set-message", "1=x"], "not-editable", "messages are the events 2,".into()),
        (vec!["--set-message", "999=x"], "unknown-event", "messages are the events".into()),
        (vec!["--run-id", "r"], "run-id-used", "--run-id".into()),
        (vec!["--plan", "p"], "option-of-run", "document".into()),
        (vec!["--document", "none.json"], "file-not-found", "path".into()),
    ] {
        let done = place.run(&[&["fork", "r", "--json"], &args[..]].concat()).exits(2);
        assert_eq!(done.error()["code"], code, "{args:?}");
        assert!(done.error()["help"].as_str().unwrap().contains(&help), "{args:?}: {done:?}");
        assert_eq!(done.stdout, "");
    }
    place.run(&["fork", "nobody"]).exits(2);
}

#[test]
fn inputs_of_a_fork_go_over_the_source_s() {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "A {{who}}"), says("b", "B")]));
    place.write("s.yaml", "- {when: {contains: bees}, reply: {text: buzz}}\n- {reply: {text: other}}");
    let run = ["run", "plan.json", "--script", "s.yaml", "--input", "who=bees", "--run-id", "r", "--json"];
    place.run(&run).exits(0);
    let done = place.run(&["fork", "r", "--input", "who=ants", "--run-id", "f", "--json"]).exits(0);
    assert_eq!(done.json()["results"]["a"]["output"], "other");
    assert_eq!(done.json()["metadata"]["initial"]["who"], "ants");
    // A document takes the inputs that the source was given.
    place.plan("edited.json", json!([says("a", "A {{who}}"), says("b", "B2")]));
    let done = place.run(&["fork", "r", "--document", "edited.json", "--json"]).exits(0);
    assert_eq!((&done.json()["results"]["a"]["output"], calls_made(&done)), (&json!("buzz"), 1));
}

/// Two nodes that ask an endpoint which counts.
fn asked() -> (Place, String, Seen) {
    let (url, seen) = serve(200, reply("served"));
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "A"), says("b", "B")]));
    place.run(&["run", "plan.json", "--base-url", &url, "--model", "m", "--run-id", "r", "--json"]).exits(0);
    (place, url, seen)
}

#[test]
fn another_model_answers_from_the_fork_on() {
    let (place, _url, seen) = asked();
    let count = || seen.lock().unwrap().len();
    let before = count();
    assert_eq!(before, 2);
    place.run(&["fork", "r", "--json"]).exits(0);
    place.run(&["fork", "r", "--at", "1", "--json"]).exits(0);
    assert_eq!(count(), before, "nobody is asked");
    let done = place.run(&["fork", "r", "--at", "1", "--model", "other", "--run-id", "f", "--json"]).exits(0);
    assert_eq!((count(), calls_made(&done)), (before + 2, 2), "all of it is asked again");
    let b = event(&place, "r", "node_started", "b").to_string();
    place.run(&["fork", "r", "--at", &b, "--model", "third", "--json"]).exits(0);
    assert_eq!(count(), before + 3, "what had retired stays");
    // The other model's answers are recorded like any.
    place.run(&["fork", "f", "--json", "--at", "1"]).exits(0);
    assert_eq!(count(), before + 3);
}

#[test]
fn the_state_folder_does_not_grow_with_what_was_said() {
    let place = Place::new();
    let long = "word ".repeat(30_000);
    place.plan("plan.json", json!([says("a", &format!("A {long}")), says("b", "B {{a.output}}")]));
    place.write(
        "s.yaml",
        &format!("- {{when: {{node: a}}, reply: {{text: \"{long}\"}}}}\n- {{reply: {{text: b}}}}"),
    );
    place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r", "--json"]).exits(0);
    let size = || {
        let files = std::fs::read_dir(place.state()).unwrap().flatten();
        files.filter_map(|file| file.metadata().ok()).filter(|m| m.is_file()).map(|m| m.len()).sum::<u64>()
    };
    let before = size();
    for at in 0..50 {
        let at = (at % 10 + 1).to_string();
        place.run(&["fork", "r", "--at", &at, "--quiet"]).exits(0);
    }
    let grown = size().saturating_sub(before);
    assert!(grown < 1_000_000, "50 forks of a run that said 450 kB took {grown} bytes");
}

#[test]
fn a_failed_run_is_forked_with_an_edited_document() {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "A"), says("b", "B {{a.output.missing}}")]));
    place.write(
        "s.yaml",
        "- {when: {node: a, nth: 1}, reply: {text: first}}\n- {when: {node: b}, reply: {text: done}}",
    );
    place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r", "--json"]).exits(1);
    place.plan("mended.json", json!([says("a", "A"), says("b", "B {{a.output}}")]));
    let done = place.run(&["fork", "r", "--document", "mended.json", "--json"]).exits(0);
    assert_eq!((&done.json()["output"], calls_made(&done)), (&json!("done"), 1));
}

#[test]
fn a_write_is_not_done_twice_without_asking() {
    let place = Place::new();
    let write = |text: &str| {
        let mut node = calls("w", "write_file", json!({"path": "out.txt", "content": text}));
        node["effects"] = json!("write");
        node
    };
    let look = |path: &str| calls("l", "read_file", json!({"path": path}));
    place.write("in.txt", "in");
    place.write("other.txt", "other");
    place.plan("plan.json", json!([look("in.txt"), write("x")]));
    let allow = ["--allow-write", "."];
    place.run(&[&["run", "plan.json", "--run-id", "r", "--json"], &allow[..]].concat()).exits(0);
    std::fs::remove_file(place.work().join("out.txt")).unwrap();
    let done = place.run(&["fork", "r", "--at", "1", "--json"]).exits(0);
    assert_eq!(done.json()["usage"]["tool_calls"], 0);
    assert!(!place.work().join("out.txt").exists(), "the write was done by the source");
    // What it builds on is looked at again: a person decides (E-29).
    place.plan("edited.json", json!([look("other.txt"), write("x")]));
    let done = place.run(&["fork", "r", "--document", "edited.json", "--run-id", "f", "--json"]).exits(3);
    let ask = done.json()["asks"][0]["ask"].as_str().unwrap().to_owned();
    assert!(!place.work().join("out.txt").exists());
    place.run(&["answer", "f", &ask, "yes", "--json"]).exits(0);
    assert!(place.work().join("out.txt").exists());
    place.run(&["replay", "f"]).exits(0);
}

#[test]
fn a_run_that_goes_on_can_be_forked_and_is_left_alone() {
    let place = Place::new();
    let mut child = stuck(&place);
    place.write("fast.yaml", "- {when: {node: b}, reply: {text: forked}}");
    let fork = ["fork", "r", "--script", "fast.yaml", "--run-id", "f", "--json"];
    let done = place.run(&fork).exits(0);
    assert_eq!((&done.json()["output"], calls_made(&done)), (&json!("forked"), 1));
    assert_eq!(done.json()["results"]["a"]["output"], "first");
    assert_eq!(place.run(&["show", "r", "--json"]).exits(0).json()["status"], "running");
    child.kill().unwrap();
    child.wait().unwrap();
    // What the source does afterwards changes nothing of the fork.
    place.write("s.yaml", "- {reply: {text: second}}");
    place.run(&["resume", "r", "--json"]).exits(0);
    assert_eq!(place.run(&["show", "f", "--json"]).exits(0).json()["output"], "forked");
    place.run(&["replay", "f"]).exits(0);
}

#[test]
fn a_fork_of_a_waiting_run_asks_by_itself() {
    let place = Place::new();
    let mut asks = says("b", "B");
    asks["require_approval"] = json!(true);
    place.plan("plan.json", json!([says("a", "A"), asks]));
    place.write("s.yaml", "- {reply: {text: said}}");
    let run = ["run", "plan.json", "--script", "s.yaml", "--run-id", "r", "--json"];
    let ask = place.run(&run).exits(3).json()["asks"][0]["ask"].as_str().unwrap().to_owned();
    let done = place.run(&["fork", "r", "--run-id", "f", "--json"]).exits(3);
    let own = done.json()["asks"][0]["ask"].as_str().unwrap().to_owned();
    place.run(&["answer", "f", &own, "yes", "--json"]).exits(0);
    assert_eq!(place.run(&["show", "r", "--json"]).exits(0).json()["asks"][0]["ask"], json!(ask));
    place.run(&["cancel", "r", "--json"]).exits(0);
    // A cancelled run can be forked as well, and a fork cancelled.
    place.run(&["fork", "r", "--run-id", "g", "--json"]).exits(3);
    assert_eq!(place.run(&["cancel", "g", "--json"]).exits(0).json()["status"], "cancelled");
    for run in ["f", "g"] {
        place.run(&["replay", run]).exits(0);
    }
}

#[test]
fn a_fork_that_fails_or_dies_is_resumed() {
    let place = recorded();
    let n = event(&place, "r", "appended", "a");
    place.write("broken.yaml", "- {when: {node: c}, reply: {error: {status: 400, message: no}}}");
    let edit = format!("{n}=FIRST");
    let fork = ["fork", "r", "--set-message", &edit, "--script", "broken.yaml", "--run-id", "f", "--json"];
    place.run(&fork).exits(1);
    let done = place.run(&["resume", "f", "--script", "s.yaml", "--json"]).exits(0);
    assert_eq!((&done.json()["results"]["a"]["output"], calls_made(&done)), (&json!("FIRST"), 2));
    place.run(&["replay", "f"]).exits(0);
    place.write("slow.yaml", "- {when: {node: c}, reply: {text: late, delay_ms: 30000}}");
    let fork = ["fork", "r", "--set-message", &edit, "--script", "slow.yaml", "--run-id", "g", "--json"];
    let mut child = place.start(&fork);
    let began = std::time::Instant::now();
    while place.run(&["show", "g", "--json"]).code != 0 {
        assert!(began.elapsed().as_secs() < 20, "the fork never began");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let done = place.run(&["resume", "g", "--script", "s.yaml", "--json"]).exits(0);
    assert_eq!((&done.json()["results"]["a"]["output"], calls_made(&done)), (&json!("FIRST"), 1));
    place.run(&["replay", "g"]).exits(0);
}
