//! The `selvedge` binary: the command line (rules `C`).
//!
//! - [`args`]: what can be written on the command line; [`commands`]: what each command does.
//! - [`config`], [`environment`], [`chosen`]: what is configured, from weakest to strongest (C-06).
//! - [`trust`]: what of a project's configuration counts only where a person trusts it (C-20).
//! - [`setup`], [`models`], [`places`]: the composition: store, models, tools, driver.
//! - [`drive`]: one run driven to its end, with [`signals`], [`approvals`], and [`progress`] or, on a terminal, the [`live`] view.
//! - [`look`]: the commands that drive no run: runs, show, explain, replay, export, graph, schema, init, models,
//!   doctor, completions, help.
//! - [`killed`]: what tools have left whose Selvedge was killed.
//! - [`output`], [`asks`], [`ways`], [`failure`], [`hints`], [`ui`], [`secrets`]: what is printed, and the exit codes (C-02 to C-04, C-06).

#![allow(clippy::result_large_err, reason = "failures end the process and are rare")]

mod approvals;
mod args;
mod asks;
mod chosen;
mod commands;
mod config;
mod drive;
mod environment;
mod failure;
mod hints;
mod killed;
mod live;
mod look;
mod models;
mod nodes;
mod output;
mod places;
mod printed;
mod progress;
mod recovery;
mod secrets;
mod setup;
mod signals;
mod trust;
mod ui;
mod ways;

use std::process::ExitCode;

fn main() -> ExitCode {
    // What tools are started with: it sets up the rest of their sandbox and becomes the tool.
    #[cfg(target_os = "linux")]
    if std::env::args_os().nth(1).is_some_and(|word| word == setup::CONFINE) {
        return selvedge_sandbox::isolation::confine::main(std::env::args_os().skip(2));
    }
    failure::report_panics();
    ExitCode::from(std::panic::catch_unwind(commands::main).unwrap_or(failure::Exit::Internal) as u8)
}
