//! `graph` (C-13): the drawing of a compiled document.

use crate::support::{Place, calls, says};
use crate::world::place;
use serde_json::json;

fn plan(place: &Place) {
    let mut side = says("side", "S");
    side["thread_id"] = json!("side");
    side["data_out"] = json!(true);
    place.plan(
        "plan.json",
        json!([calls("a", "add", json!({"a": 1, "b": 2})), side, says("b", "Add {{sum}}")]),
    );
}

#[test]
fn documents_are_drawn_in_both_languages() {
    let place = place();
    plan(&place);
    let mermaid = place.run(&["graph", "plan.json"]).exits(0);
    assert_eq!(mermaid.stderr, "");
    assert!(mermaid.stdout.starts_with("flowchart TB\n  subgraph t0[\"main\"]\n"), "{mermaid:#?}");
    for part in [
        "n0[[\"a<br/>tool add\"]]",
        "n1(\"side<br/>model\")",
        "n0 -->|\"continues, reads sum\"| n2",
        "n1 ==>|\"data_out\"| n2",
    ] {
        assert!(mermaid.stdout.contains(part), "{part}: {}", mermaid.stdout);
    }
    assert_eq!(place.run(&["graph", "plan.json", "--format", "mermaid"]).exits(0).stdout, mermaid.stdout);
    let dot = place.run(&["graph", "plan.json", "--format", "dot"]).exits(0).stdout;
    assert!(dot.starts_with("digraph \"") && dot.ends_with("}\n"), "{dot}");
    assert!(dot.contains("n1 -> n2 [label=\"data_out\", penwidth=2]"), "{dot}");
    let object = place.run(&["graph", "plan.json", "--json"]).exits(0).json();
    assert_eq!(object, json!({"format": "mermaid", "graph": mermaid.stdout, "diagnostics": []}));
    place.run(&["graph", "plan.json", "--format", "svg"]).exits(2);
    assert!(!place.state().exists(), "drawing records nothing");
}

#[test]
fn findings_are_those_of_check() {
    let place = place();
    place.write("bad.json", r#"{"task": "t", "nodes": [{"node_type": "llm-first", "node_name": "A", "thread_id": "a", "data_in_slice": [0]}]}"#);
    let bad = place.run(&["graph", "bad.json", "--json"]).exits(2);
    assert_eq!((bad.stdout.as_str(), &bad.error()["rule"]), ("", &json!("P-05")));
    assert!(place.run(&["graph", "bad.json"]).exits(2).stderr.contains("bad.json:1:"));
    place.run(&["graph", "nowhere.json"]).exits(2);
    place.write("odd.json", r#"{"task": "t", "nodes": [], "colour": 1}"#);
    let odd = place.run(&["graph", "odd.json", "--json"]).exits(0);
    assert_eq!(odd.json()["diagnostics"][0]["rule"], "E-32");
    // In a line each: `check` has the rest.
    place.run(&["check", "odd.json"]).exits(0).stderr.lines().find(|line| line.contains("help:")).unwrap();
    for command in ["graph", "run"] {
        let stderr = place.run(&[command, "odd.json"]).exits(0).stderr;
        assert!(stderr.starts_with("odd.json:1:") && stderr.contains("warning[E-32]"), "{stderr}");
        assert!(!stderr.contains("help:") && stderr.contains("`selvedge check`"), "{stderr}");
    }
    assert_eq!(place.run(&["graph", "odd.json", "-q"]).exits(0).stderr, "");
    // --plan, --dialect and --tools mean what they mean to check.
    let several = json!({"x": {"task": "t", "nodes": []}, "y": {"task": "t", "nodes": [says("why", "W")]}});
    place.write("several.json", &several.to_string());
    place.run(&["graph", "several.json"]).exits(2);
    assert!(
        place.run(&["graph", "several.json", "--plan", "y"]).exits(0).stdout.contains("\"why<br/>model\"")
    );
    place.run(&["graph", "several.json", "--plan", "y", "--dialect", "workflow"]).exits(2);
    place.plan("tool.json", json!([calls("a", "own", json!({}))]));
    place.run(&["graph", "tool.json"]).exits(2);
    place.write(
        "tools/own.py",
        "from pydantic import BaseModel\n__TOOL_META__ = {\"name\": \"own\", \"description\": \"\", \"dependencies\": [], \
         \"effects\": \"read\"}\nclass InputModel(BaseModel):\n    pass\ndef run(i):\n    return 1\n",
    );
    assert!(place.run(&["graph", "tool.json", "--tools", "tools"]).exits(0).stdout.contains("tool own"));
}
