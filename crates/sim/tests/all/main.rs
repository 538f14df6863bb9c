//! What holds for the whole: properties over many seeds, corpora, snapshots, and the code base's own invariants.

mod agents;
mod corpora;
mod properties;
mod simulated;
mod snapshots;
mod tasks;
mod tidy;
mod workflows;
