//! The proof of E-11: a derived schedule has no race, and one with a wait missing is refused.

use selvedge_engine::Graph;
use selvedge_engine::schedule::{Schedule, Unsound, Until};
use serde_json::json;

/// `b` runs on a thread that `a` appends to, `c` opens one from it, `d` reads results and names.
fn graph() -> Graph {
    let say = |text: &str| json!({"name": "prompt", "act": {"say": text}});
    let publish = json!({"name": "publish", "act": {"publish": {"to": 0, "description": "", "label": "x"}}});
    let next = |leaf: serde_json::Value, to: u32| {
        let mut leaf = leaf;
        leaf["next"] = json!([{"when": "always", "to": to}]);
        leaf
    };
    let open = |from: u32| json!({"name": "open", "act": {"open": {"from": from, "slice": [null, null]}}});
    let call = json!({"name": "call", "act": {"call": {"tool": "t", "args": {}}}});
    serde_json::from_value(json!({
        "threads": [{"name": "main", "first": "task"}, {"name": "x"}, {"name": "y"}, {"name": "z"}],
        "nodes": [
            {"id": "a", "name": "a", "body": {"thread": 1, "leaves": [next(call, 1), publish]}},
            {"id": "b", "name": "b", "body": {"thread": 0, "leaves": [say("hello")]}},
            {"id": "c", "name": "c", "body": {"thread": 2, "leaves": [open(0)]}},
            {"id": "d", "name": "d", "body": {"thread": 3, "leaves": [say("{{a.output}} {{total}}")]}},
        ],
        "tools": {"t": {"name": "t", "description": "", "input_schema": {}, "output_params": ["total"],
                        "version": "1", "source": "test"}},
    }))
    .unwrap()
}

#[test]
fn a_derived_schedule_is_proved() {
    let graph = graph();
    for sequential in [false, true] {
        assert_eq!(Schedule::derive(&graph, sequential).prove(&graph), Ok(()));
    }
}

/// Whichever wait is taken away, the proof says which two nodes nothing orders any more.
#[test]
fn no_wait_can_be_spared() {
    let graph = graph();
    let whole = Schedule::derive(&graph, false);
    let mut spared = 0;
    for (node, waits) in whole.waits.iter() {
        for until in waits.iter().map(|wait| wait.until) {
            let mut schedule = whole.clone();
            schedule.waits[node].retain(|wait| wait.until != until);
            let Err(Unsound::Race(race)) = schedule.prove(&graph) else {
                panic!("{until:?} of {node:?} is not needed")
            };
            assert_eq!(race.second, graph.nodes[node].id);
            spared += 1;
        }
    }
    assert!(spared >= 3, "only {spared} waits");
    assert!(whole.waits.values().flatten().any(|wait| matches!(wait.until, Until::Finished(_))));
}

/// P-20: a slice that is empty whatever its source holds waits for nobody.
#[test]
fn an_empty_slice_waits_for_nobody() {
    for (slice, waits) in [(json!([2, 1]), 0), (json!([-1, -1]), 0), (json!([0, 0]), 0), (json!([-2, -1]), 1)]
    {
        let mut value = serde_json::to_value(graph()).unwrap();
        value["nodes"][2]["body"]["leaves"][0]["act"]["open"]["slice"] = slice.clone();
        let graph: Graph = serde_json::from_value(value).unwrap();
        let schedule = Schedule::derive(&graph, false);
        assert_eq!(schedule.waits.values().nth(2).unwrap().len(), waits, "{slice}");
        assert_eq!(schedule.prove(&graph), Ok(()));
    }
}

/// E-34: a dataflow has no variables, on whatever level it is.
#[test]
fn nobody_sets_variables_in_a_dataflow() {
    let sets =
        json!({"id": "s", "name": "s", "body": {"leaves": [{"name": "do", "act": {"set": ["x", 1]}}]}});
    let of = |control: &str| json!({"threads": [], "control": control, "nodes": [sets], "tools": {}});
    let opens =
        json!({"id": "o", "name": "o", "body": {"leaves": [{"name": "do", "act": {"sub": {"graph": 0}}}]}});
    for (root, inner, sound) in
        [("dataflow", "flow", false), ("flow", "dataflow", false), ("flow", "flow", true)]
    {
        let mut graph = of(root);
        graph["nodes"].as_array_mut().unwrap().push(opens.clone());
        graph["graphs"] = json!([of(inner)]);
        let graph: Graph = serde_json::from_value(graph).unwrap();
        let proved = Schedule::derive(&graph, false).prove(&graph);
        assert_eq!(proved.is_ok(), sound, "{root}, {inner}: {proved:?}");
        assert!(proved.is_ok() || matches!(proved, Err(Unsound::Variable { .. })));
    }
    let mut binds = of("dataflow");
    binds["nodes"][0]["body"]["leaves"][0]["act"] = json!({"bind": {}});
    let binds: Graph = serde_json::from_value(binds).unwrap();
    let proved = Schedule::derive(&binds, false).prove(&binds);
    assert!(matches!(proved, Err(Unsound::Bindings { .. })), "{proved:?}");
}
