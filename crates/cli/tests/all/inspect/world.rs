//! Runs of every status, made by the binary itself.

use crate::support::{Place, calls, finish, says, wait_for};
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::{Duration, Instant};

/// A folder with two command tools: `add`, which adds, and `may`, which works once the file `ok` is there.
pub(crate) fn place() -> Place {
    let place = Place::new();
    let ok = place.work().join("ok");
    let add =
        "import json,sys; a=json.load(sys.stdin); print(json.dumps({'sum': a['a']+a['b'], 'by': 'add'}))";
    let toml = format!(
        r#"
        [tools.command.add]
        command = ["python3", "-c", "{add}"]
        description = "adds"
        effects = "pure"
        input_schema = {{ type = "object", properties = {{ a = {{ type = "number" }}, b = {{ type = "number" }} }} }}
        output_params = ["sum", "by"]
        [tools.command.may]
        command = ["sh", "-c", "test -f {} && echo '\"it works\"'"]
        description = "works once the file is there"
        effects = "read"
        input_schema = {{ type = "object" }}
        "#,
        ok.display()
    );
    place.write("selvedge.toml", &toml);
    place
}

/// `{"sum": 5, "by": "add"}` at node `a`, a model that calls tools at `b`, and a last word at `c`.
pub(crate) fn completed(place: &Place, id: &str) -> Value {
    let mut ask = says("b", "Add {{sum}} and {{topic}}");
    ask["tools"] = json!(["add"]);
    ask["enable_tool_loop"] = json!(true);
    let nodes = json!([calls("a", "add", json!({"a": 2, "b": 3})), ask, says("c", "And now?")]);
    let plan =
        json!({"task": "the task", "name": "sums", "metadata": {"topic": 7, "by": "hand"}, "nodes": nodes});
    place.write("sums.json", &plan.to_string());
    place.write(
        "sums.yaml",
        "- when: {node: b, has_tool_result: true, nth: 2}\n  reply: {text: it is 12, usage: {input_tokens: 5}}\n\
         - when: {node: b, nth: 1}\n  reply: {tool_calls: [{name: add, arguments: {a: 5, b: 7}}]}\n\
         - when: {node: b}\n  reply: {text: it is 12, usage: {input_tokens: 5, output_tokens: 3}}\n\
         - when: {node: c}\n  reply: {text: \"done, 完了\"}\n",
    );
    place.run(&["run", "sums.json", "--script", "sums.yaml", "--run-id", id, "--json"]).exits(0).json()
}

/// Fails at node `b` until the file `ok` is there.
pub(crate) fn failed(place: &Place, id: &str) -> Value {
    let nodes = json!([calls("a", "add", json!({"a": 2, "b": 3})), calls("b", "may", json!({}))]);
    place.plan("may.json", nodes);
    place.run(&["run", "may.json", "--run-id", id, "--json"]).exits(1).json()
}

/// Waits for a person at node `a`; `b` has run.
pub(crate) fn waiting(place: &Place, id: &str) -> Value {
    let mut first = calls("a", "add", json!({"a": 2, "b": 3}));
    first["require_approval"] = json!(true);
    let mut second = calls("b", "add", json!({"a": 1, "b": 1}));
    second["thread_id"] = json!("side");
    place.plan("ask.json", json!([first, second]));
    place.run(&["run", "ask.json", "--run-id", id, "--json"]).exits(3).json()
}

/// A run whose second node takes a minute; its first has answered.
pub(crate) fn driven(place: &Place, id: &str) -> Child {
    held(place, id, "text: slow, delay_ms: 60000")
}

/// The same with another reply to `b`.
pub(crate) fn held(place: &Place, id: &str, reply: &str) -> Child {
    place.plan("slow.json", json!([says("a", "Quick"), says("b", "Slow")]));
    let quick = "- when: {node: a}\n  reply: {text: quick, usage: {input_tokens: 4, output_tokens: 2}}";
    place.write("slow.yaml", &format!("{quick}\n- when: {{node: b}}\n  reply: {{{reply}}}\n"));
    let child = place.start(&["run", "slow.json", "--script", "slow.yaml", "--run-id", id, "-q"]);
    wait_for(&place.state().join("selvedge.db"));
    first_answer(place, id);
    child
}

/// Waits until a run has an event of a kind.
pub(crate) fn until(place: &Place, id: &str, kind: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let shown = place.run(&["show", id, "--events", "--json"]).exits(0).json();
        if shown["events"].as_array().unwrap().iter().any(|event| event["kind"] == kind) {
            return;
        }
        assert!(Instant::now() < deadline, "{shown:#?}");
    }
}

/// Waits until node `a` has its result.
pub(crate) fn first_answer(place: &Place, id: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let shown = place.run(&["show", id, "--json"]);
        if shown.code == 0 && shown.json()["results"]["a"].is_object() {
            return;
        }
        assert!(Instant::now() < deadline, "{shown:#?}");
    }
}

/// A run whose driver was killed in the middle.
pub(crate) fn killed(place: &Place, id: &str) {
    let mut child = driven(place, id);
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(9));
}

/// Ends a child that this test began.
pub(crate) fn end(mut child: Child) {
    child.kill().unwrap();
    finish(child);
}
