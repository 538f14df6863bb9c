//! What a command line, a server and a program that embeds Selvedge share.
//!
//! This crate reads neither environment nor terminal: both are handed in by whoever uses it, as an [`Environment`] and an
//! [`Observer`]. Its errors have a kind, a place and a way out, and no exit code. A program that runs a document:
//!
//! ```
//! use selvedge_host::{Environment, Host, RunOptions};
//! use selvedge_runtime::Controls;
//! use std::fs;
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let folder = tempfile::tempdir()?;
//!     let (plan, script) = (folder.path().join("plan.json"), folder.path().join("replies.yaml"));
//!     fs::write(&plan, r#"{"task": "Greet.", "nodes": [{"node_type": "llm-first", "node_name": "Greet",
//!         "thread_id": "main", "task_prompt": "Greet the world."}]}"#)?;
//!     fs::write(&script, "- reply: {text: Hello world.}\n")?;
//!
//!     let environment = Environment::new([], folder.path().to_owned());
//!     let host = Host::new(environment).in_state_dir(Some(&folder.path().join("state")));
//!     let options = RunOptions { script: Some(script), cwd: folder.path().to_owned(), ..RunOptions::default() };
//!     let mut run = host.run(&plan, options).await?;
//!     run.drive(&mut Controls::default()).await?;
//!     println!("{}", run.state.view().output());
//!     # assert_eq!(*run.state.view().output(), "Hello world.");
//!     Ok(())
//! }
//! ```
//!
//! `examples/tool.rs` of this crate adds a tool that is written in Rust, `examples/person.rs` asks a person, goes on with the
//! answer and forks the run.
//!
//! - [`Host`]: what is asked for comes from [`Host::read`] (a document), [`Host::take_up`] (a run that goes on) or
//!   [`Host::source`] (a fork); [`Host::prepare`] finds what it needs, and [`Host::begin`] gives the one thing that is driven, a
//!   [`Begun`]. [`Host::run`], [`Host::resume`] and [`Host::fork`] are all of that at once. Who forks one run often folds it
//!   once ([`Host::forkable`], [`Host::fork_of`]).
//! - [`Host::load`] and [`Host::lock`] are runs as they stand, [`Host::answer`] and [`Host::cancel`] reach them whoever drives
//!   them; [`asks`] says what a person is asked. [`Host::check`] is what is found about a document that is not run.
//! - [`config`], [`options`]: what is configured and chosen, from weakest to strongest (C-06).
//! - [`trust`]: what of a project's configuration counts only where a person trusts it (C-20).
//! - [`prepare`], [`compose`]: from a document to what a run needs and can fail, and to its driver.
//! - [`models`]: which models answer a run's requests. [`tools`]: which tools there are, and what they may do.
//!   [`library`]: the tool library, and calls that are recorded and repeated.
//! - [`secrets`]: keys, which nothing shows or keeps.
//! - [`places`], [`stores`]: folders and files outside of documents. [`killed`]: what tools have left whose Selvedge was killed.
//! - [`ways`]: what an error or a warning says can be done next, for which a program has its own words.
//! - [`archive`]: a run in one file, for another state folder.
//! - [`Host::simulated`]: a document in a simulated world, where nothing real is called and nothing recorded (C-18).
//! - [`child`]: what begins runs for a run, in this process or, with [`workers`], in others.
//! - [`evolve`]: what the batches of an evolution came to, and what a tool is worth.
//! - [`report`]: runs as everybody who reports on one writes them, for machines (C-02, C-15).
//! - [`timeline`]: what happened in a run and when, by node: one projection of its events.
//!   [`explain`]: whom nodes waited for, and why. [`diff`]: what two runs have in common, and what differs.

#![allow(clippy::result_large_err, reason = "errors end what was asked for, and are rare")]

pub mod answer;
pub mod archive;
pub mod asks;
mod begin;
mod begun;
mod cancelled;
mod check;
pub mod child;
mod children;
mod closed;
mod coders;
pub mod compose;
pub mod config;
mod defined;
pub mod diff;
mod document_files;
pub mod environment;
pub mod error;
pub mod evolve;
pub mod explain;
mod fork;
mod give;
mod host;
pub mod ids;
pub mod killed;
pub mod library;
mod message;
pub mod models;
mod new_file;
pub mod observer;
pub mod options;
pub mod places;
pub mod prepare;
mod ready;
mod recorded;
pub mod report;
mod resume;
pub mod reused;
pub mod secrets;
mod simulate;
pub mod stores;
pub mod text;
pub mod time;
pub mod timeline;
mod tokens;
pub mod tools;
pub mod trust;
pub mod ways;
pub mod workers;

pub use answer::Answer;
pub use begun::{Begun, ForkedFrom};
pub use check::{Check, Checked};
pub use config::Config;
pub use defined::{Defined, Definitions};
pub use environment::Environment;
pub use error::{Error, ErrorKind};
pub use fork::{DryRun, ForkOptions, Forkable};
pub use give::Given;
pub use host::Host;
pub use new_file::NewFile;
pub use observer::Observer;
pub use options::RunOptions;
pub use ready::{Asked, Composed, Ready};
pub use recorded::{LockedRun, RecordedRun, can_resume};
pub use selvedge_tools::NativeTool;
pub use simulate::{Simulated, Simulation};
pub use ways::WayOut;
