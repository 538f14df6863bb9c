//! Forks of runs that recovered (E-19, E-29): their sources may have got other steps in between.

use crate::recovery::support::{Asked, Run, fails, gives, graph, says, step};
use selvedge_engine::{Event, Fork, Input, Outcome, RunStatus, State};
use serde_json::json;
use std::sync::Arc;

fn world(asked: &Asked) -> Outcome {
    match (asked.node.as_str(), asked.what.as_str()) {
        ("s2", "reflection") => says(&json!({"action": "replan", "reason": "", "steps": [
            {"id": "t1", "tool": "read", "args": {"k": "{{s1.k}}"}},
            {"id": "t2", "tool": "write", "args": {"k": "{{t1.k}}"}},
        ]})),
        ("s2", _) => fails("broken"),
        _ => gives(json!({"k": 1})),
    }
}

/// A fork that shares `shared` events.
fn fork(run: &Run, shared: usize, fork: Fork) -> Run {
    let mut forked = Run::of(&run.first, world);
    forked.state = State::new(Arc::clone(&run.first));
    forked.events = run.events.iter().take(shared).cloned().collect();
    forked.events.iter().for_each(|event| forked.state.apply(event));
    let (source, events) = ("source".into(), run.events.len() as u64);
    forked.give(Input::Fork(Box::new(Fork { source, events, past: Some(run.past()), ..fork })));
    forked
}

/// E-19: forked anywhere, also before, inside and behind the replan, it comes to the same end and sends only what had
/// failed.
#[test]
fn a_fork_of_a_replanned_run_sends_nothing_that_succeeded() {
    let run = Run::of(&graph(&[step("s1", "read", json!({})), step("s2", "pure", json!({})).model()]), world);
    assert_eq!(run.check().status(), RunStatus::Completed);
    for shared in 1..=run.events.len() {
        let mut forked = fork(&run, shared, Fork::default());
        forked.go_on();
        assert_eq!(forked.status(), RunStatus::Completed, "forked at {shared}");
        let rows = |run: &Run| run.rows().into_iter().map(|row| (row.0, row.1)).collect::<Vec<_>>();
        assert_eq!(rows(&forked), rows(&run), "forked at {shared}");
        let again: Vec<String> =
            forked.sent(shared).into_iter().filter(|effect| !effect.starts_with("s2")).collect();
        assert_eq!(again, Vec::<String>::new(), "forked at {shared}");
        assert!(
            forked.sent(shared).iter().all(|effect| effect.contains("/call/")),
            "only the call that had failed"
        );
        let second = fork(&forked, shared.min(forked.events.len()), Fork::default());
        assert!(second.sent(shared).iter().all(|effect| effect.starts_with("s2")), "a fork of the fork");
    }
}

/// C-13: another document over what the old one came to by a replan: a write that happened asks first.
#[test]
fn a_new_document_does_not_write_again() {
    let run = Run::of(&graph(&[step("s1", "read", json!({})), step("s2", "pure", json!({})).model()]), world);
    let new = graph(&[step("s1", "read", json!({})), step("t2", "write", json!({"k": 1}))]);
    let anew = Fork { graph: Some("hash".into()), compiled: Some(new), ..Fork::default() };
    let mut forked = fork(&run, 1, anew);
    forked.go_on();
    assert_eq!(
        (forked.status(), forked.sent(1).len()),
        (RunStatus::Completed, 0),
        "the same node, the same call"
    );
    let moved = graph(&[step("s1", "read", json!({})), step("other", "write", json!({"k": 1}))]);
    let anew = Fork { graph: Some("hash".into()), compiled: Some(moved), ..Fork::default() };
    assert_eq!(fork(&run, 1, anew).status(), RunStatus::Waiting);
}

/// D-19, E-19: a fork has used the replans of the prefix that it shares, so that a model that is told what is left is told
/// the same, and need not be asked again.
#[test]
fn a_fork_has_used_the_replans_of_its_prefix() {
    let steps = |asked: &Asked| match (asked.node.as_str(), asked.what.as_str()) {
        ("s", "reflection") => says(&json!({"action": "replan", "steps": [
            {"id": "t", "tool": "pure", "model": true}, {"id": "u", "tool": "read"},
        ]})),
        ("t", "reflection") => says(&json!({"action": "retry_with_tool", "tool_id": "read"})),
        (_, "pure") => fails("broken"),
        _ => gives(json!(1)),
    };
    let run = Run::of(&graph(&[step("s", "pure", json!({})).model()]), steps);
    assert_eq!(run.check().status(), RunStatus::Completed);
    let behind = run.place(|event| matches!(event, Event::Spliced { .. })) + 1;
    for shared in behind..=run.events.len() {
        let mut forked = fork(&run, shared, Fork::default());
        forked.world = steps;
        forked.go_on();
        assert_eq!(forked.status(), RunStatus::Completed, "forked at {shared}");
        let asked = forked.sent(shared).into_iter().filter(|effect| !effect.contains("/call/"));
        assert_eq!(asked.collect::<Vec<_>>(), Vec::<String>::new(), "forked at {shared}");
    }
}

/// A fork of a run that failed and finished begins with what failed.
#[test]
fn a_fork_of_a_failed_run_begins_with_what_failed() {
    let run = Run::of(
        &graph(&[
            step("s1", "read", json!({})),
            step("s2", "pure", json!({})),
            step("s3", "pure", json!({})),
        ]),
        world,
    );
    assert_eq!(run.check().status(), RunStatus::Failed);
    let forked = fork(&run, run.events.len(), Fork::default());
    assert_eq!(forked.sent(run.events.len()), ["s2~2/call/1/1"]);
}
