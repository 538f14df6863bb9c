//! tools of MCP servers, real ones from npm and one that misbehaves in every way.

mod cut_off;
mod hostile;
mod http;
pub mod loopback;
mod names;
mod overhead;
mod real;
mod sessions;
mod support;
