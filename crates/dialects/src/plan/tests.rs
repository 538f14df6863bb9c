use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::*;
use crate::diagnostic::{Diagnostic, RenderOptions, render};
use crate::recognise::{Choice, recognise};
use crate::settings::{Retry, ToolEffects};
use crate::{Diagnostics, DocumentLimits, Severity, Source, json as places};

fn read_plan(text: &str) -> (Option<PlanDoc>, Vec<Diagnostic>) {
    let source = Source::new("plan.json", text);
    let limits = DocumentLimits::default();
    let mut diagnostics = Diagnostics::new();
    let plan = places::parse(&source, &limits, &mut diagnostics).and_then(|root| {
        let found = recognise(&root, Choice::default(), &mut diagnostics)?;
        read(&found, &source, &limits, &mut diagnostics)
    });
    (plan, diagnostics.report(&source))
}

fn clean(text: &str) -> PlanDoc {
    let (plan, diagnostics) = read_plan(text);
    assert_eq!(diagnostics, [], "no findings wanted");
    plan.expect("a plan")
}

/// A plan with one node that has the required fields of an llm-first node and `more`.
fn with(more: &str) -> String {
    format!(
        r#"{{"task": "t", "nodes": [{{"node_type": "llm-first", "node_name": "N", "thread_id": "q", {more}}}]}}"#
    )
}

fn node_with(more: &str) -> PlanNode {
    clean(&with(more)).nodes.remove(0)
}

/// All findings as "pointer severity[rule] message", and each with a way out.
fn findings(text: &str) -> Vec<String> {
    let (_, diagnostics) = read_plan(text);
    let line = |d: &Diagnostic| {
        assert!(!d.help.is_empty(), "no way out of {}", d.message);
        format!("{} {}[{}] {}", d.pointer, d.severity.as_str(), d.rule, d.message)
    };
    diagnostics.iter().map(line).collect()
}

fn finding_with(more: &str) -> String {
    let found = findings(&with(more));
    assert_eq!(found.len(), 1, "one finding for {more}: {found:#?}");
    found[0].strip_prefix("/nodes/0").unwrap_or(&found[0]).to_owned()
}

#[test]
fn defaults_are_those_of_the_seed() {
    let plan = clean(
        r#"{"task": "do it", "nodes": [{"node_type": "llm-first", "node_name": "N", "thread_id": "q"}]}"#,
    );
    assert_eq!(&*plan.head.task.value, "do it");
    assert!(
        plan.complete
            && plan.head.name.is_none()
            && plan.head.inputs.is_empty()
            && plan.head.metadata.is_empty()
    );
    let node = &plan.nodes[0];
    assert_eq!((&*node.id.value, &*node.name.value, &*node.thread.value), ("n1", "N", "q"));
    assert!(matches!(node.kind, NodeKind::LlmFirst));
    assert!(node.task_prompt.is_none() && node.tools.is_empty() && node.tools_limit.is_empty());
    assert!(!node.enable_tool_loop && !node.data_out && !node.require_approval);
    assert_eq!((&*node.data_in_thread.value, node.data_in_thread.origin), ("main", Origin::Default));
    assert_eq!((node.data_in_slice.value, node.data_in_slice.origin), (Slice::FIRST, Origin::Default));
    assert_eq!((&*node.data_out_thread.value, node.data_out_thread.origin), ("main", Origin::Default));
    assert!(node.data_out_description.is_none() && node.max_rounds.is_none() && node.output_schema.is_none());
    assert_eq!(node.on_error, OnError::Fail);
    assert_eq!(node.settings, ModelSettings::default());
}

