//! Other steps from a failed one on, and steps from nothing (D-20, D-21).

use crate::recovery::support::{Asked, Run, fails, gives, graph, graph_of, planned, says, step, times_out};
use selvedge_engine::{Event, FaultKind, NodeIx, Outcome, RunStatus, Table};
use serde_json::json;
use std::sync::Arc;

fn replan(steps: serde_json::Value) -> Outcome {
    says(
        &json!({"action": "replan", "strategy": "from_step", "steps": steps, "reason": "the list was wrong"}),
    )
}

/// D-20: results and metadata are kept, new steps refer to them, ids of what follows may recur.
#[test]
fn a_replan_keeps_what_retired() {
    let steps = [
        step("s1", "pure", json!({"k": 1})),
        step("s2", "xread", json!({})),
        step("s3", "pure", json!({})).model(),
        step("s4", "read", json!({})),
        step("s5", "pure", json!({"same": true})),
    ];
    let run = Run::ordered(
        &graph(&steps),
        |asked| match (asked.node.as_str(), asked.what.as_str()) {
            ("s3", "reflection") => replan(json!([
                {"id": "s3b", "tool": "pure", "args": {"n": "{{s2.x}} {{x}} {{s1.k}}"}},
                {"id": "s5", "tool": "pure", "args": {"same": true}},
                {"id": "s3", "tool": "read", "args": {"n": 2}, "after": ["s5"]},
            ])),
            ("s3", "pure") => fails("wrong parameters"),
            ("s2", _) => gives(json!({"x": 7})),
            _ => gives(asked.args.clone()),
        },
        true,
    );
    run.check();
    assert_eq!(run.status(), RunStatus::Completed);
    let rows = [("s1", 1), ("s2", 1), ("s3b", 1), ("s5", 1), ("s3", 2)];
    assert_eq!(
        run.rows(),
        rows.map(|(id, attempts)| (id.to_owned(), true, attempts)),
        "D-25: attempts go on"
    );
    assert_eq!(run.output("s3b"), json!({"n": "7 7 1"}));
    let s5: Vec<String> = run.sent(0).into_iter().filter(|effect| effect.starts_with("s5")).collect();
    assert_eq!(s5, ["s5/call/1/1"], "E-29: it ran ahead and is the same");
    assert!(run.sent(0).contains(&"s3~2/call/1/1".to_owned()), "its visits go on");
    let graph = run.state.graph();
    assert_eq!(graph.nodes.len(), 5);
    assert_eq!(graph.tails, run.first.tails, "what new steps share is there already");
    run.never_twice();
}

/// D-19, D-20: one replan a run; the next failure may not.
#[test]
fn one_replan_a_run() {
    let run = Run::of(&graph(&[step("s", "pure", json!({})).model()]), |asked| match asked.what.as_str() {
        "reflection" => {
            replan(json!([{"id": "s", "tool": "pure", "model": true}, {"id": "t", "tool": "read"}]))
        }
        "read" => gives(json!("still")),
        _ => fails("broken"),
    });
    run.check();
    let actions: Vec<&str> = run.ladder().into_iter().map(|row| row.1).collect();
    assert_eq!(actions, ["replan", "give_up"]);
    assert_eq!(run.rows(), [("s".to_owned(), false, 2), ("t".to_owned(), true, 1)]);
}

