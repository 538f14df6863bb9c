//! D-07, D-15, P-25, E-22: what is found before anything runs.

use super::*;

#[test]
fn d15_tools_and_steps_that_there_are_not() {
    assert_eq!(of_step(json!({"tool_id": "ad"})), ["/steps/0/tool_id error[D-15] unknown-tool"]);
    assert_eq!(
        of_step(json!({"alternatives": ["sub"]})),
        ["/steps/0/alternatives/0 error[D-15] unknown-tool"]
    );
    assert_eq!(of_step(json!({"depends_on": ["s0"]})), ["/steps/0/depends_on/0 error[D-15] unknown-step"]);
    for placeholder in
        ["{{s0.output.x}}", "{{s0.outputs}}", "${s0.output.x}", "{{7.x}}", "{{{s0.outputs.x}}}"]
    {
        let found = of_step(json!({"parameters": {"a": placeholder}}));
        assert_eq!(found, ["/steps/0/parameters/a error[D-15] unknown-step"], "{placeholder}");
    }
    // Also where an earlier step may bring any name: this form can only mean a step (D-06).
    let found = findings(&task(json!([
        {"step_id": "s0", "tool_id": "any"},
        step(json!({"parameters": {"a": "{{who.output.x}}", "b": "{{who.x}}"}})),
    ])));
    assert_eq!(found, ["/steps/1/parameters/a error[D-15] unknown-step"]);
    let twice = task(json!([step(json!({})), step(json!({}))]));
    assert_eq!(findings(&twice), ["/steps/1/step_id error[D-15] duplicate-step-id"]);
}

/// E-32, D-15: a step that can't be read keeps nobody from hearing what is wrong with the others by themselves.
#[test]
fn d15_what_is_wrong_is_told_at_once() {
    let found = findings(&task(json!([
        {"step_id": "a", "tool_id": 3},
        {"step_id": "b", "tool_id": "ad", "parameters": {"x": "{{a.output.y}}"}, "depends_on": ["a"]},
        {"step_id": "c", "tool_id": "add", "parameters": {"a": "one"}, "alternatives": ["nowhere"]},
    ])));
    assert_eq!(
        found,
        [
            "/steps/0/tool_id error[D-15] wrong-type",
            "/steps/1/tool_id error[D-15] unknown-tool",
            "/steps/2/parameters/a error[D-15] arguments-refused",
            "/steps/2/alternatives/0 error[D-15] unknown-tool",
        ]
    );
}

