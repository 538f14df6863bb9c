//! What may stand at a place.

use super::words::Place;
use crate::inspect::{is_driven, time};
use clap::Arg;
use selvedge_dialects::Dialect;
use selvedge_engine::library::Version;
use selvedge_host::Environment;
use selvedge_host::library;
use selvedge_host::places;
use selvedge_host::stores::open;
use selvedge_store::{RunFilter, RunInfo, RunStatus, Store};
use std::path::Path;

/// Runs that are offered; the latest are meant most often.
const RUNS: usize = 200;
/// Journals of more events are not read for the asks in them: that would take too long.
const EVENTS: u64 = 5_000;
/// Bytes of a document at most that is read for the names in it.
const FILE: u64 = 1 << 22;

/// Something that may stand at the cursor.
pub(super) struct Candidate {
    /// The word.
    pub(super) value: String,
    /// What it is; may be empty.
    pub(super) about: String,
}

impl Candidate {
    fn new(value: impl Into<String>, about: impl Into<String>) -> Self {
        Self { value: value.into(), about: about.into() }
    }
}

/// Everything that begins with what is written.
pub(super) fn of(place: &Place<'_>, environment: &Environment, state_dir: Option<&Path>) -> Vec<Candidate> {
    let mut found = Vec::new();
    if place.options && place.written.starts_with('-') {
        found.extend(options(place));
    } else if let Some(argument) = place.argument {
        found.extend(values(place, argument, environment, state_dir));
    } else if place.first {
        found.extend(commands(place));
    }
    found.retain(|candidate| candidate.value.starts_with(&place.written));
    for candidate in &mut found {
        candidate.value.insert_str(0, &place.prefix);
    }
    found
}

/// Whether the name of a file or folder may stand at the place.
pub(super) fn is_file(place: &Place<'_>) -> bool {
    let option = place.options && place.written.starts_with('-');
    !option && place.argument.is_some_and(|argument| argument.get_value_hint() == clap::ValueHint::AnyPath)
}

fn commands(place: &Place<'_>) -> Vec<Candidate> {
    let commands = place.command.get_subcommands().filter(|command| !command.is_hide_set());
    let about = |command: &clap::Command| command.get_about().map(ToString::to_string).unwrap_or_default();
    commands.map(|command| Candidate::new(command.get_name(), about(command))).collect()
}

fn options(place: &Place<'_>) -> Vec<Candidate> {
    let given = |option: &&Arg| {
        let many = !matches!(option.get_action(), clap::ArgAction::Set | clap::ArgAction::SetTrue);
        many || place.given.iter().all(|(id, _)| option.get_id() != id.as_str())
    };
    let options = place.command.get_arguments().filter(|argument| !argument.is_hide_set()).filter(given);
    let about = |option: &Arg| option.get_help().map(ToString::to_string).unwrap_or_default();
    options
        .filter_map(|option| Some(Candidate::new(format!("--{}", option.get_long()?), about(option))))
        .collect()
}

/// Values of an argument; nothing for files and free text.
fn values(
    place: &Place<'_>,
    argument: &Arg,
    environment: &Environment,
    state_dir: Option<&Path>,
) -> Vec<Candidate> {
    let names = |names: &[&str]| names.iter().map(|name| Candidate::new(*name, "")).collect();
    match argument.get_id().as_str() {
        "run" | "run_a" | "run_b" => runs(place, environment, state_dir).unwrap_or_default(),
        "ask" => asks(place, environment, state_dir).unwrap_or_default(),
        "node" => nodes(place, environment, state_dir).unwrap_or_default(),
        "value" if place.command.get_name() == "answer" => {
            words(place, environment, state_dir).unwrap_or_default()
        }
        "tool" => tools(environment, state_dir).unwrap_or_default(),
        "version" | "version_a" | "version_b" => versions(place, environment, state_dir).unwrap_or_default(),
        "plan" => plans(place).unwrap_or_default(),
        "dialect" if place.command.get_name() == "schema" => {
            crate::inspect::schema::names().map(|name| Candidate::new(name, "")).collect()
        }
        "dialect" => names(&Dialect::ALL.map(Dialect::name)),
        "status" => names(&RunStatus::ALL.map(RunStatus::as_str)),
        "topic" => topics(),
        _ => {
            let possible = argument.get_possible_values();
            let about = |value: &clap::builder::PossibleValue| {
                value.get_help().map(ToString::to_string).unwrap_or_default()
            };
            let shown = possible.iter().filter(|value| !value.is_hide_set());
            match argument.get_action() {
                clap::ArgAction::Set | clap::ArgAction::Append => {
                    shown.map(|value| Candidate::new(value.get_name(), about(value))).collect()
                }
                _ => Vec::new(),
            }
        }
    }
}

fn topics() -> Vec<Candidate> {
    use clap::CommandFactory;
    let cli = crate::cli::Cli::command();
    let commands = cli.get_subcommands().filter(|command| !command.is_hide_set());
    let about = |command: &clap::Command| command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut topics: Vec<Candidate> =
        commands.map(|command| Candidate::new(command.get_name(), about(command))).collect();
    topics.extend(crate::inspect::help::TOPICS.map(|(name, about)| Candidate::new(name, about)));
    topics
}

