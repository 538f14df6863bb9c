//! The driver: it feeds a run's [`State`](selvedge_engine::State), makes its events durable, and only then
//! dispatches the effects they request (E-04).
//!
//! The engine decides everything; this crate owns what the engine must not know: time, randomness, tasks,
//! files. A run is driven by [`Driver::drive`] until it ends, waits for a person, or is interrupted; [`Driver::driven`] does so
//! for a task of its own, and gives a [`RunHandle`] to it.
//!
//! # Example
//! ```
//! use selvedge_engine::{Failure, FaultKind, Graph, Input, ModelReply, ModelRequest, State, ToolRequest};
//! use selvedge_runtime::{CallContext, Controls, Driver, Halt, Journal, Limits, Model, Pending, Tools};
//! use std::sync::Arc;
//!
//! struct Parrot;
//! impl Model for Parrot {
//!     fn call(&self, request: ModelRequest, _: CallContext) -> Pending<ModelReply> {
//!         let text = request.messages.last().map(|message| message.content.to_string());
//!         Box::pin(async move { Ok(ModelReply { text: text.unwrap_or_default(), ..ModelReply::default() }) })
//!     }
//! }
//! struct NoTools;
//! impl Tools for NoTools {
//!     fn call(&self, _: ToolRequest, _: CallContext) -> Pending<serde_json::Value> {
//!         Box::pin(async { Err(Failure::permanent(FaultKind::UnknownTool, "there are no tools")) })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let graph: Graph = serde_json::from_str(r#"{
//!     "threads": [{"name": "main", "first": "hello"}],
//!     "nodes": [{"id": "n1", "name": "echo", "body": {"thread": 0, "leaves": [
//!         {"name": "model", "act": {"infer": {}}}]}}],
//!     "tools": {}}"#)?;
//! let mut state = State::new(Arc::new(graph));
//! let mut journal = Journal::Memory(Vec::new());
//! let driver = Driver::new(Arc::new(Parrot), Arc::new(NoTools), Limits::default());
//! let start = vec![Input::Start(Box::default())];
//! let halt = driver.drive("r1", &mut state, &mut journal, start, &mut Controls::default()).await?;
//! assert_eq!((halt, state.view().output()), (Halt::Ended, &"hello".into()));
//! # Ok(())
//! # }
//! ```

mod ahead;
mod blocking;
mod clock;
mod command;
mod count;
mod driver;
mod flight;
mod graphs;
mod handle;
mod journal;
mod load;
pub mod ports;
mod reading;
mod recorded;
mod replay;
pub mod report;
mod send_command;
mod stop;

pub use clock::{Clock, SystemClock};
pub use command::{Command, Refusal};
pub use count::Count;
pub use driver::{DriveError, Driver, Halt, Limits, Watcher};
pub use graphs::graph_to_store;
pub use handle::{Controls, Driven, EventBatch, Events, RunHandle};
pub use journal::{Journal, standing};
pub use load::{Loaded, load};
pub use ports::{
    CallContext, Delta, Model, Operations, Pending, Printing, Stream, Tools, Trouble, Unanswered, Watch,
};
pub use reading::{Reading, past};
pub use recorded::{LoadError, beginning, graph_of, recorded};
pub use replay::{Divergence, Replayed, replay, replay_from};
pub use report::usage;
pub use send_command::send_command;
pub use stop::Stop;
