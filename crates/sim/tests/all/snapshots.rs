//! What a small plan lowers to, what its journal says and what its model is asked, as text that a person can
//! read. A change here changes graphs' hashes or recorded journals: look at it twice.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use selvedge_dialects::{Diagnostics, DocumentLimits, Source, ToolSource, recognise::Choice};
use selvedge_engine::{
    Effects, Event, Graph, Input, ModelReply, Outcome, Request, Start, State, ToolCall, ToolDef,
};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::sync::Arc;

const PLAN: &str = r#"{"task": "Compare {{city}}", "metadata": {"city": "Hangzhou"}, "nodes": [
  {"node_id": "get", "node_type": "tool-first", "node_name": "Get", "thread_id": "data",
   "initial_tool_name": "load", "initial_tool_args": {"city": "{{city}}"},
   "data_out": true, "data_out_thread": "main", "data_out_description": "Load: "},
  {"node_id": "say", "node_type": "llm-first", "node_name": "Say", "thread_id": "main",
   "task_prompt": "Peak is {{peak}}.", "tools": ["load"], "enable_tool_loop": true, "tools_limit": {"load": 1}}]}"#;

struct OneTool;

impl ToolSource for OneTool {
    fn def(&self, name: &str) -> Option<Arc<ToolDef>> {
        (name == "load").then(|| {
            Arc::new(ToolDef {
                name: "load".into(),
                description: "Load of a city".into(),
                input_schema: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
                output_params: Some(["peak"].into()),
                effects: Some(Effects::Pure),
                version: "v1".into(),
                source: "test".into(),
                timeout_s: None,
                approval: false,
            })
        })
    }
    fn names(&self) -> Vec<String> {
        vec!["load".into()]
    }
}

fn graph() -> Graph {
    let source = Source::new("plan.json", PLAN);
    let mut findings = Diagnostics::new();
    let limits = DocumentLimits::default();
    let document = selvedge_dialects::read(&source, Choice::default(), &limits, &mut findings).unwrap();
    let initial = document.inputs(&Map::new(), &mut findings);
    let graph =
        document.compile(&OneTool, &initial, &selvedge_dialects::Capabilities::default(), &mut findings);
    assert!(findings.report(&source).is_empty(), "{:?}", findings.report(&source));
    graph.unwrap()
}

/// Answers every request at once; returns the journal and the model's requests, line by line.
fn run() -> (String, String) {
    let mut state = State::new(Arc::new(graph()));
    let (mut journal, mut requests) = (String::new(), String::new());
    let note = |state: &mut State, journal: &mut String, event: Event| {
        state.apply(&event);
        let _ = writeln!(journal, "{}", serde_json::to_string(&event).unwrap());
    };
    let initial: Map<String, Value> = [("city".to_owned(), json!("Hangzhou"))].into_iter().collect();
    let start = Start { graph: "hash".into(), initial, ..Start::default() };
    let mut next = Some(Input::Start(Box::new(start)));
    let mut asked = 0;
    while let Some(input) = next.take() {
        let event = state.accept(input).unwrap();
        note(&mut state, &mut journal, event);
        while let Some(event) = state.step() {
            note(&mut state, &mut journal, event);
        }
        let Some(effect) = state.pending().keys().next().cloned() else { break };
        let outcome = match state.request(&effect).unwrap() {
            Request::Tool(_) | Request::Operation(_) => Outcome::Output(Arc::new(json!({"peak": 513.6}))),
            Request::Model(request) => {
                asked += 1;
                let tools: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
                let _ =
                    writeln!(requests, "{effect} as {} on {}, tools {tools:?}", request.role, request.thread);
                for message in &request.messages {
                    let _ = writeln!(requests, "  {}", serde_json::to_string(message.as_ref()).unwrap());
                }
                let call =
                    ToolCall { id: "".into(), name: "load".into(), arguments: json!({"city": "Ningbo"}) };
                let reply = match asked {
                    1 => ModelReply { calls: vec![call], ..ModelReply::default() },
                    _ => ModelReply { text: "Both peak in the evening.".into(), ..ModelReply::default() },
                };
                Outcome::Reply(Arc::new(reply))
            }
        };
        next = Some(Input::Complete(effect, outcome, 0, None, None));
    }
    (journal, requests)
}

#[test]
fn the_graph_of_a_plan() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&graph()).unwrap());
}

#[test]
fn the_journal_of_a_run() {
    insta::assert_snapshot!(run().0);
}

#[test]
fn what_the_model_is_asked() {
    insta::assert_snapshot!(run().1);
}
