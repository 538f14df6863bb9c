//! Operations that compute from the tools there are (E-40).

use super::Catalogue;
use selvedge_engine::{Failure, FaultKind, Operated, ToolRequest};
use selvedge_runtime::ports::{CallContext, Operations, Pending};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A function of the tools there are and the arguments.
pub type Compute = Arc<dyn Fn(&Catalogue, &Value) -> Value + Send + Sync>;

/// Operations by name that compute from the tools of a run.
#[derive(Clone)]
pub struct Computations {
    catalogue: Catalogue,
    by_name: BTreeMap<Arc<str>, Compute>,
}

impl Computations {
    /// None yet, over these tools.
    pub fn over(catalogue: Catalogue) -> Self {
        Self { catalogue, by_name: BTreeMap::new() }
    }

    /// One more.
    #[must_use]
    pub fn with(mut self, name: &Arc<str>, compute: Compute) -> Self {
        self.by_name.insert(name.clone(), compute);
        self
    }
}

impl Operations for Computations {
    /// It computes, which no task that others share a thread with may do for long.
    fn call(&self, request: ToolRequest, _: CallContext) -> Pending<Operated> {
        let known = self.by_name.get(&request.tool.name).cloned();
        let catalogue = self.catalogue.clone();
        Box::pin(async move {
            let Some(compute) = known else {
                let message = format!("there is no operation `{}`", request.tool.name);
                return Err(Failure::permanent(FaultKind::UnknownTool, message).unsent());
            };
            let computed = tokio::task::spawn_blocking(move || compute(&catalogue, &request.args)).await;
            match computed.map_err(tokio::task::JoinError::try_into_panic) {
                Ok(output) => Ok(output.into()),
                // It is a bug of the run that asked (E-17).
                Err(Ok(panic)) => std::panic::resume_unwind(panic),
                Err(Err(_)) => Err(Failure::permanent(FaultKind::Cancelled, "the process ends").unsent()),
            }
        })
    }
}
