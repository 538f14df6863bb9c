//! Pictures of workflows: paths as lanes that end in their join (W-03).

use super::Made;
use selvedge_engine::Input;
use serde_json::{Value, json};

fn asks(id: &str, ways: Value) -> Value {
    json!({"id": id, "name": id, "ways": ways, "body": {"thread": 0, "leaves": [
        {"name": "say", "act": {"say": "go"}, "next": [{"when": "always", "to": 1}]},
        {"name": "model", "act": {"infer": {}}}]}})
}

fn opens(id: &str, act: Value, end: &str, ways: Value) -> Value {
    json!({"id": id, "name": id, "end": end, "ways": ways, "body": {"leaves": [{"name": "do", "act": act}]}})
}

fn flow(nodes: Value, graphs: Value) -> Value {
    json!({"threads": [{"name": "main"}], "control": "flow", "nodes": nodes, "graphs": graphs, "tools": {}})
}

/// A fork of so many paths, each with a node of its own.
fn fork(paths: usize, strategy: &str) -> Made {
    let listed: Vec<Value> = (0..paths).map(|at| json!([format!("p{at}"), at])).collect();
    let graphs: Vec<Value> =
        (0..paths).map(|at| flow(json!([asks(&format!("n{at}"), json!([]))]), json!([]))).collect();
    let act = json!({"fork": {"of": {"listed": listed}, "join": {"strategy": strategy}}});
    let next = json!([{"when": "done", "to": 1}]);
    Made::of(flow(
        json!([opens("debate", act, "joined", next), asks("judge", json!([]))]),
        Value::from(graphs),
    ))
}

/// Each path has a lane, which says what it is at, how it ended and when it was cut off; the last line is the join.
#[test]
fn paths_are_lanes_that_end_in_their_join() {
    let mut made = fork(3, "all_completed");
    made.began(&["n0", "n1"]);
    made.later(2_000).replies("n0");
    let shown = made.shown(80, 24);
    let rows: Vec<&str> = shown.lines().collect();
    assert!(rows[1].starts_with("main") && rows[1].contains("debate"), "{shown}");
    assert!(rows[1].contains("3 paths: 2 going on, 1 done"), "{shown}");
    assert!(
        rows[2].starts_with("├ p0") && rows[2].contains("✓") && rows[2].contains("done 2.0 s"),
        "{shown}"
    );
    assert!(rows[2].contains("1200+34 tokens"), "{shown}");
    assert!(rows[3].starts_with("├ p1") && rows[3].contains("n1") && rows[3].contains("model"), "{shown}");
    assert!(rows[4].starts_with("├ p2") && rows[4].contains("model queued"), "{shown}");
    assert_eq!(rows[5], "└ joined  1 of 3 done  ALL_COMPLETED", "{shown}");
    made.replies("n1");
    made.replies("n2");
    let shown = made.shown(80, 24);
    assert!(shown.contains("judge") && !shown.contains("p1"), "the fork is over: {shown}");
}

/// E-38: what was cut off is told apart from what failed.
#[test]
fn what_was_cut_off_is_told_apart() {
    let mut made = fork(3, "all_completed");
    made.began(&["n0", "n1", "n2"]);
    made.fails("n1", false, "no");
    let shown = made.shown(100, 24);
    assert!(!shown.contains("going on"), "the join is decided: {shown}");
    assert_eq!(made.view.standing(selvedge_host::timeline::NodeStatus::Running), 0);
    made.input(Input::Resume(Vec::new()));
    let shown = made.shown(100, 24);
    assert!(
        shown.contains("├ p0") && shown.contains("3 paths: 3 going on"),
        "they go on where they stood: {shown}"
    );
}

/// W-12: a thousand paths can be read, what happens first, the others as figures.
#[test]
fn a_thousand_paths_take_the_room_there_is() {
    let mut made = fork(1_000, "all_completed");
    for at in 500..520 {
        made.began(&[&format!("n{at}")]);
    }
    made.later(1_000);
    for at in 500..510 {
        made.replies(&format!("n{at}"));
    }
    let shown = made.shown(80, 24);
    assert!(shown.lines().count() <= 20, "{shown}");
    assert!(shown.contains("1000 paths: 990 going on, 10 done"), "{shown}");
    assert!(shown.contains("├ p510") && shown.contains("├ p519"), "what runs is shown: {shown}");
    assert!(shown.contains("more: ") && shown.contains("queued"), "{shown}");
    for (columns, rows) in [(20, 6), (40, 3), (200, 50), (10, 100), (80, 1), (80, 2), (80, 4)] {
        made.shown(columns, rows);
    }
}

/// A loop says where it is, in a path too.
#[test]
fn an_iteration_is_below_its_path() {
    let round = flow(json!([asks("dig", json!([]))]), json!([]));
    let path = flow(
        json!([opens(
            "round",
            json!({"loop": {"graph": 0, "times": {"count": 3}, "limit": 5}}),
            "around",
            json!([])
        )]),
        json!([]),
    );
    let act =
        json!({"fork": {"of": {"listed": [["a", 1], ["b", 0]]}, "join": {"strategy": "all_completed"}}});
    let mut made = Made::of(flow(json!([opens("f", act, "j", json!([]))]), json!([round, path])));
    made.later(10).replies("dig");
    let shown = made.shown(100, 24);
    assert!(shown.contains("├ a") && shown.contains("round") && shown.contains("│ └ index"), "{shown}");
    assert!(shown.contains("2 of 3 iterations"), "{shown}");
    assert!(shown.contains("└ j "), "{shown}");
}
