//! What is shown of step tasks: data layers, the ladder of recovery, drawings (D-04, D-16 … D-22).

use crate::support::Place;
use serde_json::{Value, json};

/// A folder with tools for a step task: `check`, `register`, `upload`, which fails, and `upload_slowly`.
fn place() -> Place {
    let place = Place::new();
    let tool = |name: &str, script: &str| {
        format!(
            "[tools.command.{name}]\ndescription = \"{name}\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n\
             input_schema = {{ type = \"object\" }}\neffects = \"read\"\n"
        )
    };
    let toml = [
        tool("check", "echo '{\"row_count\": 1000}'"),
        tool("register", "echo '{\"datasource_id\": \"ds_001\"}'"),
        tool("upload", "echo away >&2; exit 3"),
        tool("upload_slowly", "echo '{\"upload_status\": \"success\"}'"),
    ];
    place.write("selvedge.toml", &toml.concat());
    place
}

/// The third step fails; `more` are fields of it.
fn task(place: &Place, more: Value) {
    let mut third = json!({"step_id": "s3", "step_name": "Upload", "tool_id": "upload",
                           "parameters": {"id": "{{s2.outputs.datasource_id}}", "of": "{{project}}"}});
    third.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let steps = json!([
        {"step_id": "s1", "step_name": "Check", "tool_id": "check", "parameters": {"path": "/data/load.csv"}},
        {"step_id": "s2", "step_name": "Register", "tool_id": "register", "parameters": {}},
        third,
        {"step_id": "s4", "step_name": "Report", "tool_id": "check", "parameters": {"id": "{{s3.outputs.id}}"}},
        {"step_id": "s5", "step_name": "Check again", "tool_id": "check", "parameters": {}},
    ]);
    let task = json!({"task": "Load", "metadata": {"project": "p1"}, "steps": steps});
    place.write("task.json", &task.to_string());
}

/// A model that tries other parameters, and then replans.
fn replans(place: &Place) {
    let steps =
        json!([{"step_id": "s3b", "step_name": "Slowly", "tool_id": "upload_slowly", "parameters": {}}]);
    let first = json!({"action": "retry_with_params", "parameters": {"id": "{{s2.datasource_id}}"}, "reason": "less"});
    let second =
        json!({"action": "replan", "strategy": "from_step", "steps": steps, "reason": "another way"});
    let usage = "usage: {input_tokens: 300, output_tokens: 40}";
    let rule = |nth: u32, reply: Value| {
        format!("- when: {{role: reflection, nth: {nth}}}\n  reply: {{json: {reply}, {usage}}}\n")
    };
    place.write("replan.yaml", &(rule(1, first) + &rule(2, second)));
}

fn whats(rungs: &Value) -> Vec<String> {
    let rungs = rungs.as_array().unwrap();
    rungs.iter().map(|rung| format!("{} {}", rung["node"], rung["what"]).replace('"', "")).collect()
}

/// D-22: the ladder is shown as it was climbed, also of a step that a replan has replaced, with what it cost.
#[test]
fn the_ladder_of_a_replaced_step_is_shown() {
    let place = place();
    task(&place, json!({}));
    replans(&place);
    let run = ["run", "task.json", "--script", "replan.yaml", "--run-id", "r"];
    let done = place.run(&run).exits(0);
    for part in [
        "fault s3 Upload: upload: execution_failure",
        "mend  s3 Upload: try upload with other parameters, by the model: less (1 model call, 300+40 tokens)",
        "replan (from_step), by the model: another way",
        "plan  s3: 1 step from here on: s3b",
        "recovery s3: upload failed (execution_failure",
        "→ replan (from_step) → 1 step planned; 2 model calls, 600+80 tokens",
    ] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    let explained = place.run(&["explain", "r", "--json"]).exits(0).json();
    let expected = ["s3 fault", "s3 action", "s3 fault", "s3 action", "s3 planned"];
    assert_eq!(whats(&explained["recovery"]), expected);
    let rungs = explained["recovery"].as_array().unwrap();
    assert_eq!(
        (&rungs[0]["tool"], &rungs[0]["fault"]["kind"]),
        (&json!("upload"), &json!("execution_failure"))
    );
    assert_eq!(rungs[1]["parameters"], json!({"id": "{{s2.datasource_id}}"}));
    assert_eq!((&rungs[1]["by"], &rungs[1]["reason"]), (&json!("model"), &json!("less")));
    let usage = json!({"model_calls": 1, "input_tokens": 300, "output_tokens": 40, "cost": 0.0});
    assert_eq!(rungs[1]["usage"], usage);
    assert_eq!((&rungs[3]["strategy"], &rungs[4]["steps"]), (&json!("from_step"), &json!(["s3b"])));
    let nodes: Vec<&Value> =
        explained["nodes"].as_array().unwrap().iter().map(|node| &node["node"]).collect();
    assert_eq!(nodes, ["s1", "s2", "s3b"]);
    assert!(explained["nodes"].as_array().unwrap().iter().all(|node| node.get("recovery").is_none()));
    let page = place.run(&["explain", "r"]).exits(0).stdout;
    assert!(page.contains("RECOVERY") && page.contains("try upload with other parameters"), "{page}");
    assert!(
        page.contains("s1       Check ") && !page.contains("messages"),
        "steps have names, and see no messages: {page}"
    );
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    let events = place.run(&["show", "r", "--events"]).exits(0).stdout;
    assert!(events.contains("spliced") && events.contains("by the model: less"), "{events}");
    place.run(&["replay", "r"]).exits(0);
}

