//! D-20, D-21: steps that a model wrote while a task runs.

use super::*;

/// What the engine hands to the compiler, with these steps.
pub(super) fn more(steps: Value, earlier: Value) -> Value {
    let graph = graph_with(&task(json!([step(json!({}))])), &MODEL);
    let Act::Compile { context, .. } = &leaf(&graph, only(&graph), "compile").act else {
        panic!("no compiler")
    };
    let mut args = context.clone();
    args.insert("steps".into(), steps);
    args.insert("earlier".into(), earlier);
    compile_more(&Value::Object(args), &Bench)
}

pub(super) fn refused(answer: &Value) -> Vec<String> {
    let texts = answer["diagnostics"].as_array().unwrap_or_else(|| panic!("accepted: {answer}"));
    texts.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn d20_new_steps_are_compiled_like_those_of_a_document() {
    let earlier =
        json!([{"id": "s0", "tool": "add", "success": true}, {"id": "bad", "tool": "add", "success": false}]);
    let answer = more(
        json!([
            {"step_id": "s1", "tool_id": "add", "parameters": {"a": "{{s0.output.sum}}", "b": "{{sum}}"}, "depends_on": ["s0"]},
            {"step_id": "bad", "tool_id": "any", "parameters": "{\"x\": \"{{s0_sum}} {{n}}\"}"},
        ]),
        earlier.clone(),
    );
    let nodes: Vec<Node> = serde_json::from_value(answer["nodes"].clone()).unwrap();
    let tools: BTreeMap<String, ToolDef> = serde_json::from_value(answer["tools"].clone()).unwrap();
    assert_eq!(nodes.iter().map(|node| &*node.id).collect::<Vec<_>>(), ["s1", "bad"]);
    assert_eq!(tools.keys().collect::<Vec<_>>(), ["add", "any"]);
    assert_eq!(nodes[0].after, ["s0".into()]);
    assert!(nodes[0].recovery.as_deref().unwrap().model && nodes[0].body.compiler.is_some());
    let as_written = graph_with(&task(json!([step(json!({}))])), &MODEL);
    let tails: Table<TailIx, Arc<Tail>> = serde_json::from_value(answer["tails"].clone()).unwrap();
    assert_eq!(tails, as_written.tails, "a replan may be replanned with the same settings");
    assert_eq!((tails.len(), nodes[0].body.tail), (1, Some(TailIx(0))));

    for (steps, parts) in [
        (json!([{"step_id": "s0", "tool_id": "any"}]), vec!["/steps/0/step_id", "has succeeded"]),
        (json!([{"step_id": "a", "tool_id": "save_all"}]), vec!["/steps/0/tool_id", "save_all"]),
        (
            json!([{"step_id": "a", "tool_id": "add", "parameters": {"a": "{{bad.output}}"}}]),
            vec!["/steps/0/parameters/a", "no step"],
        ),
        (
            json!([{"step_id": "a", "tool_id": "add", "parameters": {"a": "{{gone}}"}}]),
            vec!["nothing can supply"],
        ),
        (json!([{"step_id": "a", "tool_id": "add", "parameters": {"a": "x"}}]), vec!["integer"]),
        (json!([{"step_id": "a", "tool_id": "add"}]), vec!["required"]),
        (json!([{"tool_id": "any"}]), vec!["step_id"]),
        (json!([7]), vec!["object"]),
        (json!("none"), vec!["array"]),
    ] {
        let found = refused(&more(steps.clone(), earlier.clone()));
        for part in parts {
            assert!(found.iter().any(|text| text.contains(part)), "{steps}: {found:?} lacks {part}");
        }
        assert!(found.iter().all(|text| !text.contains("--tools")), "a model has no command line");
    }
    // Nothing left to do is a plan only once something was done.
    assert_eq!(more(json!([]), earlier), json!({"nodes": [], "tails": [], "tools": {}}));
    assert_eq!(refused(&more(json!([]), json!([]))).len(), 1);
}

#[test]
fn e22_a_model_may_not_say_that_a_call_is_harmless() {
    let effects = |tool: &str, given: &str| {
        let answer = more(
            json!([{"step_id": "a", "tool_id": tool, "parameters": {"a": 1}, "effects": given}]),
            json!([]),
        );
        let nodes: Vec<Node> = serde_json::from_value(answer["nodes"].clone()).unwrap();
        nodes[0].effects
    };
    assert_eq!(effects("save", "pure"), Some(Effects::Write));
    assert_eq!(effects("add", "write"), Some(Effects::Write));
    assert_eq!(effects("add", "pure"), Some(Effects::Pure));
}
