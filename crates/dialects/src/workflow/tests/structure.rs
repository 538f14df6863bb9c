//! W-14: how nodes are linked, and how forks and loops nest.

use super::*;

fn only(document: &Value, code: &str, pointer: &str) {
    assert_eq!(codes(document), [(code, pointer.to_owned())], "{document}");
}

/// The document with a value at a place changed.
fn with(mut document: Value, pointer: &str, value: Value) -> Value {
    *document.pointer_mut(pointer).unwrap() = value;
    document
}

fn and_edges(mut document: Value, edges: &[(&str, &str)]) -> Value {
    let all = document["edges"].as_array_mut().unwrap();
    all.extend(edges.iter().map(|(from, to)| json!({"from": from, "to": to})));
    document
}

#[test]
fn w14_forks_and_joins_that_do_not_fit() {
    let fork = || forked(json!({}));
    only(
        &with(fork(), "/nodes/5/config/forkPathIds", json!(["q", "p"])),
        "FORK_JOIN_MISMATCH",
        "/nodes/5/config/forkPathIds",
    );
    only(
        &with(fork(), "/nodes/2/config/childNodeIds", json!(["a"])),
        "FORK_JOIN_MISMATCH",
        "/nodes/2/config/childNodeIds",
    );
    only(
        &with(fork(), "/nodes/2/config/forkPathIds", json!(["p", "p"])),
        "duplicate-path-id",
        "/nodes/2/config/forkPathIds/1",
    );
    only(&forked(json!({"mainPathId": "pp"})), "main-path-unknown", "/nodes/5/config/mainPathId");
    only(&forked(json!({"exports": {"x": "z"}})), "export-path-unknown", "/nodes/5/config/exports/x");
    let counted = |count: i64| forked(json!({"joinStrategy": "SUCCESS_COUNT_THRESHOLD", "threshold": count}));
    only(&counted(3), "threshold-out-of-range", "/nodes/5/config/threshold");
    only(&counted(0), "threshold-out-of-range", "/nodes/5/config/threshold");
    only(&counted(-1), "out-of-range", "/nodes/5/config/threshold");
    only(&forked(json!({"timeout": -1})), "out-of-range", "/nodes/5/config/timeout");
    only(&forked(json!({"threshold": 1})), "misplaced", "/nodes/5/config/threshold");
    let unknown = codes(&with(fork(), "/nodes/2/config/childNodeIds", json!(["a", "bb"])));
    assert!(unknown.contains(&("unknown-node", "/nodes/2/config/childNodeIds/1".into())), "{unknown:?}");
    let unpaired = codes(&with(fork(), "/nodes/5/config/forkPathIds", json!(["x", "y"])));
    let unpaired: Vec<&str> = unpaired.iter().map(|(code, _)| *code).collect();
    assert_eq!(unpaired, ["UNPAIRED_FORK", "UNPAIRED_JOIN"]);
}

#[test]
fn w14_paths_that_do_not_come_to_their_join() {
    let document = with(forked(json!({})), "/edges/2", json!({"from": "b", "to": "end"}));
    only(&document, "FORK_JOIN_NOT_REACHABLE", "/edges/2");
    let mut document = forked(json!({}));
    document["edges"].as_array_mut().unwrap().remove(2);
    only(&document, "FORK_JOIN_NOT_REACHABLE", "/nodes/4/id");
    // Into the middle of a path, from outside and from its sibling.
    only(
        &and_edges(with(forked(json!({})), "/edges/2", json!({"from": "b", "to": "a"})), &[]),
        "REGION_NOT_NESTED",
        "/edges/2",
    );
    let mut document = forked(json!({}));
    document["edges"][0] = json!({"from": "start", "to": "a", "when": "1 > 2"});
    let found = codes(&and_edges(document, &[("start", "fork")]));
    assert!(found.iter().any(|(code, _)| *code == "REGION_NOT_NESTED"), "{found:?}");
}

