use super::*;
use serde_json::{Value, json};

/// A graph of nodes on threads: `(id, thread, acts)`.
fn graph(threads: &[&str], nodes: Value, tools: Value) -> Graph {
    let mut all = vec![json!({"name": "main", "first": "t"})];
    all.extend(threads.iter().map(|name| json!({"name": name})));
    serde_json::from_value(json!({"threads": all, "nodes": nodes, "tools": tools})).unwrap()
}

fn says(id: &str, thread: u32, open: Option<(u32, Value)>, publish: Option<u32>, text: &str) -> Value {
    let mut leaves = Vec::new();
    if let Some((from, slice)) = open {
        leaves.push(json!({"name": "open", "act": {"open": {"from": from, "slice": slice}}}));
    }
    leaves.push(json!({"name": "prompt", "act": {"say": text}}));
    leaves.push(json!({"name": "model", "act": {"infer": {}}}));
    if let Some(to) = publish {
        leaves.push(
            json!({"name": "publish", "act": {"publish": {"to": to, "description": "", "label": "x"}}}),
        );
    }
    let count = leaves.len();
    for (at, leaf) in leaves.iter_mut().enumerate() {
        if at + 1 < count {
            leaf["next"] = json!([{"when": "always", "to": at + 1}]);
        }
    }
    json!({"id": id, "name": id, "body": {"thread": thread, "leaves": leaves}})
}

fn calls(id: &str, thread: u32, open: bool, tool: &str) -> Value {
    let mut leaves = Vec::new();
    if open {
        leaves.push(json!({"name": "open", "act": {"open": {"from": 0, "slice": [0, 1]}},
                           "next": [{"when": "always", "to": 1}]}));
    }
    leaves.push(json!({"name": "call", "act": {"call": {"tool": tool, "args": {}}}}));
    json!({"id": id, "name": id, "body": {"thread": thread, "leaves": leaves}})
}

fn tool(name: &str, effects: &str) -> Value {
    json!({"name": name, "description": "", "input_schema": true, "output_params": [], "effects": effects,
           "version": "1", "source": "test"})
}

/// `[[(id, why)]]` with the calls that nodes make in any case.
fn waits(graph: &Graph) -> Vec<Vec<(String, String)>> {
    let schedule = Schedule::derive(graph, false);
    let all = all(graph, &schedule, |node| schedule.world[node]);
    let name = |waited: &Waited| (graph.nodes[waited.node].id.to_string(), waited.why.clone());
    all.iter().map(|list| list.iter().map(name).collect()).collect()
}

fn row(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(id, why)| ((*id).to_owned(), (*why).to_owned())).collect()
}

/// P-20: of a thread only its last owner is waited for directly, and who wrote to it since.
#[test]
fn a_thread_is_waited_for_by_its_last_owner_and_what_came_after() {
    let nodes = json!([
        says("a", 0, None, None, "x"),
        says("b", 0, None, None, "x"),
        says("s", 1, Some((0, json!([0, 1]))), Some(0), "x"),
        says("c", 0, None, None, "{{a.output}}"),
        says("d", 2, Some((0, json!([-1, null]))), None, "x"),
    ]);
    let waits = waits(&graph(&["side", "late"], nodes, json!({})));
    assert_eq!(waits[0], []);
    assert_eq!(waits[1], row(&[("a", "continues thread main")]));
    assert_eq!(waits[2], [], "the task is there from the start");
    let c = [("a", "reads the result of a"), ("b", "continues thread main"), ("s", "continues thread main")];
    assert_eq!(waits[3], row(&c), "a result that is read is named though it follows");
    assert_eq!(waits[4], row(&[("c", "takes [-1, null] of thread main")]));
}

/// P-20: calls keep their turn; only the last ones before it are named.
#[test]
fn calls_wait_for_their_turn() {
    let tools =
        json!({"read": tool("read", "read"), "write": tool("write", "write"), "pure": tool("pure", "pure")});
    let nodes = json!([
        calls("r1", 1, true, "read"),
        calls("r2", 2, true, "read"),
        calls("w1", 3, true, "write"),
        calls("p", 4, true, "pure"),
        calls("r3", 5, true, "read"),
        calls("w2", 6, true, "write"),
    ]);
    let waits = waits(&graph(&["a", "b", "c", "d", "e", "f"], nodes, tools));
    assert_eq!(waits[1], [], "reads overlap");
    let all = turn(Effects::Write).unwrap();
    let looks = turn(Effects::Read).unwrap();
    assert_eq!(waits[2], row(&[("r1", all), ("r2", all)]));
    assert_eq!(waits[3], []);
    assert_eq!(waits[4], row(&[("w1", looks)]));
    assert_eq!(waits[5], row(&[("p", all), ("r3", all)]), "the rest follows from r3");
}

/// Reasons for one node are joined; a name that several may supply names those that nothing else waited for.
#[test]
fn names_wait_for_those_that_may_supply_them() {
    let mut any = tool("any", "pure");
    any.as_object_mut().unwrap().remove("output_params");
    let nodes = json!([
        calls("a", 0, false, "any"),
        calls("b", 0, false, "any"),
        calls("c", 1, true, "any"),
        says("d", 0, None, None, "{{x}} {{b.output}}"),
    ]);
    let waits = waits(&graph(&["side"], nodes, json!({"any": any})));
    let d = [("b", "continues thread main; reads the result of b"), ("c", "reads x")];
    assert_eq!(waits[3], row(&d));
}

#[test]
fn a_sequential_run_waits_for_the_node_before() {
    let nodes = json!([says("a", 0, None, None, "x"), calls("b", 1, true, "t"), calls("c", 2, true, "t")]);
    let graph = graph(&["x", "y"], nodes, json!({"t": tool("t", "pure")}));
    let schedule = Schedule::derive(&graph, true);
    let all = all(&graph, &schedule, |_| None);
    assert_eq!(all[2], [Waited { node: NodeIx(1), why: "sequential execution".into() }]);
}

/// A chain and a fan of many nodes stay lists of single nodes.
#[test]
fn lists_stay_short() {
    let nodes: Vec<Value> = (0..400).map(|at| calls(&format!("n{at}"), 0, false, "t")).collect();
    let mut any = tool("t", "write");
    any.as_object_mut().unwrap().remove("output_params");
    let waits = waits(&graph(&[], Value::from(nodes), json!({"t": any})));
    assert!(waits.iter().skip(1).all(|list| list.len() == 1), "{waits:?}");
    // Each sends to main and has taken all of it: the last one stands for those before it.
    let send = |at: u32| says(&format!("n{at}"), at + 1, Some((0, json!([null, null]))), Some(0), "x");
    let threads: Vec<String> = (0..400).map(|at| format!("t{at}")).collect();
    let threads: Vec<&str> = threads.iter().map(String::as_str).collect();
    let waits = self::waits(&graph(&threads, (0..400).map(send).collect(), json!({})));
    assert!(waits.iter().skip(OF_A_THREAD + 2).all(|list| list.len() == 1), "{waits:?}");
}