#[test]
fn d15_the_order_of_the_list_is_the_order_of_meaning() {
    let two = |first: Value, second: Value| {
        let mut second = step(second);
        second["step_id"] = json!("s2");
        findings(&task(json!([step(first), second])))
    };
    let read = |id: &str| json!({"parameters": {"a": format!("{{{{{id}.output.sum}}}}")}});
    assert_eq!(two(json!({}), read("s1")), [""; 0]);
    assert_eq!(two(read("s2"), json!({})), ["/steps/0/parameters/a error[D-15] later-step"]);
    assert_eq!(
        two(json!({"depends_on": ["s2"]}), json!({})),
        ["/steps/0/depends_on/0 error[D-15] later-step"]
    );
    assert_eq!(two(read("s1"), json!({})), ["/steps/0/parameters/a error[D-15] cycle"]);
    assert_eq!(two(json!({"depends_on": ["s1"]}), json!({})), ["/steps/0/depends_on/0 error[D-15] cycle"]);
    assert_eq!(two(json!({"depends_on": ["s2"]}), read("s1")), ["/steps/0/depends_on/0 error[D-15] cycle"]);
    // An alternative's own parameters count as well.
    let other = json!({"alternatives": [{"tool_id": "add", "parameters": {"a": "{{s2.output.sum}}"}}]});
    assert_eq!(two(other, json!({})), ["/steps/0/alternatives/0/parameters/a error[D-15] later-step"]);
    // Three steps in a circle are named.
    let circle = task(json!([
        {"step_id": "a", "tool_id": "any", "depends_on": ["c"]},
        {"step_id": "b", "tool_id": "any", "parameters": {"x": "{{a.output.y}}"}},
        {"step_id": "c", "tool_id": "any", "depends_on": ["b"]},
    ]));
    let (_, found) = compiled_with(&circle.to_string(), &Capabilities::default());
    assert_eq!(texts(&found), ["/steps/0/depends_on/0 error[D-15] cycle"]);
    assert!(found[0].message.contains(r#""a" → "c" → "b" → "a""#), "{}", found[0].message);
}

#[test]
fn d15_parameters_are_held_against_the_tools_schema() {
    for (parameters, at) in [
        (json!({"a": "x"}), "/a"),
        (json!({"a": 1.5}), "/a"),
        (json!({"a": 1, "mode": "medium"}), "/mode"),
        (json!({}), ""),
        (json!({"b": "{{n}}"}), ""),
        (json!({"a": 1, "list": [1, 2, "{{n}}"]}), "/list"),
        (json!({"a": 1, "list": ["{{n}}", "x"]}), "/list/1"),
    ] {
        let found = of_step(json!({"parameters": parameters}));
        assert_eq!(found, [format!("/steps/0/parameters{at} error[D-15] arguments-refused")], "{parameters}");
    }
    // No parameters at all lack the required one.
    assert_eq!(of_step(json!({"parameters": null})), ["/steps/0/tool_id error[D-15] arguments-refused"]);
    let unknown = json!({"tool_id": "read_csv", "parameters": {"path": "{{name}}", "sep": ";"}});
    assert_eq!(of_step(unknown), ["/steps/0/parameters error[D-15] arguments-refused"]);
    // An alternative without parameters is given those of the step.
    let other = json!({"alternatives": ["read_csv"]});
    let found = of_step(other);
    assert!(found.iter().all(|f| f == "/steps/0/parameters error[D-15] arguments-refused"), "{found:?}");
    assert_eq!(found.len(), 2, "path lacks, a is not known");
    let own = json!({"alternatives": [{"tool_id": "read_csv", "parameters": {"path": 1}}]});
    assert_eq!(of_step(own), ["/steps/0/alternatives/0/parameters/path error[D-15] arguments-refused"]);
}

/// Values that hold placeholders are checked once resolved: nothing is said before of what nobody declares.
#[test]
fn d15_values_with_placeholders_wait_for_their_values() {
    for parameters in [
        json!({"a": "{{name}}"}),
        json!({"a": "{{n}}", "mode": "{{name}}"}),
        json!({"a": 1, "list": ["{{n}}", 2]}),
        json!({"{{name}}": 1, "a": 2}),
        json!({"{{name}}": 1}),
        json!({"a": 1, "list": "{{name}}"}),
    ] {
        assert_eq!(of_step(json!({"parameters": parameters})), [""; 0], "{parameters}");
    }
    // Escaped, it is text.
    let escaped = of_step(json!({"parameters": {"a": "\\{{n}}"}}));
    assert_eq!(escaped, ["/steps/0/parameters/a error[D-15] arguments-refused"]);
}

#[test]
fn p25_names_that_nothing_can_supply() {
    let with = |first: &str, text: &str| {
        findings(&task(json!([
            {"step_id": "s0", "tool_id": first, "parameters": {"a": 1, "path": "p"}},
            step(json!({"parameters": {"a": text}})),
        ])))
    };
    for known in
        ["{{n}}", "{{metadata.n}}", "{{inputs.n}}", "{{sum}}", "{{s0_sum}}", "{{metadata.sum}}", "{{s0.sum}}"]
    {
        assert_eq!(with("add", known), [""; 0], "{known}");
    }
    for unknown in ["{{total}}", "{{inputs.sum}}", "{{metadata.total}}", "{{s1_sum}}", "{{total.x}}"] {
        assert_eq!(
            with("add", unknown),
            ["/steps/1/parameters/a error[P-25] unknown-placeholder"],
            "{unknown}"
        );
    }
    assert_eq!(with("any", "{{total}}"), [""; 0], "a tool that declares nothing may bring any name");
    // D-07: a step hides metadata of its name.
    let hidden = task(json!([
        {"step_id": "name", "tool_id": "any"},
        step(json!({"parameters": {"a": "{{name.x}}", "b": "{{metadata.name}}"}})),
    ]));
    assert_eq!(findings(&hidden), ["/steps/1/parameters/a warning[D-07] hidden-name"]);
}

#[test]
fn tools_without_declared_effects_are_told_of_once() {
    let twice = json!([{"step_id": "a", "tool_id": "save"}, {"step_id": "b", "tool_id": "save"}]);
    assert_eq!(findings(&task(twice)), ["/steps/0/tool_id warning[E-22] undeclared-effects"]);
    assert_eq!(of_step(json!({"tool_id": "save", "effects": "idempotent"})), [""; 0]);
    let other = of_step(json!({"effects": "pure", "alternatives": ["save"]}));
    assert_eq!(other, ["/steps/0/alternatives/0 warning[E-22] undeclared-effects"]);
}
