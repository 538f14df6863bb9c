//! Spans of a drive: ids, and nothing of what is said.

use selvedge_engine::{Failure, FaultKind, Graph, Input, ModelReply, ModelRequest, State, ToolRequest};
use selvedge_runtime::{CallContext, Controls, Driver, Journal, Limits, Model, Pending, Tools};
use serde_json::Value;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Fails once, and then answers, within whatever span that is.
struct Flaky(AtomicU64);
impl Model for Flaky {
    fn call(&self, _: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        let first = self.0.fetch_add(1, Ordering::Relaxed) == 0;
        Box::pin(async move {
            tracing::info!(target: "spans", "called");
            match first {
                true => Err(Failure::transient(FaultKind::ProviderError, "a SECRET failure")),
                false => Ok(ModelReply { text: "a SECRET reply".into(), ..ModelReply::default() }),
            }
        })
    }
}

struct NoTools;
impl Tools for NoTools {
    fn call(&self, _: ToolRequest, _: CallContext) -> Pending<Value> {
        panic!("no tool is called")
    }
}

/// Writes down what it is told.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<(Vec<String>, Vec<u64>)>>);

struct Fields(String);
impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("selvedge_runtime") || metadata.target() == "spans"
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(span.metadata().name().to_owned());
        span.record(&mut fields);
        let mut notes = self.0.lock().unwrap();
        let parent = span.parent().map_or(0, Id::into_u64);
        notes.0.push(format!("{parent} > {}", fields.0));
        Id::from_u64(notes.0.len() as u64)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut notes = self.0.lock().unwrap();
        let within = notes.1.last().copied();
        let name = event.metadata().target().to_owned();
        notes.0.push(format!("event {name} in {within:?}"));
    }
    fn enter(&self, span: &Id) {
        self.0.lock().unwrap().1.push(span.into_u64());
    }
    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().1.pop();
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_hears_of_run_node_and_attempts_by_their_ids() {
    let graph = r#"{
        "threads": [{"name": "main", "first": "a SECRET task"}],
        "nodes": [{"id": "n1", "name": "SECRET", "body": {"thread": 0, "leaves": [{"name": "model", "act": {"infer": {}}}]}}],
        "tools": {}}"#;
    let graph: Graph = serde_json::from_str(graph).unwrap();
    let notes = Notes::default();
    let _on = tracing::subscriber::set_default(notes.clone());
    let driver = Driver::new(Arc::new(Flaky(AtomicU64::new(0))), Arc::new(NoTools), Limits::default());
    let (mut state, mut journal) = (State::new(Arc::new(graph)), Journal::Memory(Vec::new()));
    let start = vec![Input::Start(Box::default())];
    driver.drive("r1", &mut state, &mut journal, start, &mut Controls::default()).await.unwrap();
    let (noted, open) = notes.0.lock().unwrap().clone();
    let spans: Vec<&String> = noted.iter().filter(|note| !note.starts_with("event")).collect();
    assert_eq!(
        spans,
        [
            r#"0 > run run="r1""#,
            r#"1 > node node="n1""#,
            r#"2 > effect effect="n1/model/1/1" attempt=1"#,
            r#"2 > effect effect="n1/model/1/2" attempt=2"#,
        ]
    );
    assert!(noted.iter().all(|note| !note.contains("SECRET")) && open.is_empty(), "{noted:?}");
}
