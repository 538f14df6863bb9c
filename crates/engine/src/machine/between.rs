//! What a graph is given that works between the rounds of a model and its tools: what was called since it did so last,
//! and how large the conversation has become.

use super::since::Made;
use super::state::State;
use crate::effect::Tokens;
use crate::fault::Fault;
use crate::graph::Act;
use crate::ids::NodeRef;
use crate::message::ToolCall;
use serde_json::{Map, Value, json};
use std::sync::Arc;

impl State {
    /// Whether a graph works between the rounds of a node.
    fn looks_between(&self, node: NodeRef) -> bool {
        let aside = |act: &Act| matches!(act, Act::Loop(times) if times.times.is_aside());
        self.leaves(node).any(|leaf| aside(&leaf.act))
    }

    /// The result of a call of a model's is on the thread. What no tool was called for says nothing about one.
    pub(super) fn note_made(
        &mut self,
        node: NodeRef,
        call: &ToolCall,
        result: &Result<Arc<Value>, Box<Fault>>,
    ) {
        if !self.looks_between(node) {
            return;
        }
        let Some(version) = self.tool(node, &call.name).map(|tool| Arc::clone(&tool.version)) else { return };
        let made = Made { call: call.clone(), version, result: result.clone() };
        if let Some(visit) = self.visit_mut(node) {
            visit.extra_mut().since.get_or_insert_default().calls.push(made);
        }
    }

    /// What a reply took, with all that it answers.
    pub(super) fn note_used(&mut self, node: NodeRef, tokens: &Tokens) {
        if !self.looks_between(node) {
            return;
        }
        if let Some(visit) = self.visit_mut(node) {
            visit.extra_mut().since.get_or_insert_default().used = tokens.input.saturating_add(tokens.output);
        }
    }

    /// What the graph is given, by name. What it is told of calls is told once.
    pub(super) fn between_rounds(&mut self, node: NodeRef, last: bool) -> Vec<(Arc<str>, Value)> {
        let Some(visit) = self.visit_mut(node) else { return Vec::new() };
        let (rounds, bytes) = (visit.rounds, visit.thread.bytes());
        let since = visit.extra_mut().since.get_or_insert_default();
        let (calls, used) = (std::mem::take(&mut since.calls), since.used);
        let texts: Vec<Value> = match (used, self.visit(node)) {
            (0, Some(visit)) => visit.thread.iter().map(|ix| json!(self.messages[ix].content)).collect(),
            _ => Vec::new(),
        };
        let calls: Vec<Value> = calls.into_iter().map(Made::into_value).collect();
        let given = [
            ("calls", Value::Array(calls)),
            ("rounds", rounds.into()),
            ("last", last.into()),
            ("bytes", bytes.into()),
            ("used", used.into()),
            ("texts", Value::Array(texts)),
        ];
        given.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }
}

impl Made {
    fn into_value(self) -> Value {
        let mut row = Map::new();
        row.insert("id".to_owned(), json!(self.call.id));
        row.insert("tool".to_owned(), json!(self.call.name));
        row.insert("version".to_owned(), json!(self.version));
        row.insert("arguments".to_owned(), self.call.arguments);
        match self.result {
            Ok(output) => {
                let output = Arc::try_unwrap(output).unwrap_or_else(|output| Value::clone(&output));
                row.insert("output".to_owned(), output)
            }
            Err(fault) => {
                let error = json!({"type": fault.kind.name(), "message": fault.message});
                row.insert("error".to_owned(), error)
            }
        };
        Value::Object(row)
    }
}
