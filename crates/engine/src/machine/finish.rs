//! The end of a node: its result, and what of it goes to `runtime_metadata` (P-17, D-05).

use super::node::{Done, LeafPhase, More, NodePhase, Visit};
use super::reuse::records::Records;
use super::state::State;
use crate::effect::Outputs;
use crate::event::Event;
use crate::fault::{Fault, Warning};
use crate::graph::{Act, OnError};
use crate::ids::NodeRef;
use crate::schedule::{schema_properties, supply};
use crate::template::member;
use serde_json::Value;
use std::sync::Arc;

/// A result, and which fields of it the document declares.
pub(crate) struct NodeResult {
    /// As threads and `data_out` show it: the original text.
    pub(crate) text: Arc<str>,
    /// As placeholders and `results` show it (E-25).
    pub(crate) value: Value,
    sync: Sync,
}

/// Which fields go to `runtime_metadata`.
enum Sync {
    Nothing,
    All,
    /// Those that a tool declares.
    Declared(Outputs),
    /// The properties of the schema that the result fits.
    Shaped(Outputs),
}

impl State {
    /// The event that fails the node.
    pub(crate) fn failed(&self, node: NodeRef, mut fault: Fault) -> Event {
        let id = &self.name(node);
        let mut warnings = Vec::new();
        if let Some(visit) = self.visit(node)
            && let Some(leaf) = visit.leaf
        {
            if self.catches(node, leaf) {
                return Event::Caught { node: id.clone(), fault: Box::new(fault.at(id)) };
            }
            // What the recovery ran into is not what the node failed of.
            fault = visit.fault().cloned().unwrap_or(fault);
        }
        if self.def(node).on_error == OnError::Continue {
            let message = format!("the node failed and the run goes on: {}", fault.message);
            warnings.push(Warning::at("node-failed", id, message));
        }
        Event::NodeFinished { node: id.clone(), fault: Some(Box::new(fault.at(id))), warnings }
    }

    /// The event that ends a flow that has nothing left to do.
    pub(crate) fn finished(&self, node: NodeRef, visit: &Visit) -> Event {
        if let Some(fault) = visit.fault().or(visit.recovery_fault()) {
            return self.failed(node, fault.clone());
        }
        let id = &self.name(node);
        let cut = visit.cut().and_then(|reply| reply.cut_words());
        let mut warnings: Vec<Warning> =
            cut.into_iter().map(|words| Warning::at("reply-cut", id, words)).collect();
        if visit.unmended() > 0 {
            let message = format!(
                "the server sent parts of {} character(s) only: U+FFFD stands in their place",
                visit.unmended()
            );
            warnings.push(Warning::at("characters-lost", id, message));
        }
        // A result of which nothing is declared is not put together only to be looked at.
        let declared = self.may_declare(node, visit).then(|| self.result(node, visit));
        let declared = declared.as_ref().and_then(|result| match (&result.sync, &result.value) {
            (Sync::Declared(outputs), Value::Object(object)) => Some((outputs, object)),
            (Sync::Shaped(outputs), Value::Object(object)) if self.start.edition < 7 => {
                Some((outputs, object))
            }
            _ => None,
        });
        if let Some((outputs, object)) = declared {
            let names = outputs.names().iter().filter(|name| !outputs.is_optional(name));
            for name in names.filter(|name| member(object, name).is_none()) {
                let message = format!("the output has no field `{name}`, which it declares");
                warnings.push(Warning::at("missing-output-field", id, message));
            }
        }
        Event::NodeFinished { node: id.clone(), fault: None, warnings }
    }

    /// Whether a schema or a tool may name fields of the node's result.
    fn may_declare(&self, node: NodeRef, visit: &Visit) -> bool {
        !visit.outputs().is_empty() || self.leaves(node).any(|leaf| leaf.act.schema().is_some())
    }

    /// A node's result by P-17.
    pub(crate) fn result(&self, node: NodeRef, visit: &Visit) -> NodeResult {
        if self.def(node).passes {
            return NodeResult {
                text: "".into(),
                value: self.of(node).output().clone(),
                sync: Sync::Nothing,
            };
        }
        if let Some(value) = visit.value() {
            let (text, value) = (tool_text(value).into(), Value::clone(value));
            return NodeResult { text, value, sync: self.schema_sync(node) };
        }
        if let Some(message) = visit.last_text {
            let said = &self.messages[message];
            let text = Arc::clone(&said.content);
            // A text beside calls is not held to the schema (E-33).
            let shaped = self.start.edition >= 7
                && said.tool_calls.is_empty()
                && self.leaves(node).any(|leaf| leaf.act.schema().is_some());
            let shaped = shaped.then(|| self.reply_json(&text).ok()).flatten();
            let value = shaped.unwrap_or_else(|| self.result_of(&text));
            return NodeResult { text, value, sync: self.schema_sync(node) };
        }
        if let [(tool, output)] = visit.outputs() {
            let declared = self.tool(node, tool).and_then(|t| t.output_params.clone());
            let sync = declared.map_or(Sync::All, Sync::Declared);
            let value = match output.as_ref() {
                Value::String(text) => self.result_of(text),
                value => value.clone(),
            };
            return NodeResult { text: tool_text(output).into(), value, sync };
        }
        let acts = self.leaves(node).any(|l| matches!(l.act, Act::Infer(_) | Act::Call(_)));
        let text: Arc<str> = if acts {
            let texts: Vec<String> = visit.outputs().iter().map(|(_, output)| tool_text(output)).collect();
            texts.join("\n").into()
        } else {
            visit.thread.last().map_or_else(|| Arc::from(""), |last| Arc::clone(&self.messages[last].content))
        };
        let value = self.result_of(&text);
        NodeResult { text, value, sync: Sync::Nothing }
    }

