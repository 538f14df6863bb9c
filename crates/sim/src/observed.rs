//! What is observable of a run (P-20), in a form in which two runs can be compared.

use crate::canon::{self, Msg};
use selvedge_engine::{RunStatus, View};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The observable result of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Observed {
    /// `completed`, `failed`, `cancelled`.
    pub status: String,
    /// The last node's result.
    pub output: Value,
    /// Why it failed, with the node.
    pub fault: Value,
    /// Every thread, message for message.
    pub threads: BTreeMap<String, Vec<Value>>,
    /// What was published.
    pub data_out: BTreeMap<String, Value>,
    /// Results, in list order.
    pub results: Vec<Value>,
    /// `runtime_metadata`: value and origin.
    pub runtime: BTreeMap<String, Value>,
    /// Which effects were requested at which node with which content, and how often.
    pub requests: BTreeMap<String, u32>,
}

impl Observed {
    /// The view of a run, and what it requested: pairs of a node's position and what was asked.
    pub fn from_view(view: View<'_>, requests: &[(usize, String)]) -> Self {
        let status = match view.status() {
            RunStatus::Running => "running",
            RunStatus::Waiting => "waiting",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
        };
        let fault = |fault: &selvedge_engine::Fault| {
            let mut row = canon::fault(fault.kind.name(), &fault.message);
            if let Some(object) = row.as_object_mut() {
                object.insert("node".into(), json!(fault.node));
            }
            row
        };
        let threads = view.threads().map(|(name, messages)| {
            let messages: Vec<Msg> = messages.iter().map(|message| Msg::from(message.as_ref())).collect();
            (name.to_string(), canon::messages(&messages, true))
        });
        let data_out = view.data_out().into_iter().map(|published| {
            let row = published.publication;
            let value = json!({
                "node": published.node, "node_type": row.label, "description": canon::text(&row.description),
                "content": canon::text(&row.content),
            });
            (published.thread.to_string(), value)
        });
        let results = view.results().map(|row| {
            json!({
                "id": row.step_id, "name": row.step_name, "tool": row.tool_id,
                "output": canon::value(row.output), "ok": row.is_success,
                "error": row.error.map(fault),
            })
        });
        let runtime = view.runtime().into_iter();
        let runtime =
            runtime.map(|(name, known)| (name.to_string(), json!([canon::value(known.value), known.node])));
        let mut observed = Self {
            status: status.into(),
            output: canon::value(view.output()),
            fault: view.fault().map(fault).unwrap_or_default(),
            threads: threads.collect(),
            data_out: data_out.collect(),
            results: results.collect(),
            runtime: runtime.collect(),
            requests: BTreeMap::new(),
        };
        observed.count(requests);
        observed
    }

    /// Counts the requests of the nodes that are part of the result (P-20's precise faults).
    pub fn count(&mut self, requests: &[(usize, String)]) {
        let seen = self.results.len();
        self.requests.clear();
        for (_, content) in requests.iter().filter(|(node, _)| *node < seen) {
            *self.requests.entry(content.clone()).or_insert(0) += 1;
        }
    }

    /// The same without what a repeated or reused effect may change.
    #[must_use]
    pub fn without_requests(mut self) -> Self {
        self.requests.clear();
        self
    }

    /// The first difference, in words.
    ///
    /// # Errors
    /// The difference.
    pub fn same(&self, other: &Self, what: &str) -> Result<(), String> {
        if self == other {
            return Ok(());
        }
        let rows = |observed: &Self| match serde_json::to_value(observed) {
            Ok(Value::Object(rows)) => rows,
            _ => serde_json::Map::new(),
        };
        let (ours, theirs) = (rows(self), rows(other));
        let found = ours.iter().find(|(key, value)| theirs.get(*key) != Some(value));
        let (key, value) = found.map_or(("?", Value::Null), |(key, value)| (key.as_str(), value.clone()));
        let (left, right) = narrow(&value, theirs.get(key).unwrap_or(&Value::Null));
        Err(format!("{what}: `{key}` differs\n  expected {left}\n  found    {right}"))
    }
}

/// The first part in which two values differ.
fn narrow(left: &Value, right: &Value) -> (String, String) {
    match (left, right) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys());
            for key in keys {
                if a.get(key) != b.get(key) {
                    let (x, y) =
                        narrow(a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
                    return (format!("{key} → {x}"), format!("{key} → {y}"));
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for at in 0..a.len().max(b.len()) {
                if a.get(at) != b.get(at) {
                    let (x, y) = narrow(a.get(at).unwrap_or(&Value::Null), b.get(at).unwrap_or(&Value::Null));
                    return (format!("[{at}] → {x}"), format!("[{at}] → {y}"));
                }
            }
        }
        _ => {}
    }
    (left.to_string(), right.to_string())
}
