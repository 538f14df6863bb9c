use super::*;
use crate::{Capabilities, NoTools};
use selvedge_engine::Graph;
use serde_json::Map;

fn graph(text: &str) -> Graph {
    let (source, mut found) = (Source::new("flow.json", text), Diagnostics::new());
    let document = crate::read(&source, Choice::default(), &DocumentLimits::default(), &mut found).unwrap();
    let graph = document.compile(&NoTools, &Map::new(), &Capabilities::default(), &mut found);
    graph.unwrap_or_else(|| panic!("{:?}\n{text}", found.report(&source)))
}

/// The node, the older field, and those in its place.
type Told = (String, &'static str, Vec<&'static str>);

/// The text in today's form, and what was changed; it means the same as before, and is not older itself.
#[track_caller]
fn migrated(text: &str) -> (String, Vec<Told>) {
    let find = |text: &str| {
        let (source, mut found) = (Source::new("flow.json", text), Diagnostics::new());
        let migration = migrate(&source, &DocumentLimits::default(), &mut found);
        migration.unwrap_or_else(|| panic!("{:?}\n{text}", found.report(&source)))
    };
    let migration = find(text);
    let after = migration.apply(text);
    assert_eq!(graph(text), graph(&after), "{after}");
    assert_eq!(find(&after), Migration::default(), "{after}");
    let told = migration.changes.into_iter().map(|change| (change.node, change.from, change.to)).collect();
    (after, told)
}

/// A workflow with a fork to `a` and `b`, of these configs of fork and join.
fn flow(fork: &str, join: &str) -> String {
    format!(
        r#"{{"edges": [{{"from": "s", "to": "f"}}, {{"from": "a", "to": "j"}}, {{"from":"b","to":"j"}},   {{"from": "j", "to": "e"}}],
  "nodes": [
    {{"id": "s", "type": "START"}}, {{"id": "a", "type": "VARIABLE", "config": {{"name": "x", "value": 1.50}}}},
    {{"id": "b", "type": "VARIABLE", "config": {{"name": "x", "value": "\u00e9"}}}},
    {{"id": "f", "type": "FORK", "config": {fork}}},
    {{"id": "j", "type": "JOIN", "config": {join}}},
    {{"id": "e", "type": "END"}}
  ]}}
"#
    )
}

#[test]
fn one_id_for_each_child() {
    let old = flow(
        r#"{"forkId": "p",  "forkStrategy": "serial", "childNodeIds": ["a", "b"]}"#,
        r#"{"joinStrategy": "ALL_COMPLETED", "forkId": "p"}"#,
    );
    let new = flow(
        r#"{"forkPathIds": ["p", "p_2"],  "forkStrategy": "serial", "childNodeIds": ["a", "b"]}"#,
        r#"{"joinStrategy": "ALL_COMPLETED", "forkPathIds": ["p", "p_2"]}"#,
    );
    let (text, told) = migrated(&old);
    assert_eq!(text, new);
    assert_eq!(
        told,
        [("f".into(), "forkId", vec!["forkPathIds"]), ("j".into(), "forkId", vec!["forkPathIds"])]
    );
}

#[test]
fn pairs_become_two_lists_in_the_layout_of_the_document() {
    let old = flow(
        "{\r\n      \"forkStrategy\" : \"parallel\",\r\n      \"forkPaths\" : [\r\n        {\"pathId\": \"p\", \"childNodeId\": \"a\"},\r\n        {\"childNodeId\": \"b\", \"pathId\": \"\\u0071\"}\r\n      ]\r\n    }",
        r#"{"forkPathIds": ["p", "q"], "joinStrategy": "ALL_COMPLETED"}"#,
    );
    let new = flow(
        "{\r\n      \"forkStrategy\" : \"parallel\",\r\n      \"forkPathIds\" : [\"p\", \"\\u0071\"],\r\n      \"childNodeIds\" : [\"a\", \"b\"]\r\n    }",
        r#"{"forkPathIds": ["p", "q"], "joinStrategy": "ALL_COMPLETED"}"#,
    );
    assert_eq!(migrated(&old).0, new);
}

