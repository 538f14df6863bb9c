//! Tools that are Python files: metadata read without running them, one environment per set of
//! dependencies, schemas asked for once per content, calls in processes of their own.

pub(crate) mod context;
pub mod environment;
pub mod helpers;
mod index;
pub mod interpreter;
pub(crate) mod keys;
pub mod load;
pub mod meta;
pub mod tool;
pub mod uv;
#[cfg(target_os = "linux")]
pub(crate) mod warm;
pub(crate) mod worker;

pub use environment::Environments;
pub use meta::Metadata;
pub(crate) use meta::{LONGEST_NAME, MAX_FILE, safe_name};
pub use tool::PythonTool;
