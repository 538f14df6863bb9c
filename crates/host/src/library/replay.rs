//! Repeating recorded calls: in the sandbox, with the network off, and writes in a copy of the folder. What can't
//! be repeated so is no evidence.

mod copied;

use super::is_empty;
use crate::error::Error;
use crate::ways::WayOut;
use copied::copied;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use selvedge_engine::library::{Call, Sample};
use selvedge_engine::place::{EffectPlace, Place};
use selvedge_engine::schema::Schema;
use selvedge_engine::{Effects, Failure as CallFailure, FaultKind, ToolDef, ToolRequest};
use selvedge_runtime::{CallContext, Tools};
use selvedge_tools::python::Metadata;
use selvedge_tools::{Catalogue, CatalogueConfig};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Calls that are repeated at the same time.
const AT_A_TIME: usize = 4;
/// What a repeated call came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// What it is to come to.
    Passed,
    /// Something else, and what.
    Failed(String),
    /// It could not be repeated, and why.
    Skipped(String),
    /// Another output than the recorded one, of a version that is to be better, and what is different: somebody has to say whether it is
    /// as good.
    Unsure(String, Value),
}

/// What a call is to come to when it is repeated.
pub enum Against {
    /// The same as it did: the version is the one that made it.
    Same,
    /// What a better version is to come to: an output that fits the schema, if there is one, where it had failed, and an equal
    /// output where it had not.
    Better(Option<Schema>),
    /// What one tool for several is to come to: an equal output where one of them had one; a call that had failed may fail again.
    Merged,
}

/// Repeats recorded calls: in the sandbox, with the network off, and writes in copies. What has been made ready stays so.
pub struct Repeating {
    config: CatalogueConfig,
    /// What tools may read depends on the folder that calls start at.
    by_folder: BTreeMap<PathBuf, (CatalogueConfig, Catalogue)>,
}

impl Repeating {
    /// Tools of this configuration.
    pub fn new(config: CatalogueConfig) -> Self {
        let config = CatalogueConfig { replay: true, mcp: Vec::new(), ..config };
        Self { config, by_folder: BTreeMap::new() }
    }

    /// The tools there are, for calls that start at the folder of the configuration.
    ///
    /// # Errors
    /// They can't be looked for.
    pub async fn catalogue(&mut self) -> Result<Catalogue, Error> {
        let folder = self.config.workspace.clone();
        Ok(self.at(&folder).await?.1.clone())
    }

    async fn at(&mut self, folder: &Path) -> Result<&(CatalogueConfig, Catalogue), Error> {
        if !self.by_folder.contains_key(folder) {
            let config = CatalogueConfig { workspace: folder.to_owned(), ..self.config.clone() };
            let catalogue = Catalogue::load(config.clone()).await?;
            self.by_folder.insert(folder.to_owned(), (config, catalogue));
        }
        self.by_folder.get(folder).ok_or_else(|| Error::internal("a catalogue was not kept"))
    }

    /// Repeats the calls of one tool, each from the folder that it starts at, and says what came of them, in their order.
    ///
    /// # Errors
    /// The tool can't be made ready, or `Environment` if no copy of a folder can be made or read.
    pub async fn repeat(
        &mut self,
        name: &str,
        calls: &[(PathBuf, Sample)],
        against: &Against,
    ) -> Result<Vec<Verdict>, Error> {
        let mut verdicts = Vec::with_capacity(calls.len());
        for like in calls.chunk_by(|(a, _), (b, _)| a == b) {
            let Some((folder, _)) = like.first() else { continue };
            let (config, catalogue) = self.at(folder).await?;
            catalogue.prepare(&[name]).await?;
            let samples: Vec<&Sample> = like.iter().map(|(_, sample)| sample).collect();
            verdicts.extend(replay(config, catalogue, name, &samples, against).await?);
        }
        Ok(verdicts)
    }
}

/// The folder that the relative paths of a recorded call start at: its run's, if that is still there, else this one.
pub fn folder_of(call: &Call, here: &Path) -> PathBuf {
    let folder = call.origin.as_ref().and_then(|origin| origin.folder.as_deref()).map(PathBuf::from);
    folder.filter(|folder| folder.is_dir()).unwrap_or_else(|| here.to_owned())
}

