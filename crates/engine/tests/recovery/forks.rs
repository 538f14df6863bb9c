//! Forks of runs that recovered (E-19, E-29): their sources may have got other steps in between.

use crate::support::{Asked, Run, fails, gives, graph, says, step};
use selvedge_engine::{Fork, Input, Outcome, RunStatus, State};
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

/// D-19: a fork has its own limits, like a run that is resumed.
#[test]
fn a_fork_may_replan_again() {
    let again = |asked: &Asked| match asked.what.as_str() {
        "reflection" => {
            says(&json!({"action": "replan", "steps": [{"id": "s", "tool": "pure", "model": true}]}))
        }
        _ => fails("broken"),
    };
    let run = Run::of(&graph(&[step("s", "pure", json!({})).model()]), again);
    let shared = run.check().events.len();
    let mut forked = fork(&run, shared, Fork::default());
    forked.world = again;
    forked.go_on();
    let actions: Vec<&str> = forked.ladder().into_iter().map(|row| row.1).collect();
    assert_eq!(actions, ["replan", "give_up", "replan", "give_up"]);
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
