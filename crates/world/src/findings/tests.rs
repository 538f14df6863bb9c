#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use selvedge_engine::{Graph, RunStatus, Start};

/// A model that says something, which is the output.
fn says() -> World {
    let graph: Graph = serde_json::from_str(
        r#"{"threads": [{"name": "main", "first": "Say it"}],
            "nodes": [{"id": "n1", "name": "say", "body": {"thread": 0, "leaves": [
                {"name": "model", "act": {"infer": {}}}]}}],
            "tools": {}}"#,
    )
    .unwrap();
    World::new(Arc::new(graph), Start::default())
}

/// The runs of the first two seeds that complete with different words.
fn two(world: &World) -> [Trial; 2] {
    let mut runs = (1..).map(|seed| world.run(&Luck::of(seed), None));
    let mut completes = || runs.find(|trial| trial.state.status() == RunStatus::Completed).unwrap();
    let first = completes();
    loop {
        let second = completes();
        if second.state.view().output() != first.state.view().output() {
            return [first, second];
        }
    }
}

/// The canary of what no sound run shows: runs that come to something else are told apart.
#[test]
fn other_ends_are_seen() {
    let world = says();
    let eye = Eye::of(&world);
    let [first, second] = two(&world);
    let raised = eye.of_crash(&first, &second);
    assert_eq!(raised.iter().map(|raised| raised.kind).collect::<Vec<_>>(), [Kind::ResumeDiffers]);
    assert_eq!(eye.of_orders(&first, &second).map(|raised| raised.kind), Some(Kind::OrderDependent));
    assert!(eye.of_crash(&first, &first).is_empty());
    assert!(eye.of_orders(&first, &first).is_none());
}

/// A crash at any event changes nothing (E-05), and what is spared a run is not what happens to it otherwise.
#[test]
fn crashes_and_spared_faults() {
    let world = says();
    for seed in 1..60 {
        let luck = Luck::of(seed);
        let first = world.run(&luck, None);
        for events in 1..first.records.len() {
            let second = world.resume(&luck, &first, events);
            assert_eq!(
                difference(&first.state, &second.state),
                None,
                "seed {seed}, crash after event {events}"
            );
            assert_eq!(second.hits.last(), Some(&Hit::Crash(events)));
        }
        let spared = world.run(&luck.sparing(&first.hits), None);
        assert!(!spared.hits.iter().any(|hit| first.hits.contains(hit)), "seed {seed}: {:?}", spared.hits);
    }
}
