//! The end of a node: its result, and what of it goes to `runtime_metadata` (P-17, D-05).

use super::state::{Done, Frame, NodePhase, State};
use crate::event::Event;
use crate::fault::{Fault, Warning};
use crate::graph::{Act, OnError};
use crate::ids::NodeIx;
use crate::schedule::schema_properties;
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
    Declared(Vec<Arc<str>>),
}

impl State {
    /// The event that fails the node.
    pub(crate) fn failed(&self, node: NodeIx, fault: Fault) -> Event {
        let id = &self.graph.nodes[node].id;
        let mut warnings = Vec::new();
        if self.graph.nodes[node].on_error == OnError::Continue {
            let message = format!("the node failed and the run goes on: {}", fault.message);
            warnings.push(Warning::at("node-failed", id, message));
        }
        Event::NodeFinished { node: id.clone(), fault: Some(fault.at(id)), warnings }
    }

    /// The event that ends a flow that has nothing left to do.
    pub(crate) fn finished(&self, node: NodeIx, frame: &Frame) -> Event {
        if let Some(fault) = &frame.fault {
            return self.failed(node, fault.clone());
        }
        let id = &self.graph.nodes[node].id;
        let result = self.result(node, frame);
        let cut = frame.cut.as_ref().and_then(|reply| reply.cut_words());
        let mut warnings: Vec<Warning> =
            cut.into_iter().map(|words| Warning::at("reply-cut", id, words)).collect();
        if let (Sync::Declared(names), Value::Object(object)) = (&result.sync, &result.value) {
            for name in names.iter().filter(|name| !object.contains_key(name.as_ref())) {
                let message = format!("the output has no field `{name}`, which it declares");
                warnings.push(Warning::at("missing-output-field", id, message));
            }
        }
        Event::NodeFinished { node: id.clone(), fault: None, warnings }
    }

    /// A node's result by P-17.
    pub(crate) fn result(&self, node: NodeIx, frame: &Frame) -> NodeResult {
        let flow = &self.graph.nodes[node].body;
        if let Some(message) = frame.last_text {
            let text = Arc::clone(&self.messages[message].content);
            let value = json_in(&text).unwrap_or_else(|| Value::String(text.to_string()));
            return NodeResult { text, value, sync: self.reply_sync(node) };
        }
        if let [(tool, output)] = frame.outputs.as_slice() {
            let declared = self.graph.tools.get(tool).and_then(|t| t.output_params.clone());
            let sync = declared.map_or(Sync::All, Sync::Declared);
            let value = match output.as_ref() {
                Value::String(text) => json_in(text).unwrap_or_else(|| Value::String(text.clone())),
                value => value.clone(),
            };
            return NodeResult { text: tool_text(output).into(), value, sync };
        }
        let acts = flow.leaves.values().any(|l| matches!(l.act, Act::Infer(_) | Act::Call(_)));
        let text: Arc<str> = if acts {
            let texts: Vec<String> = frame.outputs.iter().map(|(_, output)| tool_text(output)).collect();
            texts.join("\n").into()
        } else {
            frame.thread.last().map_or_else(|| Arc::from(""), |last| Arc::clone(&self.messages[last].content))
        };
        let value = json_in(&text).unwrap_or_else(|| Value::String(text.to_string()));
        NodeResult { text, value, sync: Sync::Nothing }
    }

    fn reply_sync(&self, node: NodeIx) -> Sync {
        let schema = self.graph.nodes[node].body.leaves.values().find_map(|leaf| match &leaf.act {
            Act::Infer(infer) => infer.schema.as_ref(),
            _ => None,
        });
        schema.map_or(Sync::Nothing, |schema| Sync::Declared(schema_properties(&schema.schema)))
    }

    /// Ends a node: from here on later nodes build on it, or the run ends at it.
    pub(crate) fn apply_finished(&mut self, node: NodeIx, fault: Option<Fault>) {
        let state = std::mem::replace(&mut self.nodes[node].phase, NodePhase::Waiting(u32::MAX));
        let NodePhase::Running(frame) = state else {
            self.nodes[node].phase = state;
            return;
        };
        let result = fault.is_none().then(|| self.result(node, &frame));
        let def = &self.graph.nodes[node];
        let fatal = fault.is_some() && def.on_error == OnError::Fail;
        let own = frame.thread.clone();
        let published = frame.published.as_ref().and_then(|p| p.to).map(|(_, message)| message);
        let (value, sync) = match result {
            Some(result) => (result.value, result.sync),
            None => (Value::Null, Sync::Nothing),
        };
        self.sync(node, &value, &sync);
        self.nodes[node].phase = NodePhase::Done(Box::new(Done {
            output: value,
            fault,
            fatal,
            attempts: frame.attempts + self.nodes[node].visit.saturating_sub(self.nodes[node].before + 1),
            publication: frame.published,
            partial: fatal.then(|| own.clone()),
            records: frame.records,
            finished_at: self.at,
        }));
        if !fatal {
            self.announce(node, own, published);
            self.retire();
        }
    }

    fn sync(&mut self, node: NodeIx, value: &Value, sync: &Sync) {
        let Value::Object(object) = value else { return };
        let id = self.graph.nodes[node].id.clone();
        let names: Vec<Arc<str>> = match sync {
            Sync::Nothing => Vec::new(),
            Sync::All => object.keys().map(|key| Arc::from(key.as_str())).collect(),
            Sync::Declared(names) => {
                names.iter().filter(|n| object.contains_key(n.as_ref())).cloned().collect()
            }
        };
        for name in names {
            let prefixed: Arc<str> = format!("{id}_{name}").into();
            self.runtime.entry(prefixed).or_default().insert(node, name.clone());
            self.runtime.entry(name.clone()).or_default().insert(node, name);
        }
        for key in object.keys() {
            match self.fields.get_mut(key.as_str()) {
                Some(nodes) => drop(nodes.insert(node, ())),
                None => drop(self.fields.entry(key.as_str().into()).or_default().insert(node, ())),
            }
        }
    }
}

/// JSON in a text, if the text is an object or an array and nothing else (E-25).
pub(crate) fn json_in(text: &str) -> Option<Value> {
    let text = text.trim();
    let framed =
        (text.starts_with('{') && text.ends_with('}')) || (text.starts_with('[') && text.ends_with(']'));
    framed.then(|| serde_json::from_str(text).ok()).flatten()
}

/// The text of a tool message (E-24).
pub(crate) fn tool_text(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