/// D-20, D-22: a replan without steps leaves the rest out, and every page says so in plain words.
#[test]
fn a_replan_without_steps_is_told() {
    let place = place();
    task(&place, json!({}));
    place.write(
        "replan.yaml",
        "- reply: {json: {action: replan, strategy: from_step, steps: [], reason: enough}}\n",
    );
    let run = ["run", "task.json", "--script", "replan.yaml", "--run-id", "r"];
    let done = place.run(&run).exits(0);
    let told = "plan  s3: no steps: this one and all after it are left out";
    assert!(done.stderr.contains(told), "{}", done.stderr);
    let digest = "→ replan (from_step) → no steps: the rest is left out; 1 model call";
    assert!(done.stderr.contains(digest), "{}", done.stderr);
    let explained = place.run(&["explain", "r"]).exits(0).stdout;
    assert!(explained.contains("no steps: this one and all after it are left out"), "{explained}");
    let shown = place.run(&["show", "r"]).exits(0).stdout;
    assert!(shown.contains("has no steps") && shown.contains("[steps-left-out]"), "{shown}");
    let events = place.run(&["show", "r", "--events"]).exits(0).stdout;
    assert!(events.contains("no steps take the place of this one and all after it"), "{events}");
}

/// C-04, C-07: a script without a rule for a request is no endpoint to be looked at; a step's request names no thread.
#[test]
fn a_script_without_a_rule_is_told_as_such() {
    let place = Place::new();
    place.write("task.json", r#"{"task": "t"}"#);
    place.write("none.yaml", "- {when: {node: other}, reply: {text: x}}\n");
    place.run(&["run", "task.json", "--script", "none.yaml", "--run-id", "r"]).exits(1);
    let shown = place.run(&["show", "r"]).exits(0).stdout;
    assert!(shown.contains("write a rule for this request") && !shown.contains("doctor"), "{shown}");
    assert!(!shown.contains("thread ,"), "{shown}");
}

/// D-16, D-22: what gave up, what was skipped for it, and what still ran.
#[test]
fn what_was_skipped_is_shown() {
    let place = place();
    task(&place, json!({}));
    let run = ["run", "task.json", "--run-id", "r"];
    let done = place.run(&run).exits(1);
    assert!(done.stderr.contains("skip  s4 Report: may depend on s3"), "{}", done.stderr);
    assert!(done.stderr.contains("skipped, because they may depend on what failed: s4"), "{}", done.stderr);
    let explained = place.run(&["explain", "r", "--json"]).exits(0).json();
    assert!(whats(&explained["recovery"]).contains(&"s4 skipped".to_owned()), "{explained}");
    assert_eq!(explained["nodes"][3]["recovery"][0]["because"], "s3");
    assert_eq!(explained["nodes"][3]["started"], Value::Null);
    assert!(explained["nodes"][4]["ended"].is_string());
    let page = place.run(&["explain", "r"]).exits(0).stdout;
    assert!(page.contains("3 nodes ran, 1 failed, 1 skipped"), "{page}");
    let one = place.run(&["explain", "r", "--node", "s4"]).exits(0).stdout;
    assert!(one.contains("not at all: may depend on s3") && !one.contains("messages"), "{one}");
    assert!(!one.contains("256204"), "how long before nobody knows: {one}");
    let quiet = place.run(&["run", "task.json", "--quiet"]).exits(1);
    assert!(!quiet.stderr.contains("skip"), "{}", quiet.stderr);
}

/// D-18: an alternative answers; D-04: `-v` says what placeholders became and what each sync brought.
#[test]
fn what_was_resolved_and_synced_is_said_with_v() {
    let place = place();
    task(
        &place,
        json!({"alternatives": [{"tool_id": "upload_slowly", "parameters": {"for": "{{project}}"}}]}),
    );
    let done = place.run(&["run", "task.json", "--run-id", "r", "-v"]);
    for part in [
        r#"param s3: parameters {"id":"{{s2.outputs.datasource_id}}","of":"{{project}}"} → {"id":"ds_001","of":"p1"}"#,
        r#"sync  s2: 1 field: datasource_id = "ds_001""#,
        "mend  s3 Upload: try upload_slowly instead, the next of its `alternatives`: no model decides",
        r#"param s3: parameters {"for":"{{project}}"} → {"for":"p1"}"#,
        r#"sync  s3: 1 field: upload_status = "success""#,
    ] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    assert!(!done.stderr.contains("param s1"), "nothing was resolved: {}", done.stderr);
    let metadata = place.run(&["show", "r", "--metadata", "--json"]).exits(0).json();
    assert_eq!(metadata["s3_upload_status"], json!({"value": "success", "origin": "s3.upload_status"}));
    assert_eq!(metadata["project"]["origin"], "initial");
    // For people, each value once, step by step; all names are in the object.
    assert!(metadata.as_object().unwrap().contains_key("s3_upload_status"), "{metadata}");
    let page = place.run(&["show", "r", "--metadata"]).exits(0).stdout;
    let names: Vec<&str> = page.lines().take(6).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(
        names,
        ["NAME", "project", "s1_row_count", "datasource_id", "upload_status", "row_count"],
        "{page}"
    );
    assert!(page.contains("datasource_id is also s2_datasource_id"), "{page}");
    // A plain run says less.
    let done = place.run(&["run", "task.json"]);
    assert!(!done.stderr.contains("param ") && !done.stderr.contains("sync "), "{}", done.stderr);
}

/// C-02, D-21: what Selvedge does for itself, to compile steps, is no tool call of the run.
#[test]
fn a_planned_task_counts_the_calls_of_its_tools_alone() {
    let place = place();
    place.write("open.json", "{\"task\": \"Do it\"}");
    let wrong =
        json!({"steps": [{"step_id": "s1", "step_name": "One", "tool_id": "nothing", "parameters": {}}]});
    let right =
        json!({"steps": [{"step_id": "s1", "step_name": "One", "tool_id": "check", "parameters": {}}]});
    place.write(
        "s.yaml",
        &format!("- when: {{nth: 1}}\n  reply: {{json: {wrong}}}\n- reply: {{json: {right}}}\n"),
    );
    let done = place.run(&["run", "open.json", "--script", "s.yaml", "--run-id", "r"]).exits(0);
    let calls: Vec<&str> = done.stderr.lines().filter(|line| line.contains("tool call")).collect();
    assert_eq!(calls.len(), 1, "{}", done.stderr);
    assert!(calls[0].contains("done  s1 One") && calls[0].ends_with("1 tool call"), "{}", done.stderr);
    let usage = place.run(&["show", "r", "--json"]).exits(0).json()["usage"].clone();
    assert_eq!((&usage["tool_calls"], &usage["model_calls"]), (&json!(1), &json!(2)));
}

/// C-13: who reads whom, and what stands in for a step that fails.
#[test]
fn recovery_is_drawn() {
    let place = place();
    task(&place, json!({"alternatives": ["upload_slowly"], "depends_on": ["s1"]}));
    let drawn = place.run(&["graph", "task.json"]).exits(0).stdout;
    for part in [
        "n1 -->|\"result\"| n2",
        "n0 -->|\"depends on\"| n2",
        "n2 -.->|\"fails\"| n2a0",
        "n2a0{{\"tool upload_slowly\"}}",
    ] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
    replans(&place);
    let mut command = place.command(&["graph", "task.json", "--format", "dot"]);
    let drawn = crate::support::finish(command.env("SELVEDGE_SCRIPT", "replan.yaml").spawn().unwrap());
    let drawn = drawn.exits(0).stdout;
    for part in ["n2 -> recovery [label=\"fails\", style=dotted", "or upload_slowly", "shape=hexagon"] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
    place.write("open.json", "{\"task\": \"Do it\"}");
    let drawn = place.run(&["graph", "open.json"]).exits(0).stdout;
    assert!(drawn.contains("n0 -->|\"become\"| planned"), "{drawn}");
}

/// Whoever says how many steps have come how far says the same.
#[test]
fn counts_are_the_same_everywhere() {
    let place = place();
    task(&place, json!({}));
    let told = place.run(&["run", "task.json", "--run-id", "r"]).exits(1);
    assert!(!told.stderr.contains("5 nodes ran"), "{told:?}");
    let counts = "3 nodes ran, 1 failed, 1 skipped";
    let shown = place.run(&["show", "r"]).exits(0).stdout;
    assert!(shown.contains(&format!("{counts}, steps dialect")), "{shown}");
    let explained = place.run(&["explain", "r"]).exits(0).stdout;
    assert!(explained.contains(&format!("{counts}, ")), "{explained}");
}
