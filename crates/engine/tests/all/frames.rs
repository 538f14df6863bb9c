//! Frames: flows, forks and their joins, loops and subgraphs (E-34 … E-38).

mod asks;
mod bindings;
mod budgets;
mod control;
mod edits;
mod elements;
mod ends;
mod expressions;
mod forks;
mod in_place;
mod joins;
mod laws;
mod memory;
mod operations;
mod rounds;
mod timers;
mod world;
