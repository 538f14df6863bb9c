//! E-29: in a fork whose list is another than its source's, paths and iterations take what was recorded for the same element.

use super::forks::{fork_of, ids_are_new};
use super::world::*;
use selvedge_engine::Fork;

/// A fork over `{{items}}` whose paths ask a model and write.
fn paths() -> Arc<Graph> {
    let call = json!({"call": {"tool": "write", "args": {"it": "{{it}}"}}});
    let inner = flow(json!([ask("say", "about {{it}}", to(1)), node("put", call, json!([]))]));
    let of = json!({"each": {"over": "{{items}}", "item": "it", "graph": 0}});
    let paths = json!({"of": of, "join": {"strategy": "all_completed"}});
    graph(json!([node("each", json!({ "fork": paths }), json!([]))]), json!([inner]))
}

/// A loop over `{{items}}`.
fn repeated(body: Value) -> Arc<Graph> {
    let times = json!({"graph": 0, "times": {"over": ["{{items}}", "it"]}, "limit": 9});
    graph(json!([node("each", json!({ "loop": times }), json!([]))]), json!([flow(body)]))
}

fn completed(graph: &Arc<Graph>, items: Value) -> World {
    let mut world = World::begin_with(graph, json!({ "items": items }), 0);
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Completed);
    world
}

/// A fork from the beginning, with another list.
fn forked(graph: &Arc<Graph>, source: &World, at: usize, items: Value) -> World {
    let Value::Object(initial) = json!({ "items": items }) else { panic!("an object") };
    let fork = Fork {
        graph: Some("same".into()),
        compiled: Some(Arc::clone(graph)),
        initial: Some(initial),
        ..fork_of(graph, &source.journal)
    };
    World::forked(graph, &source.journal, at, fork)
}

fn used(world: &World) -> (u64, u64) {
    (world.state.usage().model_calls, world.state.usage().tool_calls)
}

#[test]
fn e29_an_element_put_in_front_asks_for_itself_only() {
    let graph = paths();
    let source = completed(&graph, json!(["b", "c", "c"]));
    let mut world = forked(&graph, &source, 1, json!(["a", "b", "c", "c"]));
    assert_eq!(world.pending(), ["each~2[0]/say~2/model/1/1"]);
    world.run(false, echo);
    assert_eq!((world.state.status(), used(&world)), (RunStatus::Completed, (1, 1)));
    let got = |it: &str| json!({"got": {"it": it}});
    assert_eq!(
        *world.state.view().output(),
        json!({"0": got("a"), "1": got("b"), "2": got("c"), "3": got("c")})
    );
    ids_are_new(&world, &source.journal, 1);
    // Forks of the fork know its elements, and those that only its source had.
    let at = world.journal.iter().position(|event| matches!(event, Event::Forked(_))).unwrap() + 1;
    for (items, asked) in [
        (json!(["a", "b", "c", "c"]), 0),
        (json!(["c", "a", "c", "b"]), 0),
        (json!(["z", "a", "b", "c", "c"]), 1),
        (json!(["c"]), 0),
    ] {
        let mut again = forked(&graph, &world, at, items.clone());
        again.run(false, echo);
        assert_eq!(again.state.status(), RunStatus::Completed, "{items}");
        assert_eq!(used(&again), (asked, asked), "{items}");
        ids_are_new(&again, &world.journal, at);
    }
    // Where nothing is edited it goes on where it stood.
    for at in at..world.journal.len() {
        let again = World::forked(&graph, &world.journal, at, fork_of(&graph, &world.journal));
        assert_eq!((again.state.status(), used(&again)), (RunStatus::Completed, (0, 0)), "at {at}");
        ids_are_new(&again, &world.journal, at);
    }
}

/// Its number is that of an element which is there no more: the write of that was another.
#[test]
fn e29_a_changed_element_keeps_its_place() {
    let graph = paths();
    let source = completed(&graph, json!(["a", "b"]));
    let mut world = forked(&graph, &source, 1, json!(["a", "x"]));
    assert_eq!(world.pending(), ["each~2[1]/say~2/model/1/1"]);
    world.run(false, echo);
    assert_eq!((world.state.status(), used(&world)), (RunStatus::Completed, (1, 1)));
}

/// Of two equal elements one has what was recorded; the other is new, and does all of its own.
#[test]
fn e29_one_more_equal_element_is_a_new_one() {
    let graph = paths();
    let source = completed(&graph, json!(["a"]));
    let mut world = forked(&graph, &source, 1, json!(["a", "a"]));
    assert_eq!(world.pending(), ["each~2[1]/say/model/1/1"]);
    world.run(false, echo);
    assert_eq!((world.state.status(), used(&world)), (RunStatus::Completed, (1, 1)));
}

#[test]
fn e29_iterations_that_do_not_see_each_other_take_what_is_theirs() {
    let call = json!({"call": {"tool": "note", "args": {"it": "{{it}}"}}});
    let graph = repeated(json!([node("look", call, json!([]))]));
    let source = completed(&graph, json!(["b", "c"]));
    let mut world = forked(&graph, &source, 1, json!(["a", "b", "c"]));
    assert_eq!(world.pending(), ["each~2#0/look~2/do/1/1"]);
    world.run(false, echo);
    assert_eq!((world.state.status(), used(&world)), (RunStatus::Completed, (0, 1)));
}

/// Each iteration hears those before it: the request says something else.
#[test]
fn e29_iterations_on_one_thread_are_asked_again() {
    let graph = repeated(json!([ask("say", "{{it}}", json!([]))]));
    let source = completed(&graph, json!(["b", "c"]));
    let mut world = forked(&graph, &source, 1, json!(["a", "b", "c"]));
    world.run(false, echo);
    assert_eq!((world.state.status(), used(&world)), (RunStatus::Completed, (3, 0)));
    let mut world = forked(&graph, &source, 1, json!(["b", "c", "d"]));
    world.run(false, echo);
    assert_eq!((world.state.status(), used(&world)), (RunStatus::Completed, (1, 0)));
}

/// What is written afresh in an iteration changes the world for those behind it.
#[test]
fn e29_a_write_behind_a_new_iteration_asks_first() {
    let call = json!({"call": {"tool": "write", "args": {"it": "{{it}}"}}});
    let graph = repeated(json!([node("put", call, json!([]))]));
    let source = completed(&graph, json!(["b"]));
    let mut world = forked(&graph, &source, 1, json!(["a", "b"]));
    assert_eq!(world.pending(), ["each~2#0/put~2/do/1/1"]);
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Waiting);
    let asks: Vec<&str> = world.state.asks().keys().map(|ask| &**ask).collect();
    assert!(asks.len() == 1 && asks[0].starts_with("each~2#1/put"), "{asks:?}");
}
