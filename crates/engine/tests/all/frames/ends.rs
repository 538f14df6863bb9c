//! E-34: what nodes behind a fork, a loop or a fault see of it: by which id, and why it failed.

use super::world::*;

fn known_as(mut node: Value, id: &str) -> Value {
    node["end"] = json!(id);
    node
}

fn of_paths(strategy: &str) -> Value {
    let paths = json!({"of": {"listed": [["a", 0], ["b", 1]]}, "join": {"strategy": strategy, "main": "a"}});
    known_as(
        node(
            "fork",
            json!({ "fork": paths }),
            json!([{"when": "done", "to": 1}, {"when": "fault", "to": 2}]),
        ),
        "join",
    )
}

fn world(strategy: &str) -> (World, Arc<Graph>) {
    let nodes = json!([
        of_paths(strategy),
        node("met", json!({"give": {"all": "{{join}}", "one": "{{join.output.a}}"}}), json!([])),
        node("unmet", json!({"give": "{{join.error.kind}} {{fork.error.cause.b.status}}"}), json!([])),
    ]);
    let path = || flow(json!([ask("say", "{{name}}", json!([]))]));
    let graph = graph(nodes, json!([path(), path()]));
    (World::begin_with(&graph, json!({"name": "x"}), 0), graph)
}

#[test]
fn e34_a_fork_is_known_by_its_join() {
    let (mut world, graph) = world("all_completed");
    world.run(false, |_| reply("yes"));
    assert_eq!(*world.state.view().output(), json!({"all": {"a": "yes", "b": "yes"}, "one": "yes"}));
    let results: Vec<String> = world.state.view().results().map(|row| row.step_id.to_owned()).collect();
    assert_eq!(results, ["say", "say", "join", "met"], "W-03: nodes of paths keep their ids");
    goes_on(&world, &graph, 0);
}

#[test]
fn e34_a_fault_that_was_handled_says_why() {
    let (mut world, graph) = world("all_failed");
    world.complete("fork~1[a]/say/model/1/1", fails("broken"));
    world.complete("fork~1[b]/say/model/1/1", reply("yes"));
    assert_eq!(world.state.status(), RunStatus::Completed);
    assert_eq!(*world.state.view().output(), json!("join_unmet completed"));
    let join = world.state.view().result("join").unwrap();
    assert_eq!((join.is_success, join.output), (false, &Value::Null));
    goes_on(&world, &graph, 0);
}

/// After an unmet join that nobody handles, only the path that failed runs again.
#[test]
fn e36_a_fork_that_is_known_by_its_join_goes_on_inside() {
    let (mut world, graph) = world("all_completed");
    let mut value = serde_json::to_value(&*graph).unwrap();
    value["nodes"][0]["ways"] = to(1);
    let graph: Arc<Graph> = Arc::new(serde_json::from_value(value).unwrap());
    world = World::again(&graph, &world.journal[..1]);
    world.complete("fork~1[a]/say/model/1/1", reply("yes"));
    world.complete("fork~1[b]/say/model/1/1", fails("broken"));
    assert_eq!(world.state.status(), RunStatus::Failed);
    world.resume();
    assert_eq!(world.pending(), ["fork~1[b]/say~2/model/1/1"]);
    world.run(false, |_| reply("now"));
    assert_eq!(world.state.view().output()["all"], json!({"a": "yes", "b": "now"}));
}

/// What passes has the result of the node before it, for results and placeholders alike.
#[test]
fn e34_what_passes_has_the_result_of_the_node_before() {
    let mut pass = node("set", json!({"set": ["x", 1]}), to(2));
    pass["passes"] = json!(true);
    let nodes =
        json!([ask("a", "hi", to(1)), pass, node("end", json!({"give": ["{{set}}", "{{x}}"]}), json!([]))]);
    let graph = graph(nodes, json!([]));
    let mut world = World::begin(&graph);
    world.run(false, |_| reply("yes"));
    assert_eq!(*world.state.view().output(), json!(["yes", 1]));
    goes_on(&world, &graph, 0);
}

/// A way that is asked for leads to a node that no frame of that graph has come to.
#[test]
fn e34_a_condition_within_a_path_leads_to_a_node_that_is_new_there() {
    let ways = json!([{"when": {"holds": {"expression": "first.output == 'no'"}}, "to": 2}, {"when": "done", "to": 1}]);
    let path = flow(json!([
        ask("first", "?", ways),
        node("a", json!({"give": 1}), json!([])),
        node("b", json!({"give": 2}), json!([]))
    ]));
    let paths = json!({"of": {"listed": [["x", 0], ["y", 0]]}, "join": {"strategy": "all_completed"}});
    let graph = graph(json!([node("fork", json!({ "fork": paths }), json!([]))]), json!([path]));
    let mut world = World::begin(&graph);
    world.complete("fork~1[x]/first/model/1/1", reply("no"));
    world.complete("fork~1[y]/first/model/1/1", reply("yes"));
    assert_eq!(*world.state.view().output(), json!({"x": 2, "y": 1}));
    goes_on(&world, &graph, 0);
}
