//! Plans: nodes on threads (rules `P`).
//!
//! [`read`] makes a typed [`PlanDoc`] of a document's JSON and checks every rule that can be checked without
//! looking from one node to another, unique ids apart. What needs the whole graph (threads, placeholders) is
//! checked later, on the `PlanDoc`, with the places that it keeps.

mod doc;
mod inputs;
mod names;
mod read;
mod read_node;
mod shapes;
mod slice;

pub use doc::{
    Budget, Given, Input, InputType, ModelSettings, NodeKind, OnError, Origin, PlanDoc, PlanNode, Retry,
    ToolEffects, ToolLimit,
};
pub use inputs::initial_metadata;
pub use names::is_nameable;
pub use read::read;
pub use slice::Slice;

#[cfg(test)]
mod tests;