/// Repeats the calls of one tool, in their order.
async fn replay(
    config: &CatalogueConfig,
    catalogue: &Catalogue,
    name: &str,
    samples: &[&Sample],
    against: &Against,
) -> Result<Vec<Verdict>, Error> {
    let (Some(tool), Some(metadata)) = (catalogue.def(name), catalogue.metadata(name)) else {
        let why = "only Python tools can be tested so";
        return Ok(vec![Verdict::Skipped(why.to_owned()); samples.len()]);
    };
    let skipped = |why: String| Ok(vec![Verdict::Skipped(why); samples.len()]);
    let harmless = matches!(tool.effects, Some(Effects::Pure | Effects::Read));
    let reaches = metadata.network || !metadata.write_paths.is_empty() || !harmless;
    if reaches && !catalogue.isolation().found().await.enforced() {
        return skipped(format!(
            "it may write, and the sandbox is not complete here (see `{}`)",
            WayOut::Doctor
        ));
    }
    if let Some(error) = catalogue.unreadable(name) {
        return skipped(format!("{}; {}", error.message, error.help));
    }
    if metadata.write_paths.is_empty() {
        // Boxed one by one, because the compiler cannot see through futures that borrow from a closure's argument.
        let mut work: Vec<BoxFuture<'_, Verdict>> = Vec::with_capacity(samples.len());
        for (n, sample) in samples.iter().enumerate() {
            work.push(Box::pin(judged(catalogue, Arc::clone(&tool), metadata, n, sample, against)));
        }
        return Ok(futures_util::stream::iter(work).buffered(AT_A_TIME).collect().await);
    }
    if let Some(path) = metadata.write_paths.iter().find(|path| !is_inside(path)) {
        return skipped(format!("it writes {}, of which no copy can stand in its place", path.display()));
    }
    writing(config, name, metadata, samples, against).await
}

