//! `show` in all its views (C-02, C-15, D-04, E-03).

use super::world::{completed, failed, place, waiting};
use crate::support::{Place, finish, says};
use serde_json::{Value, json};

fn shown(place: &Place, args: &[&str]) -> Value {
    place.run(&[&["show"], args, &["--json"]].concat()).exits(0).json()
}

fn page(place: &Place, args: &[&str]) -> String {
    place.run(&[&["show"], args].concat()).exits(0).stdout
}

#[test]
fn the_object_is_the_one_that_run_printed() {
    let place = place();
    for ran in [completed(&place, "one"), failed(&place, "two"), waiting(&place, "three")] {
        let id = ran["run_id"].as_str().unwrap();
        assert_eq!(shown(&place, &[id]), ran);
        // The beginning of an id is enough.
        assert_eq!(shown(&place, &[&id[..2]]), ran);
    }
}

#[test]
fn events_have_number_time_kind_and_node() {
    let place = place();
    completed(&place, "one");
    let all = shown(&place, &["one", "--events"]);
    let all = all["events"].as_array().unwrap();
    for (event, n) in all.iter().zip(1..) {
        let keys: Vec<&str> = event.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!((&keys[..3], &event["n"]), (&["n", "at", "kind"][..], &json!(n)));
        if keys.contains(&"effect") {
            assert_eq!(keys[3..5], ["node", "effect"], "{event}");
            assert!(["a", "b", "c"].contains(&event["node"].as_str().unwrap()), "{event}");
        }
    }
    assert_eq!(all[0]["kind"], "started");
    assert_eq!(all.last().unwrap()["kind"], "ended");
    let lines = page(&place, &["one", "--events"]);
    assert_eq!(lines.lines().count(), all.len() + 1, "{lines}");
    for n in [1, 5, all.len()] {
        let some = shown(&place, &["one", "--events", "--at", &n.to_string()]);
        assert_eq!(some["events"].as_array().unwrap()[..], all[..n]);
    }
}

#[test]
fn every_prefix_is_a_moment_of_the_run() {
    let place = place();
    let whole = completed(&place, "one");
    let events = shown(&place, &["one", "--events"])["events"].as_array().unwrap().len();
    let mut said = 0;
    for n in 1..=events {
        let moment = shown(&place, &["one", "--at", &n.to_string()]);
        let status = if n == events { "completed" } else { "running" };
        assert_eq!(moment["status"], status);
        let messages = moment["threads"]["main"].as_array().map_or(0, Vec::len);
        assert!(messages >= said, "messages are appended, never lost");
        said = messages;
        if n == events {
            assert_eq!(moment, whole);
        }
    }
    assert!(page(&place, &["one", "--at", "4"]).contains("event 4 of"), "a page says that it shows the past");
    let error = place.run(&["show", "one", "--at", "999", "--json"]).exits(2).error();
    assert!(error["help"].as_str().unwrap().contains(&events.to_string()), "{error}");
    place.run(&["show", "one", "--at", "0"]).exits(2);
}

#[test]
fn metadata_is_merged_and_names_its_origin() {
    let place = place();
    completed(&place, "one");
    let view = shown(&place, &["one", "--metadata"]);
    assert_eq!(view["topic"], json!({"value": 7, "origin": "initial"}));
    assert_eq!(view["sum"]["value"], json!(5));
    assert_eq!((&view["sum"]["origin"], &view["a_sum"]["origin"]), (&json!("a.sum"), &json!("a.sum")));
    // D-02: what a node brought goes over what the run was started with.
    assert_eq!(view["by"], json!({"value": "add", "origin": "a.by"}));
    let before = shown(&place, &["one", "--metadata", "--at", "1"]);
    assert_eq!(before["by"], json!({"value": "hand", "origin": "initial"}));
    let table = page(&place, &["one", "--metadata"]);
    assert!(table.contains("initial") && table.contains("a.by, over initial"), "{table}");
    let at = table.find("ORIGIN").unwrap();
    let lines_up = |line: &str| line.as_bytes()[at - 1] == b' ' && line.as_bytes()[at] != b' ';
    assert!(table.lines().take_while(|line| !line.is_empty()).all(lines_up), "{table}");
}