#[test]
fn w14_loops_that_do_not_nest() {
    let repeat = || {
        flow(
            json!([
                node("each", "LOOP_START", json!({"count": 2, "limit": 2})),
                idle("a"),
                node("done", "LOOP_END", json!({"loop": "each"}))
            ]),
            &[("start", "each"), ("each", "a"), ("a", "done"), ("done", "end")],
        )
    };
    assert_eq!(codes(&repeat()), []);
    only(&and_edges(repeat(), &[("done", "each")]), "edge-from-loop", "/edges/4");
    let unpaired = codes(&with(repeat(), "/nodes/4/config/loop", json!("a")));
    assert_eq!(
        unpaired,
        [("unpaired-loop", "/nodes/2/id".to_owned()), ("unpaired-loop", "/nodes/4/config/loop".to_owned())]
    );
    only(&with(repeat(), "/edges/2", json!({"from": "a", "to": "end"})), "REGION_NOT_NESTED", "/edges/2");
    let early = and_edges(with(repeat(), "/edges/1", json!({"from": "each", "to": "done"})), &[]);
    assert_eq!(codes(&early), [("unreachable-node", "/nodes/3/id".to_owned())]);
}

#[test]
fn w14_edges_that_lead_nowhere_or_in_circles() {
    let line = || flow(json!([idle("a"), idle("b")]), &[("start", "a"), ("a", "b"), ("b", "end")]);
    assert_eq!(codes(&line()), []);
    only(&with(line(), "/edges/1/to", json!("bb")), "unknown-node", "/edges/1/to");
    only(&and_edges(line(), &[("a", "end")]), "ambiguous-edges", "/edges/3");
    only(&and_edges(line(), &[("b", "start")]), "edge-to-start", "/edges/3");
    only(&and_edges(line(), &[("end", "b")]), "edge-from-end", "/edges/3");
    let mut circle = line();
    circle["edges"].as_array_mut().unwrap().push(json!({"from": "b", "to": "a", "when": "x > 1"}));
    let found = codes(&circle);
    assert!(found.iter().any(|(code, _)| *code == "cycle"), "{found:?}");
    only(
        &with(line(), "/edges/2", json!({"from": "b", "to": "end", "when": "error"})),
        "end-unreachable",
        "/nodes/3/id",
    );
    only(&json!({"nodes": [node("end", "END", json!({}))], "edges": []}), "no-start", "");
    let mut second = line();
    second["nodes"].as_array_mut().unwrap().push(node("again", "START", json!({})));
    only(&second, "several-starts", "/nodes/4/id");
    only(&with(line(), "/edges/0/to", json!("b")), "unreachable-node", "/nodes/2/id");
    let mut never = line();
    never["edges"].as_array_mut().unwrap().push(json!({"from": "a", "to": "end", "when": "x > 1"}));
    only(&never, "edge-never-taken", "/edges/3");
    only(&with(line(), "/nodes/3/id", json!("a")), "duplicate-node-id", "/nodes/3/id");
    let mut agent = line();
    agent["nodes"][3] = node("b", "AGENT", json!({"query": "q"}));
    agent["nodes"][3]["config"]["tools"] = json!(["nowhere"]);
    only(&agent, "unknown-tool", "/nodes/3/config/tools/0");
}

/// Nesting has a limit, and no depth of it takes the stack.
#[test]
fn w12_forks_that_lie_too_deep() {
    let deep = |levels: usize| {
        let mut nodes = vec![node("start", "START", json!({})), node("end", "END", json!({})), idle("leaf")];
        let mut edges = vec![json!({"from": "start", "to": "f0"}), json!({"from": "j0", "to": "end"})];
        for at in 0..levels {
            let child = if at + 1 < levels { format!("f{}", at + 1) } else { "leaf".into() };
            let path = format!("p{at}");
            nodes.push(node(
                &format!("f{at}"),
                "FORK",
                json!({"forkStrategy": "serial", "forkPathIds": [path], "childNodeIds": [child]}),
            ));
            nodes.push(node(
                &format!("j{at}"),
                "JOIN",
                json!({"forkPathIds": [path], "joinStrategy": "ALL_COMPLETED"}),
            ));
            let last = if at + 1 < levels { format!("j{}", at + 1) } else { "leaf".into() };
            edges.push(json!({"from": last, "to": format!("j{at}")}));
        }
        json!({"nodes": nodes, "edges": edges})
    };
    assert_eq!(codes(&deep(32)), []);
    for levels in [33, 5_000] {
        let found = codes(&deep(levels));
        assert_eq!(found.iter().map(|(code, _)| *code).collect::<Vec<_>>(), ["too-deep"]);
    }
}
