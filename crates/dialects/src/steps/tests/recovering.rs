//! D-17 to D-19, D-23: what a step does about a fault, and what a document says about it.

use super::*;

#[test]
fn d23_recovery_has_its_shape_and_limits() {
    let with = |recovery: Value| findings(&json!({"task": "t", "steps": [], "recovery": recovery}));
    let all = json!({"model": false, "siblings": "hold", "retries": 0, "repairs": 2, "replans": 0,
        "consecutive_failures": 1, "reflections": 1000});
    assert_eq!(with(all), [""; 0]);
    for (recovery, expected) in [
        (json!(3), "/recovery error[D-23] wrong-type"),
        (json!({"model": "no"}), "/recovery/model error[D-23] wrong-type"),
        (json!({"siblings": "stop"}), "/recovery/siblings error[D-23] unknown-value"),
        (json!({"retries": -1}), "/recovery/retries error[D-23] out-of-range"),
        (json!({"retries": 1.5}), "/recovery/retries error[D-23] wrong-type"),
        (json!({"consecutive_failures": 0}), "/recovery/consecutive_failures error[D-19] out-of-range"),
        (json!({"reflections": 1001}), "/recovery/reflections error[D-19] out-of-range"),
        (json!({"retires": 1}), "/recovery/retires error[E-32] unknown-field"),
    ] {
        assert_eq!(with(recovery.clone()), [expected], "{recovery}");
    }
}

#[test]
fn d19_documents_go_over_the_configuration_over_defaults() {
    let configured = Recovery {
        retries: Some(7),
        repairs: Some(0),
        siblings: Some(Siblings::Hold),
        ..Recovery::default()
    };
    let capabilities = Capabilities { recovery: configured, ..MODEL.clone() };
    let mut document = task(json!([step(json!({}))]));
    document["recovery"] = json!({"repairs": 2, "siblings": "finish"});
    let graph = graph_with(&document, &capabilities);
    let node = only(&graph);
    let limits = node.recovery.as_deref().unwrap();
    assert_eq!((limits.retries, limits.repairs, limits.replans), (7, 2, 1));
    assert_eq!((limits.consecutive_failures, limits.reflections, limits.model), (3, 5, true));
    assert_eq!(node.on_error, OnError::Finish);
    document["recovery"] = json!({"model": false});
    let graph = graph_with(&document, &capabilities);
    let node = only(&graph);
    assert_eq!(node.on_error, OnError::Fail, "the configuration holds siblings");
    assert!(!node.recovery.as_deref().unwrap().model);
    assert_eq!((leaves(&graph, node), graph.tools.len()), (vec!["call"], 1));
}

#[test]
fn d18_without_a_model_the_ladder_is_the_alternatives() {
    let ladder = step(json!({"alternatives": ["any", {"tool_id": "add", "parameters": "{\"a\": 2}"}]}));
    let graph = graph(&task(json!([ladder])));
    let node = only(&graph);
    let limits = node.recovery.as_deref().unwrap();
    let others: Vec<_> =
        limits.alternatives.iter().map(|o| (&*o.tool, o.args.as_ref().map(|a| a.source().clone()))).collect();
    assert_eq!(others, [("any", None), ("add", Some(json!({"a": 2})))]);
    assert_eq!(leaves(&graph, node), ["call", "turn", "decide", "try"]);
    assert_eq!(edges(&graph, node, "call"), [(Guard::Fault, "turn".into()), (Guard::Always, String::new())]);
    assert_eq!(edges(&graph, node, "turn"), [(Guard::Always, "decide".into())]);
    assert!(edges(&graph, node, "decide").contains(&(Guard::Act(Action::RetryWithTool), "try".into())));
    assert_eq!(graph.tools.len(), 2, "only what is named");
    assert_eq!(node.body.compiler, None);
}

#[test]
fn d17_with_a_model_all_tools_are_there_to_choose_from() {
    let graph = graph_with(&task(json!([step(json!({}))])), &MODEL);
    let node = only(&graph);
    let internal = format!("{INTERNAL}compile");
    assert_eq!(graph.tools.keys().map(|n| &**n).collect::<Vec<_>>(), ["add", "any", "read_csv", &*internal]);
    assert_eq!(node.body.compiler.as_deref(), Some(&*internal));
    let names = ["call", "turn", "brief", "reflect", "decide", "try", "ask", "plan", "compile", "splice"];
    assert_eq!(leaves(&graph, node), names);
    let Act::AppendFacts { facts, .. } = &leaf(&graph, node, "brief").act else { panic!("no brief") };
    assert_eq!(facts.first(), Some(&Fact::Step));
    let schema = |name: &str| match &leaf(&graph, node, name).act {
        Act::Infer(infer) => (infer.model.clone().unwrap(), infer.schema.clone().unwrap().name),
        _ => panic!("no inference"),
    };
    assert_eq!(schema("reflect"), ("reflection".into(), "reflection".into()));
    assert_eq!(schema("plan"), ("planner".into(), "steps".into()));
    // Without replans nothing can be compiled.
    let mut document = task(json!([step(json!({}))]));
    document["recovery"] = json!({"replans": 0});
    let graph = graph_with(&document, &MODEL);
    assert_eq!(leaves(&graph, only(&graph)), ["call", "turn", "brief", "reflect", "decide", "try"]);
    assert!(!graph.tools.contains_key(&*internal));
}

/// What steps do about a fault is in the graph once, and a step that can do nothing has none of it.
#[test]
fn d17_steps_share_their_recovery() {
    let steps = |count: usize| {
        let steps =
            (0..count).map(|n| step(json!({"step_id": format!("s{n}"), "retry": n % 3, "timeout": 1 + n})));
        let graph = graph_with(&task(steps.collect()), &MODEL);
        assert_eq!((graph.tails.len(), graph.nodes.len()), (1, count));
        serde_json::to_vec(&graph).unwrap().len()
    };
    let (few, many) = (steps(100), steps(200));
    assert!(many - few < 100 * 700, "{} bytes a step", (many - few) / 100);
    let graph =
        graph(&task(json!([step(json!({})), step(json!({"step_id": "s2", "alternatives": ["any"]}))])));
    let tails: Vec<_> = graph.nodes.values().map(|node| node.body.tail).collect();
    assert_eq!(tails, [None, Some(TailIx(0))]);
}
