//! The simulator for workflows: random ones of every node type that has landed, an outside that fails and people who
//! refuse, and a reference that runs one block after another and copies whatever a path, an iteration or a subgraph
//! begins with (W-01 … W-13, E-09, E-21, E-34).
//!
//! Workflows go through the same doors as a user's: the document is read, checked and lowered by the dialect.

pub mod block;
pub mod document;
pub mod driver;
pub mod forks;
pub mod generate;
pub mod properties;
pub mod reference;
pub mod world;
