//! The plans that are measured, as documents.

use crate::Result;
use crate::ports::AnyTool;
use selvedge_dialects::{Diagnostics, DocumentLimits, Source, recognise::Choice};
use selvedge_engine::Graph;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// `nodes` model nodes, on threads of 200.
pub(crate) fn chain(nodes: usize) -> Value {
    let nodes: Vec<Value> = (0..nodes)
        .map(|n| {
            json!({"node_type": "llm-first", "node_name": format!("n{n}"), "thread_id": format!("t{}", n / 200),
                   "task_prompt": format!("task n{n}")})
        })
        .collect();
    json!({"task": "bench", "nodes": nodes})
}

/// 50 threads of 4 nodes each, whose last results go to `main`, and a summary there.
pub(crate) fn fan(threads: usize) -> Value {
    let mut nodes = Vec::new();
    for thread in 0..threads {
        for k in 0..4 {
            nodes.push(json!({"node_type": "llm-first", "node_name": format!("t{thread} n{k}"),
                "thread_id": format!("t{thread}"), "task_prompt": format!("node {k}"), "data_out": k == 3}));
        }
    }
    nodes.push(
        json!({"node_type": "llm-first", "node_name": "final", "thread_id": "main", "task_prompt": "sum up"}),
    );
    json!({"task": "q", "nodes": nodes})
}

/// `steps` tool nodes, each with its own arguments.
pub(crate) fn steps(steps: usize) -> Value {
    let nodes: Vec<Value> = (0..steps)
        .map(|n| {
            json!({"node_type": "tool-first", "node_name": format!("s{n}"), "thread_id": "log",
                   "initial_tool_name": "step", "initial_tool_args": {"n": n}})
        })
        .collect();
    json!({"task": "bench", "nodes": nodes})
}

/// One node with a tool loop.
pub(crate) fn looping() -> Value {
    json!({"task": "q", "nodes": [{"node_type": "llm-first", "node_name": "loop", "thread_id": "main",
        "task_prompt": "go", "tools": ["step"], "enable_tool_loop": true}]})
}

/// Reads, checks and lowers a document.
pub(crate) fn compile(text: &str) -> Result<Arc<Graph>> {
    let source = Source::new("bench.json", text);
    let mut findings = Diagnostics::new();
    let document =
        selvedge_dialects::read(&source, Choice::default(), &DocumentLimits::default(), &mut findings);
    let graph = document.and_then(|document| document.compile(&AnyTool, &Map::new(), &selvedge_dialects::Means::default(), &mut findings));
    graph.map(Arc::new).ok_or_else(|| format!("{:?}", findings.report(&source)).into())
}
