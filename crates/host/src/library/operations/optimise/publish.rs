//! What becomes of the tools of a batch, in one commit, decided by the library as it is then (V-05, V-09, V-10).

use super::super::given::Verdicts;
use super::super::place::{Changing, Task};
use super::super::texts::cut;
use super::candidate::{Candidate, Cluster, base_name, descends};
use super::evidence::records;
use crate::error::Error;
use crate::evolve::measures::{Change, How, Separate};
use crate::library::operations::Undone;
use selvedge_engine::library::{Command, Library, Place, Refusal, Report, Taken};
use selvedge_tools::coder::safe_name;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The longest reason that is told, in bytes.
const REASON: usize = 1 << 10;

/// What it is given.
#[derive(Deserialize)]
struct Given {
    clusters: Vec<Cluster>,
    #[serde(default)]
    single: Vec<Candidate>,
    #[serde(default)]
    merged: Verdicts,
    #[serde(default)]
    last: bool,
}

/// What came of a cluster.
#[derive(Default, Deserialize)]
struct Merged {
    #[serde(default)]
    version: Option<Arc<str>>,
    #[serde(default)]
    why: Value,
    #[serde(default)]
    replayed: Option<Replayed>,
}

#[derive(Default, Deserialize)]
struct Replayed {
    #[serde(default)]
    passed: u32,
    #[serde(default)]
    skipped: u32,
    #[serde(default)]
    evidence: usize,
}

/// Publishes what a batch has come to.
pub(in super::super) async fn publish(task: Arc<Task>) -> Result<Value, Undone> {
    let given: Given = task.given()?;
    let merged: Vec<Merged> =
        (0..given.clusters.len()).map(|at| given.merged.get(at).unwrap_or_default()).collect();
    let publishing = Arc::clone(&task);
    task.once(move |changing| published(changing, &publishing, &given, &merged)).await
}

fn published(
    changing: &mut Changing<'_>,
    task: &Task,
    given: &Given,
    merged: &[Merged],
) -> Result<Value, Error> {
    let clusters = || given.clusters.iter().zip(merged);
    let stale = |(cluster, merged): &(&Cluster, &Merged)| {
        merged.version.is_some() && !is_fresh(changing.library(), cluster, merged)
    };
    let stale: Vec<bool> = clusters().map(|one| stale(&one)).collect();
    if stale.contains(&true) && !given.last {
        let kept: Map<String, Value> = clusters()
            .filter_map(|(cluster, merged)| {
                Some((Cluster::key(&cluster.versions), json!(merged.version.as_ref()?)))
            })
            .collect();
        return Ok(json!({"again": true, "kept": kept, "changes": [], "separate": []}));
    }
    let (mut changes, mut separate): (Vec<Change>, Vec<Separate>) = Default::default();
    for ((cluster, merged), stale) in clusters().zip(stale) {
        // What the library does not allow of one tool is no reason to lose the others (V-10).
        let made = match &merged.version {
            Some(_) if stale => Err("others have changed or called these tools meanwhile".to_owned()),
            Some(version) => changing
                .together(|changing| merge(changing, task, cluster, version, merged))
                .map_err(|refusal| refusal.message),
            None => Err(said(&merged.why)),
        };
        match made {
            Ok(change) => changes.push(change),
            Err(why) => {
                let members = cluster.members.iter().map(|one| Arc::clone(&one.name)).collect();
                separate.push(Separate { name: Arc::clone(&cluster.name), members, why });
                for one in &cluster.members {
                    by_itself(changing, one, &mut changes, &mut separate);
                }
            }
        }
    }
    for one in &given.single {
        by_itself(changing, one, &mut changes, &mut separate);
    }
    // What was written here and is not in use is given up.
    changing.sure(Command::EndTask { task: Arc::clone(&task.id), publish: false, left: false })?;
    Ok(json!({"again": false, "kept": {}, "changes": changes, "separate": separate}))
}

/// Whether the library has the members of a cluster as they were, and nothing more is recorded of them.
fn is_fresh(library: &Library, cluster: &Cluster, merged: &Merged) -> bool {
    let evidence = merged.replayed.as_ref().map_or(0, |replayed| replayed.evidence);
    cluster.members.iter().all(|one| one.is_there(library)) && records(library, cluster) == evidence
}

/// Why, in words.
fn said(why: &Value) -> String {
    let lines = match why {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        Value::String(text) => text.clone(),
        _ => String::new(),
    };
    if lines.is_empty() { "no one tool did the work of all".to_owned() } else { cut(&lines, REASON) }
}

