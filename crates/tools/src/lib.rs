//! Tools behind the runtime's port: Python files, command tools and built-ins.
//!
//! [`Catalogue`] finds them, resolves names by rank, prepares what a document uses and runs the version a run
//! has pinned. Every child process goes through [`selvedge_sandbox::process::run`], the one place where isolation applies.

#![allow(clippy::result_large_err, reason = "the port's own error type is that large, and rare")]

pub mod builtin;
pub mod catalogue;
pub mod coder;
pub mod command;
pub mod config;
pub mod diag;
pub mod examine;
mod failures;
mod json;
pub mod leftovers;
pub mod library;
pub mod limits;
pub mod mcp;
mod names;
mod native;
pub mod operations;
pub mod permissions;
mod printed;
mod progress;
pub mod python;
mod store;
pub mod variables;
mod withheld;

pub use catalogue::{Catalogue, Drafted, ISOLATION_MISSING, NotDrafted, Offer};
pub use command::CommandTool;
pub use config::CatalogueConfig;
pub use diag::{CatalogueErrors, ErrorClass, ToolError};
pub use limits::ToolLimits;
pub use names::reserved;
pub use native::NativeTool;
pub use operations::{Compute, Operate, OwnOperations};
pub use permissions::{Network, Permissions};
pub use progress::Progress;
pub use variables::{Variables, unfit_variable};
pub use withheld::Withheld;
