//! The self-evolving agent (A): a manager that decides which tools are needed, coders that write them, an executor that works with them
//! and has failing ones mended, a judge, and an integrator. All of it is a graph of flow frames.

pub mod operations;
pub mod prompts;
pub mod schemas;