#[test]
fn lists_are_written_as_those_beside_them() {
    let join = |ids: &str| format!(r#"{{"forkPathIds":{ids},"joinStrategy":"ALL_COMPLETED"}}"#);
    let old =
        flow(r#"{"forkStrategy":"serial","forkId":"p","childNodeIds":["a","b"]}"#, &join(r#"["p","p_2"]"#));
    let new = flow(
        r#"{"forkStrategy":"serial","forkPathIds":["p","p_2"],"childNodeIds":["a","b"]}"#,
        &join(r#"["p","p_2"]"#),
    );
    assert_eq!(migrated(&old).0, new);
    let lines = "[\n        \"a\",\n        \"b\"\n      ]";
    let old = flow(
        &format!(
            "{{\n      \"forkId\": \"p\",\n      \"forkStrategy\": \"serial\",\n      \"childNodeIds\": {lines}\n    }}"
        ),
        &join(r#"["p","p_2"]"#),
    );
    let ids = "[\n        \"p\",\n        \"p_2\"\n      ]";
    let new = flow(
        &format!(
            "{{\n      \"forkPathIds\": {ids},\n      \"forkStrategy\": \"serial\",\n      \"childNodeIds\": {lines}\n    }}"
        ),
        &join(r#"["p","p_2"]"#),
    );
    assert_eq!(migrated(&old).0, new);
    let old = flow(
        r#"{"forkPaths":[{"pathId":"p","childNodeId":"a"},{"pathId":"q","childNodeId":"b"}],"forkStrategy":"serial"}"#,
        &join(r#"["p","q"]"#),
    );
    let new = flow(
        r#"{"forkPathIds":["p","q"],"childNodeIds":["a","b"],"forkStrategy":"serial"}"#,
        &join(r#"["p","q"]"#),
    );
    assert_eq!(migrated(&old).0, new);
}

#[test]
fn what_says_the_same_twice_goes() {
    // An id beside the list that is in force, on both ends, first, last and in the middle.
    let forks = [
        r#"{"forkId": "p", "forkStrategy": "serial", "forkPathIds": ["m", "n"], "childNodeIds": ["a", "b"]}"#,
        r#"{"forkStrategy": "serial", "forkId": "p", "forkPathIds": ["m", "n"], "childNodeIds": ["a", "b"]}"#,
        r#"{"forkStrategy": "serial", "forkPathIds": ["m", "n"], "childNodeIds": ["a", "b"], "forkId": "p"}"#,
    ];
    let new = flow(
        r#"{"forkStrategy": "serial", "forkPathIds": ["m", "n"], "childNodeIds": ["a", "b"]}"#,
        r#"{"forkPathIds": ["m", "n"], "joinStrategy": "ANY_COMPLETED"}"#,
    );
    for fork in forks {
        let old =
            flow(fork, r#"{"forkPathIds": ["m", "n"], "joinStrategy": "ANY_COMPLETED", "forkId": "p"}"#);
        let (text, told) = migrated(&old);
        assert_eq!(text, new);
        assert_eq!(told, [("f".into(), "forkId", vec![]), ("j".into(), "forkId", vec![])]);
    }
    // What is null says nothing, and would be a second field of the name.
    let old = flow(
        r#"{"forkPathIds": null, "childNodeIds": null, "forkPaths": [{"pathId": "m", "childNodeId": "a"}, {"pathId": "n", "childNodeId": "b"}], "forkStrategy": "serial"}"#,
        r#"{"forkPathIds": ["m", "n"], "joinStrategy": "ANY_COMPLETED"}"#,
    );
    let text = migrated(&old).0;
    assert!(
        text.contains(r#"{"forkPathIds": ["m", "n"], "childNodeIds": ["a", "b"], "forkStrategy": "serial"}"#),
        "{text}"
    );
}

#[test]
fn workflows_within_are_looked_at_and_files_are_not() {
    let inner = flow(
        r#"{"forkId": "p", "forkStrategy": "serial", "childNodeIds": ["a", "b"]}"#,
        r#"{"forkId": "p", "joinStrategy": "ALL_COMPLETED"}"#,
    );
    let outer = format!(
        r#"{{"nodes": [{{"id": "s", "type": "START"}}, {{"id": "in", "type": "SUBGRAPH", "config": {{"workflow": {}}}}}, {{"id": "e", "type": "END"}}],
        "edges": [{{"from": "s", "to": "in"}}, {{"from": "in", "to": "e"}}]}}"#,
        inner.trim()
    );
    let (text, told) = migrated(&outer);
    assert!(!text.contains("forkId\"") && told.len() == 2, "{text}");
}

#[test]
fn what_has_no_older_form_needs_nothing() {
    for text in [
        r#"{"task": "t", "nodes": []}"#,
        r#"{"task": "t", "steps": []}"#,
        r#"{"a": {"task": "t", "nodes": []}, "b": {"task": "t", "nodes": []}}"#,
        r#"{"nodes": [{"id": "s", "type": "START"}, {"id": "e", "type": "END"}], "edges": [{"from": "s", "to": "e"}]}"#,
    ] {
        let mut found = Diagnostics::new();
        let migration = migrate(&Source::new("x.json", text), &DocumentLimits::default(), &mut found);
        assert_eq!(migration, Some(Migration::default()), "{text}");
        assert_eq!(Migration::default().apply(text), text);
    }
}

/// What it means is not known, so nothing is written.
#[test]
fn what_is_no_pair_is_left_as_it_is() {
    for (fork, join, code) in [
        (
            r#"{"forkId": "p", "forkStrategy": "serial", "childNodeIds": ["a", "b"]}"#,
            r#"{"forkId": "q", "joinStrategy": "ALL_COMPLETED"}"#,
            "UNPAIRED_FORK",
        ),
        (r#"{"forkId": "p", "childNodeIds": ["a", "b"]}"#, r#"{"forkId": "p"}"#, "missing-field"),
    ] {
        let (source, mut found) = (Source::new("flow.json", &flow(fork, join)), Diagnostics::new());
        assert_eq!(migrate(&source, &DocumentLimits::default(), &mut found), None);
        assert!(found.report(&source).iter().any(|finding| finding.code == code), "{found:?}");
    }
}
