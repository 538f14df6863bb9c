//! Plans.

use super::world::{Example, contents, findings};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

#[test]
fn no_example_has_findings() {
    for name in ["two-sources", "review", "inventory"] {
        let done = Example::new(name).with_tools("check", "plan.json", &[]);
        assert_eq!(done.code, Some(0), "{done:#?}");
        assert_eq!(findings(&done), [Value::Null; 0], "{name}");
    }
}

#[test]
fn two_sources_meet_in_one_thread() {
    let example = Example::new("two-sources");
    let done = example.run("plan.json", &["--script", "script.yaml"]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    assert!(done.stderr.contains("scripted"), "a stand-in says so: {}", done.stderr);
    let result = done.json();
    assert_eq!((&result["status"], &result["scripted"]), (&json!("completed"), &json!(true)));
    let load = json!({"load_mean_mw": 397.9, "load_peak_mw": 513.6, "load_peak_hour": "2026-01-15T18:00", "load_hours_missing": 9});
    assert_eq!(result["results"]["load"]["output"], load);
    assert_eq!(result["results"]["weather"]["output"]["coldest_c"], json!(-8.2));
    let summary = contents(&result, "summary");
    assert!(summary[1].starts_with("Load: {") && summary[2].starts_with("Weather: {"), "{summary:#?}");
    let last = contents(&result, "main").pop().unwrap();
    assert_eq!(last, format!("Summary: {}", result["output"].as_str().unwrap()));
    assert_eq!(result["usage"]["tool_calls"], 2);
    assert_eq!(result["warnings"], json!([]));
    let replayed = example.call(&["replay", result["run_id"].as_str().unwrap()]);
    assert_eq!(replayed.code, Some(0), "{replayed:#?}");
}

#[test]
fn the_fetches_of_two_sources_overlap() {
    let example = Example::new("two-sources");
    // What overlaps is a matter of the journal's order, not of time: a loaded machine changes nothing.
    let orders = [(&[][..], ["load", "weather"]), (&["--sequential"][..], ["load", "load"])];
    for (index, (more, expected)) in orders.into_iter().enumerate() {
        let run = format!("run{index}");
        let done = example.run("plan.json", &[&["--script", "script.yaml", "--run-id", &run], more].concat());
        assert_eq!(done.code, Some(0), "{done:#?}");
        let events = example.call(&["show", &run, "--events", "--json"]).json();
        let calls = events["events"].as_array().unwrap().iter().filter(|event| {
            ["requested", "completed"].iter().any(|kind| event["kind"] == *kind)
                && ["load", "weather"].iter().any(|node| event["node"] == *node)
        });
        let first: Vec<_> = calls.take(2).map(|event| event["node"].as_str().unwrap()).collect();
        assert_eq!(first, expected, "{more:?}: both are asked before one has answered, or not");
    }
}

#[test]
fn the_readme_lists_the_commands_there_are() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `selvedge "));
    let listed: Vec<_> = rows.filter_map(|row| row.split([' ', '`']).next()).collect();
    let help = Example::new("inventory").call(&["--help"]).stdout;
    let commands = help.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    let there_are: Vec<_> = commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(listed, there_are, "the table of commands in README.md");
}

#[test]
fn order_of_execution_does_not_show() {
    let example = Example::new("two-sources");
    let parts = |more: &[&str]| {
        let done = example.run("plan.json", &[&["--script", "script.yaml"], more].concat());
        let mut result = done.json();
        ["threads", "data_out", "results", "metadata", "output"].map(|part| result[part].take())
    };
    assert_eq!(parts(&[]), parts(&["--sequential"]));
}

