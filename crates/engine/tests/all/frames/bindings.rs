//! E-41: which version a tool's name means is scope of a frame.

use super::world::*;

/// A definition of that name and version.
fn tool(name: &str, version: &str) -> Value {
    json!({"name": name, "description": "", "input_schema": {}, "effects": "pure", "version": version, "source": "test"})
}

fn bind(id: &str, tools: Value, ways: Value) -> Value {
    node(id, json!({ "bind": tools }), ways)
}

/// A node whose model is offered `named`, and what is bound.
fn offers(id: &str, named: Value, ways: Value) -> Value {
    json!({"id": id, "name": id, "ways": ways, "body": {"thread": 0, "tools": named, "offers_bound": true, "leaves": [
        {"name": "say", "act": {"say": id}, "next": [{"when": "always", "to": 1}]},
        {"name": "model", "act": {"infer": {"offer_tools": true}}}]}})
}

/// What each model was offered, by effect, in the order in which they were asked.
fn offered(world: &mut World) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(effect) = world.state.pending().keys().next().cloned() {
        let request = world.state.request(&effect).unwrap();
        if let Request::Model(asked) = &request {
            let tools: Vec<String> =
                asked.tools.iter().map(|t| format!("{} {}", t.name, t.version)).collect();
            seen.push(format!("{effect}: {}", tools.join(", ")));
        }
        world.input(Input::Complete(effect, echo(&request), 0, None, None));
    }
    seen
}

fn inner(nodes: Value) -> Value {
    flow(nodes)
}

#[test]
fn e41_paths_begin_with_what_is_bound_and_the_main_one_brings_its_own_along() {
    let paths = json!({"of": {"listed": [["pro", 0], ["con", 1]]}, "serial": false,
                       "join": {"strategy": "all_completed", "main": "pro"}});
    let graph = graph(
        json!([
            bind("first", json!({"parse": tool("parse", "1"), "note": tool("note", "9")}), to(1)),
            node("debate", json!({ "fork": paths }), to(2)),
            offers("after", json!(["note"]), to(3)),
            bind("back", json!({"parse": null, "note": null}), to(4)),
            offers("end", json!(["note"]), json!([])),
        ]),
        json!([
            inner(json!([
                bind("mend", json!({"parse": tool("parse", "2")}), to(1)),
                offers("argue", json!([]), json!([]))
            ])),
            inner(json!([
                bind("own", json!({"other": tool("other", "1")}), to(1)),
                offers("argue", json!([]), json!([]))
            ])),
        ]),
    );
    let mut world = World::begin(&graph);
    let seen = offered(&mut world);
    assert_eq!(
        seen,
        [
            "debate~1[con]/argue/model/1/1: note 9, other 1, parse 1",
            "debate~1[pro]/argue/model/1/1: note 9, parse 2",
            "after/model/1/1: note 9, parse 2",
            // What it meant before it was bound.
            "end/model/1/1: note 1",
        ]
    );
    assert_eq!(world.state.status(), RunStatus::Completed);
    goes_on(&world, &graph, 0);
}

#[test]
fn e41_an_iteration_binds_for_the_next_and_a_subgraph_for_itself() {
    let times = json!({"graph": 0, "times": {"count": 2}, "limit": 9});
    let graph = graph(
        json!([
            node("again", json!({ "loop": times }), to(1)),
            offers("between", json!([]), to(2)),
            node("inside", json!({"sub": {"graph": 1}}), to(3)),
            offers("end", json!([]), json!([])),
        ]),
        json!([
            inner(json!([
                offers("look", json!([]), to(1)),
                bind("mend", json!({"parse": tool("parse", "of iteration {{index}}")}), json!([]))
            ])),
            inner(json!([
                bind("more", json!({"more": tool("more", "1")}), to(1)),
                offers("look", json!([]), json!([]))
            ])),
        ]),
    );
    let mut world = World::begin(&graph);
    let seen = offered(&mut world);
    assert_eq!(
        seen,
        [
            "again~1#0/look/model/1/1: ",
            "again~1#1/look/model/1/1: parse of iteration 0",
            "between/model/1/1: parse of iteration 1",
            "inside~1/look/model/1/1: more 1, parse of iteration 1",
            "end/model/1/1: parse of iteration 1",
        ]
    );
    goes_on(&world, &graph, 0);
}

