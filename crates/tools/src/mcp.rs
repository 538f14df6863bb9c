//! Tools of MCP servers: programs that speak the Model Context Protocol over their stdin and stdout, and
//! addresses that speak it over HTTP.
//!
//! [`McpServer`] is what is configured. A `Server` starts when it is first needed, is asked for its tools, and is
//! started again a few times if it dies; `Connection` is one life of it, over `pipe` or `http`. Nothing that a server says is believed
//! further than it is checked: sizes, times, schemas and definitions (`Definition`) have limits and hashes.

mod client;
mod config;
mod connection;
mod content;
mod context;
mod definition;
mod error;
mod flights;
mod framing;
mod handler;
mod handshake;
mod http;
mod listing;
mod message;
mod patience;
mod pipe;
mod process;
mod server;
mod servers;
mod sse;

pub use config::{EffectsRule, Hidden, McpServer, Reached};
pub(crate) use context::McpContext;
pub(crate) use definition::{Definition, Pinned};
pub(crate) use server::Call;
pub use server::Report;
pub(crate) use servers::{Answers, Found, Servers, tool_of};
pub use servers::{Wanted, survey};
