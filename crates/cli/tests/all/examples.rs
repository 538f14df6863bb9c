//! The examples run to their end as their READMEs say, with the scripted replies in place of a model.

mod agents;
mod docs;
mod evolve;
mod plans;
mod steps;
mod tools;
mod workflows;
mod world;
