//! A simulated world in which a document runs: its models, tools and people answer at random, in an order that chance chooses, calls
//! fail, processes die and nobody waits for the clock. Everything follows from a seed.
//!
//! [`World::run`] is one run, by the same engine that runs it in earnest; [`search()`] goes through many seeds and says what is wrong
//! with the document ([`Kind`]), each with the run of least bad luck that shows it.
//!
//! ```
//! use selvedge_engine::{Graph, Start};
//! use selvedge_world::{Search, World, search};
//! use std::sync::{Arc, atomic::AtomicBool};
//!
//! let graph: Graph = serde_json::from_str(r#"{
//!     "threads": [{"name": "main", "first": "Say hello"}],
//!     "nodes": [{"id": "n1", "name": "greet", "body": {"thread": 0, "leaves": [
//!         {"name": "model", "act": {"infer": {}}}]}}],
//!     "tools": {}}"#)?;
//! let world = World::new(Arc::new(graph), Start::default());
//! let (stop, progress) = (AtomicBool::new(false), |_| {});
//! let report = search(&world, &Search { seeds: 100, threads: 1, stop: &stop, progress: &progress });
//! assert_eq!((report.seeds, report.findings.len()), (100, 0));
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! The rules are C-18's in `spec/cli.md`.

#![allow(clippy::result_large_err, reason = "a failure is that large, and rare")]

mod findings;
mod kind;
mod luck;
mod map;
mod outside;
pub mod rng;
mod search;
mod trial;
pub mod values;
mod words;

pub use kind::Kind;
pub use luck::{Hit, Luck};
pub use map::Unreached;
pub use outside::{Outside, Recorded, Session, first};
pub use search::{Finding, Report, Search, one, search};
pub use trial::{Stop, Trial, World};
pub use words::Words;
