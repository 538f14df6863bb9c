//! A version in the place of another, tried with the calls that are recorded.

use super::beside;
use super::place::Task;
use super::texts::{cut, value};
use crate::error::Error;
use crate::library::operations::Undone;
use crate::library::replay::{Against, Verdict, folder_of};
use crate::library::verbatim::repeats;
use crate::library::{self, CallRoom, TOO_LARGE};
use selvedge_engine::library::{Command, Library, Report, Sample};
use selvedge_engine::schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Calls that are repeated, at most.
const CALLS: usize = 100;
/// Reasons for the coder, and how long each may be, in bytes.
const REASONS: (usize, usize) = (10, 2 << 10);
/// How much a question says of each of its parts, in bytes.
const PART: usize = 8 << 10;
/// Reasons that the library keeps, and how many characters of each.
const KEPT: (usize, usize) = (10, 300);

/// What it is given.
#[derive(Deserialize)]
struct Given {
    name: Arc<str>,
    version: Arc<str>,
    replaces: Arc<str>,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Replayed {
    passed: usize,
    skipped: usize,
    pub(super) failing: Vec<String>,
    pub(super) unsure: Vec<Unsure>,
    /// Why calls were not repeated, each reason once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_repeated: Vec<String>,
}

impl Replayed {
    /// Some calls can't be repeated.
    fn skip(&mut self, calls: usize, why: &str) {
        self.skipped += calls;
        let why = format!("not repeated: {}", crate::text::one_line(why, KEPT.1));
        if self.not_repeated.len() < KEPT.0 && !self.not_repeated.contains(&why) {
            self.not_repeated.push(why);
        }
    }
}

/// A call that gives something else than it did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Unsure {
    pub(super) question: String,
}

/// What is known of the versions before a replay.
struct Known {
    calls: Vec<(PathBuf, Sample)>,
    /// Calls that are too large.
    left_out: usize,
    description: Arc<str>,
    /// What an output of it is to be like, as it was asked for.
    schema: Option<Value>,
    /// The file, and the one that it is to replace.
    texts: [String; 2],
}

/// Repeats recorded calls with a new version.
pub(super) async fn replay(task: Arc<Task>) -> Result<Value, Undone> {
    if let Some(answer) = task.answered().await? {
        return Ok(answer);
    }
    let Given { name, version, replaces } = task.given()?;
    let reading = Arc::clone(&task);
    let of = (Arc::clone(&version), replaces);
    let known = beside(move || known(&reading, &of.0, &of.1)).await?;
    let outputs =
        known.calls.iter().filter_map(|(_, sample)| sample.output.as_ref().map(|out| (sample, out)));
    let mut came = Replayed::default();
    if let Some(found) = repeats(&known.texts[0], &known.texts[1], outputs) {
        came.failing.push(format!(
            "the file contains what a recorded call gave, word for word ({found}): compute it from the input, for all inputs"
        ));
    } else {
        // What can't be read as a schema asks for nothing.
        let steps = task.bench.catalogue.config().limits.schema_steps;
        let schema = known.schema.as_ref().and_then(|schema| Schema::new(schema, steps).ok());
        let (of, against) = ((&name, &version), Against::Better(schema));
        let repeated = task.bench.workshop.repeat(&task.bench.store, of, &known.calls, &against).await;
        let verdicts = repeated?;
        for ((_, sample), verdict) in known.calls.iter().zip(verdicts) {
            let arguments = || value(&sample.arguments, REASONS.1 / 2);
            match verdict {
                Verdict::Passed => came.passed += 1,
                Verdict::Skipped(why) => came.skip(1, &why),
                Verdict::Failed(why) => {
                    came.failing.push(format!(
                        "with the arguments {}: {}",
                        arguments(),
                        cut(&why, REASONS.1 / 2)
                    ));
                }
                Verdict::Unsure(_, found) => {
                    let question = question(&name, &known.description, sample, &found);
                    came.unsure.push(Unsure { question });
                }
            }
        }
    }
    if known.left_out > 0 {
        came.skip(known.left_out, TOO_LARGE);
    }
    task.once(move |changing| {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let reasons = came.failing.iter().chain(&came.not_repeated);
        let reasons = reasons.take(KEPT.0).map(|why| crate::text::one_line(why, KEPT.1));
        let report = Report {
            passed: count(came.passed),
            failed: count(came.failing.len()),
            skipped: count(came.skipped),
            reasons: reasons.collect(),
        };
        changing.sure(Command::Test { version: Arc::clone(&version), report })?;
        let mut told = came.clone();
        if told.failing.len() > REASONS.0 {
            let more = told.failing.len() - REASONS.0;
            told.failing.truncate(REASONS.0);
            told.failing.push(format!("{more} more recorded calls fail"));
        }
        Ok(json!(told))
    })
    .await
}

fn known(task: &Task, version: &str, replaces: &str) -> Result<Known, Error> {
    let store = &task.bench.store;
    let here = task.bench.catalogue.config().workspace.clone();
    let (samples, mut left_out, description, schema) = task.look(|library| {
        let facts = library.version(version).and_then(|known| known.facts.as_ref());
        let description = facts.map(|facts| Arc::clone(&facts.description)).unwrap_or_default();
        let left_out: usize =
            library.lineage(replaces).iter().map(|known| usize::try_from(known.left_out).unwrap_or(0)).sum();
        (recorded(library, replaces), left_out, description, output_schema(library, version))
    })?;
    let mut calls = Vec::new();
    let mut seen = BTreeSet::new();
    let mut room = CallRoom::default();
    for call in samples {
        let Some(sample) = room.load(store, &call)? else {
            left_out += 1;
            continue;
        };
        // What is known of the nearest version counts.
        if seen.insert(sample.arguments.to_string()) && calls.len() < CALLS {
            calls.push((folder_of(&call, &here), sample));
        }
    }
    let texts = [library::text(store, version)?, library::text(store, replaces)?];
    Ok(Known { calls, left_out, description, schema, texts })
}

/// The calls that are recorded of a version and of all that it was made of, nearest first.
fn recorded(library: &Library, version: &str) -> Vec<selvedge_engine::library::Call> {
    let lineage = library.lineage(version);
    lineage.into_iter().flat_map(|known| known.calls.iter().rev().cloned()).collect()
}

/// What an output is to be like, by the request that caused the version or one that it was made of.
fn output_schema(library: &Library, version: &str) -> Option<Value> {
    let mut schemas = library.lineage(version).into_iter().map(|known| known.request.get("output_schema"));
    schemas
        .find_map(|schema| schema.filter(|schema| schema.as_object().is_some_and(|it| !it.is_empty())))
        .cloned()
}

/// What a model is told that says whether two outputs are equal.
pub(super) fn question(name: &str, description: &str, sample: &Sample, found: &Value) -> String {
    let recorded = sample.output.as_ref().unwrap_or(&Value::Null);
    format!(
        "The tool `{name}`: {}\n\nThe arguments of the call:\n{}\n\nThe recorded output:\n{}\n\nThe new output:\n{}",
        cut(description, PART),
        value(&sample.arguments, PART),
        value(recorded, PART),
        value(found, PART)
    )
}
