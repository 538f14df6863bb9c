use super::*;
use crate::diagnostic::Diagnostic;
use crate::plan::ToolEffects;
use crate::recognise::{Choice, Dialect};
use crate::{DocumentLimits, Severity};
use selvedge_engine::graph::{Act, Action, Fact, Guard, INTERNAL, Node, OnError, Tail};
use selvedge_engine::template::OnMissing;
use selvedge_engine::{Effects, Ix, LeafIx, Table, TailIx, ToolDef};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

mod hostile;
mod replan;
mod typed;

/// Tools: `read_csv {path}` → rows; `add {a: integer, b?: integer, mode?: "fast" | "slow"}` → sum; `any {…}` → who
/// knows; `save {…}`, which writes and declares nothing.
struct Bench;

fn tool(name: &str) -> Option<ToolDef> {
    let (schema, outputs, effects) = match name {
        "read_csv" => (
            json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
                   "additionalProperties": false}),
            Some(vec!["rows"]),
            Some(Effects::Read),
        ),
        "add" => (
            json!({"type": "object", "properties": {
                "a": {"type": "integer"}, "b": {"type": "integer"}, "mode": {"enum": ["fast", "slow"]},
                "list": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}},
                "required": ["a"]}),
            Some(vec!["sum"]),
            Some(Effects::Pure),
        ),
        "any" => (json!({"type": "object"}), None, Some(Effects::Pure)),
        "save" => (json!({"type": "object"}), Some(vec![]), None),
        _ => return typed::tool(name),
    };
    Some(ToolDef {
        name: name.into(),
        description: format!("the tool {name}").into(),
        input_schema: schema,
        output_params: outputs.map(|names| names.into_iter().collect()),
        effects,
        version: format!("{name}-1").into(),
        source: "test".into(),
        timeout_s: None,
        approval: false,
    })
}

impl ToolSource for Bench {
    fn def(&self, name: &str) -> Option<Arc<ToolDef>> {
        tool(name).map(Arc::new)
    }
    fn names(&self) -> Vec<String> {
        ["add", "any", "read_csv", "save"].map(str::to_owned).to_vec()
    }
    fn available(&self) -> Vec<String> {
        ["add", "any", "read_csv"].map(str::to_owned).to_vec()
    }
}

fn compiled_with(text: &str, means: &Means) -> (Option<Graph>, Vec<Diagnostic>) {
    let (source, mut found) = (Source::new("task.json", text), Diagnostics::new());
    let choice = Choice { dialect: Some(Dialect::Steps), plan: None };
    let document = crate::read(&source, choice, &DocumentLimits::default(), &mut found);
    let graph = document.and_then(|document| {
        let initial = document.inputs(&Map::new(), &mut found);
        document.compile(&Bench, &initial, means, &mut found)
    });
    (graph, found.report(&source))
}

/// All findings as "pointer severity[rule] code", each with a message and a way out.
fn findings(task: &Value) -> Vec<String> {
    texts(&compiled_with(&task.to_string(), &Means::default()).1)
}

fn texts(found: &[Diagnostic]) -> Vec<String> {
    let line = |d: &Diagnostic| {
        assert!(!d.help.is_empty() && d.line.is_some(), "no way out of {}", d.message);
        format!("{} {}[{}] {}", d.pointer, d.severity.as_str(), d.rule, d.code)
    };
    found.iter().map(line).collect()
}

fn task(steps: Value) -> Value {
    json!({"task": "t", "metadata": {"n": 3, "name": "x"}, "steps": steps})
}

/// A step that is right, with these fields over it.
fn step(more: Value) -> Value {
    let mut step = json!({"step_id": "s1", "step_name": "S", "tool_id": "add", "parameters": {"a": 1}});
    for (name, value) in more.as_object().unwrap() {
        step[name] = value.clone();
    }
    step
}

fn of_step(more: Value) -> Vec<String> {
    findings(&task(json!([step(more)])))
}

fn graph_with(task: &Value, means: &Means) -> Graph {
    let (graph, found) = compiled_with(&task.to_string(), means);
    assert!(found.iter().all(|d| d.severity == Severity::Warning), "{found:#?}");
    graph.expect("a graph")
}

fn graph(task: &Value) -> Graph {
    graph_with(task, &Means::default())
}

fn only(graph: &Graph) -> &Node {
    graph.nodes.values().next().expect("a node")
}

fn leaf<'g>(graph: &'g Graph, node: &'g Node, name: &str) -> &'g selvedge_engine::graph::Leaf {
    graph.leaves(node).find(|leaf| &*leaf.name == name).unwrap_or_else(|| panic!("no leaf {name}"))
}

fn leaves<'g>(graph: &'g Graph, node: &'g Node) -> Vec<&'g str> {
    graph.leaves(node).map(|leaf| &*leaf.name).collect()
}