/// D-19: so many replans as the setting says, whether they bring other steps or come to nothing.
#[test]
fn so_many_replans_a_run() {
    let again = |asked: &Asked| match asked.what.as_str() {
        "reflection" => replan(json!([{"id": "s", "tool": "pure", "model": true, "replans": 2}])),
        _ => fails("broken"),
    };
    let steps = [step("s", "pure", json!({})).model().rules(|rules| rules.replans = 2)];
    let run = Run::of(&graph(&steps), again);
    let actions: Vec<&str> = run.check().ladder().into_iter().map(|row| row.1).collect();
    assert_eq!(actions, ["replan", "replan", "give_up"]);
    assert_eq!(run.rows(), [("s".to_owned(), false, 3)]);
    // D-21: each time four plans.
    let never = |asked: &Asked| match asked.what.as_str() {
        "reflection" => says(&json!({"action": "replan", "reason": "other steps"})),
        "steps" => says(&json!({"steps": [{"id": "a", "tool": "unknown"}]})),
        _ => fails("broken"),
    };
    let steps = [step("s", "pure", json!({})).model().or("read", None).rules(|rules| rules.replans = 2)];
    let run = Run::of(&graph(&steps), never);
    let actions: Vec<&str> = run.check().ladder().into_iter().map(|row| row.1).collect();
    assert_eq!(actions, ["replan", "retry_with_tool", "replan", "give_up"]);
    assert_eq!(run.sent(0).iter().filter(|effect| effect.contains("/plan/")).count(), 8);
}

/// D-20, D-22: a list without steps leaves out what is left; whoever wrote it is told.
#[test]
fn a_replan_without_steps_warns() {
    let steps = [
        step("s1", "read", json!({})),
        step("s2", "pure", json!({})).model(),
        step("s3", "read", json!({"v": "{{s1.k}}"})),
        step("s4", "pure", json!({"v": "{{s2.k}}"})),
    ];
    let run = Run::of(&graph(&steps), |asked| match asked.what.as_str() {
        "reflection" => replan(json!([])),
        "pure" => fails("broken"),
        _ => gives(json!({"k": 1})),
    });
    run.check();
    assert_eq!((run.status(), run.rows()), (RunStatus::Completed, vec![("s1".to_owned(), true, 1)]));
    assert_eq!(run.warnings(), [("steps-left-out".to_owned(), "s2".to_owned())]);
    let message = &run.state.warnings()[0].message;
    assert!(message.contains("`s2`, `s3`, `s4`"), "{message}");
}

/// P-20, E-29: what nobody takes over from before a replan holds nobody back.
#[test]
fn new_reads_overlap() {
    let steps = [step("s", "pure", json!({})).model(), step("r", "read", json!({}))];
    let world = |asked: &Asked| match asked.what.as_str() {
        "reflection" => replan(json!([{"id": "a", "tool": "read"}, {"id": "b", "tool": "read"}])),
        "pure" => fails("broken"),
        _ => gives(json!(1)),
    };
    let run = Run::of(&graph(&steps), world);
    run.check();
    assert!(run.sent(0)[0].starts_with('r') || run.sent(0)[1].starts_with('r'), "it ran ahead");
    let sent =
        run.place(|event| matches!(event, Event::Requested { effect, .. } if effect.0.starts_with("b/")));
    let done =
        run.place(|event| matches!(event, Event::Completed { effect, .. } if effect.0.starts_with("a/")));
    assert!(sent < done);
}

/// D-20, D-21: steps are asked for when none came along; refused ones go back with the diagnostics, so often.
#[test]
fn refused_steps_go_back() {
    let world = |asked: &Asked| match (asked.what.as_str(), asked.visit) {
        ("reflection", _) => says(&json!({"action": "replan", "reason": "other steps"})),
        ("steps", 1) => says(&json!({"steps": [{"id": "a", "tool": "unknown"}]})),
        ("steps", _) => {
            assert!(asked.said.contains("no tool `unknown`"), "{}", asked.said);
            says(&json!({"steps": [{"id": "a", "tool": "read"}]}))
        }
        ("read", _) => gives(json!(1)),
        _ => fails("broken"),
    };
    let run = Run::of(&graph(&[step("s", "pure", json!({})).model()]), world);
    assert_eq!(run.check().rows(), [("a".to_owned(), true, 1)]);
    let never = |asked: &Asked| match asked.what.as_str() {
        "reflection" => says(&json!({"action": "replan", "reason": "other steps"})),
        "steps" => says(&json!({"steps": [{"id": "a", "tool": "unknown"}]})),
        "read" => gives(json!("by the ladder")),
        _ => fails("broken"),
    };
    let run = Run::of(&graph(&[step("s", "pure", json!({})).model().or("read", None)]), never);
    run.check();
    assert_eq!(
        run.sent(0).iter().filter(|effect| effect.contains("/plan/")).count(),
        4,
        "the first, and three that came back"
    );
    assert_eq!(run.output("s"), json!("by the ladder"));
    let run = Run::of(&graph(&[step("s", "pure", json!({})).model()]), never);
    assert_eq!(run.check().fault().message, "broken", "the step's own fault stays");
}

