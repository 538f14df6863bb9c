//! The command line from outside, the built binary: in one program, as each costs seconds of linking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod commands;
mod examples;
mod inspect;
mod net;
mod operations;
mod page;
mod serve;
mod support;
