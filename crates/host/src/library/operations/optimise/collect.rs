//! Which tools there are (V-05), and what a model is told that groups them (V-06).

use super::super::beside;
use super::super::place::Task;
use super::super::texts::cut;
use super::blocks::{Words, blocks};
use super::candidate::Candidate;
use crate::library::operations::Undone;
use selvedge_engine::library::{Library, Place, Stage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Tools that one prompt tells of, at most; a library with more is divided by what is alike.
const MOST: usize = 200;
/// How much a prompt says of a description and of a schema, in bytes.
const PART: usize = 400;

/// What it is given.
#[derive(Deserialize)]
struct Given {
    #[serde(default)]
    runs: Vec<Arc<str>>,
    #[serde(default)]
    cluster: String,
    #[serde(default)]
    before: Value,
}

/// Tools that a model groups at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) names: Vec<Arc<str>>,
    /// What it is told of them.
    #[serde(default)]
    tools: String,
}

/// Lists the tools of everybody and of the tasks of these runs.
pub(in super::super) async fn collect(task: Arc<Task>) -> Result<Value, Undone> {
    let Given { runs, cluster, before } = task.given()?;
    let runs = runs.into_iter().collect();
    beside(move || {
        task.look(|library| {
            let candidates = candidates(library, &runs);
            // Where nothing is new, nobody has to say what is the same.
            let asks =
                cluster == "smart" && before.is_null() && candidates.iter().any(|one| !one.is_public());
            let parts = if asks { parts(library, &candidates) } else { Vec::new() };
            json!({"candidates": candidates, "parts": parts})
        })
    })
    .await
}

/// Public tools, and what tasks of these runs have proved; one content is one tool.
pub(super) fn candidates(library: &Library, runs: &BTreeSet<Arc<str>>) -> Vec<Candidate> {
    let public = |name: &Arc<str>| {
        let version = Arc::clone(library.head(&Place::Library, name)?);
        Some(Candidate { name: Arc::clone(name), version, tasks: Vec::new() })
    };
    let mut found: Vec<Candidate> = library.names(&Place::Library).filter_map(public).collect();
    let known: HashSet<Arc<str>> = found.iter().map(|one| Arc::clone(&one.version)).collect();
    let mut own = Vec::new();
    for version in library.versions().filter(|version| !known.contains(&version.hash)) {
        let tasks: Vec<Arc<str>> = version
            .lives
            .iter()
            .filter(|(_, life)| life.stage == Stage::Private && life.proven)
            .filter_map(|(place, _)| match place {
                Place::Task(task) if runs.contains(task.split('/').next().unwrap_or(task)) => {
                    Some(Arc::clone(task))
                }
                _ => None,
            })
            .collect();
        if !tasks.is_empty() {
            own.push((version.drafted, &version.hash, &version.name, tasks));
        }
    }
    own.sort();
    let mut taken: HashSet<Arc<str>> = found.iter().map(|one| Arc::clone(&one.name)).collect();
    taken.extend(library.aliases().keys().cloned());
    // Many may have one name: the first number that may be free is kept.
    let mut next: HashMap<&Arc<str>, u64> = HashMap::new();
    for (_, version, name, tasks) in own {
        let mut numbered = || {
            let next = next.entry(name).or_insert(2);
            let free = (*next..).find(|n| !taken.contains(&*format!("{name}_{n}")))?;
            *next = free + 1;
            Some(Arc::from(format!("{name}_{free}")))
        };
        let name = if taken.contains(name) { numbered() } else { None }.unwrap_or_else(|| Arc::clone(name));
        taken.insert(Arc::clone(&name));
        found.push(Candidate { name, version: Arc::clone(version), tasks });
    }
    found
}

/// What a model is told, in parts: all tools, or those that are like others.
fn parts(library: &Library, candidates: &[Candidate]) -> Vec<Part> {
    if candidates.len() <= MOST {
        return vec![part(library, candidates.iter())];
    }
    let words: Vec<Words> = candidates
        .iter()
        .map(|one| {
            let facts = library.version(&one.version).and_then(|known| known.facts.as_ref());
            let (description, schema) =
                facts.map_or(("", &Value::Null), |facts| (&*facts.description, &facts.input_schema));
            Words::of(&one.name, description, schema)
        })
        .collect();
    let (mut parts, mut next): (Vec<Vec<usize>>, Vec<usize>) = (Vec::new(), Vec::new());
    for block in blocks(&words).into_iter().filter(|block| block.len() > 1) {
        if next.len() + block.len() > MOST {
            parts.push(std::mem::take(&mut next));
        }
        next.extend(block);
    }
    parts.push(next);
    let told = |part: Vec<usize>| part_of(library, candidates, &part);
    parts.into_iter().filter(|part| !part.is_empty()).map(told).collect()
}

fn part_of(library: &Library, candidates: &[Candidate], at: &[usize]) -> Part {
    part(library, at.iter().filter_map(|at| candidates.get(*at)))
}

fn part<'c>(library: &Library, candidates: impl Iterator<Item = &'c Candidate>) -> Part {
    let (mut names, mut tools) = (Vec::new(), String::new());
    for one in candidates {
        let facts = library.version(&one.version).and_then(|known| known.facts.as_ref());
        let description = facts.map(|facts| cut(&facts.description, PART)).unwrap_or_default();
        let fields = facts.and_then(|facts| facts.input_schema.get("properties")).map(Value::to_string);
        let input = cut(&fields.unwrap_or_default(), PART);
        tools.push_str(&json!({"name": one.name, "description": description, "input": input}).to_string());
        tools.push('\n');
        names.push(Arc::clone(&one.name));
    }
    Part { names, tools }
}