#[test]
fn all_fields_are_read() {
    let plan = clean(
        r#"{"name": "P", "description": "d", "task": "t", "budget": {"calls": 100, "tokens": 1e6, "cost": 2.5},
            "metadata": {"k": [1]}, "inputs": {"city": {"type": "string", "description": "where", "default": "Rome"}},
            "nodes": [{"node_id": "fetch", "node_type": "tool-first", "node_name": "F", "thread_id": "q",
              "initial_tool_name": "get", "initial_tool_args": {"u": "{{city}}", "n": [1, {"{{k}}": null}]},
              "task_prompt": "p", "tools": ["a", "b"], "enable_tool_loop": true, "tools_limit": {"a": 0, "get": 5},
              "data_in_thread": "main", "data_in_slice": [-3, null], "data_out": true, "data_out_thread": "s",
              "data_out_description": "A: ", "model": "basic", "on_error": "continue",
              "retry": {"max": 2, "backoff_s": 0.5}, "timeout": 2.5, "max_rounds": 3,
              "output_schema": {"type": "object"}, "require_approval": true, "effects": "idempotent",
              "temperature": 0.5, "top_p": 1, "max_tokens": 10, "seed": -4, "stop": ["x"]}]}"#,
    );
    assert_eq!(plan.head.name.as_ref().map(|name| &*name.value), Some("P"));
    let budget = &plan.head.budget;
    assert_eq!(budget.calls.as_ref().map(|b| b.value), Some(100));
    assert_eq!(budget.tokens.as_ref().map(|b| b.value), Some(1_000_000));
    assert_eq!(budget.cost.as_ref().map(|b| b.value), Some(2.5));
    assert_eq!(plan.head.metadata["k"], json!([1]));
    let node = &plan.nodes[0];
    let NodeKind::ToolFirst { tool, args: Some(args) } = &node.kind else { panic!("{:?}", node.kind) };
    assert_eq!(&*tool.value, "get");
    let mut strings = Vec::new();
    args.each_string(&mut |text, _| strings.push(text.to_owned()));
    assert_eq!(strings, ["u", "{{city}}", "n", "{{k}}"]);
    assert_eq!(node.tools.iter().map(|tool| &*tool.value).collect::<Vec<_>>(), ["a", "b"]);
    let limits: Vec<_> = node.tools_limit.iter().map(|l| (&*l.tool.value, l.limit.value)).collect();
    assert_eq!(limits, [("a", 0), ("get", 5)]);
    assert_eq!(node.data_in_slice.value, Slice { start: Some(-3), end: None });
    assert!(node.data_in_slice.is_written() && node.data_in_thread.is_written());
    assert!(node.enable_tool_loop && node.data_out && node.require_approval);
    assert_eq!(node.on_error, OnError::Continue);
    let retry = node.retry.as_ref().expect("retry").value;
    assert_eq!(retry, Retry { max: 2, backoff: Some(Duration::from_millis(500)) });
    assert_eq!(node.timeout.as_ref().map(|t| t.value), Some(Duration::from_millis(2500)));
    assert_eq!(node.max_rounds.as_ref().map(|m| m.value), Some(3));
    assert_eq!(node.effects.as_ref().map(|e| e.value), Some(ToolEffects::Idempotent));
    assert_eq!(node.settings.temperature.as_ref().map(|t| t.value), Some(0.5));
    assert_eq!(node.settings.seed.as_ref().map(|s| s.value), Some(-4));
    assert_eq!(node.settings.stop.len(), 1);
}

