//! A [`SimPlan`] as a plan document and, by the real compiler, as the engine's graph.

use crate::plan::{SimNode, SimPlan, SimTool, written, written_arg};
use selvedge_dialects::recognise::Choice;
use selvedge_dialects::{Diagnostics, DocumentLimits, Severity, Source, ToolSource};
use selvedge_engine::{Effects, Graph, ToolDef};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Rounds of a tool loop without `max_rounds` (P-14).
pub const MAX_ROUNDS: u32 = 25;

struct Tools<'p>(&'p SimPlan);

impl ToolSource for Tools<'_> {
    fn def(&self, name: &str) -> Option<Arc<ToolDef>> {
        self.0.tool(name).map(|def| Arc::new(tool(def)))
    }
    fn names(&self) -> Vec<String> {
        self.0.tools.iter().map(|tool| tool.name.clone()).collect()
    }
}

/// The graph of a plan, as a user's document would give it.
///
/// # Errors
/// What the compiler has against the document: a bug of it or of the generator.
pub fn graph(plan: &SimPlan) -> Result<Graph, String> {
    let source = Source::new("sim.json", &document(plan).to_string());
    let mut diagnostics = Diagnostics::new();
    let read =
        selvedge_dialects::read(&source, Choice::default(), &DocumentLimits::default(), &mut diagnostics);
    let graph = read.filter(|_| !diagnostics.has_errors()).and_then(|document| {
        let initial = document.inputs(&Map::new(), &mut diagnostics);
        document.compile(
            &Tools(plan),
            &initial,
            &selvedge_dialects::Capabilities::default(),
            &mut diagnostics,
        )
    });
    graph.ok_or_else(|| {
        let errors = diagnostics.report(&source);
        let errors = errors.iter().filter(|found| found.severity == Severity::Error);
        let errors = errors.map(|found| format!("{} {}: {}", found.rule, found.pointer, found.message));
        format!("the document does not compile: {}", errors.collect::<Vec<_>>().join("; "))
    })
}

/// The engine's definition of a simulated tool.
pub fn tool(def: &SimTool) -> ToolDef {
    let input_schema = if def.strict {
        json!({"type": "object", "properties": {"a": {"type": "integer"}}})
    } else {
        json!({"type": "object"})
    };
    let output_params = def.output_params.as_ref();
    ToolDef {
        name: def.name.as_str().into(),
        description: "simulated".into(),
        input_schema,
        output_params: output_params.map(|names| names.iter().map(String::as_str).collect()),
        effects: def.effects,
        version: format!("{}@1", def.name).into(),
        source: "sim".into(),
        timeout_s: None,
        approval: def.approval,
    }
}

/// The plan as a document (rules P).
pub fn document(plan: &SimPlan) -> Value {
    let nodes: Vec<Value> = plan.nodes.iter().map(node_document).collect();
    json!({"task": written(&plan.task), "metadata": plan.metadata, "nodes": nodes})
}

fn node_document(def: &SimNode) -> Value {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    set("node_id", json!(def.id));
    set("node_type", json!(if def.initial.is_some() { "tool-first" } else { "llm-first" }));
    set("node_name", json!(format!("node {}", def.id)));
    set("thread_id", json!(def.thread));
    set("task_prompt", json!(def.prompt.as_deref().map(written).unwrap_or_default()));
    set("tools", if def.tools.is_empty() { Value::Null } else { json!(def.tools) });
    set("enable_tool_loop", json!(def.looped));
    set("tools_limit", if def.limits.is_empty() { Value::Null } else { json!(def.limits) });
    set("data_in_thread", json!(def.from));
    set("data_in_slice", json!([def.slice.0, def.slice.1]));
    if let Some(initial) = &def.initial {
        let args: Map<String, Value> =
            initial.args.iter().map(|(key, arg)| (key.clone(), written_arg(arg))).collect();
        set("initial_tool_name", json!(initial.tool));
        set("initial_tool_args", json!(args));
    }
    set("data_out", json!(def.out.is_some()));
    if let Some(out) = &def.out {
        set("data_out_thread", json!(out.to));
        set("data_out_description", json!(written(&out.description)));
    }
    set("on_error", json!(if def.goes_on { "continue" } else { "fail" }));
    if let Some(rounds) = def.max_rounds {
        set("max_rounds", json!(rounds));
    }
    if let Some(schema) = def.schema_json() {
        set("output_schema", schema);
    }
    if def.approval {
        set("require_approval", json!(true));
    }
    if let Some(effects) = def.effects {
        set("effects", json!(effects));
    }
    if let Some(retry) = def.retry {
        set("retry", json!(retry));
    }
    Value::Object(fields)
}

/// The same plan with every tool taken for `pure`: what a lowering that forgets effects would give.
pub fn without_effects(plan: &SimPlan) -> SimPlan {
    let mut plan = plan.clone();
    plan.tools.iter_mut().for_each(|tool| tool.effects = Some(Effects::Pure));
    plan.nodes.iter_mut().for_each(|node| node.effects = None);
    plan
}