#[test]
fn e41_calls_go_to_what_is_bound_where_they_are_made() {
    let call = |id: &str, ways| node(id, json!({"call": {"tool": "note", "args": {}}}), ways);
    let strict = json!({"type": "object", "required": ["text"]});
    let mut second = tool("note", "2");
    second["input_schema"] = strict;
    let graph = graph(
        json!([
            call("before", to(1)),
            bind("mend", json!({ "note": second }), to(2)),
            call("after", json!([{"when": "fault", "to": 3}])),
            bind("back", json!({"note": null}), to(4)),
            call("end", json!([])),
        ]),
        json!([]),
    );
    let mut world = World::begin(&graph);
    let mut versions = Vec::new();
    while let Some(effect) = world.state.pending().keys().next().cloned() {
        let Some(Request::Tool(asked)) = world.state.request(&effect) else { panic!("a tool is called") };
        versions.push(format!("{effect} {}", asked.tool.version));
        world.complete(&effect.0, Outcome::Output(Arc::new(json!(1))));
    }
    // Its arguments don't fit the schema of the version that is bound.
    assert_eq!(versions, ["before/do/1/1 1", "end/do/1/1 1"]);
    assert_eq!(world.state.status(), RunStatus::Completed);
    goes_on(&world, &graph, 0);
}

#[test]
fn e41_what_is_no_definition_is_a_fault() {
    let cases = [
        (json!("{{x}}"), json!({"x": [1]}), "what `bind` binds is no object of tool definitions by name"),
        (
            json!({"parse": "{{x}}"}),
            json!({"x": "code"}),
            "what `bind` binds as `parse` is no tool definition",
        ),
        (json!({"parse": tool("other", "1")}), json!({}), "what `bind` binds as `parse` is called `other`"),
        (
            json!({"selvedge__compile": null}),
            json!({}),
            "`bind` can't bind `selvedge__compile`: no tool may be called that",
        ),
        (json!({"": null}), json!({}), "`bind` can't bind ``: no tool may be called that"),
    ];
    for (tools, initial, why) in cases {
        let graph = graph(json!([bind("bind", tools, json!([]))]), json!([]));
        let world = World::begin_with(&graph, initial, 0);
        let fault = world.state.view().fault().cloned().unwrap();
        assert_eq!((fault.kind, &*fault.message), (FaultKind::InputError, why));
    }
}

/// A dataflow is ordered by what the graph says of its tools, whatever was bound around it.
#[test]
fn e41_a_dataflow_calls_no_version_that_does_more_than_it_was_ordered_by() {
    let with = |effects: &str| {
        let mut bound = tool("note", "2");
        bound["effects"] = json!(effects);
        let nodes = json!([
            bind("mend", json!({ "note": bound }), to(1)),
            node("inside", json!({"sub": {"graph": 0}}), json!([])),
        ]);
        let steps = json!({"threads": [], "tools": {}, "nodes": [
            {"id": "one", "name": "one", "body": {"leaves": [{"name": "call", "act": {"call": {"tool": "note", "args": {}}}}]}},
        ]});
        let graph = graph(nodes, json!([steps]));
        let mut world = World::begin(&graph);
        world.run(false, echo);
        world.state.view().fault().map(|fault| fault.message.clone())
    };
    assert_eq!(with("pure"), None);
    assert_eq!(
        with("write").unwrap(),
        "`note` is bound to a version that does more to the world than the one `one` was ordered by"
    );
}

/// A node of a dataflow that binds would do so in an order that nobody sees.
#[test]
fn e41_a_node_of_a_dataflow_binds_nothing() {
    let graph: selvedge_engine::Graph = serde_json::from_value(json!({
        "threads": [], "tools": {}, "nodes": [bind("bind", json!({}), json!([]))]
    }))
    .unwrap();
    let world = World::begin(&Arc::new(graph));
    let fault = world.state.view().fault().cloned().unwrap();
    assert_eq!(&*fault.message, "`bind` binds tools, which only a node of a flow can");
}
