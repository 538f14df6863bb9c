//! Runs as everybody who reports on one writes them, for machines: the objects of C-02 and C-15, and redacted texts (C-06).

mod asked;
mod events;
mod forecast;
mod node;
mod row;
mod rung;
mod said;
mod shown;
mod version;

pub use asked::asked;
pub use events::{event, events, name_of, with_head};
pub use forecast::{afresh, call_of, forecast};
pub use node::{Nodes, arguments, called, node, tool, tried};
pub use row::{failed_of, is_imported, row};
pub use rung::{rung, spent};
pub use said::{Said, said};
pub use shown::{escaped, redacted};
pub use version::{lives, version};

use crate::tools::tool_changed;
use crate::ways::{Output, WayOut};
use selvedge_engine::graph::{Act, Node};
use selvedge_engine::{Fault, FaultKind, Graph, RunStatus, Saved, State, StepResult, View, Warning};
use selvedge_runtime::report;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A run and what its state does not say.
pub struct RunReport<'a> {
    /// The run's id.
    pub run: &'a str,
    /// Its state.
    pub state: &'a State,
    /// Whether a scripted model answered (C-07).
    pub scripted: bool,
    /// What the checker said about its document.
    pub warnings: &'a [Warning],
    /// The graph it was started with, in which tools are as they were.
    pub graph: &'a Graph,
    /// False for a run that goes on by itself while no live process drives it (C-12).
    pub driven: bool,
    /// The time by which open questions may have expired (E-37); `None` for a moment in the past.
    pub now: Option<i64>,
}

/// The refused keys for which the ladder decided about a fault, and no model (D-18).
pub fn unasked(state: &State) -> impl Iterator<Item = &Fault> {
    state.unasked().iter().filter(|fault| is_refused_key(fault))
}

/// Whether a provider refused the key, which is a matter of configuration and not of the run (C-03, E-14).
pub fn is_refused_key(fault: &Fault) -> bool {
    fault.kind == FaultKind::ProviderError && matches!(http_status(fault), Some(401 | 403))
}

/// The status of HTTP that led to a fault.
pub fn http_status(fault: &Fault) -> Option<u64> {
    // Google's word for a wrong key is 400; `means` says what it stands for.
    let field = |name: &str| fault.cause.as_ref()?.get(name)?.as_u64();
    field("means").or_else(|| field("status"))
}

