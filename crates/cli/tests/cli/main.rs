//! The command line from outside: the built binary, its output and its exit codes.

mod calls;
mod check;
mod config;
mod endpoint;
mod people;
mod recovery;
mod run;
mod support;
