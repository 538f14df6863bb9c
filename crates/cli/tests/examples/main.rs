//! The examples run to their end as their READMEs say, with the scripted replies in place of a model.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "clippy knows test functions, but not their helpers"
)]

mod docs;
mod plans;
mod steps;
mod tools;
mod workflows;
mod world;
