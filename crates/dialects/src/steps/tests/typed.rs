//! D-15, D-24: what tools declare of their outputs, against what other tools want.

use super::replan::{more, refused};
use super::*;
use selvedge_engine::Outputs;

/// Tools that say what types their outputs have: `stats`, `table`; and `fit`, which takes something of each type.
pub(super) fn tool(name: &str) -> Option<ToolDef> {
    let any = json!({"type": "object"});
    let (schema, outputs) = match name {
        "stats" => (
            any,
            json!({"count": "integer", "mean": "number", "title": "string", "maybe": ["integer", "null"],
                "note": "what was seen", "rows": {"type": "array", "items": {
                    "type": "object", "properties": {"x": {"type": "number"}, "label": {"type": "string"}}}}}),
        ),
        "table" => (any, json!({"count": "string", "title": "string"})),
        "names" => (any, json!(["count"])),
        "fit" => (
            json!({"type": "object", "properties": {
                "n": {"type": "integer"}, "text": {"type": "string"}, "x": {"type": "number"},
                "xs": {"type": "array", "items": {"$ref": "#/$defs/Number"}}, "flag": {"type": "boolean"},
                "opt": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
                "mode": {"enum": ["fast", "slow"]}, "level": {"enum": [1, 2]}, "any": {},
                "at": {"type": "object", "properties": {"x": {"$ref": "#/$defs/Number"}}}},
                "additionalProperties": false, "$defs": {"Number": {"type": "number"}}}),
            json!([]),
        ),
        _ => return None,
    };
    Some(ToolDef {
        name: name.into(),
        description: "".into(),
        input_schema: schema,
        output_params: Outputs::read(&outputs),
        effects: Some(Effects::Pure),
        version: name.into(),
        source: "test".into(),
        timeout_s: None,
        approval: false,
    })
}

fn after(first: Value, parameters: Value) -> (Vec<String>, Vec<Diagnostic>) {
    let task = task(json!([first, {"step_id": "t", "tool_id": "fit", "parameters": parameters}]));
    let (_, found) = compiled_with(&task.to_string(), &Capabilities::default());
    (texts(&found), found)
}

fn stats(parameters: Value) -> Vec<String> {
    after(json!({"step_id": "s", "tool_id": "stats"}), parameters).0
}

#[test]
fn d15_what_is_declared_may_not_contradict_what_is_wanted() {
    for (parameters, at) in [
        (json!({"n": "{{s.output.title}}"}), "/n"),
        (json!({"n": "{{s.title}}"}), "/n"),
        (json!({"n": "${s.output.title}"}), "/n"),
        (json!({"n": "{{title}}"}), "/n"),
        (json!({"n": "{{s_title}}"}), "/n"),
        (json!({"n": "{{metadata.title}}"}), "/n"),
        (json!({"text": "{{s.output.count}}"}), "/text"),
        (json!({"text": "{{s.output.maybe}}"}), "/text"),
        (json!({"flag": "{{s.output.mean}}"}), "/flag"),
        (json!({"opt": "{{s.output.title}}"}), "/opt"),
        (json!({"level": "{{s.output.title}}"}), "/level"),
        (json!({"mode": "{{s.output.count}}"}), "/mode"),
        (json!({"xs": [1, "{{s.output.title}}"]}), "/xs/1"),
        (json!({"xs": "{{s.output.count}}"}), "/xs"),
        (json!({"xs": ["{{s.output.rows[0].label}}"]}), "/xs/0"),
        (json!({"xs": ["{{s.output.rows.0.label}}"]}), "/xs/0"),
        (json!({"x": "{{s.output.rows[-1]}}"}), "/x"),
        (json!({"at": {"x": "{{s.output.rows}}"}}), "/at/x"),
        (json!({"text": "{{s.output}}"}), "/text"),
        (json!({"text": "{{s}}"}), "/text"),
        // A text is a string, whatever is put into it.
        (json!({"n": "{{s.output.count}} "}), "/n"),
        (json!({"opt": "{{s.output.count}}{{s.output.count}}"}), "/opt"),
        (json!({"xs": ["about {{n}}"]}), "/xs/0"),
        (json!({"level": "1{{n}}"}), "/level"),
    ] {
        let expected = format!("/steps/1/parameters{at} error[D-15] type-mismatch");
        assert_eq!(stats(parameters.clone()), [expected], "{parameters}");
    }
}

#[test]
fn d15_what_nobody_declares_fits() {
    for parameters in [
        json!({"n": "{{s.output.count}}", "x": "{{s.output.count}}", "text": "{{s.output.title}}"}),
        json!({"n": "{{s.output.mean}}", "opt": "{{s.output.maybe}}", "mode": "{{title}}"}),
        json!({"n": "{{s.output.note}}", "text": "{{s.output.note}}", "flag": "{{s.output.extra}}"}),
        json!({"n": "{{s.output.rows[0].other}}", "xs": ["{{s.output.rows[0].x}}"]}),
        json!({"n": "{{s.output.count.deeper}}", "any": "{{s.output}}", "at": "{{s.output}}"}),
        json!({"n": "{{name}}", "text": "{{n}}", "x": "{{metadata.name}}"}),
        json!({"text": "{{s.output.count}} of them", "mode": "f{{s.output.title}}"}),
        json!({"{{n}}": "{{s.output.title}}", "at": {"{{name}}": "{{s.output.title}}"}}),
        json!({"at": {"other": "{{s.output.title}}"}}),
    ] {
        let found = stats(parameters.clone());
        let of_types: Vec<_> = found.iter().filter(|line| line.contains("type-mismatch")).collect();
        assert!(of_types.is_empty(), "{parameters}: {found:?}");
    }
}

