//! Evolution of a tool library over the tasks of a data set (V): what each batch came to, and what a tool was worth.

pub mod measures;
pub mod report;
pub mod statistics;
