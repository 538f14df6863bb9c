//! Tries that really happened (D-25).

use crate::recovery::support::{Asked, Run, calls, fails, gives, graph, says, step, times_out};
use selvedge_engine::{FaultKind, RunStatus};
use serde_json::json;

fn row(id: &str, success: bool, tries: u32) -> (String, bool, u32) {
    (id.to_owned(), success, tries)
}

/// A resumed run takes what had succeeded; only what is called again counts again.
#[test]
fn what_is_taken_over_is_no_try() {
    let steps = [
        step("f", "pure", json!({})),
        step("s", "pure", json!({"s": 1})),
        step("w", "read", json!({"w": 1})),
        step("d", "pure", json!({"v": "{{f}}"})),
    ];
    let fails = |asked: &Asked| match asked.node.as_str() {
        "f" => fails("broken"),
        _ => gives(json!(1)),
    };
    let mut run = Run::of(&graph(&steps), fails);
    assert_eq!(run.rows(), [row("f", false, 1), row("s", true, 1), row("w", true, 1)]);
    run.resume();
    run.resume();
    assert_eq!(run.check().rows(), [row("f", false, 3), row("s", true, 1), row("w", true, 1)]);
    run.world = |_| gives(json!(1));
    run.resume();
    run.check();
    assert_eq!(run.status(), RunStatus::Completed);
    assert_eq!(run.rows(), [row("f", true, 4), row("s", true, 1), row("w", true, 1), row("d", true, 1)]);
}

/// Refused calls and those whose parameters do not resolve are tries, and so is each that a recovery makes.
#[test]
fn each_call_is_a_try_whatever_comes_of_it() {
    let steps = [
        step("r", "strict", json!({"n": "no"})).or("strict", Some(json!({"n": "{{gone}}"}))),
        step("t", "read", json!({})).retry(1).or("pure", None),
    ];
    let world = |asked: &Asked| match asked.what.as_str() {
        "read" => times_out(),
        _ => gives(json!(1)),
    };
    let mut run = Run::ordered(&graph(&steps), world, true);
    run.check();
    assert_eq!(run.rows(), [row("r", false, 2), row("t", true, 3)]);
    run.resume();
    // Its call is made again, times out twice, and the alternative gives what it gave.
    assert_eq!(run.check().rows(), [row("r", false, 4), row("t", true, 5)]);
}

/// What a model is asked in between is no try of the step.
#[test]
fn questions_are_no_tries() {
    let run = Run::of(&graph(&[step("s", "pure", json!({})).model()]), |asked| {
        match (asked.what.as_str(), asked.attempt) {
            ("reflection", 1) => calls("read"),
            ("reflection", _) => says(&json!({"action": "give_up"})),
            _ => fails("broken"),
        }
    });
    assert_eq!(run.check().rows(), [row("s", false, 1)]);
}

/// D-17: `retry: 0` says that nobody tries again: what came of the write is as unknown, and a resumed run asks.
#[test]
fn a_write_that_is_not_to_be_repeated_asks() {
    for retry in [Some(0), None] {
        let mut write = step("w", "write", json!({}));
        write.retry = retry;
        let mut run = Run::of(&graph(&[write]), |_| times_out());
        run.check();
        assert_eq!(run.fault().kind, FaultKind::UnknownOutcome);
        run.resume();
        assert_eq!((run.status(), run.sent(0).len()), (RunStatus::Waiting, 1));
    }
    let mut run = Run::of(&graph(&[step("w", "write", json!({})).retry(1)]), |_| times_out());
    assert_eq!(run.fault().kind, FaultKind::Timeout);
    run.resume();
    assert_eq!(run.sent(0).len(), 4, "it may be repeated");
}
