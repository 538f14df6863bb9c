//! A [`SimPlan`] as the engine's graph, and as a plan document.

use crate::plan::{Initial, MAIN, Part, SimNode, SimPlan, SimTool, written, written_arg};
use selvedge_engine::graph::{
    Act, AskKind, Call, Edge, Flow, Graph, Guard, Infer, Leaf, Node, OnError, Retry, ThreadDef,
};
use selvedge_engine::template::{JsonTemplate, OnMissing, Template};
use selvedge_engine::{Effects, LeafIx, ReplySchema, Slice, ThreadIx, ToolDef};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rounds of a tool loop without `max_rounds` (P-14).
pub const MAX_ROUNDS: u32 = 25;

/// The graph of a plan.
///
/// # Errors
/// A template that does not parse: a bug of the generator.
pub fn graph(plan: &SimPlan) -> Result<Graph, String> {
    let mut names: Vec<&str> = vec![MAIN];
    for node in &plan.nodes {
        if !names.contains(&node.thread.as_str()) {
            names.push(&node.thread);
        }
    }
    let first = template(&plan.task)?;
    let threads = names.iter().map(|name| {
        let first = (*name == MAIN).then(|| first.clone());
        ThreadDef { name: Arc::from(*name), first }
    });
    let nodes: Result<Vec<Node>, String> =
        plan.nodes.iter().enumerate().map(|(at, def)| node(plan, at, def, &names)).collect();
    let tools = plan.tools.iter().map(|def| (Arc::from(def.name.as_str()), Arc::new(tool(def))));
    Ok(Graph {
        name: Some("sim".into()),
        threads: threads.collect(),
        nodes: nodes?.into_iter().collect(),
        tools: tools.collect(),
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
        output_params: output_params.map(|names| names.iter().map(|n| Arc::from(n.as_str())).collect()),
        effects: def.effects,
        version: format!("{}@1", def.name).into(),
        source: "sim".into(),
        timeout_s: None,
        approval: def.approval,
    }
}

/// The leaves that a node may have, in the order in which they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Open,
    Ask,
    Call,
    Say,
    Infer,
    Answer,
    Conclude,
    Close,
    Publish,
}

fn steps(plan: &SimPlan, at: usize, def: &SimNode) -> Vec<Step> {
    let all = [
        (Step::Open, plan.creates(at)),
        (Step::Ask, def.approval),
        (Step::Call, def.initial.is_some()),
        (Step::Say, def.prompt.is_some()),
        (Step::Infer, def.prompt.is_some()),
        (Step::Answer, def.prompt.is_some()),
        (Step::Conclude, def.prompt.is_some() && def.looped),
        (Step::Close, def.prompt.is_some() && def.looped),
        (Step::Publish, def.out.is_some()),
    ];
    all.into_iter().filter(|(_, there)| *there).map(|(step, _)| step).collect()
}

fn node(plan: &SimPlan, at: usize, def: &SimNode, names: &[&str]) -> Result<Node, String> {
    let steps = steps(plan, at, def);
    let thread = |name: &str| index(names.iter().position(|known| *known == name)).map(ThreadIx);
    let place =
        |step: Step| steps.iter().position(|s| *s == step).map(|at| LeafIx(index(Some(at)).unwrap_or(0)));
    let leaves: Result<Vec<Leaf>, String> = steps
        .iter()
        .enumerate()
        .map(|(at, step)| {
            let act = act(def, *step, &thread)?;
            let follows = steps.get(at + 1).copied();
            Ok(Leaf { name: name(*step).into(), act, next: next(def, *step, follows, &place) })
        })
        .collect();
    let body = Flow {
        thread: thread(&def.thread),
        leaves: leaves?.into_iter().collect(),
        tools: def.tools.iter().map(|tool| Arc::from(tool.as_str())).collect(),
        call_limits: def.limits.iter().map(|(tool, n)| (Arc::from(tool.as_str()), *n)).collect(),
        max_rounds: def.max_rounds.unwrap_or(MAX_ROUNDS),
    };
    let gives = def.initial.as_ref().filter(|_| def.prompt.is_none());
    Ok(Node {
        id: def.id.as_str().into(),
        name: format!("node {}", def.id).into(),
        body,
        on_error: if def.goes_on { OnError::Continue } else { OnError::Fail },
        effects: def.effects,
        on_missing: OnMissing::default(),
        tool: gives.map(|initial| Arc::from(initial.tool.as_str())),
    })
}

