//! What still runs behind a step that failed, and what a resumed run begins anew (D-16, D-19, E-05).

use crate::recovery::support::{Asked, Run, fails, gives, graph, step};
use selvedge_engine::{Event, FaultKind, Outcome, RunStatus};
use serde_json::json;

fn bad_fails(asked: &Asked) -> Outcome {
    if asked.node.starts_with("bad") {
        fails(&format!("{} is broken", asked.node))
    } else {
        gives(json!({"k": asked.args}))
    }
}

fn ids(run: &Run) -> Vec<(String, bool)> {
    run.rows().into_iter().map(|(id, success, _)| (id, success)).collect()
}

fn skipped(run: &Run) -> Vec<(String, String)> {
    let rows = run.events.iter().filter_map(|event| match event {
        Event::NodeSkipped { node, because } => Some((node.to_string(), because.to_string())),
        _ => None,
    });
    rows.collect()
}

/// D-16: later steps that can't depend on the failed one run and keep their results; those that can are absent.
#[test]
fn independent_steps_finish() {
    let steps = [
        step("a", "xpure", json!({})),
        step("bad", "xpure", json!({})),
        step("ref", "xpure", json!({"v": "{{bad.x}}"})),
        step("after", "xpure", json!({})).after(&["bad"]),
        step("free", "xpure", json!({"v": "{{a.k}}"})),
        step("behind", "xpure", json!({})).after(&["free", "ref"]),
        step("name", "xpure", json!({"v": "{{bad_x}}"})),
        step("last", "write", json!({})),
    ];
    let run = Run::of(&graph(&steps), bad_fails);
    run.check();
    assert_eq!(run.status(), RunStatus::Failed);
    let rows = [("a", true), ("bad", false), ("free", true), ("last", true)];
    assert_eq!(ids(&run), rows.map(|(id, success)| (id.to_owned(), success)));
    assert_eq!(run.fault().message, "bad is broken");
    let mut because = skipped(&run);
    because.sort();
    let expected = [("after", "bad"), ("behind", "ref"), ("name", "bad"), ("ref", "bad")];
    assert_eq!(because, expected.map(|(node, because)| (node.to_owned(), because.to_owned())));
    let views: Vec<bool> = run.state.node_views().map(|view| view.skipped).collect();
    assert_eq!(views, [false, false, true, true, false, true, true, false]);
}

/// D-16: a bare name that the failed step could have brought, and one that it could not.
#[test]
fn names_that_a_failed_step_could_have_brought() {
    let unknown = [step("bad", "pure", json!({})), step("n", "xpure", json!({"v": "{{given}}"}))];
    let declared = [step("bad", "xpure", json!({})), step("n", "xpure", json!({"v": "{{given}}"}))];
    let later = [
        step("bad", "xpure", json!({})),
        step("x", "xpure", json!({})),
        step("n", "xpure", json!({"v": "{{x_x}}"})),
    ];
    let start = |steps: &[crate::recovery::support::Step]| {
        let graph = graph(steps);
        let mut run = Run::of(&graph, |asked| match asked.node.as_str() {
            "bad" => fails("broken"),
            _ => gives(json!({"x": 1})),
        });
        // With metadata: begun again from the start.
        let mut begun = selvedge_engine::Start::default();
        begun.initial.insert("given".into(), json!(1));
        run.state = selvedge_engine::State::new(graph);
        run.events.clear();
        run.give(selvedge_engine::Input::Start(Box::new(begun)));
        run.go_on();
        run
    };
    assert_eq!(skipped(&start(&unknown)), [("n".to_owned(), "bad".to_owned())]);
    assert_eq!(ids(&start(&declared)), [("bad".to_owned(), false), ("n".to_owned(), true)]);
    assert_eq!(ids(&start(&later)).len(), 3);
}

/// D-16: `hold` is P-20's precise fault: nothing later is seen.
#[test]
fn hold_is_a_precise_fault() {
    let steps =
        [step("a", "pure", json!({})), step("bad", "pure", json!({})).hold(), step("b", "pure", json!({}))];
    let run = Run::ordered(&graph(&steps), bad_fails, true);
    run.check();
    assert_eq!(ids(&run), [("a".to_owned(), true), ("bad".to_owned(), false)]);
}

/// D-19: so many failures in a row end the run; a success in between, not a skipped step, begins the count anew.
#[test]
fn too_many_failures_in_a_row() {
    let bad = |id: &str| step(id, "xpure", json!({}));
    let tail = step("tail", "xpure", json!({}));
    let row = [
        bad("bad1"),
        bad("bad2"),
        step("skip", "xpure", json!({})).after(&["bad1"]),
        bad("bad3"),
        tail.clone(),
    ];
    let run = Run::ordered(&graph(&row), bad_fails, true);
    run.check();
    assert_eq!(ids(&run).len(), 3, "what ran ahead is not seen");
    let fault = run.fault();
    assert_eq!((fault.node.as_deref(), fault.kind), (Some("bad1"), FaultKind::ExecutionFailure));
    assert!(fault.message.contains("`consecutive_failures`"), "{}", fault.message);
    let broken = [bad("bad1"), bad("bad2"), step("fine", "xpure", json!({})), bad("bad3"), tail];
    let run = Run::of(&graph(&broken), bad_fails);
    assert_eq!(ids(run.check()).len(), 5);
}

/// E-05: a resumed run begins with the first step that failed; E-29 supplies what had succeeded behind it.
#[test]
fn resume_begins_with_the_first_failed_step() {
    let steps = [
        step("a", "read", json!({})),
        step("bad", "pure", json!({})),
        step("r", "read", json!({"a": "{{a.k}}"})),
        step("d", "pure", json!({"v": "{{bad.k}}"})),
    ];
    let graph = graph(&steps);
    let mut run = Run::of(&graph, |asked| match (asked.node.as_str(), asked.args == json!({})) {
        ("bad", true) if asked.visit == 1 && asked.attempt == 1 => fails("broken"),
        _ => gives(json!({"k": 1})),
    });
    assert_eq!(ids(&run), [("a", true), ("bad", false), ("r", true)].map(|(id, ok)| (id.to_owned(), ok)));
    let from = run.events.len();
    run.resume();
    assert_eq!(run.sent(from), ["bad~2/call/1/1"], "what had succeeded is reused");
    assert_eq!(run.status(), RunStatus::Failed);
    assert_eq!(run.row("bad").unwrap().attempts, 2, "D-25");
    run.check();
    run.never_twice();
}

/// P-20: with the run in sequence the end is the same.
#[test]
fn overlap_shows_nowhere() {
    let steps = [
        step("a", "read", json!({})),
        step("bad", "write", json!({"k": "{{a.k}}"})).or("read", None),
        step("c", "read", json!({})),
        step("d", "pure", json!({"k": "{{bad.k}} {{c.k}}"})),
        step("e", "idempotent", json!({"k": "{{c.k}}"})),
    ];
    let graph = graph(&steps);
    let run = Run::of(&graph, bad_fails);
    let mut other = Run::of(&graph, bad_fails);
    other.state = selvedge_engine::State::new(graph);
    other.events.clear();
    let start = selvedge_engine::Start { sequential: true, ..Default::default() };
    other.give(selvedge_engine::Input::Start(Box::new(start)));
    other.go_on();
    assert_eq!(run.check().seen(), other.seen());
}
