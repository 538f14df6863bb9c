//! E-40: operations of Selvedge's own are effects like any other.

use super::world::*;
use selvedge_engine::{EffectId, Effects, Operated, Tokens};

/// A graph whose one node, on `main`, calls an operation, and one that speaks of what came of it.
fn operates(effects: &str) -> Arc<Graph> {
    let call = json!({"call": {"tool": "selvedge__count", "args": {"text": "{{inputs.text}}"}, "retry": {"max": 2}}});
    let graph = json!({
        "threads": [{"name": "main"}], "control": "flow",
        "nodes": [
            {"id": "count", "name": "count", "ways": to(1), "body": {"thread": 0, "leaves": [{"name": "do", "act": call}]}},
            ask("say", "it has {{count.output.tokens}}", json!([])),
        ],
        "tools": {"selvedge__count": {"name": "selvedge__count", "description": "", "effects": effects, "version": "1",
                  "source": "test", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}}}
    });
    Arc::new(serde_json::from_value(graph).unwrap())
}

fn begin(graph: &Arc<Graph>) -> World {
    World::begin_with(graph, json!({"text": "some words"}), 0)
}

fn counted() -> Outcome {
    let tokens = Tokens { input: 10, output: 3, cost: 0.5, ..Tokens::default() };
    Operated { tokens, ..Operated::from(json!({"tokens": 2})) }.into()
}

#[test]
fn e40_it_is_asked_for_by_an_event_and_leaves_no_message() {
    let graph = operates("pure");
    let mut world = begin(&graph);
    let Some(Request::Operation(asked)) = world.state.request(&EffectId("count/do/1/1".into())) else {
        panic!("an operation is asked for")
    };
    assert_eq!((&*asked.tool.name, &asked.args), ("selvedge__count", &json!({"text": "some words"})));
    world.complete("count/do/1/1", Outcome::Output(Arc::new(json!({"tokens": 2}))));
    assert_eq!(world.texts(), ["it has 2"]);
    let usage = world.state.usage();
    assert_eq!((usage.tool_calls, usage.model_calls), (0, 0));
    world.run(false, echo);
    goes_on(&world, &graph, 0);
}

#[test]
fn e40_what_it_used_counts() {
    let graph = operates("read");
    let mut world = begin(&graph);
    world.complete("count/do/1/1", counted());
    let usage = world.state.usage();
    assert_eq!((usage.tokens.input, usage.tokens.output, usage.tokens.cost), (10, 3, 0.5));
    assert_eq!(world.texts(), ["it has 2"]);
    world.run(false, echo);
    goes_on(&world, &graph, 0);
    // One that came to nothing has used something, too.
    let mut world = begin(&graph);
    let mut failure = Failure::permanent(FaultKind::ExecutionFailure, "the coder gave up");
    failure.tokens = Tokens { input: 7, ..Tokens::default() };
    world.complete("count/do/1/1", failure.into());
    assert_eq!(world.state.usage().tokens.input, 7);
    assert_eq!(world.state.status(), RunStatus::Failed);
    // An output without figures is recorded as that of a tool is.
    assert_eq!(Outcome::from(Operated::from(json!(1))), Outcome::Output(Arc::new(json!(1))));
}

/// However often it is asked again, by another attempt or another process, its key says that it is the same.
#[test]
fn e40_attempts_share_a_key_and_a_crash_asks_again() {
    for effects in ["idempotent", "write"] {
        let graph = operates(effects);
        let mut world = begin(&graph);
        world.complete("count/do/1/1", Failure::transient(FaultKind::ExecutionFailure, "busy").into());
        let again = EffectId("count/do/1/2".into());
        let pending = &world.state.pending()[&again];
        // Nobody has to be asked about one whose process died: it does nothing twice.
        assert_eq!(pending.effects, Effects::Idempotent);
        let Some(Request::Operation(asked)) = world.state.request(&again) else {
            panic!("it is asked again")
        };
        assert_eq!((&*asked.effect.0, &*asked.key().0), ("count/do/1/2", "count/do/1/1"));
        let anew = World::again(&graph, &world.journal);
        assert_eq!(anew.pending(), ["count/do/1/2"]);
    }
}

#[test]
fn e40_its_arguments_are_checked_and_no_model_may_call_it() {
    let graph = operates("pure");
    let world = World::begin_with(&graph, json!({"text": 5}), 0);
    assert_eq!(world.state.view().fault().unwrap().kind, FaultKind::InputError);
    assert_eq!(graph.offered().count(), 0);
}
