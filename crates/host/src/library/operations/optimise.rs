//! What the graph of an optimisation asks of the tool library (V-05 … V-10), as operations: what they are given and what they answer is in
//! `selvedge_dialects::evolve::optimise::operations`.

mod blocks;
mod candidate;
mod clusters;
mod collect;
mod evidence;
mod members;
mod publish;
mod regress;

pub(super) use clusters::clusters;
pub(super) use collect::collect;
pub(super) use members::members;
pub(super) use publish::publish;
pub(super) use regress::{regress, weigh};