fn index(at: Option<usize>) -> Option<u32> {
    at.and_then(|at| u32::try_from(at).ok())
}

fn name(step: Step) -> &'static str {
    match step {
        Step::Open => "open",
        Step::Ask => "ask",
        Step::Call => "call",
        Step::Say => "say",
        Step::Infer => "infer",
        Step::Answer => "answer",
        Step::Conclude => "conclude",
        Step::Close => "close",
        Step::Publish => "publish",
    }
}

fn act(def: &SimNode, step: Step, thread: &dyn Fn(&str) -> Option<ThreadIx>) -> Result<Act, String> {
    let schema = || def.schema_json().map(|schema| ReplySchema { name: def.id.as_str().into(), schema });
    let infer = |offer_tools: bool| Act::Infer(Infer { offer_tools, schema: schema(), ..Infer::default() });
    let retry = Retry { max: def.retry, backoff_s: None };
    Ok(match step {
        Step::Open => Act::Open {
            from: thread(&def.from).ok_or("a source that is no thread")?,
            slice: Slice(def.slice.0, def.slice.1),
        },
        Step::Ask => Act::Ask(AskKind::Approve, template(&[Part::Text("Go on?".into())])?),
        Step::Call => Act::Call(call(def.initial.as_ref().ok_or("no call")?, retry)?),
        Step::Say => Act::Say(template(def.prompt.as_deref().unwrap_or_default())?),
        Step::Infer => infer(true),
        Step::Conclude => infer(false),
        Step::Answer => Act::Answer { run: true, retry, timeout_s: None },
        Step::Close => Act::Answer { run: false, retry, timeout_s: None },
        Step::Publish => {
            let out = def.out.as_ref().ok_or("nowhere to publish")?;
            Act::Publish {
                to: thread(&out.to).ok_or("a target that is no thread")?,
                description: template(&out.description)?,
                label: if def.initial.is_some() { "tool-first" } else { "llm-first" }.into(),
            }
        }
    })
}

fn call(initial: &Initial, retry: Retry) -> Result<Call, String> {
    let args: Map<String, Value> =
        initial.args.iter().map(|(key, arg)| (key.clone(), written_arg(arg))).collect();
    let args = JsonTemplate::parse(&Value::Object(args)).map_err(|error| error.to_string())?;
    Ok(Call { tool: initial.tool.as_str().into(), args, retry, timeout_s: None })
}

fn next(
    def: &SimNode,
    step: Step,
    follows: Option<Step>,
    place: &dyn Fn(Step) -> Option<LeafIx>,
) -> Vec<Edge> {
    let to = |when: Guard, step: Step| Edge { when, to: place(step) };
    let end = to(Guard::Always, Step::Publish);
    match step {
        Step::Open | Step::Ask | Step::Call => {
            follows.map(|step| to(Guard::Always, step)).into_iter().collect()
        }
        Step::Say | Step::Answer if def.looped => {
            vec![to(Guard::Exhausted, Step::Conclude), to(Guard::Always, Step::Infer)]
        }
        Step::Say => vec![to(Guard::Always, Step::Infer)],
        Step::Answer | Step::Close => vec![end],
        Step::Infer => vec![to(Guard::Calls, Step::Answer), end],
        Step::Conclude => vec![to(Guard::Calls, Step::Close), end],
        Step::Publish => Vec::new(),
    }
}

fn template(text: &[Part]) -> Result<Template, String> {
    Template::parse(&written(text)).map_err(|error| error.to_string())
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
        let args: BTreeMap<&String, Value> =
            initial.args.iter().map(|(key, arg)| (key, written_arg(arg))).collect();
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
