//! E-20: what a node, a path, an iteration and what is below them may use.

use super::world::*;
use selvedge_engine::Tokens;

/// A reply that has used so many tokens.
fn used(text: &str, input: u64) -> Outcome {
    let tokens = Tokens { input, ..Tokens::default() };
    Outcome::Reply(Arc::new(ModelReply { text: text.into(), tokens, ..ModelReply::default() }))
}

fn capped(mut node: Value, budget: Value) -> Value {
    node["budget"] = budget;
    node
}

/// On a success to the first, on a fault to the second.
fn either(done: u32, fault: u32) -> Value {
    json!([{"when": "done", "to": done}, {"when": "fault", "to": fault}])
}

/// `debate` between two paths of two questions each, and where it goes on.
fn debate(budget: Value, path_budget: Value, strategy: &str) -> Arc<Graph> {
    let mut path = flow(json!([ask("first", "a", to(1)), ask("second", "b", json!([]))]));
    if !path_budget.is_null() {
        path["budget"] = path_budget;
    }
    let paths = json!({"of": {"listed": [["x", 0], ["y", 0]]}, "join": {"strategy": strategy, "main": "x"}});
    let mut open = node("debate", json!({ "fork": paths }), either(1, 2));
    if !budget.is_null() {
        open = capped(open, budget);
    }
    graph(json!([open, ask("done", "done", json!([])), ask("broke", "broke", json!([]))]), json!([path]))
}

