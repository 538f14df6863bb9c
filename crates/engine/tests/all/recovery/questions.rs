//! What models say that is no answer, and models that can't be asked (D-17, D-20, D-21, D-23).

use crate::recovery::support::{
    Asked, Run, calls, fails, gives, graph, graph_of, planned, says, speaks, step,
};
use selvedge_engine::{Event, Failure, Fault, FaultKind, Outcome, RunStatus};
use serde_json::json;

fn reflecting(world: crate::recovery::support::World) -> Run {
    Run::of(&graph(&[step("s", "pure", json!({})).model()]), world)
}

/// D-17: whoever only calls tools has not answered: it is asked once more, and then the default stands.
#[test]
fn calls_are_no_answer() {
    let run = reflecting(|asked| match (asked.what.as_str(), asked.attempt) {
        ("reflection", 1) => calls("read"),
        ("reflection", _) => {
            assert!(asked.said.contains("calls tools"), "{}", asked.said);
            says(&json!({"action": "retry_with_tool", "tool_id": "read"}))
        }
        ("read", _) => gives(json!(1)),
        _ => fails("broken"),
    });
    assert_eq!(run.check().rows(), [("s".to_owned(), true, 2)]);
    let run = reflecting(|asked| match asked.what.as_str() {
        "reflection" => calls("read"),
        "steps" => says(&json!({"steps": [{"id": "s", "tool": "read"}]})),
        "read" => gives(json!(1)),
        _ => fails("broken"),
    });
    run.check();
    assert_eq!(run.ladder(), [("s".to_owned(), "replan", "default".to_owned())]);
    assert_eq!(run.output("s"), json!(1));
}

/// D-17: an answer beside calls is one, and nothing is left of the calls, to which nobody will answer.
#[test]
fn calls_beside_an_answer_are_dropped() {
    let run = reflecting(|asked| match asked.what.as_str() {
        "reflection" if asked.visit == 1 => {
            let (Outcome::Reply(said), Outcome::Reply(called)) =
                (says(&json!({"action": "retry_with_params"})), calls("read"))
            else {
                panic!("two replies")
            };
            let mut both = said.as_ref().clone();
            both.calls = called.calls.clone();
            Outcome::Reply(both.into())
        }
        "reflection" => says(&json!({"action": "give_up"})),
        _ => fails("broken"),
    });
    run.check();
    let actions: Vec<&str> = run.ladder().into_iter().map(|row| row.1).collect();
    assert_eq!(actions, ["retry_with_params", "give_up"]);
}

/// D-21: a plan that is none goes back like one that can't be used, three times in all.
#[test]
fn plans_that_are_none_go_back() {
    let world = |asked: &Asked| match (asked.what.as_str(), asked.visit) {
        ("steps", 1) => speaks("Here are the steps:"),
        ("steps", 2) => {
            assert!(asked.said.contains("not one JSON object"), "{}", asked.said);
            calls("read")
        }
        ("steps", 3) => says(&json!({"plan": []})),
        ("steps", _) => {
            assert!(asked.said.contains("no list `steps`"), "{}", asked.said);
            says(&json!({"steps": [{"id": "a", "tool": "read"}]}))
        }
        _ => gives(json!(1)),
    };
    let run = Run::of(&graph_of(vec![planned(false)]), world);
    assert_eq!(run.check().rows(), [("a".to_owned(), true, 1)]);
    let mut run = Run::of(&graph_of(vec![planned(false)]), |_| speaks("no"));
    assert_eq!(run.check().fault().kind, FaultKind::MalformedResponse);
    assert_eq!(run.sent(0).len(), 4, "the first, and three that came back");
    // E-29: what could not be used is no success that a resumed run may take.
    let from = run.events.len();
    run.world = world;
    run.resume();
    assert_eq!(
        (run.status(), run.sent(from).len()),
        (RunStatus::Completed, 6),
        "four plans, the compiler, the step"
    );
}

/// E-29: neither is a plan that the compiler refused.
#[test]
fn refused_plans_are_asked_for_again() {
    let refused = |_: &Asked| says(&json!({"steps": [{"id": "a", "tool": "unknown"}]}));
    let mut run = Run::of(&graph_of(vec![planned(false)]), refused);
    assert_eq!(run.status(), RunStatus::Failed);
    run.world = |asked| match asked.what.as_str() {
        "steps" => says(&json!({"steps": [{"id": "a", "tool": "read"}]})),
        _ => gives(json!(1)),
    };
    run.resume();
    run.check();
    assert_eq!((run.status(), run.output("a")), (RunStatus::Completed, json!(1)));
}

/// D-18, E-14: that a model could not be asked is known of the run, until it is resumed.
#[test]
fn models_that_could_not_be_asked_are_known() {
    let refused = |asked: &Asked| match asked.what.as_str() {
        "reflection" => {
            let fault = Fault::new(FaultKind::ProviderError, "no such key").because(json!({"status": 401}));
            Outcome::from(Failure::of(fault))
        }
        "read" => gives(json!(1)),
        _ => fails("broken"),
    };
    let steps = [step("s", "pure", json!({})).model().or("read", None), step("t", "pure", json!({}))];
    let mut run = Run::of(&graph(&steps), refused);
    run.check();
    let unasked: Vec<(Option<&str>, &str)> =
        run.state.unasked().iter().map(|fault| (fault.node.as_deref(), fault.message.as_str())).collect();
    assert_eq!(unasked, [(Some("s"), "no such key")]);
    assert!(run.events.iter().any(|event| matches!(event, Event::Recovered(_))));
    run.world = |_| gives(json!(2));
    run.resume();
    assert_eq!((run.status(), run.state.unasked().len()), (RunStatus::Completed, 0));
}
