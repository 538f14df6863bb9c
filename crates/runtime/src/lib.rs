//! The driver: it feeds a run's [`State`](selvedge_engine::State), makes its events durable, and only then
//! dispatches the effects they request (E-04).
//!
//! The engine decides everything; this crate owns what the engine must not know: time, randomness, tasks,
//! files. A run is driven by [`Driver::drive`] until it ends, waits for a person, or is interrupted.

mod driver;
mod journal;
mod load;
pub mod ports;
mod stop;

pub use driver::{DriveError, Driver, Halt, Limits, Watcher};
pub use journal::Journal;
pub use load::{LoadError, Loaded, fold, graph_of, load};
pub use ports::{CallContext, Delta, Model, Pending, Tools, Watch};
pub use stop::Stop;
