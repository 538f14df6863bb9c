//! `graph` (C-13): the drawing of a compiled document.

use super::world::place;
use crate::support::{Place, calls, says};
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

/// C-13: of a run, colours and words say what became of each node.
#[test]
fn a_run_is_drawn_with_what_became_of_its_nodes() {
    let place = place();
    super::world::failed(&place, "two");
    super::world::waiting(&place, "w");
    super::world::killed(&place, "k");
    let states = |run: &str| place.run(&["graph", run, "--json"]).exits(0).json()["nodes"].clone();
    assert_eq!(states("two"), json!({"a": "ran", "b": "failed"}));
    assert_eq!(states("w"), json!({"a": "asks", "b": "ran"}));
    assert_eq!(states("k"), json!({"a": "ran", "b": "stopped"}));
    let mermaid = place.run(&["graph", "two"]).exits(0).stdout;
    for part in [
        "n1[[\"b<br/>tool may<br/>failed\"]]",
        "k_failed[\"failed#58; 1\"]:::failed",
        "classDef failed fill:#ffc9c9,stroke:#c92a2a,color:#000",
        "class n1 failed",
        "class n0 ran",
        // Also for who sees no colours.
        "n0[[\"a<br/>tool add<br/>ran\"]]",
    ] {
        assert!(mermaid.contains(part), "{part}: {mermaid}");
    }
    let dot = place.run(&["graph", "two", "--format", "dot"]).exits(0).stdout;
    for part in ["k_failed [label=\"failed: 1\"", "fillcolor=\"#ffc9c9\", color=\"#c92a2a\""] {
        assert!(dot.contains(part), "{part}: {dot}");
    }
    // The last run; a file goes before a run of its name; what is neither is a file that is not there.
    assert_eq!(place.run(&["graph", "@", "--json"]).exits(0).json()["run_id"], "k");
    place.run(&["run", "may.json", "--run-id", "may.json", "-q"]).exits(1);
    assert!(place.run(&["graph", "may.json", "--json"]).exits(0).json().get("run_id").is_none());
    assert_eq!(place.run(&["graph", "@-9", "--json"]).exits(2).error()["code"], "unknown-run");
    assert!(place.run(&["graph", "none.json"]).exits(2).stderr.contains("no such file"));
}

/// C-13: what waits to try again is not said to run, wherever it is shown.
#[test]
fn a_node_that_tries_again_says_so() {
    let place = place();
    let limited = "429, message: slow down, retry_after_s: 50";
    let child = super::world::held(&place, "again", &format!("error: {{status: {limited}}}"));
    super::world::until(&place, "again", "retried");
    let graph = place.run(&["graph", "again", "--json"]).exits(0).json();
    assert_eq!(graph["nodes"], json!({"a": "ran", "b": "again"}));
    assert!(graph["graph"].as_str().unwrap().contains("k_again[\"tries again#58; 1\"]"), "{graph}");
    let page = place.run(&["explain", "again"]).exits(0).stdout;
    let row = page.lines().find(|line| line.starts_with("b ")).unwrap();
    assert!(row.contains("tries again") && !row.contains("running"), "{page}");
    super::world::end(child);
    assert_eq!(place.run(&["graph", "again", "--json"]).exits(0).json()["nodes"]["b"], "stopped");
}

/// What a fork ran nothing of says which run it comes from, wherever it is shown.
#[test]
fn reused_nodes_of_a_fork_say_where_they_come_from() {
    let place = place();
    super::world::completed(&place, "week");
    let told = place
        .run(&["fork", "week", "--document", "sums.json", "--script", "sums.yaml", "--run-id", "f"])
        .exits(0)
        .stderr;
    assert_eq!(told.matches(", reused from week").count(), 3, "{told}");
    let states = place.run(&["graph", "f", "--json"]).exits(0).json();
    assert_eq!(states["nodes"], json!({"a": "reused", "b": "reused", "c": "reused"}));
    assert!(states["graph"].as_str().unwrap().contains("reused from week"));
    let nodes = place.run(&["explain", "f", "--json"]).exits(0).json()["nodes"].clone();
    assert!(nodes.as_array().unwrap().iter().all(|node| node["reused_from"] == "week"), "{nodes}");
    let page = place.run(&["explain", "f"]).exits(0).stdout;
    assert!(page.contains("3 reused from week"), "{page}");
    assert!(place.run(&["explain", "f", "--node", "a"]).exits(0).stdout.contains("reused from week"));
    let source = place.run(&["explain", "week", "--json"]).exits(0).json();
    assert!(source["nodes"].as_array().unwrap().iter().all(|node| node.get("reused_from").is_none()));
    // A node of the events that both share is the source's, too.
    place.run(&["fork", "week", "--run-id", "g", "-q"]).exits(0);
    assert_eq!(place.run(&["graph", "g", "--json"]).exits(0).json()["nodes"]["a"], "reused");
}

/// C-04: what is not there is told with what is near to it, whatever it is.
#[test]
fn near_names_are_told() {
    let place = super::world::place();
    super::world::completed(&place, "first");
    for (args, near) in [
        (&["graph", "frist"][..], "did you mean `first`?"),
        (&["graph", "sums.jsn"], "did you mean `sums.json`?"),
        (&["check", "sum.json"], "did you mean `sums.json`?"),
        (&["run", "sums.json", "--script", "smus.yaml"], "sums.yaml`?"),
        (&["show", "frist"], "did you mean `first`?"),
        (&["resume", "frist"], "did you mean `first`?"),
        (&["show", "first", "--thread", "mian"], "did you mean `main`?"),
        (&["help", "placeholder"], "did you mean `placeholders`?"),
        (&["help", "env"], "did you mean `environment`?"),
        (&["help", "tools", "lsit"], "did you mean `list`?"),
        (&["schema", "stpes"], "did you mean `steps`?"),
        (&["check", "sums.json", "--dialect", "paln"], "did you mean `plan`?"),
    ] {
        let told = place.run(args).exits(2).stderr;
        assert!(told.contains(near), "{args:?}: {told}");
    }
    let told = place.run(&["graph", "nope"]).exits(2).stderr;
    assert!(told.contains("no such file, and no run of that name") && !told.contains("mean"), "{told}");
}
