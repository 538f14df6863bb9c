//! Expressions where templates were: ways, loops and variables (E-46).

use super::world::*;

fn when(source: &str, to: u32) -> Value {
    json!({"when": {"holds": {"expression": source}}, "to": to})
}

fn set(id: &str, name: &str, source: &str, ways: Value) -> Value {
    node(id, json!({"compute": [name, source]}), ways)
}

/// A call whose result has these fields.
fn call(id: &str, args: Value, ways: Value) -> Value {
    node(id, json!({"call": {"tool": "note", "args": args}}), ways)
}

#[test]
fn e46_the_first_way_whose_expression_holds_is_taken() {
    let nodes = json!([
        call(
            "fetch-a",
            json!({"score": "{{n}}"}),
            json!([when("results[\"fetch-a\"].output.got.score > 3 && flag", 1),
            when("results[\"fetch-a\"].got.score == 0 || flag", 2), {"when": "done", "to": 3}])
        ),
        ask("high", "high", json!([])),
        ask("zero", "zero", json!([])),
        ask("low", "low", json!([])),
    ]);
    let graph = graph(nodes, json!([]));
    let cases = [
        (json!(4), true, "high"),
        (json!(4.5), true, "high"),
        (json!(0), false, "zero"),
        (json!(1), true, "zero"),
        (json!(5), false, "low"),
    ];
    for (n, flag, said) in cases {
        let mut world = World::begin_with(&graph, json!({"n": n, "flag": flag}), 0);
        world.run(false, echo);
        assert_eq!(world.state.status(), RunStatus::Completed);
        assert_eq!(world.texts()[0], said, "{n} {flag}");
        replays(&world, &graph);
    }
}

#[test]
fn e46_a_loop_goes_round_while_its_expression_holds() {
    let times =
        json!({"graph": 0, "times": {"while": {"expression": "n < 4 && size(seen) < 10"}}, "limit": 9});
    let nodes = json!([
        set("begin", "n", "0", to(1)),
        set("none", "seen", "[]", to(2)),
        node("again", json!({"loop": times}), to(3)),
        ask("say", "{{n}} {{seen}}", json!([])),
    ]);
    let body = json!([
        set("more", "n", "n + 1", to(1)),
        set("note", "seen", "seen + [{\"at\": index, \"n\": n, \"even\": n % 2 == 0}]", json!([])),
    ]);
    let graph = graph(nodes, json!([flow(body)]));
    let mut world = World::begin(&graph);
    world.run(false, echo);
    assert_eq!(world.state.status(), RunStatus::Completed);
    let seen: Vec<Value> = (0..4).map(|at| json!({"at": at, "n": at + 1, "even": at % 2 == 1})).collect();
    assert_eq!(world.texts()[0], format!("4 {}", json!(seen)));
    replays(&world, &graph);
    goes_on(&world, &graph, 0);
}

