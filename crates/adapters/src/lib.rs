//! Models and tools behind the runtime's ports.

pub mod http;
pub mod models;
pub mod tools;
