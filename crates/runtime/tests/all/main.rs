//! The driver, with ports and stores of tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod clock;
mod cut_off;
mod driver;
mod fork;
mod inputs;
mod operations;
mod spans;