/// An expression that errs or is no boolean is `input_error` at the node, and goes to its error way.
#[test]
fn e46_what_has_no_value_is_an_input_error() {
    let times = |source: &str| json!({"graph": 0, "times": {"while": {"expression": source}}, "limit": 3});
    let inner = json!([flow(json!([ask("in", "x", json!([]))]))]);
    let cases = [
        (
            json!([call("a", json!({}), json!([when("nobody == 1", 1)])), ask("b", "x", json!([]))]),
            "the condition of the way from `a` to `b`, `nobody == 1`, has no value: nobody has no value: nothing is named `nobody`",
        ),
        (
            json!([call("a", json!({}), json!([when("a.output.got", 1)])), ask("b", "x", json!([]))]),
            "the condition of the way from `a` to `b` is an object of 0 fields, not true or false",
        ),
        (
            json!([node("a", json!({"loop": times("1 + 1")}), json!([]))]),
            "the condition of the loop `a` is a number, not true or false",
        ),
        (
            json!([node("a", json!({"loop": times("1 / 0 == 1")}), json!([]))]),
            "the condition of the loop `a`, `1 / 0 == 1`, has no value: `/` by zero (at byte 2)",
        ),
        (
            json!([set("a", "v", "1 + \"x\"", json!([]))]),
            "the value of the variable `v`, `1 + \"x\"`, has no value: `+` is not defined for an int and text (at byte 2)",
        ),
        (json!([set("a", "v", "[1, 2].map(x, [1, 2].map(y, 1.0 / 0.0))", json!([]))]), "no number of JSON"),
    ];
    for (nodes, told) in cases {
        let graph = graph(nodes, inner.clone());
        let mut world = World::begin(&graph);
        world.run(false, echo);
        assert_eq!(world.state.status(), RunStatus::Failed);
        let fault = world.state.view().fault().cloned().unwrap();
        assert_eq!((fault.kind, fault.node.as_deref()), (FaultKind::InputError, Some("a")), "{fault:?}");
        assert!(fault.message.contains(told), "{}", fault.message);
        replays(&world, &graph);
    }
    let nodes =
        json!([set("a", "v", "nobody", json!([{"when": "fault", "to": 1}])), ask("b", "sorry", json!([]))]);
    let handled = graph(nodes, json!([]));
    let mut world = World::begin(&handled);
    world.run(false, echo);
    assert_eq!((world.state.status(), &*world.texts()[0]), (RunStatus::Completed, "sorry"));
    replays(&world, &handled);
}

/// E-12: the limit is the run's, and is told.
#[test]
fn e46_e12_the_cost_of_an_expression_is_a_limit_of_the_run() {
    let graph = graph(json!([set("a", "v", "[1, 2, 3].map(x, x * x)", json!([]))]), json!([]));
    for (cost, fits) in [(10, false), (100, true)] {
        let limits = selvedge_engine::Limits { expression_cost: cost, ..Default::default() };
        let mut world = World { state: State::new(Arc::clone(&graph)), journal: Vec::new() };
        world.input(Input::Start(Box::new(Start { limits, ..Start::default() })));
        assert_eq!(world.state.status() == RunStatus::Completed, fits);
        if !fits {
            let fault = world.state.view().fault().cloned().unwrap();
            assert_eq!(fault.kind, FaultKind::InputError);
            assert!(
                fault.message.contains("more than 10 steps") && fault.message.contains("`expression_cost`"),
                "{fault:?}"
            );
        }
        replays(&world, &graph);
    }
}

/// What is the default is not written: journals are the same as before there was this limit.
#[test]
fn e46_the_usual_limit_is_not_written() {
    let limits = selvedge_engine::Limits::default();
    let written = serde_json::to_value(limits).unwrap();
    assert_eq!(written.get("expression_cost"), None);
    assert_eq!(limits.expression_cost, 1_000_000);
    let other = selvedge_engine::Limits { expression_cost: 5, ..limits };
    assert_eq!(serde_json::to_value(other).unwrap()["expression_cost"], 5);
    assert_eq!(other.raised(limits).expression_cost, 1_000_000);
}

/// A graph is written as it was read; one whose expression is none is refused with the place.
#[test]
fn e46_graphs_hold_templates_and_expressions() {
    use selvedge_engine::graph::{Act, Times, When};
    for text in [
        r#"{"holds":"{{flag}}"}"#,
        r#"{"holds":true}"#,
        r#"{"holds":{"expression":"a > 1"}}"#,
        r#"{"holds":{"expression":1}}"#,
        r#"{"holds":{"expression":"a","other":1}}"#,
    ] {
        let when: When = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&when).unwrap(), text);
    }
    let times: Times = serde_json::from_str(r#"{"while":{"expression":"a"}}"#).unwrap();
    assert_eq!(serde_json::to_string(&times).unwrap(), r#"{"while":{"expression":"a"}}"#);
    let act: Act = serde_json::from_str(r#"{"compute":["x","a + 1"]}"#).unwrap();
    assert_eq!(serde_json::to_string(&act).unwrap(), r#"{"compute":["x","a + 1"]}"#);
    let refused = serde_json::from_str::<When>(r#"{"holds":{"expression":"a >"}}"#).unwrap_err();
    assert!(refused.to_string().contains("at byte 3"), "{refused}");
}
