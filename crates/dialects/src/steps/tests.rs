use super::*;
use crate::diagnostic::Diagnostic;
use crate::recognise::{Choice, Dialect};
use crate::settings::ToolEffects;
use crate::{DocumentLimits, Severity};
use selvedge_engine::graph::{Act, Action, Fact, Guard, INTERNAL, Node, OnError, Tail};
use selvedge_engine::template::OnMissing;
use selvedge_engine::{Effects, Ix, LeafIx, Table, TailIx, ToolDef};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

mod checking;
mod hostile;
mod lowering;
mod reading;
mod recovering;
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

fn compiled_with(text: &str, capabilities: &Capabilities) -> (Option<Graph>, Vec<Diagnostic>) {
    let (source, mut found) = (Source::new("task.json", text), Diagnostics::new());
    let choice = Choice { dialect: Some(Dialect::Steps), plan: None };
    let document = crate::read(&source, choice, &DocumentLimits::default(), &mut found);
    let graph = document.and_then(|document| {
        let initial = document.inputs(&Map::new(), &mut found);
        document.compile(&Bench, &initial, capabilities, &mut found)
    });
    (graph, found.report(&source))
}

/// All findings as "pointer severity[rule] code", each with a message and a way out.
fn findings(task: &Value) -> Vec<String> {
    texts(&compiled_with(&task.to_string(), &Capabilities::default()).1)
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

fn graph_with(task: &Value, capabilities: &Capabilities) -> Graph {
    let (graph, found) = compiled_with(&task.to_string(), capabilities);
    assert!(found.iter().all(|d| d.severity == Severity::Warning), "{found:#?}");
    graph.expect("a graph")
}

fn graph(task: &Value) -> Graph {
    graph_with(task, &Capabilities::default())
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

static MODEL: std::sync::LazyLock<Capabilities> = std::sync::LazyLock::new(|| Capabilities {
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
    limits: DocumentLimits {
        document_bytes: 64 << 20,
        nodes: 100_000,
        json_nesting: 128,
        subgraph_depth: 32,
        schema_steps: 5_000_000,
    },
    agent: std::sync::Arc::default(),
    calls: None,
});
