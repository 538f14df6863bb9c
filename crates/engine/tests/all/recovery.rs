//! Steps that fail and recover (D-14 … D-25), on graphs made by hand. Every run of these tests is also folded from
//! each of its prefixes, replayed from its inputs, and killed after each of its events ([`support::Run::check`]).

mod ahead;
mod calls;
mod finish;
mod forks;
mod kept;
mod ladder;
mod laws;
mod questions;
mod replans;
mod support;
mod tries;
