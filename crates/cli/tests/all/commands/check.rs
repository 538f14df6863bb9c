//! `check` (C-04).

use crate::support::{Place, calls, says};
use serde_json::json;

#[test]
fn findings_come_with_their_places_and_errors_are_exit_2() {
    let place = Place::new();
    place.plan("good.json", json!([says("a", "Go")]));
    place.write(
        "bad.json",
        "{\"task\": \"t\",\n \"nodes\": [{\"node_type\": \"llm-first\", \"node_name\": \"a\"}]}\n",
    );
    let good = place.run(&["check", "good.json", "--json"]).exits(0);
    assert_eq!(good.json()["diagnostics"], json!([]));
    let bad = place.run(&["check", "good.json", "bad.json", "missing.json", "--json"]).exits(2).json();
    let found = bad["diagnostics"].as_array().unwrap();
    assert_eq!(found.len(), 2, "{bad}");
    let keys: Vec<&str> = found[0].as_object().unwrap().keys().map(String::as_str).collect();
    let shape = ["severity", "code", "rule", "message", "file", "line", "column", "pointer", "help"];
    assert_eq!(keys, shape);
    assert_eq!((&found[0]["file"], &found[0]["line"]), (&json!("bad.json"), &json!(2)));
    assert_eq!((&found[1]["file"], &found[1]["rule"]), (&json!("missing.json"), &json!("C-12")));
    let human = place.run(&["check", "bad.json"]).exits(2);
    assert!(human.stderr.starts_with("bad.json:2:"), "{}", human.stderr);
    assert!(human.stderr.contains("error[P-01]"), "{}", human.stderr);
}

#[test]
fn warnings_alone_are_exit_0() {
    let place = Place::new();
    let mut node = says("a", "Go");
    node["tools_limit"] = json!({"list_files": 1});
    place.plan("warn.json", json!([node]));
    let done = place.run(&["check", "warn.json", "--json"]).exits(0).json();
    assert_eq!(done["diagnostics"][0]["severity"], "warning", "{done}");
}

#[cfg(unix)]
#[test]
fn tools_are_known_by_their_metadata_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let tool = "__TOOL_META__ = {\"name\": \"shout\", \"description\": \"d\", \"dependencies\": [], \"effects\": \"pure\"}\n\
                from pydantic import BaseModel\nclass InputModel(BaseModel):\n    text: str\n\
                def run(input_model):\n    return {\"text\": input_model.text.upper()}\n";
    place.write("tools/shout.py", tool);
    place.plan("plan.json", json!([calls("a", "shout", json!({"text": "x"}))]));
    // Reading metadata takes a Python; where there is none, there is nothing to test.
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    // A uv that tells on whoever calls it.
    let uv = place.write("bin/uv", "#!/bin/sh\ntouch \"$0.called\"\nexit 1\n");
    std::fs::set_permissions(&uv, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(place.work().join("bin")).chain(std::env::split_paths(&path));
    let mut command = place.command(&["check", "plan.json", "--tools", "tools"]);
    command.env("PATH", std::env::join_paths(folders).unwrap());
    crate::support::finish(command.spawn().unwrap()).exits(0);
    assert!(!place.work().join("bin/uv.called").exists());
    place.run(&["check", "plan.json"]).exits(2);
}

#[test]
fn inputs_without_values_are_no_finding() {
    let place = Place::new();
    let plan = json!({"task": "About {{topic}}", "inputs": {"topic": {"type": "string"}}, "nodes": []});
    place.write("plan.json", &plan.to_string());
    place.run(&["check", "plan.json"]).exits(0);
}