/// Whether a path lies below the folder that relative paths start at.
fn is_inside(path: &Path) -> bool {
    use std::path::Component;
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Repeats the calls of a tool that writes: each in a fresh copy of the folder, one after the other.
async fn writing(
    config: &CatalogueConfig,
    name: &str,
    metadata: &Metadata,
    samples: &[&Sample],
    against: &Against,
) -> Result<Vec<Verdict>, Error> {
    let made = |error: std::io::Error| {
        Error::environment("A-15", "no-copy", &format!("no copy of the folder can be made: {error}"))
            .help("check the room in the system's folder for temporary files")
    };
    let place = tempfile::Builder::new().prefix("selvedge-test-").tempdir().map_err(made)?;
    let copy = place.path().join("folder");
    let mut inside = config.clone();
    inside.workspace.clone_from(&copy);
    inside.permissions.allow_write = vec![copy.clone()];
    // It may be declared by its full path.
    inside.permissions.allow_read.push(config.workspace.clone());
    let mut catalogue: Option<Catalogue> = None;
    let mut verdicts = Vec::new();
    for (n, sample) in samples.iter().enumerate() {
        let (from, to, hidden) = (config.workspace.clone(), copy.clone(), config.hidden.clone());
        let copied = tokio::task::spawn_blocking(move || copied(&from, &to, &hidden)).await;
        if !copied.map_err(std::io::Error::other).and_then(|copied| copied).map_err(made)? {
            let why = "it writes, and the folder is too large to be copied";
            verdicts.push(Verdict::Skipped(why.to_owned()));
            continue;
        }
        let catalogue = match &catalogue {
            Some(catalogue) => catalogue.clone(),
            None => {
                let fresh = Catalogue::load(inside.clone()).await?;
                fresh.prepare(&[name]).await?;
                catalogue.insert(fresh).clone()
            }
        };
        let Some(tool) = catalogue.def(name) else {
            verdicts.push(Verdict::Skipped("there is no such tool".to_owned()));
            continue;
        };
        verdicts.push(judged(&catalogue, tool, metadata, n, sample, against).await);
    }
    Ok(verdicts)
}

/// Makes one call and compares what it comes to.
async fn judged(
    catalogue: &Catalogue,
    tool: Arc<ToolDef>,
    metadata: &Metadata,
    n: usize,
    sample: &Sample,
    against: &Against,
) -> Verdict {
    let fault = sample.fault.as_ref().map(|fault| fault.kind);
    match (against, fault) {
        (Against::Same | Against::Merged, Some(FaultKind::Timeout)) => {
            return Verdict::Skipped("it ran out of time, and would have to do so again".to_owned());
        }
        (Against::Better(_) | Against::Merged, Some(FaultKind::InputError)) => {
            return Verdict::Skipped(
                "its arguments were wrong: what a tool says of them shows nothing".to_owned(),
            );
        }
        _ => {}
    }
    let leaf_visit = u32::try_from(n).unwrap_or(u32::MAX);
    let place = Place::root(&tool.name);
    let effect = EffectPlace { place, leaf: "test".into(), slot: None, leaf_visit, attempt: 1 }.id();
    let request =
        ToolRequest { effect, node: "test".into(), tool, args: sample.arguments.clone(), timeout_s: None };
    let outcome = catalogue.call(request, CallContext::of("test")).await;
    let verdict = match against {
        Against::Same => compared(sample, &outcome).map_or(Verdict::Passed, Verdict::Failed),
        Against::Better(schema) => better(sample, outcome, schema.as_ref()),
        Against::Merged if sample.output.is_none() && compared(sample, &outcome).is_none() => Verdict::Passed,
        Against::Merged => better(sample, outcome, None),
    };
    match verdict {
        Verdict::Failed(_) | Verdict::Unsure(..) if metadata.network => {
            Verdict::Skipped("it uses the network, which is off in a test".to_owned())
        }
        verdict => verdict,
    }
}

/// What a better version comes to: a call that failed has to pass now, an earlier good one to give the same.
pub fn better(sample: &Sample, outcome: Result<Value, CallFailure>, schema: Option<&Schema>) -> Verdict {
    let found = match outcome {
        Ok(found) => found,
        Err(failure) => {
            let now = if sample.output.is_some() { "it worked before, and now" } else { "still" };
            let (kind, message) = (failure.fault.kind.name(), failure.fault.message);
            return Verdict::Failed(format!("{now} {kind}: {message}"));
        }
    };
    match &sample.output {
        Some(recorded) => {
            difference(recorded, &found, "").map_or(Verdict::Passed, |why| Verdict::Unsure(why, found))
        }
        None if is_empty(&found) => Verdict::Failed("it gives nothing".to_owned()),
        None => match schema.map(|schema| schema.violation(&found)) {
            Some(Ok(Some(wrong))) => Verdict::Failed(format!(
                "its output {} is not what was asked for: {}",
                shown(&found),
                wrong.message
            )),
            _ => Verdict::Passed,
        },
    }
}

/// What is different; `None` if nothing is. Of failures the kind counts, not the words.
fn compared(sample: &Sample, outcome: &Result<Value, CallFailure>) -> Option<String> {
    match (outcome, &sample.output, &sample.fault) {
        (Ok(found), Some(expected), _) => difference(expected, found, ""),
        (Err(failure), _, Some(expected)) if failure.fault.kind == expected.kind => None,
        (Err(failure), Some(_), _) => {
            Some(format!("{}: {}", failure.fault.kind.name(), failure.fault.message))
        }
        (Err(failure), _, Some(expected)) => {
            let (found, expected) = (failure.fault.kind.name(), expected.kind.name());
            Some(format!("{found} in place of {expected}: {}", failure.fault.message))
        }
        (Ok(found), _, Some(expected)) => {
            Some(format!("an output in place of {}: {}", expected.kind.name(), shown(found)))
        }
        (_, None, None) => Some("the recorded call has neither output nor fault".to_owned()),
    }
}

/// The first place where two values differ. Numbers are equal by value, fields in any order.
pub(super) fn difference(expected: &Value, found: &Value, at: &str) -> Option<String> {
    let here = || {
        let place = if at.is_empty() { String::new() } else { format!("{at}: ") };
        Some(format!("{place}{} in place of {}", shown(found), shown(expected)))
    };
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let names = expected.keys().chain(found.keys().filter(|name| !expected.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let at = format!("{at}/{name}");
                match (expected.get(name), found.get(name)) {
                    (Some(expected), Some(found)) => difference(expected, found, &at),
                    (Some(expected), None) => Some(format!("{at} is missing: {}", shown(expected))),
                    (None, found) => Some(format!("{at} is new: {}", found.map(shown).unwrap_or_default())),
                }
            })
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let pairs = expected.iter().zip(found).enumerate();
            pairs
                .into_iter()
                .find_map(|(n, (expected, found))| difference(expected, found, &format!("{at}/{n}")))
        }
        (Value::Number(a), Value::Number(b)) if a == b || a.as_f64() == b.as_f64() => None,
        (a, b) if a == b => None,
        _ => here(),
    }
}

/// The beginning of a value.
fn shown(value: &Value) -> String {
    crate::text::one_line(&value.to_string(), 120)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_compared_by_value_and_differences_have_a_place() {
        let same = |a: Value, b: Value| difference(&a, &b, "");
        assert_eq!(same(json!({"a": 1, "b": [2.0]}), json!({"b": [2], "a": 1.0})), None);
        assert_eq!(same(json!(null), json!(null)), None);
        assert_eq!(same(json!({"a": [1, 2]}), json!({"a": [1, 3]})).unwrap(), "/a/1: 3 in place of 2");
        assert_eq!(same(json!({"a": 1}), json!({})).unwrap(), "/a is missing: 1");
        assert_eq!(same(json!({}), json!({"a": 1})).unwrap(), "/a is new: 1");
        assert!(same(json!("1"), json!(1)).is_some());
        assert!(same(json!([1]), json!([1, 2])).is_some());
        assert!(same(json!(true), json!(1)).is_some());
    }
}
