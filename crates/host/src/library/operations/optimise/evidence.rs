//! What is recorded of the members of a cluster, and of all that these were made of (V-09).

use super::super::place::Task;
use super::candidate::{Cluster, descends};
use crate::error::Error;
use crate::library::CallRoom;
use crate::library::replay::{difference, folder_of};
use crate::text::one_line;
use selvedge_engine::library::{Call, Library, Sample};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// A recorded call, and the members that it shows something about.
pub(super) struct Known {
    pub(super) members: Vec<usize>,
    pub(super) folder: PathBuf,
    pub(super) sample: Sample,
}

/// All recorded calls of a cluster, each once.
pub(super) struct Evidence {
    pub(super) calls: Vec<Known>,
    /// How many records they are of.
    pub(super) records: usize,
    /// Members that another member was made of: what is known of them was held against that one when it was made.
    pub(super) old: BTreeSet<usize>,
    /// Calls that are too large to be kept or repeated.
    pub(super) left_out: u32,
    /// Two members that come to something else with the same arguments, and how.
    pub(super) contradiction: Option<String>,
}

/// How many calls are recorded of a cluster: it only grows.
pub(super) fn records(library: &Library, cluster: &Cluster) -> usize {
    let all: BTreeSet<&Arc<str>> = cluster
        .versions
        .iter()
        .flat_map(|version| library.lineage(version))
        .map(|known| &known.hash)
        .collect();
    all.into_iter().filter_map(|version| library.version(version)).map(|known| known.calls.len()).sum()
}

/// What is recorded of a cluster. Of calls with the same arguments that of the newer version counts, where one was made of the other.
pub(super) fn evidence(task: &Task, cluster: &Cluster) -> Result<Evidence, Error> {
    let (older, records, left_out, lineages) = task.look(|library| {
        let versions = &cluster.versions;
        let older = |a: &Arc<str>| -> BTreeSet<usize> {
            (0..versions.len())
                .filter(|b| versions.get(*b).is_some_and(|b| descends(library, a, b)))
                .collect()
        };
        let calls = |version: &Arc<str>| -> Vec<Call> {
            library.lineage(version).into_iter().flat_map(|known| known.calls.iter().rev().cloned()).collect()
        };
        let older: Vec<BTreeSet<usize>> = versions.iter().map(older).collect();
        let all: BTreeMap<&Arc<str>, u32> = versions
            .iter()
            .flat_map(|version| library.lineage(version))
            .map(|known| (&known.hash, known.left_out))
            .collect();
        let left_out = all.into_values().fold(0, u32::saturating_add);
        (older, records(library, cluster), left_out, versions.iter().map(calls).collect::<Vec<_>>())
    })?;
    // Who was made of the most comes first.
    let mut members: Vec<usize> = (0..lineages.len()).collect();
    members.sort_by_key(|member| std::cmp::Reverse(older.get(*member).map_or(0, BTreeSet::len)));
    let here = task.bench.catalogue.config().workspace.clone();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let old = older.iter().flatten().copied().collect();
    let mut found = Evidence { calls: Vec::new(), records, old, left_out, contradiction: None };
    let mut room = CallRoom::default();
    for member in members {
        let mut own = BTreeSet::new();
        for call in lineages.get(member).into_iter().flatten() {
            let Some(sample) = room.load(&task.bench.store, call)? else {
                found.left_out = found.left_out.saturating_add(1);
                continue;
            };
            let arguments = canonical(&sample.arguments);
            if !own.insert(arguments.clone()) {
                continue;
            }
            let folder = folder_of(call, &here);
            let Some(known) = seen.get(&arguments).and_then(|at| found.calls.get_mut(*at)) else {
                seen.insert(arguments, found.calls.len());
                found.calls.push(Known { members: vec![member], folder, sample });
                continue;
            };
            if known
                .members
                .iter()
                .any(|newer| older.get(*newer).is_some_and(|older| older.contains(&member)))
            {
                continue;
            }
            match (&known.sample.output, &sample.output) {
                (Some(a), Some(b)) if difference(a, b, "").is_some() => {
                    let with = (known.members.first().copied().unwrap_or_default(), &known.sample);
                    found
                        .contradiction
                        .get_or_insert_with(|| contradiction(cluster, with, (member, &sample)));
                }
                // What worked for one of them has to work.
                (Some(_), None) => {}
                (None, Some(_)) => {
                    (known.folder, known.sample) = (folder, sample);
                    known.members.push(member);
                }
                _ => known.members.push(member),
            }
        }
    }
    found.calls.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(found)
}

/// Arguments as a text that is the same for the same, whatever the order of fields.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, String> =
                fields.iter().map(|(name, value)| (name, canonical(value))).collect();
            format!("{sorted:?}")
        }
        Value::Array(items) => format!("{:?}", items.iter().map(canonical).collect::<Vec<_>>()),
        other => other.to_string(),
    }
}

fn contradiction(cluster: &Cluster, (a, one): (usize, &Sample), (b, other): (usize, &Sample)) -> String {
    let name = |member: usize| cluster.members.get(member).map(|one| &*one.name).unwrap_or_default();
    let shown = |value: &Option<Value>| one_line(&value.as_ref().unwrap_or(&Value::Null).to_string(), 200);
    format!(
        "with the arguments {} `{}` gives {}, and `{}` gives {}",
        one_line(&one.arguments.to_string(), 200),
        name(a),
        shown(&one.output),
        name(b),
        shown(&other.output)
    )
}
