use super::*;
use crate::agent;
use crate::diagnostic::Diagnostic;
use crate::fields::Shape;
use crate::inputs::InputType;
use crate::plan;
use crate::recognise::Choice;
use crate::settings::ToolEffects;
use crate::steps::{self, Siblings};
use crate::{Diagnostics, DocumentLimits, Severity, Source, workflow};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

fn schema() -> Value {
    schema_of(Dialect::Plan)
}

fn schema_of(dialect: Dialect) -> Value {
    serde_json::from_str(of(dialect).unwrap()).unwrap()
}

fn fits(document: &Value) -> bool {
    static VALIDATOR: LazyLock<jsonschema::Validator> =
        LazyLock::new(|| jsonschema::validator_for(&schema()).unwrap());
    VALIDATOR.is_valid(document)
}

/// Whether the reader finds no error; what needs the whole document is the checker's business.
fn reads(document: &Value) -> bool {
    reads_as(Choice::default(), document)
}

fn reads_as(choice: Choice<'_>, document: &Value) -> bool {
    let (source, mut found) = (Source::new("document.json", &document.to_string()), Diagnostics::new());
    crate::read(&source, choice, &DocumentLimits::default(), &mut found).is_some() && !found.has_errors()
}

/// Values of every kind, and these.
fn values(more: Value) -> Vec<Value> {
    let of_every_kind = json!([
        null, true, 0, 3, -1, 0.5, "", "read", [], ["a"], [""], [1], {}, {"a": 1}, {"max": 1}, {"max": null},
    ]);
    [of_every_kind, more].iter().flat_map(|values| values.as_array().unwrap().clone()).collect()
}

/// A plan of one node with these fields changed; null takes a field away unless it is wanted.
fn with(fields: Value) -> Value {
    let mut node = json!({"node_type": "llm-first", "node_name": "A", "thread_id": "a", "task_prompt": "p"});
    for (name, value) in fields.as_object().unwrap() {
        node[name] = value.clone();
    }
    json!({"task": "t", "nodes": [node]})
}

#[test]
fn it_is_a_schema_of_its_draft() {
    for schema in available().map(schema_of) {
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        jsonschema::meta::validate(&schema).unwrap();
    }
    let known = [Dialect::Plan, Dialect::Steps, Dialect::Workflow, Dialect::Agent];
    assert_eq!(available().collect::<Vec<_>>(), known);
}

/// Every field that the reader knows stands in the schema, with a description, and no other.
#[test]
fn its_fields_are_those_of_the_reader() {
    let of_plans = plan::shapes().into_iter().map(|shape| (schema_of(Dialect::Plan), shape));
    let of_steps = steps::shapes().into_iter().map(|shape| (schema_of(Dialect::Steps), shape));
    let of_workflows = workflow::shapes().into_iter().map(|shape| (schema_of(Dialect::Workflow), shape));
    let of_agents = agent::shapes().into_iter().map(|shape| (schema_of(Dialect::Agent), shape));
    for (schema, (name, shape)) in of_plans.chain(of_steps).chain(of_workflows).chain(of_agents) {
        let properties = schema["$defs"][name]["properties"].as_object().unwrap();
        let Shape { what, fields } = shape;
        let known: BTreeSet<&str> = fields.iter().copied().collect();
        assert_eq!(properties.keys().map(String::as_str).collect::<BTreeSet<_>>(), known, "{what}");
        for (field, described) in properties {
            // A description beside a reference is the field's own.
            let text = described["description"].as_str().or_else(|| {
                let reference = described["$ref"].as_str()?.trim_start_matches('#').to_owned();
                schema.pointer(&reference)?["description"].as_str()
            });
            assert!(text.is_some_and(|text| text.len() > 10), "{what}: {field} needs a description");
        }
    }
}

