//! Tools, called as a run calls them: in one program, as each costs seconds of linking.
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

mod builtin;
mod catalogue;
mod coder;
mod codex;
mod cut_off;
mod hostile;
mod library;
mod lies;
mod many;
mod mcp;
mod modern;
mod python;
#[path = "../../../runtime/tests/support/race.rs"]
mod race;
mod supervised;
mod warm;
mod world;