#[test]
fn two_sources_with_other_data_is_not_answered_with_old_numbers() {
    let example = Example::new("two-sources");
    let other = tempfile::tempdir().unwrap();
    std::fs::copy(example.folder.join("data/weather.csv"), other.path().join("weather.csv")).unwrap();
    std::fs::write(other.path().join("load.csv"), "hour,load_mw\n2026-01-12T00:00,1.5\n").unwrap();
    let input = format!("folder={}", other.path().display());
    let allowed = other.path().display().to_string();
    let done =
        example.run("plan.json", &["--script", "script.yaml", "--input", &input, "--allow-read", &allowed]);
    assert_eq!(done.code, Some(1), "{done:#?}");
    let fault = &done.json()["fault"];
    assert_eq!(fault["node"], "report");
    assert!(fault["message"].as_str().unwrap().contains("1.5 MW"), "{fault}");
}

#[test]
fn two_sources_goes_on_after_a_kill() {
    let example = Example::new("two-sources");
    // The second part of the reply is far away: the kill comes while the model answers.
    let script = std::fs::read_to_string(example.folder.join("script.yaml")).unwrap();
    let slow = example.state.path().join("slow.yaml");
    std::fs::write(&slow, script.replace("delay_ms: 300", "delay_ms: 4000")).unwrap();
    let mut child = example
        .command(&["run", "plan.json", "--tools", "tools", "--json", "--run-id", "killed", "-v"])
        .args(["--script", slow.to_str().unwrap()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = String::new();
    let mut stderr = child.stderr.take().unwrap();
    let mut piece = [0; 4096];
    while !seen.contains("report: model") {
        let count = stderr.read(&mut piece).unwrap();
        assert!(count > 0, "ended before the model was called: {seen}");
        seen.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let done = example.call(&["resume", "killed", "--json", "-v"]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    let result = done.json();
    assert_eq!(result["status"], "completed");
    assert_eq!(result["usage"]["tool_calls"], 2, "the tools are not called again");
    assert!(!done.stderr.contains("load_summary {"), "{}", done.stderr);
    let main = contents(&result, "main");
    assert_eq!(main.len(), 2, "the summary is sent once: {main:#?}");
    let undisturbed = example.run("plan.json", &["--script", "script.yaml"]).json();
    assert_eq!(result["threads"], undisturbed["threads"]);
}

#[test]
fn the_review_reads_and_measures_within_its_limits() {
    let done = Example::new("review").run("plan.json", &["--script", "script.yaml"]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    let result = done.json();
    let verdict = &result["results"]["review"]["output"];
    assert_eq!(verdict["verdict"], "revise");
    assert_eq!(verdict["findings"].as_array().unwrap().len(), 3);
    assert_eq!(result["metadata"]["runtime"]["verdict"], "revise");
    assert_eq!(result["usage"]["tool_calls"], 5);
    assert_eq!(result["usage"]["model_calls"], 5);
    let review = &result["threads"]["review"];
    let names: Vec<_> = review.as_array().unwrap().iter().filter_map(|m| m["name"].as_str()).collect();
    assert_eq!(names, ["list_files", "read_file", "read_file", "read_file", "text_statistics"]);
}

#[test]
fn the_inventory_needs_no_model_and_keeps_types() {
    let example = Example::new("inventory");
    let done = example.run("plan.json", &[]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    let result = done.json();
    assert_eq!((&result["scripted"], &result["usage"]["model_calls"]), (&json!(false), &json!(0)));
    let call = &result["threads"]["order"][1]["tool_calls"][0]["arguments"];
    assert_eq!(call["budget"], json!(700));
    assert_eq!(call["low"], json!(["A-104", "B-020", "C-007", "D-300", "E-011"]));
    assert_eq!(call["articles"][0]["on_hand"], json!(180));
    assert_eq!(result["results"]["order"]["output"]["total"], json!(587.8));
    let letter = result["output"].as_str().unwrap();
    assert!(letter.contains("Not ordered this time: [\"B-020\",\"E-011\"]."), "{letter}");

    let less = example.run("plan.json", &["--input", "budget=300"]).json();
    assert_eq!(less["results"]["order"]["output"]["total"], json!(261.8));
    let wrong = example.run("plan.json", &["--input", "budget=\"much\""]);
    assert_eq!(wrong.code, Some(2), "{wrong:#?}");
}