fn fault_of(world: &World, node: &str) -> Fault {
    let found = world.journal.iter().find_map(|event| match event {
        Event::NodeFinished { node: name, fault, .. } if **name == *node => fault.as_deref().cloned(),
        Event::Unrouted { node: name, fault } if **name == *node => Some(Fault::clone(fault)),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{node} did not fail"))
}

#[test]
fn a_fork_that_has_used_up_its_budget_ends_with_all_below_it() {
    let graph = debate(json!({"tokens": 10}), Value::Null, "all_completed");
    let mut world = World::begin(&graph);
    world.complete("debate~1[x]/first/model/1/1", used("X", 4));
    world.complete("debate~1[y]/first/model/1/1", used("Y", 7));
    assert_eq!(
        world.pending(),
        ["broke/model/1/1"],
        "what was under way is over, and the error way is taken"
    );
    let fault = fault_of(&world, "debate");
    assert_eq!((fault.kind, fault.node.as_deref()), (FaultKind::BudgetExceeded, Some("debate")));
    assert_eq!(fault.message, "`debate` has used up its budget of 10 tokens (11 used there and below)");
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Completed);
    goes_on(&world, &graph, 0);
}

#[test]
fn a_path_that_has_used_up_its_budget_is_one_that_has_failed() {
    let graph = debate(Value::Null, json!({"tokens": 5}), "any_completed");
    let mut world = World::begin(&graph);
    world.complete("debate~1[x]/first/model/1/1", used("X", 5));
    assert_eq!(world.pending(), ["debate~1[y]/first/model/1/1"], "each path has a budget of its own");
    let fault = fault_of(&world, "debate~1[x]/");
    assert_eq!((fault.kind, fault.node.as_deref()), (FaultKind::BudgetExceeded, Some("debate~1[x]")));
    world.complete("debate~1[y]/first/model/1/1", used("Y", 4));
    assert_eq!(
        world
            .state
            .path_usage(&"debate".into())
            .iter()
            .map(|(id, used)| (&**id, used.tokens.input))
            .collect::<Vec<_>>(),
        [("x", 5), ("y", 4)]
    );
    world.complete("debate~1[y]/second/model/1/1", used("Z", 4));
    assert_eq!(world.pending(), ["done/model/1/1"], "nothing is asked any more for which the budget counts");
    world.run(false, echo);
    goes_on(&world, &graph, 0);
}

#[test]
fn an_unmet_join_still_says_what_its_paths_have_used() {
    let graph = debate(Value::Null, Value::Null, "all_completed");
    let mut world = World::begin(&graph);
    world.complete("debate~1[x]/first/model/1/1", used("X", 5));
    world.complete("debate~1[y]/first/model/1/1", used("Y", 2));
    world.complete("debate~1[y]/second/model/1/1", fails("no"));
    let rows = world.state.path_usage(&"debate".into());
    assert_eq!(rows.iter().map(|(_, used)| used.tokens.input).collect::<Vec<_>>(), [5, 2]);
    // The second request of `x` was cut off, that of `y` failed: both were sent (E-20).
    assert_eq!(rows.iter().map(|(_, used)| used.model_calls).collect::<Vec<_>>(), [2, 2]);
    assert!(world.state.path_usage(&"done".into()).is_empty());
}

#[test]
fn calls_under_way_count_before_they_are_answered() {
    let path = flow(json!([ask("say", "{{it}}", json!([]))]));
    let each = |serial: bool| {
        let of = json!({"each": {"over": [1, 2, 3], "item": "it", "graph": 0}});
        let paths = json!({"of": of, "serial": serial, "join": {"strategy": "all_completed"}});
        let open = capped(node("each", json!({ "fork": paths }), either(1, 2)), json!({"calls": 2}));
        let after = [ask("done", "done", json!([])), ask("broke", "broke", json!([]))];
        graph(json!([open, after[0], after[1]]), json!([path]))
    };
    let world = World::begin(&each(false));
    assert_eq!(world.pending(), ["broke/model/1/1"], "three at once are more than two");
    let mut world = World::begin(&each(true));
    world.complete("each~1[0]/say/model/1/1", used("", 1));
    world.complete("each~1[0]/say/model/1/2", used("at last", 1));
    assert_eq!(world.pending(), ["broke/model/1/1"], "an empty reply has cost a call, too");
    goes_on(&world, &each(true), 0);
}

#[test]
fn the_outermost_budget_that_is_used_up_decides() {
    let inner =
        flow(json!([capped(ask("say", "a", to(1)), json!({"calls": 9})), ask("more", "b", json!([]))]));
    let round = json!({"loop": {"graph": 1, "times": {"count": 5}, "limit": 5}});
    let middle = flow(json!([
        capped(node("round", round, json!([{"when": "fault", "to": 1}])), json!({"calls": 4})),
        ask("caught", "inside", json!([]))
    ]));
    for (outer, wanted) in [(3, "broke/model/1/1"), (4, "broke/model/1/1"), (5, "sub~1/caught/model/1/1")] {
        let open = capped(node("sub", json!({"sub": {"graph": 0}}), either(1, 2)), json!({"calls": outer}));
        let nodes = json!([open, ask("done", "done", json!([])), ask("broke", "broke", json!([]))]);
        let graph = graph(nodes, json!([middle, inner]));
        let mut world = World::begin(&graph);
        while world.pending().iter().all(|effect| effect.contains("round")) {
            let effect = world.pending().remove(0);
            world.complete(&effect, used("yes", 1));
        }
        assert_eq!(world.pending(), [wanted], "{outer}");
        assert_eq!(world.state.usage().model_calls, outer.min(4));
        world.run(false, |_| used("so", 1));
        goes_on(&world, &graph, 0);
    }
}

#[test]
fn a_resume_gives_nothing_back() {
    let tools = json!({"id": "work", "name": "work", "budget": {"calls": 2}, "body": {"thread": 0, "tools": ["note"], "max_rounds": 9,
        "leaves": [
            {"name": "say", "act": {"say": "go"}, "next": [{"when": "always", "to": 1}]},
            {"name": "model", "act": {"infer": {"offer_tools": true}}, "next": [{"when": "calls", "to": 2}]},
            {"name": "tools", "act": {"answer": {"run": true, "retry": {}}}, "next": [{"when": "always", "to": 1}]}]}});
    let call = |n: u32| {
        let call = selvedge_engine::ToolCall {
            id: format!("c{n}").into(),
            name: "note".into(),
            arguments: json!({}),
        };
        Outcome::Reply(Arc::new(ModelReply { calls: vec![call], ..ModelReply::default() }))
    };
    let graph = graph(json!([tools]), json!([]));
    let mut world = World::begin(&graph);
    for round in 1..=2 {
        world.complete(&format!("work/model/{round}/1"), call(round));
        world.complete(&format!("work/tools.0/{round}/1"), Outcome::Output(Arc::new(json!("noted"))));
    }
    assert_eq!(world.state.status(), RunStatus::Failed);
    assert_eq!(
        fault_of(&world, "work").message,
        "`work` has used up its budget of 2 calls (2 used there and below)"
    );
    world.resume();
    assert_eq!(
        world.state.status(),
        RunStatus::Failed,
        "what was answered is taken again, and nothing new is asked"
    );
    assert_eq!(world.state.usage().model_calls, 2);
    let again = World::again(&graph, &world.journal);
    assert_eq!(again.state.status(), RunStatus::Failed);
    replays(&world, &graph);
}

#[test]
fn a_node_of_a_dataflow_may_go_on_without_its_result() {
    let mut first = capped(ask("a", "one", json!([])), json!({"cost": 0.0}));
    first["on_error"] = json!("continue");
    let graph = json!({"threads": [{"name": "main", "first": "task"}], "tools": {}, "nodes": [first, ask("b", "two", json!([]))]});
    let graph: Arc<Graph> = Arc::new(serde_json::from_value(graph).unwrap());
    let mut world = World::begin(&graph);
    assert_eq!(world.pending(), ["b/model/1/1"]);
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Completed);
    assert_eq!(fault_of(&world, "a").kind, FaultKind::BudgetExceeded);
    goes_on(&world, &graph, 0);
}

#[test]
fn a_fork_of_a_run_has_used_nothing_yet() {
    let graph = debate(json!({"tokens": 10}), Value::Null, "all_completed");
    let mut world = World::begin(&graph);
    world.complete("debate~1[x]/first/model/1/1", used("X", 9));
    let mut fork = World::again(&graph, &world.journal);
    fork.input(Input::Fork(Box::default()));
    assert!(fork.state.path_usage(&"debate".into()).iter().all(|(_, used)| used.tokens.input == 0));
    for _ in 0..2 {
        let effect = fork.pending().remove(0);
        fork.complete(&effect, used("F", 4));
    }
    assert_eq!(fork.state.status(), RunStatus::Running);
    assert!(fork.pending().iter().all(|effect| effect.starts_with("debate")), "{:?}", fork.pending());
    replays(&fork, &graph);
}
