//! Tools of the program that Selvedge is a part of. They are called in its process, and nothing isolates them: whoever adds
//! one has written it.

use crate::failures::timed_out;
use crate::limits::ToolLimits;
use crate::store::sha256;
use selvedge_engine::{Effects, Failure, FaultKind, ToolDef, ToolRequest};
use selvedge_runtime::ports::Pending;
use serde_json::Value;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// A tool that is a function of the program.
#[derive(Clone)]
pub struct NativeTool {
    pub(crate) def: Arc<ToolDef>,
    call: Arc<dyn Fn(Value) -> Pending<Value> + Send + Sync>,
}

impl NativeTool {
    /// A tool of this name, which models are told `description` and the JSON Schema of its arguments. `version` is to change
    /// with what it does: a run that goes on after an update calls no other version than the one it began with.
    pub fn new<F, R>(name: &str, version: &str, description: &str, input_schema: Value, call: F) -> Self
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, String>> + Send + 'static,
    {
        let def = ToolDef {
            name: name.into(),
            description: description.into(),
            input_schema,
            output_params: None,
            effects: None,
            version: sha256(format!("selvedge native {name} {version}").as_bytes()).into(),
            source: "program".into(),
            timeout_s: None,
            approval: false,
        };
        let call = Arc::new(move |arguments| {
            let called = call(arguments);
            let failed = |why: String| Failure::permanent(FaultKind::ExecutionFailure, why);
            Box::pin(async move { called.await.map_err(failed) }) as Pending<Value>
        });
        Self { def: Arc::new(def), call }
    }

    /// The same with what it does to the world (E-22); what says nothing writes.
    #[must_use]
    pub fn with_effects(self, effects: Effects) -> Self {
        let def = ToolDef { effects: Some(effects), ..(*self.def).clone() };
        Self { def: Arc::new(def), ..self }
    }

    /// Whoever takes longer than a call may take is not waited for.
    pub(crate) async fn call(&self, request: &ToolRequest, limits: &ToolLimits) -> Result<Value, Failure> {
        let timeout = limits.timeout(request.timeout_s, None);
        match tokio::time::timeout(timeout, (self.call)(request.args.clone())).await {
            Ok(output) => output,
            Err(_) => Err(timed_out(&self.def.name, timeout)),
        }
    }
}

impl PartialEq for NativeTool {
    fn eq(&self, other: &Self) -> bool {
        self.def == other.def
    }
}

impl fmt::Debug for NativeTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NativeTool").field(&self.def.name).finish()
    }
}
