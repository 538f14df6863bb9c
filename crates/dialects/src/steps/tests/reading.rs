//! D-01, D-09, D-12, D-15, D-23: the fields of a task and of its steps, as they are read.

use super::*;

#[test]
fn fields_have_the_types_of_the_shapes() {
    for (fields, expected) in [
        (json!({"tool_id": 1}), "/steps/0/tool_id error[D-15] wrong-type"),
        (json!({"step_id": true}), "/steps/0/step_id error[D-15] wrong-type"),
        (json!({"step_id": ""}), "/steps/0/step_id error[D-15] empty-name"),
        (json!({"step_id": "metadata"}), "/steps/0/step_id error[D-07] reserved-step-id"),
        (json!({"step_id": "inputs"}), "/steps/0/step_id error[D-07] reserved-step-id"),
        (json!({"step_id": "a b"}), "/steps/0/step_id error[D-09] unnameable-step-id"),
        (json!({"step_id": "1a"}), "/steps/0/step_id error[D-09] unnameable-step-id"),
        (json!({"parameters": 3}), "/steps/0/parameters error[D-12] wrong-type"),
        (json!({"parameters": [1]}), "/steps/0/parameters error[D-12] wrong-type"),
        (json!({"depends_on": "s0"}), "/steps/0/depends_on error[D-14] wrong-type"),
        (json!({"depends_on": [null]}), "/steps/0/depends_on/0 error[D-15] wrong-type"),
        (json!({"alternatives": "add"}), "/steps/0/alternatives error[D-23] wrong-type"),
        (json!({"alternatives": [1]}), "/steps/0/alternatives/0 error[D-23] wrong-type"),
        (json!({"alternatives": [""]}), "/steps/0/alternatives/0 error[D-23] empty-name"),
        (json!({"alternatives": [{}]}), "/steps/0/alternatives/0 error[D-23] missing-field"),
        (json!({"retry": "x"}), "/steps/0/retry error[P-24] wrong-type"),
        (json!({"timeout": 0}), "/steps/0/timeout error[D-23] out-of-range"),
        (json!({"on_missing": "fault"}), "/steps/0/on_missing error[D-10] unknown-value"),
        (json!({"effects": "none"}), "/steps/0/effects error[E-22] unknown-value"),
        (json!({"paramters": {}}), "/steps/0/paramters error[E-32] unknown-field"),
        (json!({"note": 1}), "/steps/0/note warning[E-32] unknown-field"),
        (
            json!({"alternatives": [{"tool_id": "any", "extra": 1}]}),
            "/steps/0/alternatives/0/extra warning[E-32] unknown-field",
        ),
    ] {
        assert_eq!(of_step(fields.clone()), [expected], "{fields}");
    }
    for missing in ["step_id", "tool_id"] {
        let mut step = step(json!({}));
        step.as_object_mut().unwrap().remove(missing);
        assert_eq!(findings(&task(json!([step]))), ["/steps/0 error[D-15] missing-field"], "{missing}");
    }
    assert_eq!(findings(&json!({"steps": []})), [" error[D-15] missing-field"]);
    assert_eq!(findings(&json!({"task": "t", "steps": {}})), ["/steps error[D-15] wrong-type"]);
    assert_eq!(
        findings(&json!({"task": "t", "steps": [], "metadata": 1})),
        ["/metadata error[D-01] wrong-type"]
    );
    let (_, found) =
        compiled_with(&task(json!([step(json!({"timeout": "5s"}))])).to_string(), &Capabilities::default());
    assert!(
        found[0].message.contains("number of seconds") && found[0].help.contains("30"),
        "{}",
        found[0].message
    );
    // What may be left out, and null.
    let plain = json!({"step_id": "s", "tool_id": "any", "step_name": null, "parameters": null, "depends_on": null,
        "alternatives": null, "retry": null, "timeout": null, "on_missing": null, "effects": null});
    assert_eq!(findings(&json!({"task": "t", "steps": [plain], "recovery": null})), [""; 0]);
    assert_eq!(graph(&task(json!([]))).nodes.len(), 0);
}

