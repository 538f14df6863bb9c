//! Tools behind the runtime's port: Python files, command tools and built-ins.
//!
//! [`Catalogue`] finds them, resolves names by rank, prepares what a document uses and runs the version a run
//! has pinned. Every child process goes through [`selvedge_sandbox::process::run`], the one place where isolation applies.

#![allow(clippy::result_large_err, reason = "the port's own error type is that large, and rare")]

pub mod builtin;
pub mod catalogue;
pub mod command;
pub mod diag;
mod failures;
mod json;
pub mod leftovers;
pub mod library;
pub mod limits;
pub mod mcp;
pub mod operations;
pub mod permissions;
mod printed;
pub mod python;
mod store;
pub mod variables;

pub use catalogue::{Catalogue, CatalogueConfig, ISOLATION_MISSING, Offer, Withheld};
pub use command::CommandTool;
pub use diag::{CatalogueErrors, ErrorClass, ToolError};
pub use limits::ToolLimits;
pub use operations::{Computations, Compute};
pub use permissions::{Network, Permissions};
pub use variables::{Variables, unfit_variable};

use selvedge_engine::graph::{INTERNAL, is_operation};

/// What is wrong with a name that begins as those of Selvedge's own tools do; `None` for any other name.
pub fn reserved(name: &str) -> Option<String> {
    let message =
        || format!("the name `{name}` begins with `{INTERNAL}`, which is kept for Selvedge's own tools");
    is_operation(name).then(message)
}

/// Where lines about slow preparations go (fetching uv, building an environment): for people, on stderr.
pub type Progress = std::sync::Arc<dyn Fn(&str) + Send + Sync>;
