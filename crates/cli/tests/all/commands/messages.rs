//! C-13, E-43: what people say to agents that answers no question.

use super::driven::slow_tool;
use crate::support::{Done, Place, calls, finish, wait_for};
use serde_json::{Value, json};
use std::process::Child;

/// The run `r` of an agent, driven: its first call, which does this once, is under way.
fn working(place: &Place, does: &str) -> Child {
    slow_tool(place, does);
    place.write("agent.json", &json!({"query": "Which month is it about?", "tools": ["slow"]}).to_string());
    let says = |node: &str, json: Value| format!("- {{when: {{node: {node}}}, reply: {{json: {json}}}}}\n");
    let script = [
        says("manager", json!({"required_tool_names": [], "tool_usage_guidance": "", "tool_requests": []})),
        "- {when: {node: executor, contains: it is April}, reply: {text: It is about April.}}\n".to_owned(),
        "- {when: {node: executor, nth: 1}, reply: {tool_calls: [{name: slow, arguments: {}}]}}\n".to_owned(),
        "- {when: {node: executor}, reply: {text: It is about March.}}\n".to_owned(),
        says("judge", json!({"status": "FINISH", "reason": "a month"})),
        "- {when: {node: integrate, contains: about April}, reply: {json: {final_answer: April, reasoning_summary: \"\"}}}\n".to_owned(),
        says("integrate", json!({"final_answer": "March", "reasoning_summary": ""})),
    ];
    place.write("s.yaml", &script.concat());
    let run = place.start(&["run", "agent.json", "--script", "s.yaml", "--run-id", "r", "--json"]);
    wait_for(&place.work().join("began"));
    run
}

fn message(place: &Place, args: &[&str]) -> Done {
    place.run(&[&["message", "r"], args, &["--json"]].concat())
}

fn kinds(place: &Place, kind: &str) -> usize {
    place.run(&["export", "r"]).exits(0).stdout.matches(&format!(r#""kind":"{kind}""#)).count()
}

#[test]
fn e43_a_message_reaches_the_agent_that_another_process_drives() {
    let place = Place::new();
    let run = working(&place, "echo . >> began; while [ ! -e go ]; do sleep 0.1; done");
    for (args, code) in
        [(&["", "--by", "ada"][..], "empty-message"), (&["x", "--to", "nobody"], "no-such-node")]
    {
        assert_eq!(message(&place, args).exits(2).error()["code"], code);
    }
    let said = message(&place, &["No, it is April.", "--by", "ada"]).exits(0).json();
    assert_eq!(said["status"], "running", "it does not wait for the run: {said}");
    place.write("go", "");
    let run = finish(run).exits(0);
    let done = run.json();
    assert_eq!(done["output"], "April", "{done}");
    let order = ["said  ada: No, it is April.", "hears rounds#0/executor"].map(|line| run.stderr.find(line));
    assert!(order[0].is_some() && order[0] < order[1], "{}", run.stderr);
    assert_eq!(kinds(&place, "person_message"), 1);
    let events = place.run(&["show", "r", "--events"]).exits(0).stdout;
    assert!(events.contains("ada: No, it is April."), "{events}");
    place.run(&["replay", "r"]).exits(0);
    let late = message(&place, &["and May?"]).exits(2).error();
    assert_eq!(late["code"], "run-ended", "{late}");
    assert_eq!(kinds(&place, "person_message"), 1);
}

#[test]
fn e43_a_message_to_a_run_whose_process_has_died_is_heard_as_it_goes_on() {
    let place = Place::new();
    let mut run = working(&place, "[ -e began ] && exit; echo . >> began; sleep 60");
    run.kill().unwrap();
    run.wait().unwrap();
    let recorded = message(&place, &["No, it is April.", "--no-continue"]).exits(0);
    assert_eq!(recorded.json()["status"], "running");
    let done = place.run(&["resume", "r", "--json"]).exits(0).json();
    assert_eq!((&done["output"], &done["status"]), (&json!("April"), &json!("completed")));
    place.run(&["replay", "r"]).exits(0);
}

#[test]
fn e43_a_document_that_asks_people_itself_takes_no_message() {
    let place = Place::new();
    let mut first = calls("a", "shell", json!({"command": "true"}));
    first["require_approval"] = json!(true);
    place.plan("plan.json", json!([first]));
    place.run(&["run", "plan.json", "--run-id", "r", "--json"]).exits(3);
    let error = message(&place, &["be quick"]).exits(2).error();
    assert_eq!(error["code"], "nobody-takes-messages", "{error}");
    assert_eq!(kinds(&place, "person_message"), 0);
}

#[test]
fn e43_a_message_that_nobody_has_taken_is_told() {
    let place = Place::new();
    let run = working(&place, "echo . >> began; while [ ! -e go ]; do sleep 0.1; done");
    message(&place, &["No, it is April."]).exits(0);
    place.run(&["cancel", "r", "--json"]).exits(0);
    finish(run).exits(1);
    let shown = place.run(&["show", "r", "--json"]).exits(0).json();
    let codes: Vec<&Value> = shown["warnings"].as_array().unwrap().iter().map(|one| &one["code"]).collect();
    assert_eq!(codes, ["message-not-taken"], "{shown}");
}
