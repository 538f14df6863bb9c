//! Models, over a real socket on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unused_async,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::result_large_err,
    unreachable_pub,
    reason = "tests"
)]

mod alike;
mod anthropic;
mod characters;
mod cut_off;
mod faults;
mod gemini;
mod providers;
#[path = "../../../runtime/tests/support/race.rs"]
mod race;
mod replies;
mod requests;
mod responses;
mod scripted;
mod support;
