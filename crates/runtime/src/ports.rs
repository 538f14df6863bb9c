//! What the driver needs from the outside: models and tools, each behind one door.

use selvedge_engine::{Failure, ModelReply, ModelRequest, ToolRequest};
use serde_json::Value;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A future of a port: dropping it cancels the call, down to the last child process (E-13).
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;

/// What a call may say to watchers while it goes on (E-15): never journaled, never steering.
#[derive(Clone, Debug)]
pub enum Delta {
    /// A piece of the reply's text.
    Text(String),
    /// A line of a tool's own progress.
    Progress(String),
}

/// Where deltas go.
pub type Watch = Arc<dyn Fn(Delta) + Send + Sync>;

/// The circumstances of one call.
#[derive(Clone)]
pub struct CallContext {
    /// The run that calls.
    pub run: Arc<str>,
    /// Where deltas go, if anybody watches.
    pub watch: Option<Watch>,
}

/// The one way to call a model. One implementation serves all roles of a run.
pub trait Model: Send + Sync {
    /// Starts a call. It is invoked in the order of the run's requests; the work happens in the future.
    ///
    /// A failure says by [`Failure::transient`] whether E-14's attempts go on; the adapter itself never retries.
    fn call(&self, request: ModelRequest, context: CallContext) -> Pending<ModelReply>;

    /// A request that this run made in an earlier process and that came to an end (C-07's `nth` counts them).
    fn recorded(&self, request: &ModelRequest, run: &str) {
        let _ = (request, run);
    }
}

/// The one way to call a tool. One implementation serves all tools of a run.
pub trait Tools: Send + Sync {
    /// Starts a call; the output is the tool's JSON value (E-25).
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<Value>;
}
