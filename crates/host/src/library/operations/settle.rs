//! What the classes of calls mean for the tools: calls are recorded, versions proven, and what is to be mended told.

use super::beside;
use super::calls::Became;
use super::given::{Call, Class, Looked, Verdicts, object};
use super::place::{Changing, Task};
use super::texts::{cut, fenced, value};
use crate::error::Error;
use crate::library::operations::Undone;
use crate::library::record::recorded;
use crate::library::{self, samples, short};
use selvedge_engine::FaultKind;
use selvedge_engine::library::{Command, Library, Origin, Place, Sample, SampleFault, Stage};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How much of a tool's file a brief has, in bytes.
const FILE: usize = 64 << 10;
/// Calls that a brief tells of.
const CALLS: usize = 5;
/// How much a brief says of each part of a call, in bytes.
const PART: usize = 4 << 10;
/// How much of a schema a model is told that has violated it, in bytes.
const SCHEMA: usize = 8 << 10;

/// What it is given.
#[derive(Deserialize)]
struct Given {
    #[serde(default)]
    calls: Vec<Call>,
    #[serde(default)]
    looked: Looked,
    #[serde(default)]
    classes: Verdicts,
}

/// What a call came to in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// The tool did its work.
    Success,
    /// The model that called it is at fault, with what is known of how.
    Misuse(String),
    /// The tool is at fault, with what is known of why.
    Failure(String),
    /// It says nothing.
    Nothing,
}

/// A call that failed, and why.
type Failed<'c> = (&'c Call, &'c str);

/// Records calls, and says which tools are to be mended.
pub(super) async fn settle(task: Arc<Task>) -> Result<Value, Undone> {
    if let Some(answer) = task.answered().await? {
        return Ok(answer);
    }
    let Given { calls, looked, classes } = task.given()?;
    let ended: Vec<(Call, End)> = calls
        .into_iter()
        .map(|call| {
            let end = ended(&call, &looked, &classes);
            (call, end)
        })
        .collect();
    let printing = Arc::clone(&task);
    let (ended, printed) = beside(move || {
        let failed: Vec<&Call> =
            ended.iter().filter(|(_, end)| matches!(end, End::Failure(_))).map(|(call, _)| call).collect();
        let printed = super::printed::of(&printing, &failed)?;
        Ok((ended, printed))
    })
    .await?;
    let settling = Arc::clone(&task);
    task.once(move |changing| settled(&settling, changing, &ended, &printed)).await
}

/// The end of a call: what is clear, else what a model said.
fn ended(call: &Call, looked: &Looked, classes: &Verdicts) -> End {
    let said = call.error.as_ref().map(|error| error.message.clone());
    if looked.failed.contains(&call.id) {
        let empty = || "it gave nothing".to_owned();
        return End::Failure(said.unwrap_or_else(empty));
    }
    if looked.misused.contains(&call.id) {
        return End::Misuse(said.unwrap_or_default());
    }
    let asked = looked.ask.iter().position(|asked| *asked == call.id);
    match asked.and_then(|index| classes.get::<Class>(index)) {
        // A request that a site has refused proves nothing.
        Some(class) if class.class == "Success" && call.error.is_none() => End::Success,
        Some(class) if class.class == "Input Error" => End::Misuse(class.reason),
        Some(class) if class.class == "Execution Failure" => End::Failure(class.reason),
        // What is proven already is not asked about, and what it gave is worth to be kept.
        None if asked.is_none() && call.became() == Became::Output => End::Success,
        _ => End::Nothing,
    }
}

fn settled(
    task: &Task,
    changing: &mut Changing<'_>,
    ended: &[(Call, End)],
    printed: &BTreeMap<Arc<str>, String>,
) -> Result<Value, Error> {
    let (mut say, mut proven) = (Vec::new(), BTreeSet::new());
    let mut mend: BTreeMap<(Arc<str>, Arc<str>), Vec<Failed<'_>>> = BTreeMap::new();
    for (call, end) in ended {
        if changing.library().version(&call.version).is_none() {
            continue;
        }
        record(task, changing, call, end)?;
        match end {
            End::Success if prove(task, changing, call)? => drop(proven.insert(Arc::clone(&call.tool))),
            End::Misuse(why) => say.push(misuse(changing.library(), call, why)),
            End::Failure(why) => {
                let of = (Arc::clone(&call.tool), Arc::clone(&call.version));
                mend.entry(of).or_default().push((call, why));
            }
            End::Success | End::Nothing => {}
        }
    }
    let mut mended = Vec::new();
    for ((name, version), calls) in mend {
        // A better one may have its place already.
        if changing.stage(&version) == Some(Stage::Enhanced) {
            continue;
        }
        let ids: Vec<&Arc<str>> = calls.iter().map(|(call, _)| &call.id).collect();
        let brief = brief(task, changing.library(), (&name, &version), &calls, printed)?;
        mended.push(json!({"name": name, "version": version, "calls": ids, "brief": brief}));
    }
    Ok(json!({"say": say.join("\n\n"), "proven": proven, "mend": mended}))
}

