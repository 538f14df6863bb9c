use super::{Case, Pace, Session, check, run};
use selvedge_engine::LeafIx;
use selvedge_engine::graph::{Edge, Graph, Leaf};
use selvedge_runtime::Halt;
use std::sync::Arc;

fn case(yaml: &str) -> Case {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(yaml, options).expect("a case")
}

const PLAIN: &str = "
name: plain
rules: [E-01]
about: A plan of one node.
plan: {task: t, nodes: [{node_type: llm-first, node_name: A, thread_id: main, task_prompt: p}]}
script: [{reply: {text: r}}]
expect: {status: completed";

#[test]
fn a_case_that_holds_passes() {
    assert_eq!(check(&case(&format!("{PLAIN}, output: r}}"))), Ok(()));
}

#[test]
fn whatever_is_not_as_expected_fails() {
    for wrong in [
        "output: q",
        "threads: {main: [{user: t}]}",
        "threads: {main: null}",
        "threads: {other: []}",
        "threads: {main: [{user: t}, {user: p}, {user: r}]}",
        "data_out: {main: {}}",
        "results: {n1: {is_success: false}}",
        "results: {n2: {}}",
        "ran: []",
        "metadata: {a: 1}",
        "warnings: [node-failed]",
        "asks: [{node: n1, kind: approve}]",
        "requests: []",
        "requests: [{node: n1, messages: [{user: t}]}]",
        "requests: [{node: n1, tools: [get]}]",
        "calls: [{tool: get}]",
        "usage: {model_calls: 2}",
        "events: {appended: 1}",
        "journal: [started]",
        "before: [[n1, n1]]",
        "fault: {kind: timeout}",
        "diagnostics: [{rule: P-01, code: x, severity: warning}]",
    ] {
        assert!(check(&case(&format!("{PLAIN}, {wrong}}}"))).is_err(), "{wrong}");
    }
}

#[test]
fn a_world_that_tells_the_order_is_found_out() {
    let yaml = "
name: order
rules: [E-07]
about: The first call of two nodes gets another output than the second.
tools: {get: {effects: read, does: [{nth: 1, output: 1}, {output: 2}]}}
plan:
  task: t
  nodes:
    - {node_type: llm-first, node_name: A, thread_id: a, task_prompt: p}
    - {node_type: llm-first, node_name: B, thread_id: b, task_prompt: p}
    - {node_type: tool-first, node_name: C, thread_id: a, initial_tool_name: get}
    - {node_type: tool-first, node_name: D, thread_id: b, initial_tool_name: get}
script: [{reply: {text: r}}]
expect: {status: completed}
";
    let wrong = check(&case(yaml)).expect_err("the order shows");
    assert!(wrong.contains("E-07"), "{wrong}");
    assert_eq!(check(&case(&format!("{yaml}order_matters: true\ncrash: never\n"))), Ok(()));
}

/// A graph that no compiler makes lets the machine fail: that run says so and ends, and others go on.
#[test]
fn e17_a_bug_ends_its_own_run_only() {
    let case = case(&format!("{PLAIN}}}"));
    let compiled = run::compile(&case).expect("compiles");
    let sound = compiled.graph.clone().expect("a graph");
    let mut broken = Graph::clone(&sound);
    for node in broken.nodes.values_mut() {
        for Leaf { next, .. } in node.body.leaves.values_mut() {
            next.iter_mut().for_each(|Edge { to, .. }| *to = Some(LeafIx(99)));
        }
    }
    let mut session = Session::new(&case, Arc::new(broken), Pace::AsWritten).expect("a session");
    let seen = session.start(&compiled, false).expect("driven");
    assert_eq!(seen.halt, Halt::Poisoned);
    let last = session.records.last().map(|record| format!("{:?}", record.event)).unwrap_or_default();
    assert!(last.starts_with("Poisoned"), "{last}");
    let mut session = Session::new(&case, sound, Pace::AsWritten).expect("a session");
    assert_eq!(session.start(&compiled, false).expect("driven").halt, Halt::Ended);
}