#[test]
fn d15_one_of_several_that_fits_is_enough() {
    let of = |first: Value, text: &str| after(first, json!({"n": text})).0;
    let mismatch = ["/steps/1/parameters/n error[D-15] type-mismatch"];
    let ladder = |tools: Value| json!({"step_id": "s", "tool_id": "table", "alternatives": tools});
    assert_eq!(of(ladder(json!([])), "{{s.output.count}}"), mismatch);
    assert_eq!(of(ladder(json!(["table"])), "{{s.output.count}}"), mismatch);
    assert_eq!(of(ladder(json!(["stats"])), "{{s.output.count}}"), [""; 0]);
    assert_eq!(of(ladder(json!(["names"])), "{{s.output.count}}"), [""; 0], "it declares no type");
    assert_eq!(of(ladder(json!(["any"])), "{{count}}"), [""; 0]);
    assert_eq!(of(ladder(json!(["names"])), "{{count}}"), [""; 0]);
    assert_eq!(of(ladder(json!(["stats"])), "{{s.output.title}}"), mismatch);
    // What becomes of a placeholder that finds nothing.
    for (on_missing, wanted, fits) in
        [("null", "opt", true), ("null", "n", false), ("keep", "text", true), ("keep", "n", false)]
    {
        let (path, tool) = if wanted == "text" { ("count", "stats") } else { ("title", "stats") };
        let task = task(json!([
            {"step_id": "s", "tool_id": tool},
            {"step_id": "t", "tool_id": "fit", "on_missing": on_missing,
             "parameters": {wanted: format!("{{{{s.output.{path}}}}}")}},
        ]));
        assert_eq!(findings(&task).is_empty(), fits, "{on_missing} {wanted}");
    }
    // Metadata of the same name may be what is meant: nobody knows its type.
    let (found, _) = after(json!({"step_id": "s", "tool_id": "stats"}), json!({"n": "{{metadata.n}}"}));
    assert_eq!(found, [""; 0]);
}

#[test]
fn d15_alternatives_are_held_against_what_is_brought() {
    let steps = json!([
        {"step_id": "s", "tool_id": "stats"},
        {"step_id": "t", "tool_id": "any", "parameters": {"n": "{{s.output.title}}"}, "alternatives": ["fit"]},
        {"step_id": "u", "tool_id": "any",
         "alternatives": [{"tool_id": "fit", "parameters": {"flag": "{{s.output.title}}"}}]},
    ]);
    assert_eq!(
        findings(&task(steps)),
        [
            "/steps/1/parameters/n error[D-15] type-mismatch",
            "/steps/2/alternatives/0/parameters/flag error[D-15] type-mismatch"
        ]
    );
}

#[test]
fn d15_a_mismatch_says_where_what_and_what_to_do() {
    let first = json!({"step_id": "s", "tool_id": "stats"});
    let (_, found) = after(first.clone(), json!({"text": "a", "n": "{{s.output.title}}"}));
    let document = task(json!([first, {"step_id": "t", "tool_id": "fit",
        "parameters": {"text": "a", "n": "{{s.output.title}}"}}]))
    .to_string();
    assert_eq!(found[0].column.unwrap() as usize, document.find("{{s.output").unwrap() + 1);
    assert_eq!(
        found[0].message,
        "{{s.output.title}} is a string, and tool \"fit\" wants an integer for `/n`"
    );
    for part in ["of step \"s\"", "\"count\"", "\"mean\"", "\"maybe\"", "correct what"] {
        assert!(found[0].help.contains(part), "{}", found[0].help);
    }
    let (_, found) = after(first.clone(), json!({"opt": "no {{title}}"}));
    assert!(
        found[0]
            .message
            .contains("a text with {{title}} is a string, and tool \"fit\" wants an integer or null")
    );
    assert!(found[0].help.contains("stand alone"), "{}", found[0].help);
    let (_, found) = after(first, json!({"flag": "{{title}}"}));
    assert!(found[0].help.contains("use a value that is a boolean"), "{}", found[0].help);
    // Inside a JSON text the place is that of the placeholder as well (D-12).
    let text = r#"{"task": "t", "steps": [{"step_id": "s", "tool_id": "stats"},
        {"step_id": "t", "tool_id": "fit", "parameters": "{\"text\": \"\u00e9\", \"n\": \"{{title}}\"}"}]}"#;
    let (_, found) = compiled_with(text, &Capabilities::default());
    let line = text.lines().nth(1).unwrap();
    let column = line.chars().count() - line[line.find("{{title").unwrap()..].chars().count() + 1;
    assert_eq!((found[0].line, found[0].column, found.len()), (Some(2), Some(column as u32), 1));
}

/// D-20: the steps that a model writes pass the same check, against what has run as well.
#[test]
fn d20_a_replan_is_told_of_types() {
    let earlier = json!([{"id": "s", "tool": "stats", "success": true}]);
    let step = |text: &str| json!([{"step_id": "t", "tool_id": "fit", "parameters": {"n": text}}]);
    let found = refused(&more(step("{{s.output.title}}"), earlier.clone()));
    assert!(
        found[0].starts_with("/steps/0/parameters/n: ") && found[0].contains("wants an integer"),
        "{found:?}"
    );
    assert!(more(step("{{s.output.count}}"), earlier)["nodes"].is_array());
}