#[test]
fn a_failed_run_says_why_and_what_to_do() {
    let place = place();
    failed(&place, "two");
    let page = page(&place, &["two"]);
    for part in
        ["fault[execution_failure] at node b", "selvedge resume two", "thread main (5 messages)", "\"sum\":5"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
}

#[test]
fn a_waiting_run_shows_the_command_that_answers_it() {
    let place = place();
    waiting(&place, "three");
    let page = page(&place, &["three"]);
    let command = page.lines().find_map(|line| line.trim().strip_prefix("selvedge ")).unwrap();
    let words: Vec<&str> =
        command.split(' ').map(|word| if word == "'yes|no'" { "yes" } else { word }).collect();
    place.run(&words).exits(0);
    assert_eq!(shown(&place, &["three"])["status"], "completed");
}

#[test]
fn a_page_is_bounded_and_a_thread_is_shown_in_full() {
    let place = place();
    let words: Vec<String> = (0..2000).map(|n| format!("word{n}")).collect();
    let nodes: Vec<Value> = (0..20).map(|n| says(&format!("n{n}"), &format!("prompt {n}"))).collect();
    place.plan("talk.json", json!(nodes));
    place.write("talk.yaml", &format!("- reply: {{text: {}}}\n", json!(words.join(" "))));
    place.run(&["run", "talk.json", "--script", "talk.yaml", "--run-id", "r", "-q"]).exits(0);
    let short = page(&place, &["r"]);
    assert!(short.lines().count() < 150 && !short.contains("word1999"), "{short}");
    assert!(short.contains("33 more: selvedge show r --thread main"), "{short}");
    let full = page(&place, &["r", "--thread", "main"]);
    assert_eq!(full.matches("word1999").count(), 20);
    assert!((0..20).all(|n| full.contains(&format!("prompt {n}"))));
    let json = shown(&place, &["r", "--thread", "main"]);
    assert_eq!(json["threads"]["main"].as_array().unwrap().len(), 41);
    let error = place.run(&["show", "r", "--thread", "none", "--json"]).exits(2).error();
    assert!(error["help"].as_str().unwrap().contains("main"), "{error}");
}

#[test]
fn what_a_model_says_can_not_steer_the_terminal() {
    let place = place();
    place.plan("p.json", json!([says("a", "x")]));
    place.write("s.yaml", "- reply: {text: \"\\e[2J\\x9b31m\\u202egone\\r\\n\\tsecond\"}\n");
    place.run(&["run", "p.json", "--script", "s.yaml", "--run-id", "r", "-q"]).exits(0);
    for args in [&["r"][..], &["r", "--thread", "main"], &["r", "--events"]] {
        let page = page(&place, args);
        let steering = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(page.contains("second") && !page.contains(steering), "{page:?}");
    }
}

#[test]
fn a_key_that_got_into_a_journal_is_not_shown() {
    let place = place();
    place.plan("p.json", json!([says("a", "x")]));
    place.write("s.yaml", "- reply: {text: the key is sk-secret-4711}\n");
    place.run(&["run", "p.json", "--script", "s.yaml", "--run-id", "r", "-q"]).exits(0);
    for args in [&["show", "r"][..], &["show", "r", "--json"], &["show", "r", "--events"], &["export", "r"]] {
        let mut command = place.command(args);
        let done = crate::support::finish(command.env("OPENAI_API_KEY", "sk-secret-4711").spawn().unwrap());
        assert!(done.stdout.contains("[redacted]") && !done.stdout.contains("4711"), "{done:#?}");
    }
}

#[test]
fn wrong_calls_are_told_apart() {
    let place = place();
    assert_eq!(place.run(&["show", "x", "--json"]).exits(2).error()["code"], "unknown-run");
    completed(&place, "one");
    assert_eq!(place.run(&["show", "x", "--json"]).exits(2).error()["code"], "unknown-run");
    place.run(&["show", "one", "--events", "--metadata"]).exits(2);
    place.run(&["replay", "x"]).exits(2);
    place.run(&["export", "x"]).exits(2);
}

#[test]
fn a_thread_in_full_keeps_its_lines() {
    let place = place();
    let line = "a line of code that must not be broken by anything; ".repeat(20);
    place.plan("p.json", json!([says("a", "x")]));
    place.write("s.yaml", &format!("- reply: {{text: {}}}\n", json!(format!("{line}end\nnext"))));
    place.run(&["run", "p.json", "--script", "s.yaml", "--run-id", "r", "-q"]).exits(0);
    let full = page(&place, &["r", "--thread", "main"]);
    assert!(full.contains(&format!("{line}end\n")), "{full}");
    assert!(page(&place, &["r"]).lines().all(|line| line.chars().count() <= 102));
}

/// C-15: who follows a run sees what another process does, and ends with it, as it ends.
#[test]
fn a_run_is_followed_until_it_ends() {
    let place = place();
    place.plan("two.json", json!([says("a", "Quick"), says("b", "Slow")]));
    place.write(
        "two.yaml",
        "- when: {node: b}\n  reply: {text: slow, delay_ms: 1500}\n- reply: {text: quick}\n",
    );
    let child = place.start(&["run", "two.json", "--script", "two.yaml", "--run-id", "r", "-q"]);
    super::world::first_answer(&place, "r");
    let begun = std::time::Instant::now();
    let followed = place.run(&["show", "r", "--follow"]).exits(0);
    assert!(begun.elapsed() > std::time::Duration::from_millis(300), "it waits for what is to come");
    assert_eq!(followed.stdout, "slow\n");
    for part in ["done  a", "start b", "done  b"] {
        assert!(followed.stderr.contains(part), "{part}: {}", followed.stderr);
    }
    crate::support::finish(child);
    // What has ended is told as it was; the exit code is the run's.
    assert_eq!(place.run(&["show", "r", "--follow", "--json"]).exits(0).json()["status"], "completed");
    super::world::failed(&place, "f");
    assert!(place.run(&["show", "f", "--follow"]).exits(1).stderr.contains("fail  b"));
    super::world::waiting(&place, "w");
    place.run(&["show", "w", "--follow", "-q"]).exits(3);
    super::world::killed(&place, "k");
    assert!(place.run(&["show", "k", "--follow"]).exits(130).stderr.contains("resume k"));
    place.run(&["show", "r", "--follow", "--events"]).exits(2);
}

/// A value that is too long for a line says that it goes on.
#[test]
fn a_value_that_is_cut_says_so() {
    let place = place();
    place.plan("plan.json", json!([says("a", "{{long}} {{short}}")]));
    place.write("s.yaml", &format!("- reply: {{text: \"{}\"}}\n", "y".repeat(600)));
    let long = format!("long={}", "x".repeat(600));
    let run = ["run", "plan.json", "--script", "s.yaml", "--input", &long, "--input", "short=z", "-q"];
    place.run(&run).exits(0);
    let metadata = page(&place, &["--metadata"]);
    let row = |name: &str| metadata.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(row("long ").ends_with("xx…") && row("short ").ends_with("\"z\""), "{metadata}");
    let results = page(&place, &[]);
    assert!(results.lines().any(|line| line.starts_with("a ") && line.ends_with("yy…")), "{results}");
}

/// C-10: a page cuts long texts also where lines stay whole, and says how to see them; JSON has them whole.
#[test]
fn c10_a_page_cuts_a_long_message_and_says_how_to_see_it() {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Go")]));
    let long = "ab".repeat(2_500_000);
    place.write("s.yaml", &format!("- reply: {{text: {long}}}\n"));
    place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r", "--json"]).exits(0);
    let piped = |args: &[&str]| {
        let mut command = place.command(args);
        command.env_remove("COLUMNS");
        finish(command.spawn().unwrap()).exits(0).stdout
    };
    for page in [piped(&["show", "r"]), place.run(&["show", "r"]).exits(0).stdout] {
        assert!(page.len() < 20_000, "{} bytes", page.len());
        assert!(page.contains("selvedge show r --json"), "{page}");
    }
    assert!(piped(&["explain", "r"]).len() < 20_000);
    assert!(piped(&["show", "r", "--thread", "main"]).len() > long.len(), "one thread in full");
    let whole = place.run(&["show", "r", "--json"]).exits(0).json();
    assert_eq!(whole["output"], long.as_str());
    place.write("s.yaml", "- reply: {text: short}\n");
    place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "s", "--json"]).exits(0);
    assert!(!piped(&["show", "s"]).contains("texts are cut"), "nothing is cut");
}
