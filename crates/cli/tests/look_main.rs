//! The commands that look at recorded runs and at what is configured, from outside.

#[cfg(test)]
#[path = "look/completions.rs"]
mod completions;
#[cfg(test)]
#[path = "look/damage.rs"]
mod damage;
#[cfg(test)]
#[path = "look/doctor.rs"]
mod doctor;
#[cfg(test)]
#[path = "look/explain.rs"]
mod explain;
#[cfg(test)]
#[path = "look/graph.rs"]
mod graph;
#[cfg(test)]
#[path = "look/init.rs"]
mod init;
#[cfg(test)]
#[path = "look/models.rs"]
mod models;
#[cfg(test)]
#[path = "cli/net.rs"]
#[allow(dead_code, reason = "shared with the other tests of the command line")]
mod net;
#[cfg(test)]
#[path = "look/replay.rs"]
mod replay;
#[cfg(test)]
#[path = "look/runs.rs"]
mod runs;
#[cfg(test)]
#[path = "look/schema.rs"]
mod schema;
#[cfg(test)]
#[path = "look/show.rs"]
mod show;
#[cfg(test)]
#[path = "look/steps.rs"]
mod steps;
#[cfg(test)]
#[path = "cli/support.rs"]
#[allow(dead_code, reason = "shared with the other tests of the command line")]
mod support;
#[cfg(test)]
#[path = "look/world.rs"]
mod world;
