//! The run of a batch (V): its tasks, each a run of its own (E-39), at the same time; then what they have made becomes part of the library, and
//! all of it is measured. It has no document: whoever evolves a library puts it together.

mod batch;
pub mod operations;
pub mod optimise;

pub use batch::{BATCH, Score, TASK, TASKS, batch};
pub use optimise::{Clustering, Merging, Optimise, optimise};