/// Where each edge of a leaf leads, by names.
fn edges(graph: &Graph, node: &Node, name: &str) -> Vec<(Guard, String)> {
    let at = leaves(graph, node).iter().position(|known| *known == name).map(LeafIx::new).unwrap();
    let name_of = |edge| {
        let to = Graph::target(&node.body, at, edge).and_then(|to| graph.leaf_of(&node.body, to));
        to.map_or_else(String::new, |leaf| leaf.name.to_string())
    };
    leaf(graph, node, name).next.iter().map(|edge| (edge.when, name_of(edge))).collect()
}

const MODEL: Means = Means {
    model: true,
    recovery: Recovery {
        model: None,
        siblings: None,
        retries: None,
        repairs: None,
        replans: None,
        consecutive_failures: None,
        reflections: None,
    },
    limits: DocumentLimits { document_bytes: 64 << 20, nodes: 100_000, json_nesting: 128 },
};

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
fn fields_have_the_types_of_the_shapes() {
    for (fields, expected) in [
        (json!({"tool_id": 1}), "/steps/0/tool_id error[D-15] wrong-type"),
        (json!({"step_id": true}), "/steps/0/step_id error[D-15] wrong-type"),
        (json!({"step_id": ""}), "/steps/0/step_id error[D-15] empty-name"),
        (json!({"step_id": "metadata"}), "/steps/0/step_id error[D-07] reserved-step-id"),
        (json!({"step_id": "inputs"}), "/steps/0/step_id error[D-07] reserved-step-id"),
        (json!({"step_id": "a b"}), "/steps/0/step_id warning[D-09] unnameable-step-id"),
        (json!({"step_id": "1a"}), "/steps/0/step_id warning[D-09] unnameable-step-id"),
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
        let (_, found) = compiled_with(text, &Means::default());
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
    // Without quotes around it a placeholder is no JSON, and the way out says so.
    let (_, found) = compiled_with(&with(r#"{\"a\": {{n}}}"#), &Means::default());
    assert!(found[0].help.contains("placeholders stand in strings"), "{}", found[0].help);
}

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
    let (_, found) = compiled_with(&circle.to_string(), &Means::default());
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
fn tools_without_declared_effects_are_told_of_once() {
    let twice = json!([{"step_id": "a", "tool_id": "save"}, {"step_id": "b", "tool_id": "save"}]);
    assert_eq!(findings(&task(twice)), ["/steps/0/tool_id warning[E-22] undeclared-effects"]);
    assert_eq!(of_step(json!({"tool_id": "save", "effects": "idempotent"})), [""; 0]);
    let other = of_step(json!({"effects": "pure", "alternatives": ["save"]}));
    assert_eq!(other, ["/steps/0/alternatives/0 warning[E-22] undeclared-effects"]);
}

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
    let means = Means { recovery: configured, ..MODEL };
    let mut document = task(json!([step(json!({}))]));
    document["recovery"] = json!({"repairs": 2, "siblings": "finish"});
    let graph = graph_with(&document, &means);
    let node = only(&graph);
    let limits = node.recovery.as_deref().unwrap();
    assert_eq!((limits.retries, limits.repairs, limits.replans), (7, 2, 1));
    assert_eq!((limits.consecutive_failures, limits.reflections, limits.model), (3, 5, true));
    assert_eq!(node.on_error, OnError::Finish);
    document["recovery"] = json!({"model": false});
    let graph = graph_with(&document, &means);
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
    let Act::Brief { facts, .. } = &leaf(&graph, node, "brief").act else { panic!("no brief") };
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

#[test]
fn d21_a_task_without_steps_is_one_node_that_plans() {
    let document = json!({"task": "Add {{n}}", "metadata": {"n": 1}});
    let graph = graph(&document);
    let node = only(&graph);
    assert_eq!((&*node.id, node.tool.as_deref(), node.on_error), ("(plan)", None, OnError::Fail));
    assert_eq!(leaves(&graph, node), ["brief", "plan", "compile", "splice"]);
    let Act::Brief { text, .. } = &leaf(&graph, node, "brief").act else { panic!("no brief") };
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
        (read.models().len(), read.optional_models(&Means::default()).len(), read.tools().len())
    };
    assert_eq!(of(task(json!([step(json!({"alternatives": ["any", "add"]}))]))), (0, 2, 2));
    assert_eq!(of(json!({"task": "t", "steps": [], "recovery": {"model": false}})), (0, 0, 0));
    assert_eq!(of(json!({"task": "t"})).0, 1);
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

/// Ten thousand steps in a row, each of which reads the one before, cost no more than their number.
#[test]
fn a_long_task_is_checked_and_lowered_in_time() {
    let steps: Vec<Value> = (0..10_000)
        .map(|n| match n {
            0 => json!({"step_id": "s0", "tool_id": "add", "parameters": {"a": 1}}),
            n => json!({"step_id": format!("s{n}"), "tool_id": "add",
                "parameters": format!("{{\"a\": \"{{{{s{}.output.sum}}}}\"}}", n - 1)}),
        })
        .collect();
    let started = std::time::Instant::now();
    assert_eq!(graph(&task(json!(steps))).nodes.len(), 10_000);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}
