//! The machine from outside: in one program, as each costs seconds of linking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod expressions;
mod fork;
mod frames;
mod machine;
mod recovery;
mod resolver_props;
mod schedule;
mod template_props;
