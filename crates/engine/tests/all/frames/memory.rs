//! What frames that wait take of memory.

use crate::frames::world::*;
use selvedge_engine::Limits;

/// Bytes of memory that the process has.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 4096.0
}

/// What each of these paths takes that waits for a model and has said nothing.
fn each(paths: usize, leaves: Value) -> f64 {
    let asks = json!({"id": "ask", "name": "ask", "body": {"thread": 0, "leaves": leaves}});
    let each = json!({"each": {"over": "{{all}}", "item": "it", "graph": 0}});
    let fork = json!({"of": each, "join": {"strategy": "all_completed"}});
    let graph = graph(json!([node("fork", json!({"fork": fork}), json!([]))]), json!([flow(json!([asks]))]));
    let mut state = State::new(Arc::clone(&graph));
    let initial = [("all".to_owned(), json!((0..paths).collect::<Vec<_>>()))].into_iter().collect();
    let limits = Limits { fanout: paths as u64, ..Limits::default() };
    let mut next = state.accept(Input::Start(Box::new(Start { initial, limits, ..Start::default() })));
    let before = resident();
    while let Some(event) = next {
        state.apply(&event);
        next = state.step();
    }
    assert_eq!(state.pending().len(), paths);
    (resident() - before) / paths as f64
}

#[test]
fn a_path_that_waits_for_its_model_takes_little() {
    let leaves = json!([{"name": "model", "act": {"infer": {}}}]);
    let bytes = each(10_000, leaves);
    // With its request, the element that it is for, and what the allocator adds.
    assert!(bytes <= 1_400.0, "{bytes} bytes a path");
}
