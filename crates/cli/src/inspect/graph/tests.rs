use super::*;
use selvedge_engine::Graph;
use serde_json::Value;
use shapes::{Kind, Lane, Why};

/// The graph of a plan without tools.
fn graph(plan: &Value) -> Graph {
    use selvedge_dialects::{Diagnostics, DocumentLimits, Source, ToolSource, recognise::Choice};
    use selvedge_engine::{Effects, ToolDef};
    use std::sync::Arc;

    struct Tools;
    impl ToolSource for Tools {
        fn def(&self, name: &str) -> Option<Arc<ToolDef>> {
            let effects = match name.split('_').next() {
                Some("write") => Effects::Write,
                Some("read") => Effects::Read,
                _ => Effects::Pure,
            };
            Some(Arc::new(ToolDef {
                name: name.into(),
                description: "".into(),
                input_schema: json!({"type": "object"}),
                output_params: (!name.ends_with("_any")).then(selvedge_engine::Outputs::default),
                effects: Some(effects),
                version: "1".into(),
                source: "test".into(),
                timeout_s: None,
                approval: false,
            }))
        }
        fn names(&self) -> Vec<String> {
            Vec::new()
        }
    }
    let (source, mut found) = (Source::new("plan.json", &plan.to_string()), Diagnostics::new());
    let document =
        selvedge_dialects::read(&source, Choice::default(), &DocumentLimits::default(), &mut found).unwrap();
    let graph = document.compile(
        &Tools,
        &serde_json::Map::new(),
        &selvedge_dialects::Capabilities::default(),
        &mut found,
    );
    graph.unwrap_or_else(|| panic!("{:?}", found.report(&source)))
}

fn drawing(nodes: Value) -> Drawing {
    Drawing::new(&graph(&json!({"task": "t", "nodes": nodes})))
}