/// Keeps a call for tests, if it shows something about the tool.
fn record(task: &Task, changing: &mut Changing<'_>, call: &Call, end: &End) -> Result<(), Error> {
    let (output, fault) = match end {
        End::Success => (call.output.clone(), None),
        End::Failure(why) => {
            let kind = if call.ran_out() { FaultKind::Timeout } else { FaultKind::ExecutionFailure };
            // What it gave is no output that a better version is to give.
            let gave = call.output.as_ref().map(|output| format!(" (it gave {})", value(output, PART)));
            let message = format!("{}{}", cut(why, PART), gave.unwrap_or_default());
            (None, Some(SampleFault { kind, message: Some(message) }))
        }
        // What the schema refuses shows nothing about the tool; what a model says of arguments that it took does.
        End::Misuse(why) if call.became() != Became::Misused => {
            (None, Some(SampleFault { kind: FaultKind::InputError, message: Some(cut(why, PART)) }))
        }
        End::Misuse(_) | End::Nothing => return Ok(()),
    };
    let sample = Sample { arguments: object(&call.arguments), output, fault, note: None };
    let Some(json) = serde_json::to_string(&sample).ok().filter(|json| samples::parsed(json).is_ok()) else {
        return Ok(());
    };
    let folder = task.bench.catalogue.config().workspace.display().to_string();
    let effect = format!("{}/{}", task.key, call.id).into();
    let origin = Origin { run: Arc::clone(&task.run), effect, folder: Some(folder.into()) };
    let kept =
        |changing: &Changing<'_>| changing.library().version(&call.version).map(|known| known.calls.len());
    let before = kept(changing);
    changing.sure(recorded(&call.version, &sample, &json, Some(origin)))?;
    if kept(changing) != before {
        changing.keep(json.into_bytes());
    }
    Ok(())
}

/// A version has done its work: whether that was not known before.
fn prove(task: &Task, changing: &mut Changing<'_>, call: &Call) -> Result<bool, Error> {
    let public = changing.library().version(&call.version).and_then(|known| known.stage(&Place::Library));
    match changing.stage(&call.version) {
        Some(Stage::Private) => {}
        // It proves nothing of what is everybody's, and nothing of what was given up.
        Some(Stage::Enhanced | Stage::Public) => return Ok(false),
        _ if public == Some(Stage::Public) => return Ok(false),
        _ => changing.bind(&call.tool, &call.version, false, "in use by the run")?,
    }
    let place = task.place();
    let life = changing.library().version(&call.version).and_then(|known| known.lives.get(&place));
    if life.is_none_or(|life| life.proven) {
        return Ok(false);
    }
    let (task, version) = (Arc::clone(&task.id), Arc::clone(&call.version));
    changing.sure(Command::Prove { task, version })?;
    Ok(true)
}

/// What a model is told that has violated a schema: how, and what would fit.
fn misuse(library: &Library, call: &Call, why: &str) -> String {
    let facts = library.version(&call.version).and_then(|known| known.facts.as_ref());
    let schema = facts.map(|facts| facts.input_schema.to_string()).unwrap_or_default();
    format!(
        "`{}` was called with arguments that are wrong for it: {}\nWhat it takes: {}\nCall it again with arguments that fit, or \
         do without it.",
        call.tool,
        cut(why.trim(), PART),
        cut(&schema, SCHEMA)
    )
}

/// What a coder is told of a tool that failed.
fn brief(
    task: &Task,
    library: &Library,
    (name, version): (&Arc<str>, &Arc<str>),
    calls: &[Failed<'_>],
    printed: &BTreeMap<Arc<str>, String>,
) -> Result<String, Error> {
    let text = library::text(&task.bench.store, version)?;
    let facts = library.version(version).and_then(|known| known.facts.as_ref());
    let about = facts.map(|facts| cut(&facts.description, PART)).unwrap_or_default();
    let mut brief = format!(
        "The tool `{name}`, version {}: {about}\n\nIts file:\n\n{}\n\nCalls of it that failed:",
        short(version),
        fenced("python", &cut(&text, FILE))
    );
    for (n, (call, why)) in calls.iter().take(CALLS).enumerate() {
        brief.push_str(&format!("\n\n{}. arguments: {}", n + 1, value(&call.arguments, PART)));
        match (&call.error, &call.output) {
            (Some(error), _) => {
                brief.push_str(&format!("\n   {}: {}", error.kind, cut(&error.message, PART)));
            }
            (None, output) => {
                let output = output.as_ref().unwrap_or(&Value::Null);
                brief.push_str(&format!(
                    "\n   output: {}\n   why that is a failure: {why}",
                    value(output, PART)
                ));
            }
        }
        if let Some(printed) = printed.get(&call.id) {
            brief.push_str(&format!("\n   the end of what it printed:\n{}", cut(printed, PART)));
        }
    }
    if calls.len() > CALLS {
        brief.push_str(&format!("\n\n… and {} more.", calls.len() - CALLS));
    }
    Ok(brief)
}
