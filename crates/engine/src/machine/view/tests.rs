//! A look costs what it shows, however long the run is and however many paths it has: counted, not timed.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use crate::{Graph, Input, ModelReply, Outcome, Slice, State, work};
use serde_json::{Value, json};
use std::sync::Arc;

fn flow(nodes: Value, graphs: Value) -> Value {
    json!({"threads": [{"name": "main"}], "control": "flow", "nodes": nodes, "graphs": graphs, "tools": {}})
}

fn says(id: &str, ways: Value) -> Value {
    json!({"id": id, "name": id, "ways": ways, "body": {"thread": 0, "leaves": [
        {"name": "say", "act": {"say": "go"}, "next": [{"when": "always", "to": 1}]},
        {"name": "model", "act": {"infer": {}}}]}})
}

fn opens(id: &str, act: Value, ways: Value) -> Value {
    json!({"id": id, "name": id, "ways": ways, "body": {"leaves": [{"name": "do", "act": act}]}})
}

/// A conversation of `rounds` times two messages, which a fork takes to so many paths; each says two more.
fn forked(rounds: usize, paths: usize) -> State {
    let talk = opens(
        "talk",
        json!({"loop": {"graph": 0, "times": {"count": rounds}, "limit": rounds}}),
        json!([{"when": "done", "to": 1}]),
    );
    let of = json!({"each": {"over": (0..paths).collect::<Vec<_>>(), "item": "it", "graph": 1}});
    let each = opens(
        "each",
        json!({"fork": {"of": of, "join": {"strategy": "all_completed"}}}),
        json!([{"when": "done", "to": 2}]),
    );
    let listed = json!({"listed": [["a", 2], ["b", 3]]});
    let pair =
        opens("pair", json!({"fork": {"of": listed, "join": {"strategy": "all_completed"}}}), json!([]));
    let inner = |id: &str| flow(json!([says(id, json!([]))]), json!([]));
    let graphs = json!([inner("round"), inner("argue"), inner("left"), inner("right")]);
    let graph: Graph = serde_json::from_value(flow(json!([talk, each, pair]), graphs)).unwrap();
    let mut state = State::new(Arc::new(graph));
    let mut start = crate::Start::default();
    (start.limits.loop_iterations, start.limits.fanout) = (100_000, 100_000);
    input(&mut state, Input::Start(Box::new(start)));
    while let Some(effect) = state.pending().keys().next().cloned() {
        let reply = ModelReply { text: "yes".into(), ..ModelReply::default() };
        input(&mut state, Input::Complete(effect, Outcome::Reply(Arc::new(reply)), 0, None, None));
    }
    assert_eq!(state.status(), crate::RunStatus::Completed, "{:?}", state.ended());
    state
}

fn input(state: &mut State, input: Input) {
    state.tick(1);
    let mut next = state.accept(input);
    while let Some(event) = next {
        state.apply(&event);
        next = state.step();
    }
}

/// Results and threads by name and range come by a few frames and by the messages that they show.
#[test]
fn a_look_by_name_costs_what_it_shows() {
    const FEW: usize = 40;
    let mut work_of = Vec::new();
    for (rounds, paths) in [(5, 4), (2_500, 1_000)] {
        let state = forked(rounds, paths);
        let view = state.view();
        let last = format!("each[{}]", paths - 1);
        let (result, found) =
            work::of(|| view.result(&format!("{last}/argue")).map(|result| result.output.clone()));
        assert_eq!(result, Some(json!("yes")));
        let (length, thread) = work::of(|| view.thread(&format!("{last}/main")).map(|thread| thread.len()));
        assert_eq!(length, Some(2 * rounds + 2));
        let (shown, range) = work::of(|| {
            let thread = view.thread(&format!("{last}/main")).unwrap();
            let part = thread.slice(Slice(Some(3), Some(9)));
            part.iter().count() + thread.last(2).iter().count()
        });
        assert_eq!(shown, 8);
        let (result, listed) = work::of(|| view.result("right").map(|result| result.output.clone()));
        assert_eq!(result, Some(json!("yes")));
        let (missing, nothing) =
            work::of(|| view.result("nobody").is_none() && view.thread("each[7777]/main").is_none());
        assert!(missing);
        let all = [found, thread, range, listed, nothing];
        assert!(all.iter().all(|work| *work <= FEW), "{paths} paths: {all:?}");
        work_of.push(all);
    }
    assert_eq!(work_of[0], work_of[1], "it is the same however long the run is");
}

/// The last messages of a long conversation are not walked to from its beginning.
#[test]
fn the_end_of_a_long_thread_is_near() {
    let state = forked(10_000, 1);
    assert!(state.events() > 60_000, "{} events", state.events());
    let view = state.view();
    let (shown, work) = work::of(|| view.thread("main").unwrap().last(20).iter().count());
    assert_eq!((shown, work), (20, 20));
}
