//! Ports that answer at once, so that only the machine is measured.

use selvedge_engine::{Effects, ModelReply, ModelRequest, ToolDef, ToolRequest};
use selvedge_runtime::{CallContext, Model, Pending, Tools};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Answers with the number of messages it was sent.
pub(crate) struct Echo;

impl Model for Echo {
    fn call(&self, request: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        let text = format!("h:{}", request.messages.len());
        Box::pin(async move { Ok(ModelReply { text, ..ModelReply::default() }) })
    }
}

/// Answers with 100 bytes.
pub(crate) struct Hundred;

impl Tools for Hundred {
    fn call(&self, _: ToolRequest, _: CallContext) -> Pending<Value> {
        Box::pin(async { Ok(json!({ "text": "x".repeat(86) })) })
    }
}

/// Takes 20 ms on a thread of its own, exactly: a timer of the runtime would add up to 2 ms. Its output is the time it
/// took, in milliseconds.
pub(crate) struct Twenty;

impl Tools for Twenty {
    fn call(&self, _: ToolRequest, _: CallContext) -> Pending<Value> {
        Box::pin(async {
            let start = Instant::now();
            let work = tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(20)));
            // It fails only when the process is being shut down.
            drop(work.await);
            Ok(json!({ "text": start.elapsed().as_secs_f64() * 1e3 }))
        })
    }
}

/// The tool that plans of this bench name.
pub(crate) fn tool(name: &str) -> Arc<ToolDef> {
    Arc::new(ToolDef {
        name: name.into(),
        description: "bench".into(),
        input_schema: json!({ "type": "object" }),
        output_params: Some(["text"].into()),
        effects: Some(Effects::Pure),
        version: "1".into(),
        source: "bench".into(),
        timeout_s: None,
        approval: false,
    })
}

/// A source of any tool.
pub(crate) struct AnyTool;

impl selvedge_dialects::ToolSource for AnyTool {
    fn def(&self, name: &str) -> Option<Arc<ToolDef>> {
        Some(tool(name))
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}
