//! D-12 to D-21: the graph that steps become.

use super::*;

#[test]
fn a_step_is_a_node_that_calls_its_tool() {
    let graph = graph(&json!({"task": "t", "name": "chain", "steps": [
        {"step_id": 1, "tool_id": "read_csv", "parameters": {"path": "a.csv"}},
        {"step_id": "two", "step_name": "adds", "tool_id": "add", "parameters": {"a": "{{1.output.rows}}"},
         "depends_on": [1], "retry": {"max": 2, "backoff_s": 0.5}, "timeout": 3, "on_missing": "null",
         "effects": "write"}]}));
    assert_eq!(graph.name.as_deref(), Some("chain"));
    assert_eq!(graph.tools.keys().map(|name| &**name).collect::<Vec<_>>(), ["add", "read_csv"]);
    assert!(graph.threads.is_empty());
    let nodes: Vec<&Node> = graph.nodes.values().collect();
    assert_eq!((&*nodes[0].id, &*nodes[0].name, nodes[0].tool.as_deref()), ("1", "1", Some("read_csv")));
    assert_eq!((&*nodes[1].id, &*nodes[1].name), ("two", "adds"));
    assert_eq!(nodes[1].after, ["1".into()]);
    assert_eq!((nodes[1].on_missing, nodes[1].effects), (OnMissing::Null, Some(Effects::Write)));
    assert_eq!(leaves(&graph, nodes[1]), ["call"]);
    let Act::Call(call) = &leaf(&graph, nodes[1], "call").act else { panic!("no call") };
    assert_eq!(call.args.source(), &json!({"a": "{{1.output.rows}}"}));
    assert_eq!((call.retry.max, call.retry.backoff_s, call.timeout_s), (Some(2), Some(0.5), Some(3.0)));
    let Act::Call(call) = &leaf(&graph, nodes[0], "call").act else { panic!("no call") };
    assert_eq!(call.retry.max, None, "what is not written is the engine's to know");
}

#[test]
fn d21_a_task_without_steps_is_one_node_that_plans() {
    let document = json!({"task": "Add {{n}}", "metadata": {"n": 1}});
    let graph = graph(&document);
    let node = only(&graph);
    assert_eq!((&*node.id, node.tool.as_deref(), node.on_error), ("(plan)", None, OnError::Fail));
    assert_eq!(leaves(&graph, node), ["brief", "plan", "compile", "splice"]);
    let Act::AppendFacts { text, .. } = &leaf(&graph, node, "brief").act else { panic!("no brief") };
    assert!(text.source().ends_with("\nAdd {{n}}"), "{}", text.source());
    assert_eq!(text.placeholders().count(), 1, "only the task's");
    assert_eq!(edges(&graph, node, "compile")[0], (Guard::Exhausted, String::new()));
    let Act::Compile { tries, .. } = leaf(&graph, node, "compile").act else { panic!("no compiler") };
    assert_eq!(tries, 4, "the first plan, and three that answer diagnostics");

    struct Many;
    impl ToolSource for Many {
        fn def(&self, name: &str) -> Option<Arc<ToolDef>> {
            Some(Arc::new(ToolDef { name: name.into(), ..tool("any")? }))
        }
        fn names(&self) -> Vec<String> {
            (0..10).map(|n| format!("tool{n}")).collect()
        }
    }
    let (source, mut found) = (Source::new("task.json", &document.to_string()), Diagnostics::new());
    let read = crate::read(&source, Choice::default(), &DocumentLimits::default(), &mut found).unwrap();
    assert_eq!(read.models(), ["planner".into()]);
    let graph = read.compile(&Many, &Map::new(), &MODEL, &mut found).unwrap();
    assert_eq!(leaves(&graph, only(&graph)), ["survey", "choose", "brief", "plan", "compile", "splice"]);
}

#[test]
fn models_are_needed_only_to_plan() {
    let of = |document: Value| {
        let (source, mut found) = (Source::new("task.json", &document.to_string()), Diagnostics::new());
        let read = crate::read(&source, Choice::default(), &DocumentLimits::default(), &mut found).unwrap();
        (read.models().len(), read.optional_models(&Capabilities::default()).len(), read.tools().len())
    };
    assert_eq!(of(task(json!([step(json!({"alternatives": ["any", "add"]}))]))), (0, 2, 2));
    assert_eq!(of(json!({"task": "t", "steps": [], "recovery": {"model": false}})), (0, 0, 0));
    assert_eq!(of(json!({"task": "t"})).0, 1);
}
