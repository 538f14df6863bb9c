//! A join's time is a timer in the journal (E-37).

use super::world::*;

fn timed() -> Arc<Graph> {
    let paths = json!({"of": {"listed": [["a", 0], ["b", 0]]},
                       "join": {"strategy": "all_completed", "main": "a", "timeout_s": 1.5}});
    let nodes = json!([
        node("both", json!({"fork": paths}), json!([{"when": "fault", "to": 1}])),
        ask("late", "{{x}}", json!([]))
    ]);
    graph(nodes, json!([flow(json!([ask("say", "hi", json!([]))]))]))
}

fn begin(graph: &Arc<Graph>) -> World {
    World::begin_with(graph, json!({"x": "too late"}), 10_000)
}

#[test]
fn e37_a_join_whose_time_is_up_is_the_fault_timeout() {
    let graph = timed();
    let mut world = begin(&graph);
    world.complete("both~1[a]/say/model/1/1", reply("A"));
    let timers: Vec<(String, i64)> =
        world.state.timers().iter().map(|(id, wait)| (id.to_string(), wait.until)).collect();
    assert_eq!(timers, [("both/do".to_owned(), 11_500)]);
    world.input(Input::Fire("both/do".into()));
    assert_eq!(world.pending(), ["late/model/1/1"], "what had not ended is cut off");
    let finished = world.journal.iter().find_map(|event| match event {
        Event::NodeFinished { fault: Some(fault), .. } => Some(fault.clone()),
        _ => None,
    });
    let fault = finished.unwrap();
    assert_eq!(fault.kind, FaultKind::Timeout);
    assert!(fault.message.contains("`a` completed, `b` had not ended"), "{}", fault.message);
    let before = world.journal.len();
    world.input(Input::Fire("both/do".into()));
    assert_eq!(world.journal.len(), before, "a timer fires once");
    replays_from(&world, &graph, 10_000);
}

#[test]
fn a_join_that_is_decided_in_time_has_no_timer_left() {
    let graph = timed();
    let mut world = begin(&graph);
    world.run(false, echo);
    assert_eq!((world.state.status(), world.state.timers().len()), (RunStatus::Completed, 0));
    replays_from(&world, &graph, 10_000);
}
