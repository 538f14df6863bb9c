//! The simulator for step tasks: random tasks, an outside that fails and reflects, and a reference that runs one step
//! after another, ladder and all (D-14 … D-22, D-25).
//!
//! Tasks go through the same doors as a user's: the document is read, checked and lowered by the dialect, a replan is
//! compiled by the dialect's compiler. Only the outside is simulated.

pub mod driver;
pub mod generate;
pub mod observed;
pub mod properties;
pub mod reference;
pub mod task;
pub mod world;