    /// A text as results have it: as JSON if it is an object or an array and nothing else (E-25).
    fn result_of(&self, text: &str) -> Value {
        let trimmed = text.trim();
        let framed = (trimmed.starts_with('{') && trimmed.ends_with('}'))
            || (trimmed.starts_with('[') && trimmed.ends_with(']'));
        let read = match (framed, self.start.edition >= 7) {
            (false, _) => None,
            (true, true) => crate::json::read(trimmed).ok(),
            (true, false) => serde_json::from_str(trimmed).ok(),
        };
        read.unwrap_or_else(|| Value::String(text.to_owned()))
    }

    fn schema_sync(&self, node: NodeRef) -> Sync {
        let schema = self.leaves(node).find_map(|leaf| leaf.act.schema());
        schema.map_or(Sync::Nothing, |schema| Sync::Shaped(schema_properties(schema).into_iter().collect()))
    }

    /// Ends a node: from here on later nodes build on it, or the run ends at it.
    pub(crate) fn apply_finished(&mut self, node: NodeRef, fault: Option<Box<Fault>>) {
        if fault.is_some() {
            self.count_unsent(node);
        }
        self.cut_children(node);
        let state = std::mem::replace(&mut self.frames[node].phase, NodePhase::Waiting(u32::MAX));
        let NodePhase::Running(visit) = state else {
            self.frames[node].phase = state;
            return;
        };
        let result = fault.is_none().then(|| self.result(node, &visit));
        // A result is that of one try at least: of a fork's source, if it is none of the run's own.
        let attempts = (self.tries_of(node, &visit) + self.frames[node].tries).max(1);
        let def = self.def(node);
        let (failed, on_error) = (fault.is_some(), def.on_error);
        let fatal = failed && on_error == OnError::Fail;
        let tool = visit.tried_tool().cloned();
        let own = visit.thread.clone();
        let published = visit.published().and_then(|p| p.to);
        let (value, sync) = match result {
            Some(result) => (result.value, result.sync),
            None => (Value::Null, Sync::Nothing),
        };
        let synced = self.sync(node, &value, &sync);
        let unforeseen = tool.as_ref().is_some_and(|_| self.brings_more(node, &synced));
        let partial = fatal.then(|| own.clone());
        let mut done = Done {
            output: value,
            fault,
            fatal,
            skipped: false,
            attempts,
            records: Records::default(),
            finished_at: self.now,
            more: None,
        };
        done.more = if matches!(visit.phase, LeafPhase::Frames(_)) {
            More { partial, tool, interrupted: Some(visit), ..More::default() }.kept()
        } else {
            let mut visit = visit;
            let left = visit.take_left();
            done.records = std::mem::take(&mut visit.records);
            let (publication, errors) = (visit.take_published(), visit.take_errors());
            More { publication, partial, tool, interrupted: None, left, errors }.kept()
        };
        self.frames[node].phase = NodePhase::Done(Arc::new(done));
        if unforeseen {
            self.squash_behind(node);
        }
        if failed && on_error == OnError::Finish {
            self.frames[node.frame].note_unresolved(node.node);
        }
        if self.of(node).flow.is_some() {
            self.flow_on(node, own, published);
        } else if !fatal {
            self.announce(node, own, published.map(|(_, entry)| entry));
            self.retire(node.frame);
        }
    }

    /// Whether a stand-in for the node's tool brought names that nobody could expect of it (D-05).
    fn brings_more(&self, node: NodeRef, names: &[Arc<str>]) -> bool {
        let supply = supply(&self.of(node).graph, self.def(node));
        !supply.unknown && names.iter().any(|name| supply.names.binary_search(name).is_err())
    }

    /// Sets what goes to `runtime_metadata`; returns the names.
    fn sync(&mut self, node: NodeRef, value: &Value, sync: &Sync) -> Vec<Arc<str>> {
        let Value::Object(object) = value else { return Vec::new() };
        let names: Vec<Arc<str>> = match sync {
            Sync::Nothing => Vec::new(),
            Sync::All => object.keys().map(|key| Arc::from(key.as_str())).collect(),
            Sync::Declared(outputs) | Sync::Shaped(outputs) => {
                outputs.names().iter().filter(|name| member(object, name).is_some()).cloned().collect()
            }
        };
        let frame = &mut self.frames[node.frame];
        match frame.flow {
            Some(_) => frame.set_fields(node.node, object, &names),
            None => frame.sync(node.node, object, &names),
        }
        names
    }
}

/// The text of a tool message (E-24).
pub fn tool_text(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
