//! tools of MCP servers, real ones from npm and one that misbehaves in every way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
#![allow(
    clippy::result_large_err,
    clippy::print_stderr,
    clippy::print_stdout,
    unreachable_pub,
    reason = "tests"
)]

mod cut_off;
mod hostile;
mod http;
mod loopback;
mod names;
mod overhead;
#[path = "../race/mod.rs"]
mod race;
mod real;
mod sessions;
mod support;