#[test]
fn d12_parameters_as_a_json_string_are_parsed_with_places() {
    let given = step(json!({"parameters": "{\"a\": \"{{n}}\", \"b\": 2}"}));
    let graph = graph(&task(json!([given])));
    let Act::Call(call) = &leaf(&graph, only(&graph), "call").act else { panic!("no call") };
    assert_eq!(call.args.source(), &json!({"a": "{{n}}", "b": 2}));

    let column = |text: &str| {
        let (_, found) = compiled_with(text, &Capabilities::default());
        let found: Vec<_> = found.iter().filter(|d| d.severity == Severity::Error).collect();
        assert_eq!(found.len(), 1, "{found:#?}");
        (found[0].rule, found[0].code, found[0].column.unwrap() as usize - 1)
    };
    let with = |parameters: &str| {
        format!(
            r#"{{"task": "é", "steps": [{{"step_id": "s", "tool_id": "add", "parameters": "{parameters}"}}]}}"#
        )
    };
    // The column is where the wrong character stands in the document, escapes before it counted as written.
    for (parameters, rule, code, at) in [
        (r#"{\"a\": }"#, "D-12", "bad-parameters", "}\"}]}"),
        (r#"[1]"#, "D-12", "bad-parameters", "[1]"),
        (r#""#, "D-12", "bad-parameters", "\"}]}"),
        (r#"{\"a\": 1, \"a\": 2}"#, "E-28", "duplicate-key", r#"\"a\": 2"#),
        (r#"{\"a\": 1, \"z\": \"\u00e9{{later.output}}\"}"#, "D-15", "unknown-step", "{{later"),
        (r#"{\"a\": \"{{n\"}"#, "D-09", "unfinished-placeholder", "{{n"),
        (r#"{\"a\": \"x\"}"#, "D-15", "arguments-refused", r#"\"x\""#),
        (r#"{\"a\": 1, \"b\": null}"#, "D-15", "arguments-refused", "null"),
    ] {
        let text = with(parameters);
        let expected = text.chars().count() - text[text.find(at).unwrap()..].chars().count();
        assert_eq!(column(&text), (rule, code, expected), "{parameters}");
    }
    // What is no JSON at all needs more than quotes.
    let (_, found) = compiled_with(&with("a=1"), &Capabilities::default());
    assert!(found[0].help.contains("by name"), "{}", found[0].help);
    // Without quotes around it a placeholder is no JSON, and the way out says so.
    let (_, found) = compiled_with(&with(r#"{\"a\": {{n}}}"#), &Capabilities::default());
    assert!(found[0].help.contains("placeholders stand in strings"), "{}", found[0].help);
}

#[test]
fn the_task_is_a_template_of_the_first_layer() {
    let of = |text: &str| {
        findings(&json!({"task": text, "metadata": {"n": 1}, "inputs": {"city": {"default": "杭州"}},
        "steps": [{"step_id": "s", "tool_id": "any"}]}))
    };
    assert_eq!(of("Load {{n}} of {{city}}, \\{{as it is}}"), [""; 0]);
    assert_eq!(of("{{s.output}}"), ["/task error[D-15] later-step"]);
    assert_eq!(of("{{x}}"), ["/task error[P-25] unknown-placeholder"]);
    assert_eq!(of("{{x"), ["/task error[D-09] unfinished-placeholder"]);
}

#[test]
fn what_is_read_is_what_was_written() {
    let text =
        task(json!([step(json!({"retry": 2, "timeout": 1.5, "effects": "read", "on_missing": "keep",
        "alternatives": ["any"]}))]))
        .to_string();
    let (source, mut found) = (Source::new("task.json", &text), Diagnostics::new());
    let root = crate::json::parse(&source, &DocumentLimits::default(), &mut found).unwrap();
    let document = read(&root, &source, &DocumentLimits::default(), &mut found).unwrap();
    assert_eq!(found.findings(), []);
    let step = &document.steps.as_ref().unwrap()[0];
    assert_eq!(step.retry.as_ref().map(|retry| retry.value.max), Some(2));
    assert_eq!(step.timeout.as_ref().map(|timeout| timeout.value), Some(Duration::from_millis(1500)));
    assert_eq!(step.effects.as_ref().map(|effects| effects.value), Some(ToolEffects::Read));
    assert_eq!(step.on_missing, OnMissing::Keep);
    assert_eq!(source.slice(step.id.span), "\"s1\"");
    assert_eq!(document.tools(), ["add".into(), "any".into()]);
}