impl RunReport<'_> {
    /// C-02's object, keys in its order.
    pub fn json(&self) -> Value {
        let view = self.state.view();
        let threads: Map<String, Value> =
            view.threads().map(|(name, thread)| (name.to_string(), json!(thread))).collect();
        let results: Map<String, Value> =
            view.results().map(|result| (result.name.to_string(), self.result(&result))).collect();
        self.object([threads.into(), data_out(view), results.into()])
    }

    /// The same without what grows with the run: `threads`, `data_out` and `results` are null.
    pub fn brief(&self) -> Value {
        self.object([Value::Null, Value::Null, Value::Null])
    }

    fn object(&self, [threads, data_out, results]: [Value; 3]) -> Value {
        let view = self.state.view();
        let mut object = json!({
            "run_id": self.run,
            "status": view.status(),
            "output": view.output(),
            "fault": view.fault().map(|fault| report::fault(self.state, fault)),
            "threads": threads,
            "data_out": data_out,
            "results": results,
            "metadata": metadata(self.state.initial(), view),
            "joins": report::joins(self.state, view),
            "asks": self.asks(),
            "scripted": self.scripted,
            "warnings": self.warnings(),
            "usage": selvedge_runtime::usage(self.state),
        });
        if let (Some(tools), Some(fields)) = (self.tools_of_agent(), object.as_object_mut()) {
            fields.insert("tools".to_owned(), tools);
        }
        // Of a run that began anew: what it did not have to ask for again (E-29).
        let saved = self.state.saved();
        if let Some(fields) = object.as_object_mut().filter(|_| saved != Saved::default()) {
            fields.insert("saved".to_owned(), saved_json(&saved));
        }
        object
    }

    /// What became of the tools of an agent's task: the answer of the operation that ended it.
    fn tools_of_agent(&self) -> Option<Value> {
        let end = selvedge_dialects::agent::operations::end();
        let calls = |node: &&Node| {
            let mut acts = node.body.leaves.values().map(|leaf| &leaf.act);
            acts.any(|act| matches!(act, Act::Call(call) if call.tool == end.name))
        };
        let node = self.state.graph().nodes.values().find(calls)?;
        let ended = self.state.view().results().find(|result| *result.name == *node.id)?;
        ended.output.get("tools").cloned()
    }

    fn result(&self, result: &StepResult<'_>) -> Value {
        let mut object = json!(result);
        if let (Some(fault), Some(fields)) = (result.error, object.as_object_mut()) {
            fields.insert("error".to_owned(), report::fault(self.state, fault));
        }
        object
    }

    /// Open asks (E-21); those of a run that ended are open no more.
    fn asks(&self) -> Vec<Value> {
        if self.state.ended().is_some() {
            return Vec::new();
        }
        let asks = self.state.asks().iter();
        asks.map(|(id, ask)| Value::Object(asked(self.state, id, ask, self.now))).collect()
    }

    /// The checker's warnings, the run's own, tools that changed, a driver that died.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut all = self.warnings.to_vec();
        all.extend(self.state.warnings().iter().cloned());
        all.extend(unasked(self.state).map(|fault| Warning {
            code: "key-refused".into(),
            message: format!(
                "the provider refused the key, so no model was asked what to do about the fault: {}",
                fault.message
            ),
            node: fault.node.clone(),
        }));
        if self.state.ended().is_some() {
            all.extend(self.state.untaken_messages().map(|message| Warning {
                code: "message-not-taken".into(),
                message: format!("the run has ended, and nobody has taken this message: {}", message.text),
                node: None,
            }));
        }
        all.extend(changed_tools(self.graph, self.state.graph()));
        if !self.driven && self.state.status() == RunStatus::Running {
            let message =
                format!("no process drives the run; `{}` goes on with it", WayOut::Resume(self.run));
            all.push(Warning { code: "not_driven".into(), message, node: None });
        }
        if let Some((ask, declined)) = self.state.declined() {
            let answer = |said, output| WayOut::Answer { run: self.run, ask, said, output };
            let message = format!(
                "nobody knows whether `{}` happened, and somebody has said no to running it again: a resume changes nothing; \
                 `{}` says that it happened, `{}` runs it after all",
                declined.call.name,
                answer("done", Output::Any),
                answer("yes", Output::None)
            );
            all.push(Warning { code: "write-in-doubt".into(), message, node: Some(declined.node.clone()) });
        }
        for node in all.iter_mut().filter_map(|warning| warning.node.as_mut()) {
            *node = self.state.report_name(node).into_owned().into();
        }
        // A resumed run may come by the same place again.
        let mut seen = BTreeSet::new();
        all.retain(|w| seen.insert((w.code.clone(), w.message.clone(), w.node.clone())));
        all
    }
}

/// What was published (P-18).
fn data_out(view: View<'_>) -> Value {
    let rows = view.data_out().into_iter().map(|row| {
        let object = json!({
            "node": row.node,
            "node_type": row.publication.label,
            "description": row.publication.description,
            "content": row.publication.content,
        });
        (row.thread.to_string(), object)
    });
    Value::Object(rows.collect())
}

/// Both layers of metadata (D-01, D-02), and which values of the second are of an iteration or a path that goes on (D-26).
fn metadata(initial: &Map<String, Value>, view: View<'_>) -> Value {
    let known = view.runtime();
    let live = known.iter().filter_map(|(name, known)| Some((name.to_string(), json!(known.live.as_ref()?))));
    let live: Map<String, Value> = live.collect();
    let runtime = known.iter().map(|(name, known)| (name.to_string(), known.value.clone()));
    let runtime: Map<String, Value> = runtime.collect();
    if live.is_empty() {
        return json!({"initial": initial, "runtime": runtime});
    }
    json!({"initial": initial, "runtime": runtime, "live": live})
}

/// Tools that a resume or a fork took in a version other than the one the run began with (P-21).
fn changed_tools(before: &Graph, now: &Graph) -> Vec<Warning> {
    let changed = before.tools.iter().filter_map(|(name, old)| {
        let new = now.tools.get(name).filter(|new| new.version != old.version)?;
        Some(tool_changed(name, &old.version, &new.version))
    });
    changed.collect()
}

/// What was saved (E-29): the shape of C-02's usage, and the time of the calls.
pub fn saved_json(saved: &Saved) -> Value {
    let mut object = report::used(&saved.usage);
    if let Some(fields) = object.as_object_mut() {
        fields.insert("worked_ms".to_owned(), saved.worked_ms.into());
    }
    object
}
