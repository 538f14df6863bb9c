//! The plans that are measured, as documents.

use crate::Result;
use crate::ports::AnyTool;
use selvedge_dialects::{Capabilities, Diagnostics, Document, DocumentLimits, Source, recognise::Choice};
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

/// A step task: a chain of `steps` calls.
pub(crate) fn task(steps: usize, refers: Refers) -> Value {
    let parameters = |n: usize| {
        let before = |k: usize| format!("s{}", n.saturating_sub(k));
        match refers {
            _ if n == 0 => json!({"n": 0}),
            Refers::Nowhere => json!({"n": n}),
            Refers::Before => json!({"n": n, "text": format!("{{{{{}.outputs.text}}}}", before(1))}),
            // The last one makes it a chain; the others are spread over what has run.
            Refers::Ten => {
                let s = |k: usize| format!("s{}", (n * 7 + k * 13) % n);
                json!({"a": format!("{{{{{}.outputs.text}}}}", s(0)),
                    "b": {"c": format!("{{{{{{{}.outputs.text}}}}}}", s(1)),
                          "d": [format!("${{{}.output.text}}", s(2)), format!("{{{{{}.text}}}}", s(3)),
                                {"e": format!("pre {{{{{}.text}}}} and {{{{{}.text}}}} post", s(4), s(5))}]},
                    "f": format!("{{{{{}_text}}}}", s(6)), "g": {"h": {"i": format!("{{{{{}}}}}", s(8))}},
                    "j": format!("x-{{{{{}_text}}}}-y", s(7)), "k": format!("{{{{{}.outputs.text}}}}", before(1)), "lit": 5})
            }
        }
    };
    let steps: Vec<Value> = (0..steps)
        .map(|n| json!({"step_id": format!("s{n}"), "tool_id": "step", "parameters": parameters(n)}))
        .collect();
    json!({"task": "bench", "steps": steps})
}

/// What the parameters of a task's steps refer to.
#[derive(Clone, Copy)]
pub(crate) enum Refers {
    /// Nothing: all steps are independent.
    Nowhere,
    /// The step before.
    Before,
    /// Ten results, the step before among them.
    Ten,
}

/// Reads a document.
pub(crate) fn read(source: &Source) -> Result<Document> {
    let mut findings = Diagnostics::new();
    let document =
        selvedge_dialects::read(source, Choice::default(), &DocumentLimits::default(), &mut findings);
    document.ok_or_else(|| format!("{:?}", findings.report(source)).into())
}

/// Checks and lowers it.
pub(crate) fn lower(source: &Source, document: &Document, means: &Capabilities) -> Result<Arc<Graph>> {
    let mut findings = Diagnostics::new();
    let graph = document.compile(&AnyTool, &Map::new(), means, &mut findings);
    graph.map(Arc::new).ok_or_else(|| format!("{:?}", findings.report(source)).into())
}

/// Reads, checks and lowers a document; no model is there to deal with failures.
pub(crate) fn compile(text: &str) -> Result<Arc<Graph>> {
    let source = Source::new("bench.json", text);
    lower(&source, &read(&source)?, &Capabilities::default())
}
