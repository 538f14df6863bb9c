//! What a command line, a server and a program that embeds Selvedge share.
//!
//! This crate reads neither environment nor terminal: both are handed in by whoever uses it.