/// One tool takes the place of all members.
fn merge(
    changing: &mut Changing<'_>,
    task: &Task,
    cluster: &Cluster,
    version: &Arc<str>,
    merged: &Merged,
) -> Result<Change, Refusal> {
    let own = cluster.members.iter().find(|one| one.version == *version);
    let mut places = own.map(|one| one.places(changing.library())).unwrap_or_default().into_iter();
    let place = match own {
        Some(one) if one.is_public() => Place::Library,
        Some(_) => places.next().unwrap_or(Place::Library),
        None => written(changing, task, version)?,
    };
    let members: Vec<Arc<str>> =
        cluster.members.iter().filter(|one| one.is_public()).map(|one| Arc::clone(&one.name)).collect();
    // Others may have made the same meanwhile: one content is one tool (V-05), by the name that it has.
    let there = changing.library().public_name(version).filter(|name| !members.contains(name));
    let name = there.unwrap_or_else(|| free(changing.library(), &cluster.name, &members));
    let others = cluster.members.iter().filter(|one| one.version != *version);
    let taken = others.clone().flat_map(|one| {
        let version = &one.version;
        one.places(changing.library()).into_iter().map(|place| Taken { place, version: Arc::clone(version) })
    });
    let taken: Vec<Taken> = taken.collect();
    let version = Arc::clone(version);
    let (from, names): (Vec<Arc<str>>, Vec<Arc<str>>) =
        others.map(|one| (Arc::clone(&one.version), Arc::clone(&one.name))).unzip();
    let newer = own.is_some_and(|one| !one.is_public())
        && members == [Arc::clone(&name)]
        && from.iter().all(|old| descends(changing.library(), &version, old));
    let aliases = members.iter().filter(|member| **member != name).cloned().collect();
    let report = merged.replayed.as_ref().map(|replayed| Report {
        passed: replayed.passed,
        skipped: replayed.skipped,
        ..Report::default()
    });
    if let Some(report) = report {
        changing.accept(Command::Test { version: Arc::clone(&version), report })?;
    }
    changing.accept(Command::Merge {
        place,
        version: Arc::clone(&version),
        name: Arc::clone(&name),
        members,
        taken,
    })?;
    // Other tasks have made the same.
    for place in places {
        changing.accept(Command::Publish {
            place,
            version: Arc::clone(&version),
            name: Some(Arc::clone(&name)),
        })?;
    }
    let how = if newer { How::Enhanced } else { How::Merged };
    Ok(Change { name, version, how, from, names, aliases })
}

/// What a coder has written and was found to do the work of all is proven in the optimisation's own place.
fn written(changing: &mut Changing<'_>, task: &Task, version: &Arc<str>) -> Result<Place, Refusal> {
    changing.take_in(version)?;
    let task = || Arc::clone(&task.id);
    // Nobody calls it by a name of this place.
    let name = Some(Arc::clone(version));
    changing.accept(Command::Keep { task: task(), version: Arc::clone(version), name })?;
    changing.accept(Command::Prove { task: task(), version: Arc::clone(version) })?;
    Ok(Place::Task(task()))
}

/// The name of a merged tool: the suggested one, unless that is or leads to a tool which is no member.
fn free(library: &Library, name: &Arc<str>, members: &[Arc<str>]) -> Arc<str> {
    let meant = library.resolve(name);
    let other =
        library.head(&Place::Library, meant).is_some() && !members.iter().any(|member| **member == *meant);
    if other { library.free_name(name) } else { Arc::clone(name) }
}

/// Publishes a tool by itself, or says why it stays its tasks' own.
fn by_itself(
    changing: &mut Changing<'_>,
    one: &Candidate,
    changes: &mut Vec<Change>,
    separate: &mut Vec<Separate>,
) {
    match changing.together(|changing| alone(changing, one)) {
        Ok(change) => changes.extend(change),
        Err(Refusal { message: why, .. }) => {
            let name = Arc::clone(&one.name);
            separate.push(Separate { name: Arc::clone(&name), members: vec![name], why });
        }
    }
}

/// A tool by itself becomes everybody's, if it is not that already: under its base name, with a number where another tool has it.
fn alone(changing: &mut Changing<'_>, one: &Candidate) -> Result<Option<Change>, Refusal> {
    let library = changing.library();
    let places = one.places(library);
    let Some(known) = library.version(&one.version).filter(|_| !places.is_empty()) else { return Ok(None) };
    let own = Arc::clone(&known.name);
    let base: Arc<str> = Some(base_name(&own))
        .filter(|base| safe_name(base).as_deref() == Ok(*base))
        .map_or(Arc::clone(&own), Arc::from);
    let there = library.public_name(&one.version);
    let name = match &there {
        Some(name) => Arc::clone(name),
        None => {
            let is_free = |name: &&Arc<str>| library.free_name(name) == **name;
            [&base, &own].into_iter().find(is_free).cloned().unwrap_or_else(|| library.free_name(&base))
        }
    };
    for place in places {
        let version = Arc::clone(&one.version);
        changing.accept(Command::Publish { place, version, name: Some(Arc::clone(&name)) })?;
    }
    let (version, how) = (Arc::clone(&one.version), How::Created);
    let (from, names, aliases) = Default::default();
    Ok(there.is_none().then_some(Change { name, version, how, from, names, aliases }))
}
