//! The driver: ports to models and tools, limits, cancellation, group commit.

pub mod ports;
pub use ports::{CallContext, Delta, Model, Pending, Tools, Watch};
