//! Seeded simulator of the engine (development only).
//!
//! [`generate`] makes random plans, [`world`] answers their requests, [`driver`] runs the engine through them in an
//! order that a seed chooses, with crashes at any event, and [`mod@reference`] says what should have come out, one
//! node after another. [`properties`] are what must hold; [`hunt`] looks for a plan that breaks one and makes
//! it small. Everything follows from seeds, so a failure's seed reproduces it:
//!
//! ```text
//! cargo test -p selvedge-sim                                        a few seconds
//! SELVEDGE_SIM_PLANS=20000 cargo test -p selvedge-sim -- --ignored  as long as wanted
//! SELVEDGE_SIM_SEED=17 cargo test -p selvedge-sim agreement         one seed
//! SELVEDGE_SIM_CASE=case.json cargo test -p selvedge-sim agreement  one plan, as a failure printed it
//! ```
//!
//! Step tasks have a generator, an outside and a reference of their own in [`tasks`], workflows in [`workflows`]. Of [`agents`] forks are
//! held against fresh runs.
//!
//! The tests named `canary` run the same properties against parts that are broken on purpose: they show that
//! the properties can fail.

pub mod agents;
pub mod canon;
pub mod conformance;
pub mod driven;
pub mod driver;
pub mod forks;
pub mod fuzz;
pub mod generate;
pub mod golden;
pub mod hunt;
pub mod journal;
pub mod lower;
pub mod observed;
pub mod plan;
pub mod planted;
pub mod properties;
pub mod reference;
pub mod replay;
pub use selvedge_world::rng;

pub mod tasks;
pub mod watch;
pub mod workflows;
pub mod world;
