//! Every recorded call of every member of a cluster, with one version (V-09).

use super::super::beside;
use super::super::given::{Equal, Verdicts};
use super::super::place::Task;
use super::super::replayed::{Unsure, question};
use super::super::texts::{cut, value};
use super::super::workshop::alone;
use super::candidate::Cluster;
use super::evidence::{Evidence, evidence};
use crate::library;
use crate::library::operations::Undone;
use crate::library::replay::{Against, Verdict};
use crate::library::verbatim::repeats;
use selvedge_engine::library::Sample;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Calls that are repeated before it is looked whether there is any use in going on.
const AT_ONCE: usize = 64;
/// Failing calls that a coder is told of; from so many on no more are repeated.
const FAILING: usize = 10;
/// Other outputs that a judge compares.
const UNSURE: usize = 10;
/// How long a reason may be, in bytes.
const PART: usize = 1 << 10;

/// What it is given.
#[derive(Deserialize)]
struct Given {
    cluster: Cluster,
    version: Arc<str>,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Regressed {
    pub(super) passed: u32,
    pub(super) skipped: u32,
    failing: Vec<String>,
    unsure: Vec<Unsure>,
    /// Why no other version would do better.
    over: Option<String>,
    /// How many records it was held against.
    pub(super) evidence: usize,
}

/// Repeats what is recorded of a cluster with a version.
pub(in super::super) async fn regress(task: Arc<Task>) -> Result<Value, Undone> {
    let Given { cluster, version } = task.given()?;
    let (reading, of, by) = (Arc::clone(&task), cluster.clone(), Arc::clone(&version));
    let (evidence, text, old) = beside(move || {
        let mut old = String::new();
        for member in &of.versions {
            old.push_str(&library::text(&reading.bench.store, member)?);
        }
        Ok((evidence(&reading, &of)?, library::text(&reading.bench.store, &by)?, old))
    })
    .await?;
    let mut came = Regressed { evidence: evidence.records, ..Regressed::default() };
    let outputs = evidence.calls.iter().filter_map(|call| Some((&call.sample, call.sample.output.as_ref()?)));
    if let Some(found) = repeats(&text, &old, outputs) {
        came.failing.push(format!(
            "the file contains what a recorded call gave, word for word ({found}): compute it from the input, for all inputs"
        ));
        return Ok(json!(came));
    }
    repeated(&task, &cluster, &version, &evidence, &mut came).await?;
    Ok(json!(came))
}

async fn repeated(
    task: &Task,
    cluster: &Cluster,
    version: &Arc<str>,
    evidence: &Evidence,
    came: &mut Regressed,
) -> Result<(), Undone> {
    let about = |library: &selvedge_engine::library::Library| {
        let known = library.version(version);
        let facts = known.and_then(|known| known.facts.as_ref());
        (known.map(|known| Arc::clone(&known.name)), facts.map(|facts| Arc::clone(&facts.description)))
    };
    let (name, description) = task.look(about)?;
    let (name, description) = (name.unwrap_or_default(), description.unwrap_or_default());
    let mut repeating = alone(&task.bench.catalogue, &task.bench.store, (&name, version));
    let (mut shown, mut why, mut done): (BTreeSet<usize>, Option<String>, usize) = Default::default();
    if evidence.left_out > 0 {
        came.skipped = evidence.left_out;
        why = Some(library::TOO_LARGE.to_owned());
    }
    for some in evidence.calls.chunks(AT_ONCE) {
        let calls: Vec<(PathBuf, Sample)> =
            some.iter().map(|call| (call.folder.clone(), call.sample.clone())).collect();
        let verdicts = repeating.repeat(&name, &calls, &Against::Merged).await;
        let verdicts = verdicts?;
        for (call, verdict) in some.iter().zip(verdicts) {
            let arguments = || value(&call.sample.arguments, PART);
            let fails = |why: &str| format!("with the arguments {}: {}", arguments(), cut(why, PART));
            match verdict {
                Verdict::Passed => came.passed = came.passed.saturating_add(1),
                Verdict::Skipped(reason) => {
                    came.skipped = came.skipped.saturating_add(1);
                    why.get_or_insert(reason);
                    continue;
                }
                Verdict::Failed(reason) => came.failing.push(fails(&reason)),
                Verdict::Unsure(reason, _) if came.unsure.len() >= UNSURE => {
                    came.failing.push(fails(&reason))
                }
                Verdict::Unsure(_, found) => {
                    came.unsure
                        .push(Unsure { question: question(&name, &description, &call.sample, &found) });
                }
            }
            if call.sample.output.is_some() {
                shown.extend(&call.members);
            }
        }
        done += some.len();
        if came.failing.len() >= FAILING {
            break;
        }
    }
    let left = evidence.calls.len().saturating_sub(done);
    if came.failing.len() > FAILING || left > 0 {
        let more = came.failing.len().saturating_sub(FAILING);
        came.failing.truncate(FAILING);
        came.failing.push(format!("{more} more recorded calls fail, and {left} were not repeated"));
    }
    let unknown = |(member, _): &(usize, _)| !shown.contains(member) && !evidence.old.contains(member);
    if left == 0
        && let Some((_, one)) = cluster.members.iter().enumerate().find(unknown)
    {
        let why = why.unwrap_or_else(|| "none is recorded that worked".to_owned());
        came.over = Some(format!("no call of `{}` can be repeated here: {why}", one.name));
    }
    Ok(())
}

/// What it is given.
#[derive(Deserialize)]
struct Weighed {
    #[serde(default)]
    replayed: Regressed,
    #[serde(default)]
    equal: Verdicts,
}

/// Whether nothing is lost: every call came to the same, or to what a judge finds as good.
pub(in super::super) fn weigh(args: &Value) -> Value {
    let Ok(Weighed { replayed, equal }) = serde_json::from_value(args.clone()) else {
        return json!({"accepted": false, "errors": ["nothing was repeated"], "replayed": null});
    };
    let mut errors = replayed.failing.clone();
    let mut passed = replayed.passed;
    for (index, unsure) in replayed.unsure.iter().enumerate() {
        match equal.get::<Equal>(index) {
            Some(Equal { equal: true, .. }) => passed = passed.saturating_add(1),
            judged => {
                let nobody = || "nobody could say that they are equal".to_owned();
                let why = judged.map_or_else(nobody, |equal| equal.reason);
                errors.push(format!("a call gives something else: {why}\n{}", unsure.question));
            }
        }
    }
    // Nothing repeated is nothing shown.
    let accepted = errors.is_empty() && replayed.over.is_none() && passed > 0;
    json!({"accepted": accepted, "errors": errors,
           "replayed": {"passed": passed, "skipped": replayed.skipped, "evidence": replayed.evidence}})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V-09: what one judge does not find equal is enough, and so is nothing.
    #[test]
    fn v09_all_calls_have_to_come_to_the_same() {
        let accepted = |replayed: Value, equal: Value| {
            weigh(&json!({"replayed": replayed, "equal": equal}))["accepted"] == true
        };
        assert!(accepted(json!({"passed": 2}), json!({})));
        assert!(!accepted(json!({"passed": 2, "failing": ["x"]}), json!({})));
        assert!(!accepted(json!({"passed": 0, "skipped": 3}), json!({})));
        assert!(!accepted(json!({"passed": 1, "over": "no"}), json!({})));
        let unsure = json!({"passed": 0, "unsure": [{"question": "a"}, {"question": "b"}]});
        let (yes, no) = (json!({"equal": true, "reason": ""}), json!({"equal": false, "reason": "less"}));
        assert!(accepted(unsure.clone(), json!({"0": yes, "1": yes})));
        assert!(!accepted(unsure.clone(), json!({"0": yes, "1": no})));
        assert!(!accepted(unsure, json!({"0": yes})));
        assert!(!accepted(json!(3), json!(null)));
    }
}