/// The store, if there is one that can be read as it is.
fn store(environment: &Environment, state_dir: Option<&Path>) -> Option<Store> {
    open(&places::state_dir(environment, state_dir).ok()?).ok()?
}

/// The runs that the command can do something with, latest first.
fn runs(place: &Place<'_>, environment: &Environment, state_dir: Option<&Path>) -> Option<Vec<Candidate>> {
    let store = store(environment, state_dir)?;
    let runs = store.runs(&RunFilter::default()).ok()?.sound;
    let fits = |run: &&RunInfo| match (place.command.get_name(), run.status) {
        ("answer", status) => status == RunStatus::Waiting,
        ("resume", status) => !matches!(status, RunStatus::Completed | RunStatus::Cancelled),
        ("cancel", status) => matches!(status, RunStatus::Running | RunStatus::Waiting),
        _ => true,
    };
    let begins = |run: &&RunInfo| run.id.starts_with(&place.written);
    let candidate = |run: &RunInfo| {
        let driven = run.status != RunStatus::Running || is_driven(&store, &run.id);
        let status = if driven { run.status.as_str() } else { "not driven" };
        let started = time::plain(run.started_ms);
        Candidate::new(&run.id, format!("{status}, {}, {}", started.get(..16).unwrap_or(&started), run.name))
    };
    Some(runs.iter().filter(begins).filter(fits).take(RUNS).map(candidate).collect())
}

/// The names that mean something in the library.
fn tools(environment: &Environment, state_dir: Option<&Path>) -> Option<Vec<Candidate>> {
    let (_, library) = library::open(&places::state_dir(environment, state_dir).ok()?).ok()?;
    let about = |version: &Version| version.facts.as_ref().map(|facts| facts.description.to_string());
    let offered = library.offered(None).into_iter();
    Some(offered.map(|(name, version)| Candidate::new(&*name, about(version).unwrap_or_default())).collect())
}

/// The versions of the tool that the command line names, latest first.
fn versions(
    place: &Place<'_>,
    environment: &Environment,
    state_dir: Option<&Path>,
) -> Option<Vec<Candidate>> {
    let (_, name) = place.given.iter().find(|(id, _)| id == "tool")?;
    let (_, library) = library::open(&places::state_dir(environment, state_dir).ok()?).ok()?;
    let versions = library::of_name(&library, name).ok()?;
    let candidate = |version: &&Version| {
        let about = format!("{}, {}", version.shown().stage.name(), time::plain(version.drafted));
        Candidate::new(library::short(&version.hash), about)
    };
    Some(versions.iter().rev().map(candidate).collect())
}

/// The run that the command line names.
fn run(place: &Place<'_>, store: &Store) -> Option<String> {
    let (_, run) = place.given.iter().find(|(id, _)| id == "run")?;
    let id = store.find_run(run).ok()?;
    (store.last_event(&id).ok()? <= EVENTS).then_some(id)
}

fn asks(place: &Place<'_>, environment: &Environment, state_dir: Option<&Path>) -> Option<Vec<Candidate>> {
    let store = store(environment, state_dir)?;
    let loaded = selvedge_runtime::load(&store, &run(place, &store)?, None, None).ok()?;
    let asks = loaded.state.asks().iter();
    Some(
        asks.map(|(id, ask)| {
            Candidate::new(
                crate::asks::called(&loaded.state, id).into_owned(),
                crate::asks::prompt(&loaded.state, ask),
            )
        })
        .collect(),
    )
}

/// What an ask takes, where only certain words do.
fn words(place: &Place<'_>, environment: &Environment, state_dir: Option<&Path>) -> Option<Vec<Candidate>> {
    let store = store(environment, state_dir)?;
    let loaded = selvedge_runtime::load(&store, &run(place, &store)?, None, None).ok()?;
    let (_, ask) = place.given.iter().find(|(id, _)| id == "ask")?;
    let ask = loaded.state.asks().get(crate::asks::open(&loaded.state, ask)?)?;
    let words = crate::asks::words(&loaded.state, ask);
    Some(words.iter().map(|word| Candidate::new(*word, "")).collect())
}

/// The plans of a file of several.
fn plans(place: &Place<'_>) -> Option<Vec<Candidate>> {
    let (_, file) = place.given.iter().find(|(id, _)| id == "file" || id == "files")?;
    std::fs::metadata(file).ok().filter(|about| about.is_file() && about.len() <= FILE)?;
    let text = std::fs::read(file).ok()?;
    let plans: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&text).ok()?;
    let all = plans.iter().all(|(_, plan)| plan.get("nodes").is_some());
    Some(plans.keys().filter(|_| all).map(|name| Candidate::new(name, "")).collect())
}

fn nodes(place: &Place<'_>, environment: &Environment, state_dir: Option<&Path>) -> Option<Vec<Candidate>> {
    let store = store(environment, state_dir)?;
    let info = store.run(&run(place, &store)?).ok()?;
    let graph = selvedge_runtime::graph_of(&store, &info).ok()?;
    Some(
        graph.nodes.values().map(|node| Candidate::new(node.id.to_string(), node.name.to_string())).collect(),
    )
}
