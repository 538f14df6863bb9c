//! The command line from outside: the built binary, its output and its exit codes.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod check;
#[cfg(test)]
mod config;

mod crowds;
#[cfg(test)]
mod doubt;
#[cfg(test)]
mod driven;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod endpoint;
#[cfg(test)]
mod follow;
#[cfg(test)]
mod fork;
#[cfg(test)]
mod isolation;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod library;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod names;
#[cfg(test)]
mod net;
#[cfg(test)]
mod network;
#[cfg(test)]
mod odd;
#[cfg(test)]
mod people;
#[cfg(test)]
mod printed;
#[cfg(test)]
mod providers;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod run;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod support;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod values;
#[cfg(test)]
mod variables;
#[cfg(test)]
mod ways;
