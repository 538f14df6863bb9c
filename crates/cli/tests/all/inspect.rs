//! The commands that look at recorded runs and at what is configured.

mod completions;
mod damage;
mod doctor;
mod explain;
mod graph;
mod init;
mod models;
mod replay;
mod runs;
mod schema;
mod sealed;
mod show;
mod steps;
mod world;
