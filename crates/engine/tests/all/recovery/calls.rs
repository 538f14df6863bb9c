//! A call that a recovery decided on, and what it takes over from those before it (D-10, D-17, E-21).

use crate::recovery::support::{Run, fails, gives, graph, says, speaks, step, times_out};
use selvedge_engine::{Event, FaultKind, Input, Request, RunStatus};
use serde_json::json;
use std::sync::Arc;

/// D-17: whether the last fault may pass is what counts, not one before it.
#[test]
fn a_fault_that_could_pass_is_forgotten_with_its_call() {
    let run = Run::of(&graph(&[step("s", "read", json!({})).retry(0).model()]), |asked| {
        match (asked.what.as_str(), asked.visit) {
            ("reflection", 1) => says(
                &json!({"action": "retry_with_tool", "tool_id": "strict", "parameters": {"n": "no"}, "reason": ""}),
            ),
            ("reflection", _) => speaks("Let me think"),
            ("steps", _) => says(&json!({"steps": [{"id": "s", "tool": "pure"}]})),
            ("read", _) => times_out(),
            _ => gives(json!(1)),
        }
    });
    run.check();
    let actions: Vec<(&str, String)> = run.ladder().into_iter().map(|row| (row.1, row.2)).collect();
    assert_eq!(
        actions,
        [("retry_with_tool", "model strict".to_owned()), ("replan", "default".to_owned())],
        "an input error does not pass"
    );
}

/// E-21: a person who approves one call has not approved what a model makes of it.
#[test]
fn each_call_is_approved_by_itself() {
    let mut graph = graph(&[step("s", "pure", json!({"k": 1})).model()]).as_ref().clone();
    for tool in graph.tools.values_mut().filter(|tool| &*tool.name == "pure") {
        Arc::make_mut(tool).approval = true;
    }
    let mut run = Run::of(&Arc::new(graph), |asked| match asked.what.as_str() {
        "reflection" => {
            says(&json!({"action": "retry_with_params", "parameters": {"k": 2}, "reason": "another one"}))
        }
        _ if asked.args["k"] == 1 => fails("broken"),
        _ => gives(json!("done")),
    });
    for (sent, ask) in [(0, "s/call/1/1"), (2, "s/try/1/1")] {
        assert_eq!((run.status(), run.sent(0).len()), (RunStatus::Waiting, sent));
        run.give(Input::Answer(ask.into(), json!("yes")));
        run.go_on();
    }
    assert_eq!((run.status(), run.output("s")), (RunStatus::Completed, json!("done")));
}

/// D-17: what a repair says of time holds until another does; nonsense says nothing.
#[test]
fn a_repaired_timeout_stays() {
    let mut run = Run::begun(&graph(&[step("s", "pure", json!({})).model()]), |asked| {
        match (asked.what.as_str(), asked.visit) {
            ("reflection", 1) => says(&json!({"action": "repair_step", "step": {"timeout": 7}})),
            ("reflection", 2) => says(&json!({"action": "retry_with_params", "parameters": {"k": 1}})),
            _ => fails("broken"),
        }
    });
    let mut times = Vec::new();
    while let Some(effect) = run.state.pending().keys().next().cloned() {
        if let Some(Request::Tool(request)) = run.state.request(&effect) {
            times.push(request.timeout_s);
        }
        run.answer_next();
        if times.len() == 3 {
            break;
        }
    }
    assert_eq!(times, [None, Some(7.0), Some(7.0)]);
}

/// D-10: parameters that do not resolve are a fault like others, also those that a model writes.
#[test]
fn unresolved_parameters_are_faults() {
    let run = Run::of(&graph(&[step("s", "pure", json!({"k": "{{nothing}}"})).model()]), |asked| {
        match (asked.what.as_str(), asked.visit) {
            ("reflection", 1) => says(
                &json!({"action": "retry_with_params", "parameters": {"k": "{{no.thing}}"}, "reason": ""}),
            ),
            ("reflection", 2) => says(
                &json!({"action": "retry_with_params", "parameters": {"k": "{{unfinished"}, "reason": ""}),
            ),
            ("reflection", _) => {
                says(&json!({"action": "retry_with_params", "parameters": {"k": 3}, "reason": ""}))
            }
            _ => gives(asked.args.clone()),
        }
    });
    run.check();
    assert_eq!((run.output("s"), run.rows()), (json!({"k": 3}), vec![("s".to_owned(), true, 4)]));
    let kinds: Vec<FaultKind> = run
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Caught { fault, .. } => Some(fault.kind),
            _ => None,
        })
        .collect();
    use FaultKind::{InputError, UnresolvedPlaceholder};
    assert_eq!(kinds, [UnresolvedPlaceholder, UnresolvedPlaceholder, InputError]);
    assert!(run.briefs()[0].contains("\"parameters\":{\"k\":\"{{nothing}}\"}"), "as written");
}
