//! Pictures of step tasks: nodes without threads, recoveries, and nodes that others take the place of.

use super::Made;
use selvedge_engine::{Input, ModelReply, Outcome};
use serde_json::{Value, json};
use std::sync::Arc;

/// A node that calls `tool` with `args`; `others` stand in for it when it fails.
fn step(id: &str, name: &str, args: Value, others: &[&str]) -> Value {
    let others: Vec<Value> = others.iter().map(|tool| json!({"tool": tool})).collect();
    json!({"id": id, "name": name, "on_error": "finish", "tool": "get", "recovery": {"alternatives": others}, "body": {"leaves": [
        {"name": "call", "act": {"call": {"tool": "get", "args": args}},
         "next": [{"when": "fault", "to": 1}, {"when": "always", "to": null}]},
        {"name": "turn", "act": "turn", "next": [{"when": "always", "to": 2}]},
        {"name": "decide", "act": "decide",
         "next": [{"when": {"act": "retry_with_tool"}, "to": 3}, {"when": "always", "to": null}]},
        {"name": "try", "act": "try", "next": [{"when": "fault", "to": 1}, {"when": "always", "to": null}]}]}})
}

/// A run of these nodes.
fn run(nodes: Vec<Value>) -> Made {
    let tool = |name: &str| {
        let def = json!({"name": name, "description": "", "input_schema": {}, "effects": "read", "version": "1",
                         "source": "test", "output_params": ["out"]});
        (name.to_owned(), def)
    };
    let tools: serde_json::Map<String, Value> =
        ["get", "fetch", "selvedge__compile"].into_iter().map(tool).collect();
    Made::of(json!({"threads": [], "nodes": nodes, "tools": tools}))
}

impl Made {
    fn gives(&mut self, node: &str, output: Value) {
        self.input(Input::Complete(self.effect(node), Outcome::Output(Arc::new(output)), 0, None, None));
    }
}

/// A lane for each step, under its name; D-16: what may depend on a step that failed is skipped.
#[test]
fn each_step_has_a_lane_and_says_how_it_ended() {
    let mut made = run(vec![
        step("s1", "Load", json!({}), &[]),
        step("s2", "Report", json!({"of": "{{s1.output}}"}), &[]),
        step("s3", "s3", json!({}), &[]),
    ]);
    made.began(&["s1", "s3"]);
    made.later(1_000).fails("s1", false, "away");
    let shown = made.shown(80, 24);
    let rows: Vec<&str> = shown.lines().collect();
    assert!(
        rows[0].contains("0/3 nodes  1 running")
            && rows[0].contains("1 failed")
            && rows[0].contains("1 skipped"),
        "{shown}"
    );
    assert!(rows[1].starts_with("s1 ✗ Load") && rows[1].ends_with("failed"), "{shown}");
    assert!(rows[2].starts_with("s2 – Report") && rows[2].ends_with("skipped"), "{shown}");
    assert!(rows[3].starts_with("s3 ▸") && rows[3].contains("get") && !rows[3].contains("s3 s3"), "{shown}");
}

/// D-22: what failed and what is done about it is said as long as the step goes on.
#[test]
fn a_recovery_is_shown() {
    let mut made = run(vec![step("s1", "Load", json!({}), &["fetch"]), step("s2", "Other", json!({}), &[])]);
    made.began(&["s1", "s2"]);
    made.later(1_000).gives("s2", json!({"out": 1}));
    made.fails("s1", false, "away");
    made.began(&["s1"]);
    let shown = made.shown(120, 24);
    assert!(shown.contains("1 recovery"), "{shown}");
    assert!(shown.contains("fetch  try fetch instead: "), "{shown}");
    assert!(shown.contains("1.0 s  fetch"), "it has run since it began: {shown}");
    made.later(500).gives("s1", json!({"out": 1}));
    let shown = made.shown(120, 24);
    assert!(shown.contains("2/2 nodes") && shown.contains("s1 ✓ Load"), "{shown}");
}

/// D-20, D-21: others take the place of a node, and the picture is of them.
#[test]
fn a_replan_changes_the_lanes() {
    let plan = json!({"id": "(plan)", "name": "Plan", "body": {"compiler": "selvedge__compile", "leaves": [
        {"name": "ask", "act": {"infer": {}}, "next": [{"when": "always", "to": 1}]},
        {"name": "compile", "act": {"compile": {"tries": 1}}, "next": [{"when": "always", "to": 2}]},
        {"name": "splice", "act": "splice"}]}});
    let mut made = run(vec![plan]);
    made.began(&["(plan)"]);
    made.later(1_000);
    let reply = ModelReply { text: r#"{"steps": [1, 2]}"#.into(), ..ModelReply::default() };
    made.input(Input::Complete(made.effect("(plan)"), Outcome::Reply(Arc::new(reply)), 0, None, None));
    assert!(made.shown(80, 24).contains("0/1 nodes"), "{}", made.shown(80, 24));
    let nodes =
        [step("s1", "Load", json!({}), &[]), step("s2", "Report", json!({"of": "{{s1.output}}"}), &[])];
    made.gives("(plan)", json!({"nodes": nodes, "tools": {}}));
    made.began(&["s1"]);
    let shown = made.shown(80, 24);
    assert!(shown.contains("0/2 nodes") && !shown.contains("(plan)"), "{shown}");
    assert!(
        shown.contains("s1 ▸ Load") && shown.contains("s2 ◦ Report  waits for s1 (reads its result)"),
        "{shown}"
    );
}
