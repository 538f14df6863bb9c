//! E-28: documents of the largest size, and as wrong as can be, are told of in time.

use super::*;
use std::time::Instant;

const STEPS: usize = 20_000;

fn in_time(what: &str, step: impl Fn(usize) -> Value, expected: &str) {
    let steps: Vec<Value> = (0..STEPS).map(step).collect();
    let text = task(json!(steps)).to_string();
    let started = Instant::now();
    let (graph, found) = compiled_with(&text, &Capabilities::default());
    assert!(graph.is_none() && found.iter().any(|d| d.code == expected), "{what}: {:?}", found.first());
    assert!(found.len() <= 2 * Diagnostics::KEPT_OF_A_CODE + 2, "{what}: {}", found.len());
    assert!(started.elapsed() < Duration::from_secs(20), "{what}: {:?}", started.elapsed());
}

#[test]
fn every_step_waits_for_the_next_one() {
    let id = |n: usize| format!("s{n:05}");
    in_time(
        "the list is upside down",
        |n| json!({"step_id": id(n), "tool_id": "any", "depends_on": if n + 1 < STEPS { json!([id(n + 1)]) } else { json!([]) }}),
        "later-step",
    );
    in_time(
        "one great circle",
        |n| json!({"step_id": id(n), "tool_id": "any", "depends_on": [id((n + 1) % STEPS)]}),
        "cycle",
    );
}

#[test]
fn every_step_has_a_name_that_nobody_has() {
    let near = |n: usize| json!({"step_id": format!("s{n:05}"), "tool_id": "any", "depends_on": [format!("z{n:05}")]});
    in_time("misspelt steps", near, "unknown-step");
    let names = |n: usize| json!({"step_id": format!("s{n:05}"), "tool_id": "add", "parameters": {"a": format!("{{{{n{n:05}}}}}")}});
    in_time("names that nothing brings", names, "unknown-placeholder");
}

#[test]
fn every_step_brings_the_same_name() {
    let types = |n: usize| {
        json!({"step_id": format!("s{n:05}"), "tool_id": if n.is_multiple_of(2) { "stats" } else { "fit" },
            "parameters": if n.is_multiple_of(2) { json!({}) } else { json!({"n": "{{title}}"}) }})
    };
    in_time("types that do not fit", types, "type-mismatch");
}

/// Ten thousand steps in a row, each of which reads the one before, cost no more than their number.
#[test]
fn a_long_task_is_checked_and_lowered_in_time() {
    let steps: Vec<Value> = (0..10_000)
        .map(|n| match n {
            0 => json!({"step_id": "s0", "tool_id": "add", "parameters": {"a": 1}}),
            n => json!({"step_id": format!("s{n}"), "tool_id": "add",
                "parameters": format!("{{\"a\": \"{{{{s{}.output.sum}}}}\"}}", n - 1)}),
        })
        .collect();
    let started = std::time::Instant::now();
    assert_eq!(graph(&task(json!(steps))).nodes.len(), 10_000);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}
