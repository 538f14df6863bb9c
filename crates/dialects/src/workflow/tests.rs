use super::*;
use crate::diagnostic::Diagnostic;
use crate::files::Files;
use crate::recognise::Choice;
use crate::{DocumentLimits, Severity};
use selvedge_engine::ToolDef;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

mod checking;
mod files;
mod structure;

/// Tools: `read` → rows; `save`, which writes.
struct Bench;

impl ToolSource for Bench {
    fn def(&self, name: &str) -> Option<Arc<ToolDef>> {
        let (outputs, effects) = match name {
            "read" => (json!(["rows"]), "read"),
            "save" => (json!([]), "write"),
            _ => return None,
        };
        let def = json!({"name": name, "description": "", "input_schema": {"type": "object"}, "output_params": outputs,
                         "effects": effects, "version": "1", "source": "test"});
        Some(Arc::new(serde_json::from_value(def).unwrap()))
    }
    fn names(&self) -> Vec<String> {
        vec!["read".into(), "save".into()]
    }
}

fn compiled_in(text: &str, files: BTreeMap<&'static str, Value>) -> (Option<Graph>, Vec<Diagnostic>) {
    let source = Source::new("flow.json", text).beside(Arc::new(Shelf(files)));
    let mut found = Diagnostics::new();
    let document = crate::read(&source, Choice::default(), &DocumentLimits::default(), &mut found);
    let graph = document.and_then(|document| {
        let initial = document.inputs(&Map::new(), &mut found);
        document.compile(&Bench, &initial, &Capabilities::default(), &mut found)
    });
    (graph, found.report(&source))
}

#[derive(Debug)]
struct Shelf(BTreeMap<&'static str, Value>);

impl Files for Shelf {
    fn read(&self, path: &str, _: &DocumentLimits) -> Result<Source, String> {
        let document = self.0.get(path).ok_or("there is no such file")?;
        Ok(Source::new(path, &document.to_string()))
    }
}

fn compiled(document: &Value) -> (Option<Graph>, Vec<Diagnostic>) {
    compiled_in(&document.to_string(), BTreeMap::new())
}

/// Codes and places of what is found.
fn codes(document: &Value) -> Vec<(&'static str, String)> {
    let (graph, found) = compiled(document);
    let errors = found.iter().any(|finding| finding.severity == Severity::Error);
    assert_eq!(graph.is_none(), errors, "{found:?}");
    for finding in &found {
        assert!(!finding.help.is_empty() && finding.line.is_some(), "{finding:?}");
    }
    found.into_iter().map(|finding| (finding.code, finding.pointer)).collect()
}

fn node(id: &str, kind: &str, config: Value) -> Value {
    json!({"id": id, "type": kind, "config": config})
}

/// A node that does nothing that can go wrong.
fn idle(id: &str) -> Value {
    node(id, "VARIABLE", json!({"name": "x", "value": 1}))
}

/// A workflow of these nodes, between a start and an end, and these edges.
fn flow(nodes: Value, edges: &[(&str, &str)]) -> Value {
    let mut all = vec![node("start", "START", json!({})), node("end", "END", json!({}))];
    all.extend(nodes.as_array().unwrap().iter().cloned());
    let edges: Vec<Value> = edges.iter().map(|(from, to)| json!({"from": from, "to": to})).collect();
    json!({"nodes": all, "edges": edges})
}

/// A fork of two idle paths, `a` and `b`, and their join.
fn forked(join: Value) -> Value {
    let fork = json!({"forkStrategy": "parallel", "forkPathIds": ["p", "q"], "childNodeIds": ["a", "b"]});
    let mut config = json!({"forkPathIds": ["p", "q"], "joinStrategy": "ALL_COMPLETED"});
    config.as_object_mut().unwrap().extend(join.as_object().unwrap().clone());
    flow(
        json!([node("fork", "FORK", fork), idle("a"), idle("b"), node("join", "JOIN", config)]),
        &[("start", "fork"), ("a", "join"), ("b", "join"), ("join", "end")],
    )
}

#[test]
fn a_fork_and_its_join_are_one_node() {
    let (graph, found) = compiled(&forked(json!({})));
    assert_eq!(found, []);
    let graph = graph.unwrap();
    let ids: Vec<&str> = graph.nodes.values().map(|node| &**node.shown_id()).collect();
    assert_eq!((ids, graph.graphs.len()), (vec!["start", "join", "end"], 2));
}

/// A workflow of ten thousand nodes is checked and compiled in moments (in a release build: 150 ms).
#[test]
fn e12_ten_thousand_nodes_are_moments() {
    const NODES: usize = 10_000;
    let id = |at: usize| format!("n{at}");
    let nodes: Vec<Value> = (0..NODES)
        .map(|at| {
            node(
                &id(at),
                "LLM",
                json!({"prompt": if at == 0 { "go".into() } else { format!("{{{{n{}}}}}", at - 1) }}),
            )
        })
        .collect();
    let (first, last) = (id(0), id(NODES - 1));
    let ids: Vec<String> = (0..NODES).map(id).collect();
    let mut edges: Vec<(&str, &str)> = ids.windows(2).map(|pair| (&*pair[0], &*pair[1])).collect();
    edges.extend([("start", &*first), (&*last, "end")]);
    let document = flow(Value::Array(nodes), &edges);
    let started = Instant::now();
    let (graph, found) = compiled(&document);
    assert_eq!(found, []);
    assert_eq!(graph.unwrap().nodes.len(), NODES + 2);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}