#[test]
fn p01_required_fields_and_initial_tools() {
    assert_eq!(
        findings(r#"{"task": "t", "nodes": [{}]}"#),
        [
            "/nodes/0 error[P-01] a plan node needs the field `node_type`",
            "/nodes/0 error[P-01] a plan node needs the field `node_name`",
            "/nodes/0 error[P-01] a plan node needs the field `thread_id`",
        ]
    );
    let tool_first = |more: &str| with(more).replace("llm-first", "tool-first");
    let missing = "a plan node needs the field `initial_tool_name`";
    assert_eq!(findings(&tool_first(r#""tools": null"#)), [format!("/nodes/0 error[P-01] {missing}")]);
    assert_eq!(
        findings(&tool_first(r#""initial_tool_name": null"#)),
        ["/nodes/0/initial_tool_name error[P-01] a tool-first node needs `initial_tool_name`; it is null"]
    );
    assert_eq!(
        findings(&tool_first(r#""initial_tool_name": """#)),
        ["/nodes/0/initial_tool_name error[P-01] `initial_tool_name` must not be empty"]
    );
    assert_eq!(
        findings(&with(r#""initial_tool_name": "x", "initial_tool_args": {}"#)),
        [
            "/nodes/0/initial_tool_name error[P-01] an llm-first node must not have `initial_tool_name`",
            "/nodes/0/initial_tool_args error[P-01] an llm-first node must not have `initial_tool_args`",
        ]
    );
    // null is the seed's default of both.
    node_with(r#""initial_tool_name": null, "initial_tool_args": null"#);
}

#[test]
fn p05_p08_slices() {
    let slice = |written: &str| node_with(&format!(r#""data_in_slice": {written}"#)).data_in_slice;
    let of = |start, end| Slice { start, end };
    assert_eq!(slice("[0, 2]").value, of(Some(0), Some(2)));
    assert_eq!(slice("[null, null]").value, of(None, None));
    assert_eq!(slice("[-1, null]").value, Slice::LAST);
    assert_eq!(slice("[0, 99999999999999999999]").value, of(Some(0), Some(i64::MAX)), "ends clamp");
    let last = slice("null");
    assert_eq!((last.value, last.is_written()), (Slice::LAST, true), "P-08");
    let cases = [
        ("[0]", "an array of 1"),
        ("[0, 1, 2]", "an array of 3"),
        ("[]", "an array of 0"),
        ("[0, \"1\"]", "[0, \"1\"]"),
        ("[0.0, 1]", "[0.0, 1]"),
        ("[true, 1]", "[true, 1]"),
        ("[0, [1]]", "[0, [1]]"),
        ("\"0:1\"", "a string"),
        ("1", "a number"),
        ("{}", "an object"),
    ];
    for (written, what) in cases {
        assert_eq!(
            finding_with(&format!(r#""data_in_slice": {written}"#)),
            format!("/data_in_slice error[P-05] `data_in_slice` must be two integers or nulls, not {what}")
        );
    }
}

#[test]
fn p05_slices_mean_what_they_mean_in_python() {
    // (start, end, length) -> what Python's range(length)[start:end] holds.
    let cases = [
        (Some(0), Some(1), 3, 0..1),
        (Some(-1), None, 3, 2..3),
        (None, None, 3, 0..3),
        (None, Some(-1), 3, 0..2),
        (Some(1), Some(99), 3, 1..3),
        (Some(-99), Some(2), 3, 0..2),
        (Some(2), Some(1), 3, 2..2),
        (Some(0), Some(0), 3, 0..0),
        (Some(-1), Some(-1), 3, 2..2),
        (Some(-1), None, 0, 0..0),
        (Some(i64::MIN), Some(i64::MAX), 3, 0..3),
        (Some(5), None, 3, 3..3),
    ];
    for (start, end, length, expected) in cases {
        assert_eq!(Slice { start, end }.over(length), expected, "[{start:?}, {end:?}] of {length}");
    }
    let ends = || (-4..=4).map(Some).chain([None]);
    for (start, end) in ends().flat_map(|start| ends().map(move |end| (start, end))) {
        let slice = Slice { start, end };
        let ever = (0..20).any(|length| !slice.over(length).is_empty());
        assert_eq!(slice.is_always_empty(), !ever, "{slice:?}");
    }
}

#[test]
fn p09_a_parent_supplies_defaults() {
    let node = node_with(r#""parent_thread_id": "up""#);
    assert_eq!((&*node.data_in_thread.value, node.data_in_thread.origin), ("up", Origin::Parent));
    assert_eq!((&*node.data_out_thread.value, node.data_out_thread.origin), ("up", Origin::Parent));
    assert_eq!((node.data_in_slice.value, node.data_in_slice.origin), (Slice::LAST, Origin::Parent));
    let node = node_with(
        r#""parent_thread_id": "up", "data_in_thread": "a", "data_out_thread": "b", "data_in_slice": [0, 1]"#,
    );
    assert_eq!((&*node.data_in_thread.value, &*node.data_out_thread.value), ("a", "b"));
    assert_eq!(node.data_in_slice.value, Slice::FIRST);
}

#[test]
fn wrong_types_name_the_field_and_the_way_out() {
    let cases = [
        (r#""task_prompt": 5"#, "/task_prompt error[P-10] `task_prompt` must be a string, not 5"),
        (r#""tools": "a""#, "/tools error[P-15] `tools` must be an array of strings, not the string \"a\""),
        (r#""tools": ["a", 1]"#, "/tools/1 error[P-15] `tools` must hold strings, not a number"),
        (r#""tools": [""]"#, "/tools/0 error[P-15] a name in `tools` is empty"),
        (r#""tools": ["a", "a"]"#, "/tools/1 warning[P-15] \"a\" stands twice in `tools`"),
        (
            r#""enable_tool_loop": "true""#,
            "/enable_tool_loop error[P-11] `enable_tool_loop` must be true or false, not the string \"true\"",
        ),
        (r#""data_out": 1"#, "/data_out error[P-18] `data_out` must be true or false, not 1"),
        (
            r#""data_in_thread": []"#,
            "/data_in_thread error[P-03] `data_in_thread` must be a string, not an array",
        ),
        (r#""tools_limit": [1]"#, "/tools_limit error[P-14] `tools_limit` must be an object, not an array"),
        (
            r#""tools_limit": {"a": -1}"#,
            "/tools_limit/a error[P-14] `tools_limit[\"a\"]` must not be negative",
        ),
        (
            r#""tools_limit": {"a": 1.5}"#,
            "/tools_limit/a error[P-14] `tools_limit[\"a\"]` must be an integer, not 1.5",
        ),
        (r#""max_rounds": -1"#, "/max_rounds error[P-14] `max_rounds` must not be negative"),
        (
            r#""on_error": "skip""#,
            "/on_error error[P-16] `on_error` must be \"fail\" or \"continue\", not the string \"skip\"",
        ),
        (
            r#""retry": "3""#,
            "/retry error[P-24] `retry` must be an integer or an object, not the string \"3\"",
        ),
        (r#""retry": -1"#, "/retry error[P-24] `retry` must not be negative"),
        (r#""retry": {"backoff_s": 1}"#, "/retry error[P-24] `retry` needs the field `max`"),
        (
            r#""retry": {"max": 1, "backof_s": 1}"#,
            "/retry/backof_s error[E-32] `retry` has no field \"backof_s\"",
        ),
        (
            r#""timeout": "5s""#,
            "/timeout error[P-24] `timeout` must be a number of seconds, not the string \"5s\"",
        ),
        (
            r#""timeout": -5"#,
            "/timeout error[P-24] `timeout` must be more than 0 seconds and at most 1000000000",
        ),
        (
            r#""effects": "reads""#,
            "/effects error[E-22] `effects` must be \"pure\" or \"read\" or \"idempotent\" or \"write\", not the string \"reads\"",
        ),
        (
            r#""output_schema": []"#,
            "/output_schema error[E-33] `output_schema` must be a JSON Schema (an object), not an array",
        ),
        (r#""seed": 1.5"#, "/seed error[P-28] `seed` must be an integer, not 1.5"),
        (r#""node_id": true"#, "/node_id error[P-26] `node_id` must be a string or an integer, not true"),
        (r#""node_id": 1.0"#, "/node_id error[P-26] `node_id` must be a string or an integer, not 1.0"),
        (r#""colour": 1"#, "/colour warning[E-32] a plan node has no field \"colour\""),
        (r#""task_promt": "x""#, "/task_promt error[E-32] a plan node has no field \"task_promt\""),
    ];
    for (more, expected) in cases {
        assert_eq!(finding_with(more), expected, "for {more}");
    }
    let node_type = with(r#""tools": []"#).replace("llm-first", "llm_first");
    let (_, diagnostics) = read_plan(&node_type);
    assert_eq!(diagnostics[0].help, "did you mean \"llm-first\"?");
}

#[test]
fn wrong_types_of_the_plan_itself() {
    let cases = [
        (r#"{"task": ["t"], "nodes": []}"#, "/task error[P-02] `task` must be a string, not an array"),
        (r#"{"task": "t", "nodes": {}}"#, "/nodes error[P-01] `nodes` must be an array, not an object"),
        (
            r#"{"task": "t", "nodes": ["n"]}"#,
            "/nodes/0 error[P-01] a plan node must be an object, not a string",
        ),
        (
            r#"{"task": "t", "nodes": [], "metadata": [1]}"#,
            "/metadata error[D-01] `metadata` must be an object, not an array",
        ),
        (
            r#"{"task": "t", "nodes": [], "budget": {"call": 1}}"#,
            "/budget/call error[E-32] `budget` has no field \"call\"",
        ),
        (
            r#"{"task": "t", "nodes": [], "budget": {"calls": 1.5}}"#,
            "/budget/calls error[P-24] `calls` must be an integer, not 1.5",
        ),
        (
            r#"{"task": "t", "nodes": [], "budget": {"cost": -1}}"#,
            "/budget/cost error[P-24] `cost` must not be negative",
        ),
        (
            r#"{"task": "t", "nodes": [], "inputs": {"x": "string"}}"#,
            "/inputs/x error[P-23] an input must be an object, not a string",
        ),
        (
            r#"{"task": "t", "nodes": [], "inputs": {"x": {"type": "strin"}}}"#,
            "/inputs/x/type error[P-23] `type` must be \"string\" or \"number\" or \"integer\" or \"boolean\" or \"array\" or \"object\", not the string \"strin\"",
        ),
        (
            r#"{"task": "t", "nodes": [], "inputs": {"x": {"type": "integer", "default": "1"}}}"#,
            "/inputs/x/default error[P-23] the input \"x\" is of type integer; its default is not",
        ),
        (r#"{"task": "t", "nodes": [], "input": {}}"#, "/input error[E-32] a plan has no field \"input\""),
    ];
    for (text, expected) in cases {
        assert_eq!(findings(text), [expected], "for {text}");
    }
}

#[test]
fn c04_findings_are_shown_at_their_place() {
    let text = "{\n  \"task\": \"t\",\n  \"nodes\": [\n    {\"node_type\": \"llm-first\", \"node_name\": \"N\", \
                \"thread_id\": \"q\",\n     \"data_in_slice\": [0, 1, 2]}\n  ]\n}\n";
    let (_, diagnostics) = read_plan(text);
    assert_eq!(
        render(&diagnostics[0], RenderOptions::default()),
        "plan.json:5:23: error[P-05]: `data_in_slice` must be two integers or nulls, not an array of 3\n\
         \u{20}   5 |      \"data_in_slice\": [0, 1, 2]}\n\
         \u{20}     |                       ^^^^^^^^^\n\
         \u{20} help: write [start, end], such as [0, 1] for the first message or [-1, null] for the last\n"
    );
}

#[test]
fn bad_schemas_are_found_where_they_are_wrong() {
    let found = finding_with(r#""output_schema": {"properties": {"a": {"type": "strnig"}}}"#);
    assert!(found.starts_with("/output_schema/properties/a/type error[E-33] "), "{found}");
    let said = "at \"/properties/a/type\": `type` is one of array, boolean, integer, null, number, object, string, or a list \
                of these, not \"strnig\"";
    assert!(found.contains(said), "{found}");
    let found = finding_with(r#""output_schema": {"properties": {"type": "string"}}"#);
    assert!(found.contains("at \"/properties/type\"") && !found.contains("is one of array"), "{found}");
    let found = finding_with(r##""output_schema": {"$ref": "#/$defs/none"}"##);
    assert!(found.contains("error[E-33] `output_schema` is no valid JSON Schema"), "{found}");
    let found = finding_with(r#""output_schema": {"$ref": "http://localhost:1/x.json"}"#);
    assert!(found.contains("error[E-33]"), "{found}");
    assert!(finding_with(r#""output_schema": {"pattern": "("}"#).contains("error[E-33]"));
    assert!(node_with(r#""output_schema": true"#).output_schema.is_some());
    for draft in ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"] {
        let schema = format!(r#""output_schema": {{"$schema": "{draft}", "type": "object"}}"#);
        assert!(node_with(&schema).output_schema.is_some());
    }
}

#[test]
fn node_ids() {
    let id = |written: &str| node_with(&format!(r#""node_id": {written}"#)).id.value.to_string();
    assert_eq!(id("2"), "2", "P-26: integers are ids");
    assert_eq!(id("\"02\""), "02");
    assert_eq!(id("\"数据-1\""), "数据-1");
    assert_eq!(id("null"), "n1");
    for reserved in ["metadata", "inputs"] {
        let found = finding_with(&format!(r#""node_id": "{reserved}""#));
        assert!(found.starts_with("/node_id error[D-07] a node can't have the id"), "{found}");
    }
    for odd in ["\"a.b\"", "\"a b\"", "\"1a\"", "-3", "\"-\"", "\"a/b\""] {
        let found = finding_with(&format!(r#""node_id": {odd}"#));
        assert!(found.starts_with("/node_id error[D-09] no placeholder can name"), "{found}");
    }
    assert_eq!(finding_with(r#""node_id": """#), "/node_id error[P-26] `node_id` must not be empty");
}

#[test]
fn duplicate_ids_are_errors_defaults_included() {
    let node = |id: &str| format!(r#"{{{id} "node_type": "llm-first", "node_name": "N", "thread_id": "q"}}"#);
    let plan = |ids: &[&str]| {
        let nodes: Vec<String> = ids.iter().map(|id| node(id)).collect();
        format!("{{\"task\": \"t\", \"nodes\": [\n{}\n]}}", nodes.join(",\n"))
    };
    let (_, found) = read_plan(&plan(&[r#""node_id": "n2","#, ""]));
    assert_eq!((found.len(), found[0].code, &*found[0].pointer), (1, "duplicate-node-id", "/nodes/1"));
    assert!(found[0].help.starts_with("the first is at line 2, column 13; "), "{}", found[0].help);
    assert!(found[0].help.contains("this one has it, by its position in the list"));
    let (_, found) = read_plan(&plan(&[r#""node_id": 2,"#, r#""node_id": "2","#, r#""node_id": "x","#]));
    assert_eq!((found.len(), &*found[0].pointer), (1, "/nodes/1/node_id"));
    assert_eq!(found[0].message, "two nodes have the id \"2\"");
}

#[test]
fn p26_files_of_the_seeds_editors_run_as_they_are() {
    let node = node_with(
        r#""node_id": 2, "id": "a", "x": 1.5, "y": 2, "thread_view_index": 0, "parent_id": null, "fixed": true,
           "enable_search": true, "enable_thinking": false, "tools": null, "tools_limit": null,
           "initial_tool_name": null, "initial_tool_args": null, "data_in_thread": null"#,
    );
    let extra: Vec<_> =
        node.settings.known.iter().map(|(name, value)| (*name, value.value.clone())).collect();
    assert_eq!(extra, [("enable_search", json!(true)), ("enable_thinking", json!(false))]);
    assert!(!node.data_in_thread.is_written());
}

#[test]
fn p23_initial_metadata_is_given_over_metadata_over_default() {
    let plan = clean(
        r#"{"task": "t", "nodes": [], "metadata": {"b": 2, "c": 2, "free": 1},
            "inputs": {"a": {"default": 1}, "b": {"default": 1, "type": "integer"}, "c": {"default": 1}}}"#,
    );
    let given = json!({"c": 3, "undeclared": true});
    let mut diagnostics = Diagnostics::new();
    let values = plan.head.initial(given.as_object().expect("an object"), &mut diagnostics);
    assert!(diagnostics.findings().is_empty());
    assert_eq!(Value::Object(values), json!({"a": 1, "b": 2, "c": 3, "free": 1, "undeclared": true}));
}

#[test]
fn p23_inputs_without_a_value_or_of_the_wrong_type_are_errors() {
    let text = r#"{"task": "t", "nodes": [], "metadata": {"m": "x"},
                   "inputs": {"a": {}, "m": {"type": "number"}, "i": {"type": "integer"}, "n": {"default": null}}}"#;
    let plan = clean(text);
    let mut diagnostics = Diagnostics::new();
    let given: Map<String, Value> = json!({"i": 1.5}).as_object().cloned().expect("an object");
    plan.head.initial(&given, &mut diagnostics);
    let found: Vec<_> =
        diagnostics.report(&Source::new("f", text)).into_iter().map(|d| (d.pointer, d.message)).collect();
    assert_eq!(
        found,
        [
            ("/inputs/a".into(), "the input \"a\" has no value".into()),
            ("/inputs/m".into(), "the input \"m\" is of type number; its value in `metadata` is not".into()),
            ("/inputs/i".into(), "the input \"i\" is of type integer; the given value is not".to_owned()),
        ]
    );
}

/// P-23: of a document that declares inputs, other names are wrong; of one that does not, only names that are almost its metadata's.
#[test]
fn p23_names_that_are_not_declared_are_told() {
    let found = |text: &str, name: &str| {
        let mut diagnostics = Diagnostics::new();
        clean(text).head.unknown_inputs([name.to_owned()].iter(), &mut diagnostics);
        let found = diagnostics.report(&Source::new("f", text));
        found.first().map(|found| (found.message.clone(), found.help.clone()))
    };
    let declared =
        r#"{"task": "t", "nodes": [], "metadata": {"free": 1}, "inputs": {"city": {}, "day": {}}}"#;
    let told = |help: &str| Some(("there is no input \"citi\"".to_owned(), help.to_owned()));
    assert_eq!(found(declared, "citi"), told("did you mean \"city\"?"));
    let (_, help) = found(declared, "country").expect("a finding");
    assert_eq!(
        help,
        "the document declares \"city\", \"day\": leave this one out, or declare it in `inputs`"
    );
    assert_eq!((found(declared, "free"), found(declared, "city")), (None, None));
    let free = r#"{"task": "t", "nodes": [], "metadata": {"city": 1}}"#;
    assert_eq!(found(free, "citi"), told("did you mean \"city\"?"));
    assert_eq!(found(free, "country"), None);
}

#[test]
fn nodes_that_can_be_read_are_returned_beside_those_that_cannot() {
    let (plan, found) = read_plan(
        r#"{"task": "t", "nodes": [{"node_type": "llm-first", "node_name": "N", "thread_id": "q"}, 5,
            {"node_type": "llm-first", "node_name": "M", "thread_id": "q", "data_out": "yes"}]}"#,
    );
    let plan = plan.expect("a plan");
    assert!(!plan.complete);
    assert_eq!(plan.nodes.iter().map(|node| node.index).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(&*plan.nodes[1].id.value, "n3", "positions count every element");
    assert_eq!(found.len(), 2);
}

#[test]
fn p27_an_empty_plan_is_a_plan() {
    assert!(clean(r#"{"task": "t", "nodes": []}"#).nodes.is_empty());
    assert!(clean(r#"{"nodes": []}"#).head.task.value.is_empty());
}

#[test]
fn a_plan_among_several_has_its_key_as_name() {
    let plan = clean(r#"{"first": {"task": "t", "nodes": []}}"#);
    assert_eq!(plan.head.name.map(|name| name.value.to_string()), Some("first".into()));
}

fn large_plan(count: usize) -> String {
    let mut text = String::from("{\"task\": \"t\", \"nodes\": [");
    for n in 0..count {
        let comma = if n == 0 { "" } else { "," };
        let _ = write!(
            text,
            "{comma}\n{{\"node_type\": \"llm-first\", \"node_name\": \"Node {n}\", \"thread_id\": \"t{n}\", \
             \"task_prompt\": \"say {n}\", \"data_in_slice\": [0, 1], \"data_out\": true}}"
        );
    }
    text.push_str("]}");
    text
}

#[test]
fn e28_100_000_nodes_are_read_in_less_than_a_second_and_one_more_is_an_error() {
    let text = large_plan(100_000);
    let start = Instant::now();
    let (plan, found) = read_plan(&text);
    let took = start.elapsed();
    assert_eq!((plan.expect("a plan").nodes.len(), found.len()), (100_000, 0));
    println!("100,000 nodes, {} bytes: {took:?}", text.len());
    // Tests are built without optimisation and share the machine: the bound there is against anything that
    // is not linear.
    assert!(took < Duration::from_secs(if cfg!(debug_assertions) { 30 } else { 1 }), "{took:?}");
    assert_eq!(
        findings(&large_plan(100_001)),
        ["/nodes/100000 error[E-28] the plan has 100001 nodes, more than the limit 100000"]
    );
}

#[test]
fn many_findings_in_a_large_plan_are_bounded_and_fast() {
    let text = large_plan(100_000).replace("\"data_out\": true", "\"data_out\": 1, \"odd\": 2");
    let start = Instant::now();
    let (_, found) = read_plan(&text);
    assert_eq!(found.len(), 402);
    assert_eq!(found.iter().filter(|d| d.severity == Severity::Error).count(), 201);
    println!("200,000 findings: {:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(60));
}

proptest::proptest! {
    /// Whatever stands in the fields of a plan: no panic, and every finding has a place that exists, a rule and
    /// a way out.
    #[test]
    fn any_values_are_read_or_found_wrong(values in proptest::collection::vec((0..FIELDS.len(), 0..VALUES.len()), 0..12)) {
        let mut node = String::new();
        let mut top = String::new();
        let mut seen = std::collections::HashSet::new();
        for (index, (field, value)) in values.iter().enumerate() {
            if !seen.insert((index < 9, field)) {
                continue; // a duplicate key is another test's business
            }
            let out = if index < 9 { &mut node } else { &mut top };
            let _ = write!(out, ", \"{}\": {}", FIELDS[*field], VALUES[*value]);
        }
        let text = format!("{{\"nodes\": [{{\"node_name\": \"N\"{node}}}, 1]{top}}}");
        let (_, found) = read_plan(&text);
        proptest::prop_assert!(!found.is_empty());
        let value: Value = serde_json::from_str(&text).expect("JSON");
        for finding in found {
            proptest::prop_assert!(!finding.help.is_empty() && !finding.rule.is_empty());
            proptest::prop_assert!(value.pointer(&finding.pointer).is_some(), "{finding:?}");
            proptest::prop_assert!(finding.line == Some(1) && finding.column.is_some());
        }
    }
}

const FIELDS: [&str; 30] = [
    "node_type",
    "thread_id",
    "task_prompt",
    "tools",
    "enable_tool_loop",
    "tools_limit",
    "initial_tool_name",
    "initial_tool_args",
    "data_in_thread",
    "data_in_slice",
    "data_out",
    "data_out_thread",
    "node_id",
    "retry",
    "parent_thread_id",
    "model",
    "on_error",
    "timeout",
    "max_rounds",
    "output_schema",
    "require_approval",
    "effects",
    "temperature",
    "seed",
    "stop",
    "budget",
    "inputs",
    "metadata",
    "task",
    "odd/~field",
];

const VALUES: [&str; 16] = [
    "null",
    "true",
    "0",
    "-1",
    "1e300",
    "99999999999999999999",
    "0.5",
    "\"\"",
    "\"llm-first\"",
    "\"tool-first\"",
    "[]",
    "[0, 1]",
    "[\"a\", null, \"a\"]",
    "{}",
    "{\"max\": [1], \"type\": \"x\", \"default\": 1}",
    "{\"a/b~\": {\"type\": \"integer\", \"default\": \"1\"}, \"c\": -1}",
];
