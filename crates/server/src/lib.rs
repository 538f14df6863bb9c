//! The HTTP API over a host (rules `S`), and the page.
//!
//! Nothing here knows more about runs than `selvedge_host` does: a request is read, the host is asked, and what it says is
//! written as JSON. This crate reads neither environment nor terminal, and starts no runtime.
//!
//! - [`Server`]: bound to an address, serving until it is told to stop. `app`: what all requests share; `answer`: from one to its answer.
//! - `http`: connections and their limits. `routes`: which requests there are, for the router and the description (`openapi`) alike.
//!   `call`: a request; `body`: what it brings; `reply`: an answer; `problem`: an answer that is none.
//! - `access`: who may (S-02).
//! - `look/`: what looks at runs. `kept`: runs as they were at any event, folded once. `feed`: events as they come, read once for
//!   all who watch.
//! - `act/`: what changes something. `reader`: documents, read in turn. `drives`: the runs that this server drives.
//! - `webhooks`: who is told what becomes of runs (S-09). `tls`: certificates of its own.
//! - `metrics`: what whoever operates it wants to know.
//! - `page`: the files of the page. `sealed`: a run in one file with them (S-31).

#![allow(clippy::result_large_err, reason = "problems end a request, and are rare")]

mod access;
mod act;
mod answer;
mod app;
mod blocking;
mod body;
mod call;
mod documents;
mod drives;
mod feed;
mod http;
mod kept;
mod look;
mod metrics;
mod openapi;
mod page;
mod params;
mod problem;
mod reader;
mod reply;
mod routes;
mod sealed;
mod serve;
mod tls;
mod webhooks;

pub use access::{Token, Tokens};
pub use sealed::{Sealed, sealed};
pub use serve::{Options, Server};
