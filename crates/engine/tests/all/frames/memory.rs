//! What frames that wait take of memory (E-34), as the allocator is asked for it.

use crate::frames::world::*;
use selvedge_engine::Limits;

const PATHS: usize = 10_000;

/// What each of many paths takes that waits for a model and has said nothing: its frame, its visit and its request, and the element
/// that it is for, if it is for one.
fn each(of: &Value) -> f64 {
    let leaves = json!([{"name": "model", "act": {"infer": {}}}]);
    let asks = json!({"id": "ask", "name": "ask", "body": {"thread": 0, "leaves": leaves}});
    let fork = json!({"of": of, "join": {"strategy": "all_completed"}});
    let graph = graph(json!([node("fork", json!({"fork": fork}), json!([]))]), json!([flow(json!([asks]))]));
    let mut state = State::new(Arc::clone(&graph));
    let initial = [("all".to_owned(), json!((0..PATHS).collect::<Vec<_>>()))].into_iter().collect();
    let limits = Limits { fanout: PATHS as u64, ..Limits::default() };
    let start = state.accept(Input::Start(Box::new(Start { initial, limits, ..Start::default() })));
    state.apply(&start.unwrap());
    let taken = allocation_counter::measure(|| {
        while let Some(event) = state.step() {
            state.apply(&event);
        }
    });
    assert_eq!(state.pending().len(), PATHS);
    taken.bytes_current as f64 / PATHS as f64
}

#[test]
fn e34_a_path_that_waits_for_its_model_takes_little() {
    let over = each(&json!({"each": {"over": "{{all}}", "item": "it", "graph": 0}}));
    let listed: Vec<Value> = (0..PATHS).map(|path| json!([path.to_string(), 0])).collect();
    let listed = each(&json!({"listed": listed}));
    assert!(over <= 600.0 && listed <= 600.0, "{over} bytes a path over a list, {listed} a path by name");
}
