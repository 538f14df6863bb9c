//! Evolution of a tool library over the tasks of a data set (V): what a task's run comes to, how its prediction is held against the answer, what
//! each batch came to, and what a tool was worth.

pub(crate) mod measure;
pub mod measures;
pub mod report;
pub mod score;
mod shares;
pub mod statistics;
pub(crate) mod task;
