//! What ran ahead of a step that had to recover (D-16, P-20, E-29).

use crate::recovery::support::{Asked, Run, fails, gives, graph, says, step};
use selvedge_engine::Event;
use serde_json::json;

/// D-16: recovery begins when the step stands first in line, and sees only earlier steps.
#[test]
fn recovery_waits_for_its_turn() {
    let steps =
        [step("a", "read", json!({})), step("s", "pure", json!({})).model(), step("b", "pure", json!({}))];
    let graph = graph(&steps);
    let world = |asked: &Asked| match (asked.node.as_str(), asked.what.as_str()) {
        (_, "reflection") => {
            assert!(asked.said.contains("\"a_k\":1") && !asked.said.contains("b_k"), "{}", asked.said);
            says(&json!({"action": "give_up", "reason": "no"}))
        }
        ("s", _) => fails("broken"),
        _ => gives(json!({"k": 1})),
    };
    let run = Run::ordered(&graph, world, true);
    run.check();
    assert_eq!(run.rows().iter().map(|row| row.1).collect::<Vec<_>>(), [true, false, true]);
}

/// P-20: what ran ahead of a recovery that writes, which nobody could foresee, runs again behind it.
#[test]
fn what_ran_ahead_of_an_unforeseen_write_runs_again() {
    let steps = [
        step("s", "pure", json!({})).model(),
        step("r", "read", json!({})),
        step("p", "pure", json!({"k": 1})),
    ];
    let world = |asked: &Asked| match (asked.node.as_str(), asked.what.as_str()) {
        (_, "reflection") => says(&json!({"action": "retry_with_tool", "tool_id": "write", "reason": ""})),
        ("s", "pure") => fails("broken"),
        _ => gives(asked.args.clone()),
    };
    let run = Run::of(&graph(&steps), world);
    run.check();
    assert_eq!(
        run.sent(0).iter().filter(|effect| effect.starts_with('r')).count(),
        2,
        "it reads the world again"
    );
    assert_eq!(
        run.sent(0).iter().filter(|effect| effect.starts_with('p')).count(),
        1,
        "E-29: the rest is reused"
    );
    assert_eq!(run.rows(), [("s".to_owned(), true, 2), ("r".to_owned(), true, 1), ("p".to_owned(), true, 1)]);
    let write =
        run.place(|event| matches!(event, Event::Completed { effect, .. } if effect.0.contains("/try/")));
    let read =
        run.place(|event| matches!(event, Event::Requested { effect, .. } if effect.0.starts_with("r~2")));
    assert!(write < read);
}

/// D-05: the same with names that nobody could expect.
#[test]
fn what_ran_ahead_of_an_unforeseen_name_runs_again() {
    let steps = [
        step("o", "xpure", json!({"old": true})),
        step("s", "xpure", json!({})).model(),
        step("r", "xpure", json!({"n": "{{o_x}} {{o.x}}"})),
        step("q", "pure", json!({"n": "{{s_y}}"})).or("pure", Some(json!({"n": "no"}))),
    ];
    let world = |asked: &Asked| match (asked.node.as_str(), asked.what.as_str()) {
        (_, "reflection") => says(&json!({"action": "retry_with_tool", "tool_id": "pure", "reason": ""})),
        ("s", "xpure") => fails("broken"),
        ("s" | "o", _) => gives(json!({"x": 1, "y": 2})),
        _ => gives(asked.args.clone()),
    };
    let run = Run::ordered(&graph(&steps), world, true);
    run.check();
    assert_eq!(run.output("q"), json!({"n": 2}));
    assert_eq!(run.output("r"), json!({"n": "1 1"}));
}

/// D-05, E-07: what a step had to say that runs again, it says once.
#[test]
fn what_runs_again_warns_once() {
    let steps = [step("s", "pure", json!({})).model(), step("r", "xread", json!({}))];
    let world = |asked: &Asked| match (asked.node.as_str(), asked.what.as_str()) {
        (_, "reflection") => says(&json!({"action": "retry_with_tool", "tool_id": "write", "reason": ""})),
        ("s", "pure") => fails("broken"),
        _ => gives(json!({"other": 1})),
    };
    for last_first in [false, true] {
        let run = Run::ordered(&graph(&steps), world, last_first);
        run.check();
        assert_eq!(run.warnings(), [("missing-output-field".to_owned(), "r".to_owned())]);
        assert_eq!(run.sent(0).iter().filter(|effect| effect.starts_with('r')).count(), 2);
    }
}