fn says(thread: &str, more: Value) -> Value {
    let mut node =
        json!({"node_type": "llm-first", "node_name": "x", "thread_id": thread, "task_prompt": "p"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

fn calls(thread: &str, tool: &str) -> Value {
    json!({"node_type": "tool-first", "node_name": "x", "thread_id": thread, "initial_tool_name": tool})
}

/// `from why to: label` of every arrow, sorted.
fn arrows(drawing: &Drawing) -> Vec<String> {
    let why = |why| match why {
        Why::Takes => "-",
        Why::Sent => "=",
        Why::Turn => ".",
        Why::Fails => "!",
    };
    let mut arrows: Vec<String> =
        drawing.arrows.iter().map(|a| format!("{} {} {} {}", a.from, why(a.why), a.to, a.label)).collect();
    arrows.sort();
    arrows
}

/// C-13: a lane for each thread, an arrow for each thing taken over, sent or read.
#[test]
fn lanes_boxes_and_arrows() {
    let drawing = drawing(json!([
        says("main", json!({})),
        says(
            "side",
            json!({"data_in_slice": [-1, null], "data_out": true, "data_out_description": "Side: "})
        ),
        says("main", json!({"task_prompt": "{{n2.output}}"})),
        says("late", json!({"data_out": true, "data_in_slice": [0, 1]})),
    ]));
    let lanes: Vec<(&str, Vec<&str>)> = drawing
        .lanes
        .iter()
        .map(|lane| (lane.name.as_str(), lane.shapes.iter().map(|shape| shape.id.as_str()).collect()))
        .collect();
    assert_eq!(lanes, [("main", vec!["s0", "n0", "n2", "e0"]), ("side", vec!["n1"]), ("late", vec!["n3"])]);
    let expected = [
        "n0 - n1 takes the last",
        "n0 - n2 continues",
        "n1 - n2 result",
        "n1 = n2 Side:",
        "n3 = e0 data_out",
        "s0 - n0 continues",
        "s0 - n3 takes the first",
    ];
    assert_eq!(arrows(&drawing), expected);
    assert_eq!(drawing.lanes[0].shapes[1].lines, ["n1", "x", "model"]);
    assert_eq!(drawing.lanes[0].shapes[3].kind, Kind::End);
}

/// Calls that keep their turn have an arrow only where nothing else says who comes first.
#[test]
fn turns_are_drawn_where_nothing_else_orders_calls() {
    let drawing = drawing(json!([
        calls("a", "write_x"),
        calls("a", "write_x"),
        calls("b", "read_x"),
        calls("c", "read_x"),
        calls("d", "pure_x"),
        calls("e", "write_x"),
    ]));
    let turns: Vec<String> = arrows(&drawing).into_iter().filter(|arrow| arrow.contains(" . ")).collect();
    let (looks, writes) = ("looks only after earlier writes", "writes only after earlier calls");
    let expected = [("n1 . n2", looks), ("n1 . n3", looks), ("n2 . n5", writes), ("n3 . n5", writes)];
    let expected = expected.map(|(arrow, why)| format!("{arrow} {why}"));
    assert_eq!(turns, expected);
}

/// The size of a drawing is linear in that of the document, whatever waits for whatever.
#[test]
fn drawings_stay_linear() {
    let fans: Vec<Value> = (0..150)
        .map(|at| says(&format!("f{at}"), json!({"data_out": true})))
        .chain((0..150).map(|at| says(&format!("r{at}"), json!({"data_in_slice": [null, null]}))))
        .collect();
    let steps: Vec<Value> = (0..150)
        .flat_map(|at| {
            let sends = says(&format!("f{at}"), json!({"data_out": true}));
            [sends, says(&format!("r{at}"), json!({"data_in_slice": [null, null]}))]
        })
        .collect();
    let names: Vec<Value> = (0..150)
        .map(|at| calls(&format!("f{at}"), "pure_any"))
        .chain((0..150).map(|at| says(&format!("r{at}"), json!({"task_prompt": "{{x}}"}))))
        .collect();
    let writes: Vec<Value> =
        (0..300).map(|at| calls(&format!("w{at}"), if at % 9 > 0 { "read_x" } else { "write_x" })).collect();
    for nodes in [fans, steps, names, writes] {
        let drawing = drawing(Value::from(nodes));
        let boxes = drawing.lanes.iter().map(|lane| lane.shapes.len()).sum::<usize>() + drawing.loose.len();
        assert!(
            boxes < 900 && drawing.arrows.len() < 1_900,
            "{boxes} boxes, {} arrows",
            drawing.arrows.len()
        );
        // Everything is connected to what is there.
        let known: std::collections::HashSet<&str> = drawing
            .lanes
            .iter()
            .flat_map(|lane| &lane.shapes)
            .chain(&drawing.loose)
            .map(|shape| shape.id.as_str())
            .collect();
        assert!(drawing.arrows.iter().all(|a| known.contains(&*a.from) && known.contains(&*a.to)));
    }
}

/// An empty label is none that Mermaid reads, and a long one is cut: those of threads, too.
#[test]
fn labels_are_neither_empty_nor_endless() {
    let long = "x".repeat(500);
    let node =
        |id: &str, thread: &str| says(id, json!({"node_name": " ", "node_id": id, "thread_id": thread}));
    let drawing = drawing(Value::from(vec![node("a", "  "), node(&long, &long)]));
    for text in [mermaid::draw(&drawing), dot::draw(&drawing)] {
        assert!(!text.contains("[\"\"]") && !text.contains("(\"\")"), "{text}");
        assert!(text.lines().all(|line| line.len() < 200), "{text}");
    }
}

/// Text that means something to Mermaid, Markdown, HTML or DOT stays text.
#[test]
fn names_are_escaped() {
    let wild = "a\"b]] --> c; #quot; %%{init}%% <b> & \\ | `x` :::y\n末端 end \u{202e}🎉";
    let plan = json!({"task": "t", "name": wild, "nodes": [
        says(wild, json!({"node_name": wild, "node_id": "x", "data_out": true, "data_out_description": wild})),
        says("b", json!({"node_name": "1. a", "node_id": "b"})),
        says("c", json!({"node_name": "- c", "node_id": "c"})),
    ]});
    let drawing = Drawing::new(&graph(&plan));
    let mermaid = mermaid::draw(&drawing);
    for line in mermaid.lines().skip_while(|line| *line != "flowchart TB").skip(1) {
        let inside: String = line.split('"').skip(1).step_by(2).collect();
        let plain = inside.replace("<br/>", "");
        assert!(!plain.contains(['<', '>', '`', '|', '[', ']', '\\', '%', '&', ':', '\u{202e}']), "{line}");
        assert_eq!(line.matches('"').count() % 2, 0, "{line}");
    }
    assert!(mermaid.contains("末端 end") && mermaid.contains("🎉"), "{mermaid}");
    assert!(mermaid.contains("b<br/>1#46; a") && mermaid.contains("c<br/>#45; c"), "{mermaid}");
    let dot = dot::draw(&drawing);
    assert!(dot.contains(r#"a\"b]] --> c; #quot; %%{init}%% <b> &amp; \\ | `x`"#), "{dot}");
}

/// C-13: of a workflow the ways, a lane for each path, and two boxes for a fork and its join.
#[test]
fn w12_ways_and_lanes_of_a_workflow() {
    let idle = |id: &str| json!({"id": id, "type": "VARIABLE", "config": {"name": "x", "value": 1}});
    let document = json!({
        "nodes": [
            {"id": "start", "type": "START"},
            {"id": "fork", "type": "FORK", "config": {"forkStrategy": "parallel", "forkPathIds": ["a", "b"], "childNodeIds": ["x", "y"]}},
            idle("x"), idle("y"),
            {"id": "join", "type": "JOIN", "config": {"forkPathIds": ["a", "b"], "joinStrategy": "ALL_COMPLETED"}},
            {"id": "end", "type": "END"}],
        "edges": [{"from": "start", "to": "fork"}, {"from": "x", "to": "join"}, {"from": "y", "to": "join"},
                  {"from": "join", "to": "end", "when": "1 < 2"}]});
    let drawing = Drawing::new(&graph(&document));
    assert_eq!(
        arrows(&drawing),
        ["n0 - n1 ", "n1 - n1p0_n0 ", "n1 - n1p1_n0 ", "n1e - n2 1 < 2", "n1p0_n0 = n1e ", "n1p1_n0 = n1e "]
    );
    let lanes: Vec<&str> = drawing.lanes.iter().map(|lane| lane.name.as_str()).collect();
    assert_eq!(lanes, ["path a", "path b"]);
    let mermaid = mermaid::draw(&drawing);
    for part in [
        "n0([\"start\"])",
        "n1[/\"fork<br/>parallel\"\\]",
        "n1p0_n0[\"x<br/>x = 1\"]",
        "n1e[\\\"join<br/>ALL#95;COMPLETED<br/>main path a\"/]",
        "n2([\"end\"])",
    ] {
        assert!(mermaid.contains(&part.replace("#95;", "_")), "{part}: {mermaid}");
    }
}

/// C-13: what is opened within a path or a loop lies in its lane; a loop leads back, what leaves it by a condition leads to its
/// end, and what follows an inner document begins where that ends.
#[test]
fn w12_lanes_lie_in_each_other() {
    let idle = |id: &str| json!({"id": id, "type": "VARIABLE", "config": {"name": "v", "value": 1}});
    let inner = json!({
        "nodes": [{"id": "s", "type": "START"}, {"id": "e", "type": "END"}, {"id": "e2", "type": "END"}],
        "edges": [{"from": "s", "to": "e", "when": "1 < 2"}, {"from": "s", "to": "e2"}]});
    let document = json!({
        "nodes": [
            {"id": "start", "type": "START"},
            {"id": "again", "type": "LOOP_START", "config": {"count": "{{n}}", "limit": 3}},
            {"id": "each", "type": "FORK", "config": {"forkStrategy": "serial", "forEach": "{{list}}", "as": "one", "childNodeIds": ["x"]}},
            idle("x"),
            {"id": "one", "type": "JOIN", "config": {"joinStrategy": "ANY_COMPLETED"}},
            {"id": "route", "type": "ROUTE", "config": {"branches": [{"when": "index > 1", "to": "done"}], "default": "y"}},
            idle("y"),
            {"id": "done", "type": "LOOP_END", "config": {"loop": "again"}},
            {"id": "sub", "type": "SUBGRAPH", "config": {"workflow": inner}},
            {"id": "ask", "type": "USER_INTERACTION", "config": {"kind": "approve", "prompt": "?"}},
            {"id": "end", "type": "END"}],
        "metadata": {"n": 2, "list": [1]},
        "edges": [{"from": "start", "to": "again"}, {"from": "again", "to": "each"}, {"from": "x", "to": "one"}, {"from": "one", "to": "route"},
                  {"from": "y", "to": "done"}, {"from": "done", "to": "sub"}, {"from": "sub", "to": "ask"}, {"from": "sub", "to": "end", "when": "error"},
                  {"from": "ask", "to": "end"}]});
    let drawing = Drawing::new(&graph(&document));
    let [around, sub] = &drawing.lanes[..] else { panic!("{drawing:?}") };
    assert_eq!((&*around.name, &*sub.name), ("{{n}} times", "sub"));
    let boxes = |lane: &Lane| lane.shapes.iter().map(|shape| shape.lines[0].clone()).collect::<Vec<_>>();
    assert_eq!(boxes(around), ["each", "one", "route", "y"]);
    assert_eq!(around.lanes[0].name, "each one of {{list}}");
    assert_eq!(boxes(&around.lanes[0]), ["x"]);
    let drawn = arrows(&drawing);
    for arrow in [
        "n1e - n1 again",
        "n1p0_n1 = n1e index > 1",
        "n1p0_n1 - n1p0_n2 else",
        "n1p0_n0p0_n0 = n1p0_n0e ",
        "n2p0_n1 - d1 ",
        "n2p0_n2 - d1 ",
        "d1 - n3 ",
        "n2 ! n4 error",
    ] {
        assert!(drawn.iter().any(|known| known == arrow), "{arrow}: {drawn:#?}");
    }
    let mermaid = mermaid::draw(&drawing);
    assert!(mermaid.contains("{{\"again\"}}") && mermaid.contains("{\"route\"}"), "{mermaid}");
    assert!(mermaid.contains("[/\"ask<br/>a person approves\"/]"), "{mermaid}");
    assert!(mermaid.contains("[\"sub<br/>a workflow\"]"), "{mermaid}");
    // A loop's beginning is named before what is in it: else it is drawn below its end.
    assert!(mermaid.find("again") < mermaid.find("subgraph"), "{mermaid}");
    assert!(mermaid.starts_with("---\nconfig: {flowchart: {subGraphTitleMargin: "), "{mermaid}");
    assert_eq!(
        mermaid.matches("subgraph").count(),
        mermaid.lines().filter(|line| line.trim() == "end").count()
    );
}

/// C-13: the nodes of a plan in a workflow are drawn as they wait for each other, and not one after the other.
#[test]
fn a_plan_in_a_workflow_runs_side_by_side() {
    let sends = |thread: &str| says(thread, json!({"node_id": thread, "data_out": true}));
    let plan =
        json!({"task": "t", "nodes": [sends("a"), sends("b"), says("main", json!({"node_id": "last"}))]});
    let document = json!({
        "nodes": [{"id": "start", "type": "START"}, {"id": "both", "type": "PLAN", "config": {"plan": plan}}, {"id": "end", "type": "END"}],
        "edges": [{"from": "start", "to": "both"}, {"from": "both", "to": "end"}]});
    let drawing = Drawing::new(&graph(&document));
    let expected = [
        "n0 - n1 ",
        "n1 - n1p0_n0 ",
        "n1 - n1p0_n1 ",
        "n1p0_n0 - n1p0_n2 ",
        "n1p0_n1 - n1p0_n2 ",
        "n1p0_n2 - n2 ",
    ];
    assert_eq!(arrows(&drawing), expected);
}