/// D-20: what the compiled steps share comes with them, and once; a place that is none is refused.
#[test]
fn shared_leaves_come_with_the_steps() {
    let world = |asked: &Asked| match asked.what.as_str() {
        "steps" => {
            says(&json!({"steps": [{"id": "a", "tool": "pure", "model": true}, {"id": "b", "tool": "read"}]}))
        }
        "reflection" => says(&json!({"action": "retry_with_tool", "tool_id": "read"})),
        "pure" => fails("broken"),
        _ => gives(json!(1)),
    };
    let known = graph_of(vec![planned(false)]);
    let mut bare = known.as_ref().clone();
    bare.tails = Table::default();
    for first in [known, Arc::new(bare)] {
        let run = Run::of(&first, world);
        assert_eq!(run.check().rows(), [("a".to_owned(), true, 2), ("b".to_owned(), true, 1)]);
        let graph = run.state.graph();
        assert_eq!(graph.tails.len(), 2);
        let names: Vec<&str> = graph.leaves(&graph.nodes[NodeIx(0)]).map(|leaf| &*leaf.name).collect();
        assert_eq!(&names[..3], ["call", "turn", "brief"]);
        assert_eq!(graph.leaves(&graph.nodes[NodeIx(1)]).count(), 1, "what can't recover shares nothing");
    }
    let run = Run::of(&graph_of(vec![planned(false)]), |_| {
        says(&json!({"steps": [{"id": "a", "tool": "read", "shares": 7, "model": true}]}))
    });
    assert!(run.check().fault().message.contains("not there"), "{}", run.fault().message);
    let run = Run::of(&graph_of(vec![planned(false)]), |_| {
        says(&json!({"steps": [{"id": "a", "tool": "read", "spins": true}]}))
    });
    assert!(run.check().fault().message.contains("in circles"), "E-12: {}", run.fault().message);
}

/// D-20: ids of what has retired are taken, with success or not; who wrote them is told, and decides nothing anew.
#[test]
fn ids_of_retired_steps_are_refused() {
    for (first, success) in [("read", true), ("xpure", false)] {
        let steps = [step("s1", first, json!({})), step("s2", "pure", json!({})).model()];
        let run = Run::of(&graph(&steps), |asked| match (asked.what.as_str(), asked.visit) {
            ("reflection", _) => replan(json!([{"id": "s1", "tool": "read"}])),
            ("steps", _) => {
                assert!(asked.said.contains("`s1` is taken"), "{}", asked.said);
                says(&json!({"steps": [{"id": "s2", "tool": "read"}]}))
            }
            ("read", _) => gives(json!(1)),
            _ => fails("broken"),
        });
        assert_eq!(run.check().rows(), [("s1".to_owned(), success, 1), ("s2".to_owned(), true, 2)]);
        assert_eq!(run.ladder(), [("s2".to_owned(), "replan", "model".to_owned())]);
    }
}

