//! Tools that may become part of others, and those that do the same.

use selvedge_engine::library::{Library, Place, Stage};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A tool that may become part of another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Candidate {
    /// The name that it has here and nothing else: a public tool's own.
    pub(super) name: Arc<str>,
    pub(super) version: Arc<str>,
    /// The tasks that have proved it; none of a public tool.
    #[serde(default)]
    pub(super) tasks: Vec<Arc<str>>,
}

impl Candidate {
    /// Whether everybody has it.
    pub(super) fn is_public(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The places where it is a task's own and proven, as the library is.
    pub(super) fn places(&self, library: &Library) -> Vec<Place> {
        let life = |place: &Place| library.version(&self.version)?.lives.get(place);
        let tasks = self.tasks.iter().map(|task| Place::Task(Arc::clone(task)));
        tasks
            .filter(|place| life(place).is_some_and(|life| life.stage == Stage::Private && life.proven))
            .collect()
    }

    /// Whether the library has it as it was found.
    pub(super) fn is_there(&self, library: &Library) -> bool {
        match self.is_public() {
            true => library.head(&Place::Library, &self.name) == Some(&self.version),
            false => !self.places(library).is_empty(),
        }
    }
}

/// Tools that do the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cluster {
    /// What one tool for all of them would be called.
    pub(super) name: Arc<str>,
    pub(super) members: Vec<Candidate>,
    /// Their versions, in order.
    pub(super) versions: Vec<Arc<str>>,
    /// Versions that may do the work of all, without anything being written.
    pub(super) ready: Vec<Arc<str>>,
}

impl Cluster {
    /// What tells it from others: the versions that it is made of.
    pub(super) fn key(versions: &[Arc<str>]) -> String {
        let mut sorted: Vec<&str> = versions.iter().map(|version| &**version).collect();
        sorted.sort_unstable();
        sorted.join(" ")
    }
}

/// A name without the numbers at its end (V-07): `parse_date_2_1` is a `parse_date`. One that would be nothing stays.
pub(super) fn base_name(name: &str) -> &str {
    let mut base = name;
    while let Some((rest, digits)) = base.rsplit_once('_') {
        if digits.is_empty() || rest.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        base = rest;
    }
    base
}

/// Whether a version was made of another one.
pub(super) fn descends(library: &Library, version: &str, of: &str) -> bool {
    version != of && library.lineage(version).iter().any(|known| *known.hash == *of)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V-07: the suffix is `(_\d+)+$`.
    #[test]
    fn v07_numbers_at_the_end_are_no_part_of_a_name() {
        for (name, base) in [
            ("parse_date", "parse_date"),
            ("parse_date_2", "parse_date"),
            ("parse_date_2_10", "parse_date"),
            ("parse_2_date", "parse_2_date"),
            ("md5", "md5"),
            ("a_", "a_"),
            ("a__2", "a_"),
            ("_2", "_2"),
            ("a_2b", "a_2b"),
        ] {
            assert_eq!(base_name(name), base);
        }
    }
}
