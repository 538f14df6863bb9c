//! Evolution in batches (V): the tasks of a data set, each a run of its own, in batches that are runs; predictions, measures and the library are
//! projections of these runs.
//!
//! - [`dataset`]: a file of tasks, checked as a whole before anything runs, and read line by line.
//! - [`evaluation`]: the same tasks with and without a tool, or with two libraries.
//! - [`projections`]: the folder of what came of it, which can always be made anew from the runs.
//! - [`evolution`]: batch after batch, from wherever an earlier process has left it.

#![allow(clippy::result_large_err, reason = "errors end what was asked for, and are rare")]

mod arrivals;
mod checked;
pub mod dataset;
pub mod evaluation;
pub mod evolution;
mod key;
pub mod projections;
mod standing;

pub use checked::Checked;
pub use dataset::{DataSet, Part, Task};
pub use evaluation::{Compared, Evaluated, Evaluation};
pub use evolution::{Evolution, Prepared};
pub use key::Key;
pub use standing::{Heard, Standing, Stopped, Summary};
