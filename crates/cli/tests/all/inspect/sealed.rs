//! A run in one file says what it says at each of its events (S-31).

use crate::support::Place;
use serde_json::{Map, Value, json};

/// What lies in the page.
fn inside(html: &str) -> Value {
    let (_, data) = html.split_once("id=\"run-inside\">").expect("a run is inside");
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

/// Each thread's messages as of an event, by who says them.
fn then(threads: &Map<String, Value>, n: u64) -> Map<String, Value> {
    let during =
        |from: &Value, to: &Value| from.as_u64().unwrap() <= n && to.as_u64().is_none_or(|to| n < to);
    let has =
        |thread: &Value| thread["there"].as_array().unwrap().iter().any(|span| during(&span[0], &span[1]));
    let there = threads.iter().filter(|(_, thread)| has(thread)).map(|(name, thread)| {
        let messages = thread["messages"].as_array().unwrap().iter();
        let there = messages.filter(|message| during(&message["n"], &message["gone"]));
        (name.clone(), there.map(said).collect::<Value>())
    });
    there.collect()
}

fn said(message: &Value) -> Value {
    json!([message["role"], message["content"]])
}

#[test]
fn s31_what_is_taken_from_a_thread_is_there_until_then() {
    let place = Place::new();
    // Between two rounds its thread is not there.
    let inner = json!({"name": "inner", "task": "within", "nodes": [
        {"id": "s", "type": "START"}, {"id": "x", "type": "LLM", "config": {"prompt": "in"}}, {"id": "e", "type": "END"}],
        "edges": [{"from": "s", "to": "x"}, {"from": "x", "to": "e"}]});
    let ids =
        ["start", "round", "one", "two", "cut", "brief", "three", "only", "sub", "good", "again", "end"];
    let configs = [
        json!(null),
        json!({"count": 3, "limit": 5}),
        json!({"prompt": "first {{index}}"}),
        json!({"prompt": "second"}),
        json!({"op": "trim", "keep": 3}),
        json!({"op": "summarise", "keep": 2}),
        json!({"prompt": "third", "thread": "side"}),
        json!({"op": "filter", "roles": ["user"], "thread": "side"}),
        json!({"workflow": inner}),
        json!({"loop": "round"}),
        json!({"op": "clear"}),
        json!({"output": "done"}),
    ];
    let types = [
        "START",
        "LOOP_START",
        "LLM",
        "LLM",
        "CONTEXT",
        "CONTEXT",
        "LLM",
        "CONTEXT",
        "SUBGRAPH",
        "LOOP_END",
        "CONTEXT",
        "END",
    ];
    let nodes = ids.iter().zip(types).zip(configs);
    let nodes: Vec<Value> = nodes
        .map(|((id, kind), config)| match config.is_null() {
            true => json!({"id": id, "type": kind}),
            false => json!({"id": id, "type": kind, "config": config}),
        })
        .collect();
    let edges: Vec<Value> = ids.windows(2).map(|pair| json!({"from": pair[0], "to": pair[1]})).collect();
    place.write(
        "flow.json",
        &json!({"name": "cuts", "task": "hello", "nodes": nodes, "edges": edges}).to_string(),
    );
    place.write("replies.yaml", "- reply: {text: \"as it may be\"}\n");
    place.run(&["run", "flow.json", "--script", "replies.yaml", "--run-id", "cuts"]).exits(0);
    place.run(&["export", "cuts", "--html", "cuts.html"]).exits(0);
    let inside = inside(&std::fs::read_to_string(place.work().join("cuts.html")).unwrap());
    let threads = inside["threads"].as_object().unwrap();
    let events = inside["events"].as_array().unwrap().len() as u64;
    for n in 1..=events {
        let shown = place.run(&["show", "cuts", "--at", &n.to_string(), "--json"]).exits(0).json();
        let shown = shown["threads"].as_object().unwrap().iter().map(|(name, messages)| {
            (name.clone(), messages.as_array().unwrap().iter().map(said).collect::<Value>())
        });
        assert_eq!(then(threads, n), shown.collect::<Map<String, Value>>(), "at event {n}");
    }
}
