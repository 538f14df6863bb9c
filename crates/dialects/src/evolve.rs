//! The run of a batch (V): what its tasks have made becomes part of the library.

pub mod optimise;

pub use optimise::{Clustering, Merging, Optimise, optimise};