/// The names of kinds are those of the reader.
#[test]
fn its_enumerations_are_those_of_the_reader() {
    let schema = schema();
    let names = |pointer: &str| -> BTreeSet<String> {
        let values = schema.pointer(pointer).unwrap().as_array().unwrap();
        values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let of = |known: &[&str]| known.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let effects = ToolEffects::NAMES.map(|(name, _)| name);
    assert_eq!(names("/$defs/node/properties/effects/enum"), of(&effects));
    let types = InputType::NAMES.map(|(name, _)| name);
    assert_eq!(names("/$defs/input/properties/type/enum"), of(&types));
    let schema = schema_of(Dialect::Steps);
    let names = |pointer: &str| -> BTreeSet<String> {
        let values = schema.pointer(pointer).unwrap().as_array().unwrap();
        values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    assert_eq!(names("/$defs/step/properties/effects/enum"), of(&effects));
    assert_eq!(names("/$defs/input/properties/type/enum"), of(&types));
    let siblings = Siblings::NAMES.map(|(name, _)| name);
    assert_eq!(names("/$defs/recovery/properties/siblings/enum"), of(&siblings));
}

/// Reader and schema of step tasks say the same of values of every kind in every field.
#[test]
fn of_step_tasks_it_agrees_with_the_reader_field_by_field() {
    let validator = jsonschema::validator_for(&schema_of(Dialect::Steps)).unwrap();
    let reads = |document: &Value| reads_as(Choice { dialect: Some(Dialect::Steps), plan: None }, document);
    let values = values(json!([
        1001, "{}", "null", "hold", "metadata", [0.5], [{"tool_id": "t"}],
        [{"tool_id": "t", "parameters": {"a": 1}}], [{"tool_id": "", "parameters": {}}], [{}],
        {"retries": 1, "model": true}, {"siblings": "no"},
    ]));
    let agree = |document: &Value| {
        assert_eq!(validator.is_valid(document), reads(document), "{document}");
    };
    for (name, shape) in steps::shapes() {
        for field in shape.fields {
            for value in &values {
                let mut step = json!({"step_id": "s", "tool_id": "t"});
                let mut document = json!({"task": "t", "steps": []});
                match name {
                    // What a JSON text says, no schema can see.
                    "step" | "alternative" if *field == "parameters" && value.is_string() => continue,
                    "step" => step[*field] = value.clone(),
                    "alternative" => {
                        step["alternatives"] = json!([{"tool_id": "t"}]);
                        step["alternatives"][0][*field] = value.clone();
                    }
                    "task" if *field != "steps" => document[*field] = value.clone(),
                    "recovery" => document["recovery"] = json!({*field: value}),
                    _ => continue,
                }
                document["steps"] = json!([step]);
                agree(&document);
            }
        }
    }
    agree(&json!({"task": "t"}));
    agree(&json!({"task": "t", "steps": null}));
    agree(&json!({"task": "t", "steps": [1]}));
    agree(&json!({"steps": []}));
    agree(&json!({"task": "t", "steps": [{"tool_id": "t"}]}));
    agree(&json!({"task": "t", "steps": [{"step_id": "s"}]}));
}

/// Reader and schema of agents say the same of values of every kind in every field.
#[test]
fn of_agents_it_agrees_with_the_reader_field_by_field() {
    let validator = jsonschema::validator_for(&schema_of(Dialect::Agent)).unwrap();
    let choice = Choice { dialect: Some(Dialect::Agent), plan: None };
    let agree = |document: &Value| {
        assert_eq!(validator.is_valid(document), reads_as(choice, document), "{document}");
    };
    let more = json!([1000, 1001, "codex", "model", ["a", "a"], {"calls": 1}, {"calls": 0.5}, {"x": {"type": "no"}}]);
    for value in &values(more) {
        for field in agent::shapes()[0].1.fields {
            let mut document = json!({"query": "q"});
            document[*field] = value.clone();
            agree(&document);
        }
    }
    agree(&json!({}));
    let coders = schema_of(Dialect::Agent)["$defs"]["agent"]["properties"]["coder"]["enum"].clone();
    let known = agent::Coder::NAMES.map(|(name, _)| Some(name));
    assert_eq!(coders, json!([known[0], known[1], null]));
}

/// Reader and schema say the same of values of every kind in every field.
#[test]
fn it_agrees_with_the_reader_field_by_field() {
    let values = values(json!([
        "text", "fail", "tool-first", "llm-first", [0, null], [0, 1, 2], ["a", "a"], {"a": -1}, {"a": null},
        {"max": 1, "backoff_s": 0}, {"backoff_s": 1},
    ]));
    let shapes = plan::shapes();
    let (_, node) = shapes.iter().find(|(name, _)| *name == "node").unwrap();
    for field in node.fields {
        for value in &values {
            let mut fields = json!({});
            fields[*field] = value.clone();
            let plain = with(fields.clone());
            assert_eq!(fits(&plain), reads(&plain), "{plain}");
            fields["node_type"] = json!("tool-first");
            if *field == "initial_tool_name" {
                fields[*field] = value.clone();
            } else {
                fields["initial_tool_name"] = json!("t");
            }
            let tool_first = with(fields);
            assert_eq!(fits(&tool_first), reads(&tool_first), "{tool_first}");
        }
    }
    for (field, more) in
        [("task", json!(1)), ("name", json!([])), ("description", json!("d")), ("metadata", json!([]))]
    {
        for value in values.iter().chain([&more]) {
            let mut plan = json!({"task": "t", "nodes": []});
            plan[field] = value.clone();
            assert_eq!(fits(&plan), reads(&plan), "{plan}");
        }
    }
    let inputs = [
        json!({"x": {}}),
        json!({"x": null}),
        json!({"x": {"type": "text"}}),
        json!({"x": {"type": null, "default": null}}),
        json!({"x": {"type": "integer", "default": 3, "description": "d"}}),
        json!({"": {}}),
        json!([]),
    ];
    for value in inputs {
        let plan = json!({"task": "t", "nodes": [], "inputs": value});
        assert_eq!(fits(&plan), reads(&plan), "{plan}");
    }
    for budget in [
        json!({"calls": 1e6, "tokens": 0, "cost": 0.1}),
        json!({"calls": 0.5}),
        json!({"cost": -1}),
        json!([]),
    ] {
        let plan = json!({"task": "t", "nodes": [], "budget": budget});
        assert_eq!(fits(&plan), reads(&plan), "{plan}");
    }
}

#[test]
fn missing_fields_and_files_of_several_plans() {
    for field in ["node_type", "node_name", "thread_id"] {
        let mut plan = with(json!({}));
        plan["nodes"][0].as_object_mut().unwrap().remove(field);
        assert!(!fits(&plan) && !reads(&plan), "{plan}");
    }
    for plan in [json!({"task": "t"}), json!({"nodes": 1}), json!({}), json!([]), json!("x")] {
        assert!(!fits(&plan), "{plan}");
    }
    let one = with(json!({}));
    assert!(fits(&json!({"report": one, "$schema": "x", "other": with(json!({"timeout": 3}))})));
    assert!(fits(&json!({"report": one, "notes": "ignored"})), "what is no plan is a warning");
    assert!(!fits(&json!({"report": with(json!({"timeout": "3"}))})));
}

/// `$schema` is for editors: nobody is told about it, whatever it says.
#[test]
fn a_named_schema_is_no_finding() {
    for document in [
        json!({"$schema": "./plan.schema.json", "task": "t", "nodes": []}),
        json!({"$schema": "./plan.schema.json", "report": {"task": "t", "nodes": []}}),
        json!({"report": {"$schema": "x", "task": "t", "nodes": []}}),
    ] {
        let (source, mut found) = (Source::new("plan.json", &document.to_string()), Diagnostics::new());
        assert!(crate::read(&source, Choice::default(), &DocumentLimits::default(), &mut found).is_some());
        assert_eq!(found.report(&source), [], "{document}");
        assert!(fits(&document), "{document}");
    }
}

/// Workflows of the conformance cases fit: the reader accepts them.
#[test]
fn of_workflows_it_accepts_what_the_cases_have() {
    let validator = jsonschema::validator_for(&schema_of(Dialect::Workflow)).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/cases/workflow");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let options = serde_saphyr::options! { strict_booleans: true };
        let cases: Vec<Value> = serde_saphyr::from_str_with_options(&text, options).unwrap();
        for document in cases.iter().filter_map(|case| case.get("workflow")) {
            seen += 1;
            // What comes with the agent the reader refuses, and the schema knows; files need a folder to be read from.
            let text = document.to_string();
            if text.contains("AGENT") || text.contains("\"file\":") {
                continue;
            }
            let (source, mut found) = (Source::new("flow.json", &document.to_string()), Diagnostics::new());
            let read = crate::read(&source, Choice::default(), &DocumentLimits::default(), &mut found);
            // Schemas are of one value: what it is to another one, they don't say.
            let wrong =
                |found: &Diagnostic| ["wrong-type", "unknown-value", "missing-field"].contains(&found.code);
            let told = found.report(&source);
            let (reads, wrong) = (read.is_some() && !found.has_errors(), told.iter().any(wrong));
            assert!(!reads || validator.is_valid(document), "the reader accepts {document}");
            assert!(!wrong || !validator.is_valid(document), "{told:?}: {document}");
        }
    }
    assert!(seen > 20, "{seen}");
}

/// Plans of the conformance cases and of the examples: what the reader accepts fits; what is of a wrong type, unknown
/// or missing does not.
#[test]
fn it_agrees_with_the_reader_about_cases_and_examples() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut plans = Vec::new();
    for folder in ["plan", "data", "engine"] {
        for entry in std::fs::read_dir(root.join("spec/cases").join(folder)).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let options = serde_saphyr::options! { strict_booleans: true };
            let cases: Vec<Value> = serde_saphyr::from_str_with_options(&text, options).unwrap();
            plans.extend(cases.into_iter().filter_map(|mut case| case.get_mut("plan").map(Value::take)));
        }
    }
    for entry in std::fs::read_dir(root.join("examples")).unwrap() {
        if let Ok(text) = std::fs::read_to_string(entry.unwrap().path().join("plan.json")) {
            plans.push(serde_json::from_str(&text).unwrap());
        }
    }
    let (mut accepted, mut refused) = (0, 0);
    for plan in plans.iter().filter(|plan| plan.get("edges").is_none()) {
        let (source, mut found) = (Source::new("plan.json", &plan.to_string()), Diagnostics::new());
        let choice = Choice { dialect: Some(Dialect::Plan), plan: None };
        let _ = crate::read(&source, choice, &DocumentLimits::default(), &mut found);
        let findings = found.report(&source);
        let errors: Vec<&str> =
            findings.iter().filter(|f| f.severity == Severity::Error).map(|f| f.code).collect();
        let wrong =
            |code: &&str| ["wrong-type", "unknown-value", "missing-field", "bad-slice"].contains(code);
        match errors.iter().any(wrong) {
            true => refused += 1,
            false => accepted += usize::from(errors.is_empty()),
        }
        assert!(!errors.is_empty() || fits(plan), "the reader accepts {plan}");
        assert!(!errors.iter().any(wrong) || !fits(plan), "{errors:?}: {plan}");
    }
    assert!(accepted > 100 && refused > 2, "{accepted} {refused}");
}
