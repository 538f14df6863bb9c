//! The `selvedge` binary: the command line (rules `C`).
//!
//! - [`cli`], [`args`]: what can be written on the command line; [`commands`]: what each command does.
//! - [`options`]: what of it a run is started with. What is configured, trusted and there is `selvedge_host`'s to find out, as is how a run is prepared.
//! - [`ui`], [`block_on`]: what a command hands to the host, and its async code run to the end.
//! - [`drive`]: one run driven to its end, with [`signals`], [`questions`], and who looks on, [`watched`]: [`progress`] and, on a terminal, the [`live`] view.
//! - [`inspect`]: the commands that drive no run: runs, show, explain, replay, export, graph, schema, init, models,
//!   doctor, completions, help.
//! - [`output`], [`asks`], [`ways`], [`words`], [`failure`], [`ui`]: what is printed, and the exit codes (C-02 to C-04, C-06).

#![allow(clippy::result_large_err, reason = "failures end the process and are rare")]

mod afresh;
mod args;
mod asks;
mod block_on;
mod cli;
mod commands;
mod drive;
mod durations;
mod failure;
mod frames;
mod how_far;
mod inspect;
mod live;
mod names;
mod nodes;
mod options;
mod output;
mod printed;
mod progress;
mod questions;
mod recovery;
mod signals;
mod status;
mod ui;
mod watched;
mod ways;
mod words;

use std::process::ExitCode;

/// Runs allocate on one thread and free on another, which the C library's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // What tools are started with: it sets up the rest of their sandbox and becomes the tool.
    #[cfg(target_os = "linux")]
    if std::env::args_os().nth(1).is_some_and(|word| word == commands::CONFINE) {
        return selvedge_sandbox::isolation::confine::main(std::env::args_os().skip(2));
    }
    failure::report_panics();
    ExitCode::from(std::panic::catch_unwind(commands::main).unwrap_or(failure::Exit::Internal) as u8)
}
