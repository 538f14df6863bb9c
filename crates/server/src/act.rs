//! What changes something: a run is begun, told, ended or forked. What of it may be done twice is (S-07).

pub(crate) mod begin;
pub(crate) mod bodies;
pub(crate) mod check;
pub(crate) mod tell;
