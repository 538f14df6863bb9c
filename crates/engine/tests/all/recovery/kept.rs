//! What a resume keeps of steps that had finished behind a failed one (D-16, E-29), and what a person's no leaves.

use crate::recovery::support::{Asked, Run, fails, gives, graph, says, step};
use selvedge_engine::{Event, Input, Outcome, RunStatus, ToolDef};
use serde_json::{Value, json};

/// What is called `bad…` fails.
fn broken(asked: &Asked) -> Outcome {
    if asked.node.starts_with("bad") { fails("broken") } else { gives(json!({"k": 1})) }
}

/// What had failed works, and what is read or given is another value.
fn mended(_: &Asked) -> Outcome {
    gives(json!({"k": 2}))
}

fn resumed(mut run: Run, world: fn(&Asked) -> Outcome) -> (Run, usize) {
    let from = run.events.len();
    run.world = world;
    run.resume();
    (run, from)
}

fn answer(run: &mut Run, value: &str) {
    let ask = run.state.asks().keys().next().expect("somebody is asked").clone();
    run.give(Input::Answer(ask, json!(value)));
    run.go_on();
}

fn outcome(run: &Run, id: &str) -> (bool, Value, u32) {
    let row = run.row(id).unwrap();
    (row.is_success, row.output.clone(), row.attempts)
}

/// Writes behind a failed step stand when the run is resumed, whatever the failed step, and those that had waited for
/// it, do by then.
#[test]
fn a_write_behind_a_failed_step_stays() {
    for bad in ["pure", "read", "idempotent", "write"] {
        let steps = [
            step("a", "read", json!({})),
            step("bad", bad, json!({})),
            step("dep", "write", json!({"v": "{{bad.k}}"})),
            step("w", "write", json!({"v": "{{a.k}}"})),
            step("look", "read", json!({})),
            step("v", "write", json!({"v": "{{w.k}}"})).after(&["look"]),
        ];
        let (run, from) = resumed(Run::of(&graph(&steps), broken), mended);
        assert_eq!(run.status(), RunStatus::Completed, "{bad}");
        for id in ["w", "v"] {
            assert_eq!(outcome(&run, id), (true, json!({"k": 1}), 1), "{bad}: {id}");
        }
        let written =
            run.sent(from).into_iter().filter(|effect| !effect.starts_with("look")).collect::<Vec<_>>();
        assert_eq!(written, ["bad~2/call/1/1", "dep/call/1/1"], "{bad}");
        run.check();
        run.never_twice();
    }
}

/// It stays however often the step fails again.
#[test]
fn a_write_stays_through_many_resumes() {
    let steps = [step("bad", "write", json!({})), step("w", "write", json!({}))];
    let mut run = Run::of(&graph(&steps), broken);
    for _ in 0..3 {
        run = resumed(run, broken).0;
        assert_eq!((run.status(), outcome(&run, "w")), (RunStatus::Failed, (true, json!({"k": 1}), 1)));
    }
    let (run, _) = resumed(run, mended);
    assert_eq!((run.status(), outcome(&run, "w")), (RunStatus::Completed, (true, json!({"k": 1}), 1)));
    run.never_twice();
}

/// A step that came to its success by an alternative is not begun anew either: what failed before it is taken as well.
#[test]
fn what_an_alternative_had_written_stays() {
    let steps = [
        step("bad", "read", json!({})),
        step("w", "write", json!({})).or("write", Some(json!({"other": true}))),
    ];
    let world = |asked: &Asked| match (asked.node.as_str(), asked.args == json!({})) {
        (_, true) => fails("broken"),
        _ => gives(json!({"k": 1})),
    };
    let (run, from) = resumed(Run::of(&graph(&steps), world), mended);
    assert_eq!((run.status(), outcome(&run, "w")), (RunStatus::Completed, (true, json!({"k": 1}), 2)));
    assert_eq!(run.sent(from), ["bad~2/call/1/1"]);
    run.check();
}

