//! What a command line, a server and a program that embeds Selvedge share.
//!
//! This crate reads neither environment nor terminal: both are handed in by whoever uses it, as an [`Environment`] and an
//! [`Observer`].
//!
//! - [`config`], [`options`]: what is configured and chosen, from weakest to strongest (C-06).
//! - [`trust`]: what of a project's configuration counts only where a person trusts it (C-20).
//! - [`models`]: which models answer a run's requests. [`secrets`]: keys, which nothing shows or keeps.
//! - [`timeline`]: what happened in a run and when, by node: one projection of its events.
//! - [`places`]: folders and files outside of documents. [`killed`]: what tools have left whose Selvedge was killed.

#![allow(clippy::result_large_err, reason = "errors end what was asked for, and are rare")]

pub mod config;
pub mod environment;
pub mod error;
pub mod hints;
pub mod killed;
pub mod models;
pub mod observer;
pub mod options;
pub mod places;
pub mod secrets;
pub mod text;
pub mod timeline;
pub mod trust;

pub use config::Config;
pub use environment::Environment;
pub use error::{Error, ErrorKind};
pub use observer::Observer;
pub use options::RunOptions;
