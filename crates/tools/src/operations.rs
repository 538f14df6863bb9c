//! The operations of a run by name, behind their one door (E-40).

use selvedge_engine::{Failure, FaultKind, Operated, ToolRequest};
use selvedge_runtime::ports::{CallContext, Operations, Pending};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A function of an operation's arguments: it changes nothing, and holds up nobody.
pub type Compute = Arc<dyn Fn(&Value) -> Value + Send + Sync>;

/// What does an operation.
pub type Operate = Arc<dyn Fn(ToolRequest, CallContext) -> Pending<Operated> + Send + Sync>;

/// Operations by name.
#[derive(Clone, Default)]
pub struct OwnOperations {
    by_name: BTreeMap<Arc<str>, Operate>,
}

impl OwnOperations {
    /// One more.
    #[must_use]
    pub fn with(mut self, name: &Arc<str>, operate: Operate) -> Self {
        self.by_name.insert(name.clone(), operate);
        self
    }

    /// One more, which only computes: that no task that others share a thread with may do for long.
    #[must_use]
    pub fn with_computed(self, name: &Arc<str>, compute: Compute) -> Self {
        let operate = move |request: ToolRequest, _| -> Pending<Operated> {
            let compute = compute.clone();
            Box::pin(aside(move || Ok(compute(&request.args).into())))
        };
        self.with(name, Arc::new(operate))
    }
}

/// Does what takes its time on a thread of its own.
///
/// # Errors
/// Those of `work`, and `Cancelled` where the process ends.
pub async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await.map_err(tokio::task::JoinError::try_into_panic) {
        Ok(done) => done,
        // It is a bug of the run that asked (E-17).
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => Err(Failure::permanent(FaultKind::Cancelled, "the process ends").unsent()),
    }
}

impl Operations for OwnOperations {
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<Operated> {
        if let Some(operate) = self.by_name.get(&request.tool.name) {
            return operate(request, context);
        }
        let message = format!("there is no operation `{}`", request.tool.name);
        Box::pin(async move { Err(Failure::permanent(FaultKind::UnknownTool, message).unsent()) })
    }
}