/// A step that would write something else by now asks: yes runs it, no leaves what it came to.
#[test]
fn another_write_of_a_finished_step_asks() {
    let steps = [
        step("bad", "write", json!({})),
        step("look", "read", json!({})),
        step("w", "write", json!({"v": "{{look.k}}"})),
        step("x", "write", json!({"v": "{{w.k}}"})),
        step("y", "write", json!({})),
    ];
    for (value, output, x) in [("no", 1, 1), ("yes", 2, 2)] {
        let (mut run, from) = resumed(Run::of(&graph(&steps), broken), mended);
        assert_eq!(run.status(), RunStatus::Waiting);
        answer(&mut run, value);
        if value == "yes" {
            // What it is given is another value now, too.
            assert_eq!(run.status(), RunStatus::Waiting);
            answer(&mut run, value);
        }
        assert_eq!(run.status(), RunStatus::Completed, "{value}");
        assert_eq!(outcome(&run, "w").1, json!({"k": output}), "{value}");
        assert_eq!(outcome(&run, "x").1, json!({"k": x}), "{value}");
        assert_eq!(outcome(&run, "y").1, json!({"k": 1}), "{value}: it depends on nothing");
        let again = run.sent(from).iter().filter(|effect| effect.starts_with('w')).count();
        assert_eq!(again, usize::from(value == "yes"));
        run.check();
    }
}

/// D-16: a write that may depend on what was written anew asks, also with the same parameters.
#[test]
fn a_write_after_one_that_is_done_anew_asks() {
    let steps = [
        step("bad", "write", json!({})),
        step("look", "read", json!({})),
        step("w", "write", json!({"v": "{{look.k}}"})),
        step("between", "read", json!({})).after(&["w"]),
        step("x", "write", json!({})).after(&["between"]),
    ];
    let (mut run, _) = resumed(Run::of(&graph(&steps), broken), mended);
    answer(&mut run, "yes");
    assert_eq!(run.status(), RunStatus::Waiting, "x follows w");
    let from = run.events.len();
    answer(&mut run, "no");
    assert_eq!((run.status(), outcome(&run, "x").1), (RunStatus::Completed, json!({"k": 1})));
    assert_eq!(run.sent(from), Vec::<String>::new());
    run.check();
}

/// C-13, P-21: no to a write whose tool has changed leaves what it came to; the next resume does not ask again.
#[test]
fn no_to_a_changed_tool_leaves_the_result() {
    let steps = [step("bad", "read", json!({})), step("w", "write", json!({}))];
    let graph = graph(&steps);
    let mut run = Run::of(&graph, broken);
    let changed = ToolDef { version: "new".into(), ..(*graph.tools["write"]).clone() };
    run.give(Input::Resume(vec![changed]));
    run.go_on();
    assert_eq!(run.status(), RunStatus::Waiting);
    let from = run.events.len();
    answer(&mut run, "no");
    assert_eq!((run.status(), outcome(&run, "w")), (RunStatus::Failed, (true, json!({"k": 1}), 1)));
    assert_eq!(run.sent(from), Vec::<String>::new());
    let (run, _) = resumed(run, mended);
    assert_eq!((run.status(), outcome(&run, "w")), (RunStatus::Completed, (true, json!({"k": 1}), 1)));
}

/// D-20: a replan of the failed step in which a finished write recurs.
#[test]
fn a_write_that_recurs_in_a_replan_stays() {
    let steps = [step("bad", "read", json!({})).model(), step("w", "write", json!({}))];
    let world = |asked: &Asked| match (asked.node.as_str(), asked.what.as_str()) {
        (_, "reflection") => says(&json!({"action": "give_up"})),
        ("bad", _) => fails("broken"),
        _ => gives(json!({"k": 1})),
    };
    let replans = |asked: &Asked| match (asked.node.as_str(), asked.what.as_str()) {
        (_, "reflection") => says(&json!({"action": "replan", "steps": [
            {"id": "bad", "tool": "write", "args": {"new": 1}}, {"id": "w", "tool": "write"},
        ]})),
        // Asked the same, the model would not be asked again (E-29).
        ("bad", "read") => fails("broken in another way"),
        _ => gives(json!({"k": 2})),
    };
    let (run, from) = resumed(Run::of(&graph(&steps), world), replans);
    assert_eq!(run.status(), RunStatus::Completed);
    assert_eq!(outcome(&run, "w"), (true, json!({"k": 1}), 1));
    assert_eq!(run.sent(from).iter().filter(|effect| effect.starts_with('w')).count(), 0);
    let taken = run.events.iter().filter(|event| matches!(event, Event::Reused { .. })).count();
    assert!(taken > 0);
    run.check();
}