/// D-21: a task without steps; the planning node is gone afterwards.
#[test]
fn a_task_is_planned() {
    let world = |asked: &Asked| match asked.what.as_str() {
        "tool_choice" => says(&json!({"tools": ["read", "no such"]})),
        "steps" if asked.visit == 1 => {
            assert!(asked.said.contains("the task"), "{}", asked.said);
            says(&json!({"steps": [{"id": "a", "tool": "unknown"}]}))
        }
        "steps" => says(&json!({"steps": [
            {"id": "a", "tool": "read"},
            {"id": "b", "tool": "pure", "args": {"v": "{{a.k}}"}, "model": true},
        ]})),
        "read" => gives(json!({"k": 1})),
        _ => gives(asked.args.clone()),
    };
    for chooses in [false, true] {
        let run = Run::of(&graph_of(vec![planned(chooses)]), world);
        run.check();
        assert_eq!((run.status(), run.output("b")), (RunStatus::Completed, json!({"v": 1})));
        assert_eq!(run.rows().len(), 2);
        assert_eq!(run.state.usage().tool_calls, 2, "C-02: the compiler is none of the document's tools");
        let brief = run.briefs().into_iter().find(|text| text.starts_with("Plan.")).unwrap();
        assert_eq!(brief.contains("\"xpure\""), !chooses, "only what was chosen");
    }
    let run = Run::of(&graph_of(vec![planned(false)]), |_| {
        says(&json!({"steps": [{"id": "a", "tool": "unknown"}]}))
    });
    assert_eq!(run.check().fault().kind, FaultKind::MalformedResponse);
}

/// E-05, D-19: a resumed run may try all its ways again, also those of a new list.
#[test]
fn a_resumed_run_may_replan_again() {
    let mut run =
        Run::of(&graph(&[step("s", "pure", json!({})).model()]), |asked| match asked.what.as_str() {
            "reflection" => replan(json!([{"id": "s", "tool": "pure", "model": true}])),
            _ => fails("broken"),
        });
    assert_eq!(run.rows(), [("s".to_owned(), false, 2)]);
    run.resume();
    run.check();
    run.never_twice();
    let actions: Vec<&str> = run.ladder().into_iter().map(|row| row.1).collect();
    assert_eq!(actions, ["replan", "give_up", "replan", "give_up"]);
    assert_eq!(run.rows(), [("s".to_owned(), false, 4)]);
}

/// E-07: whatever runs ahead and whenever it answers, the new list comes to the same.
#[test]
fn what_is_in_flight_is_dropped() {
    let steps =
        [step("s", "pure", json!({})).model(), step("r", "read", json!({})), step("p", "pure", json!({}))];
    let world = |asked: &Asked| match (asked.node.as_str(), asked.what.as_str()) {
        (_, "reflection") => replan(
            json!([{"id": "r", "tool": "read"}, {"id": "q", "tool": "pure", "args": {"v": "{{r.k}}"}}]),
        ),
        ("s", _) => times_out(),
        ("r", _) => gives(json!({"k": 3})),
        _ => gives(asked.args.clone()),
    };
    let run = Run::of(&graph(&steps), world);
    run.check();
    assert_eq!(run.output("q"), json!({"v": 3}));
    assert!(run.events.iter().any(|event| matches!(event, Event::Spliced { .. })));
}

/// P-20, D-20: what changes the world does not run ahead of a step that other steps may take the place of.
#[test]
fn nothing_that_changes_the_world_runs_ahead_of_a_replan() {
    let steps = |model: bool| {
        let first = step("s", "pure", json!({}));
        [if model { first.model() } else { first }, step("i", "idempotent", json!({}))]
    };
    let world = |asked: &Asked| match asked.what.as_str() {
        "reflection" => replan(json!([{"id": "t", "tool": "read"}])),
        "pure" => fails("broken"),
        _ => gives(json!(1)),
    };
    let run = Run::of(&graph(&steps(true)), world);
    run.check();
    assert!(!run.sent(0).iter().any(|effect| effect.starts_with('i')));
    let run = Run::ordered(&graph(&steps(false)), world, true);
    let place = |find: fn(&Event) -> bool| run.events.iter().position(find).unwrap();
    let sent = place(|event| matches!(event, Event::Requested { effect, .. } if effect.0.starts_with('i')));
    assert!(sent < place(|event| matches!(event, Event::Completed { .. })), "without a model it may");
}
