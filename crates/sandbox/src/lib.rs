//! What runs other programs and holds what they may reach: it knows nothing of tools, models and runs.
//!
//! - [`policy`]: what a process may reach.
//! - [`process`]: from a program, its environment, its policy and its input to a running process, and its end.
//! - [`isolation`]: the layers that enforce a policy, and which of them this machine gives.
//! - `server`: a program that is started once and makes a confined process for each call.
//! - [`spawn`], [`supervisor`]: starting programs, and ending them with all that they have started.
//! - [`grant`], [`configuration`]: places that were granted, and what nobody is given among them.
//! - [`mod@env`]: the environment of this process, which is handed in.
//! - [`exact`], [`files`]: opening the place that was checked, and writing files whole.

pub mod configuration;
pub mod env;
pub mod exact;
pub mod files;
pub mod grant;
pub mod isolation;
pub mod launcher;
pub mod policy;
pub mod process;
#[cfg(target_os = "linux")]
pub mod server;
pub mod spawn;
pub mod supervisor;
