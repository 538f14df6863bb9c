//! What names of tools mean to a task, and which there are.

use super::beside;
use super::place::Task;
use super::texts::cut;
use crate::error::Error;
use crate::library::operations::Undone;
use crate::library::record;
use crate::secrets;
use selvedge_engine::ToolDef;
use selvedge_engine::library::{Library, Place, Stage};
use selvedge_tools::{CatalogueErrors, ErrorClass, Permissions, ToolError};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// The longest description of a tool in a list, in bytes.
const DESCRIPTION: usize = 2000;
/// The longest reason, in bytes.
const REASON: usize = 2000;

/// The task's own versions and everybody's by name, as the task sees them.
#[derive(Default)]
struct Shelf {
    own: BTreeMap<Arc<str>, Arc<str>>,
    public: BTreeMap<Arc<str>, Arc<str>>,
    /// Of those versions.
    descriptions: BTreeMap<Arc<str>, Arc<str>>,
}

impl Shelf {
    fn of(library: &Library, task: &Task, wanted: impl Fn(&str) -> bool) -> Self {
        let place = task.place();
        let mut shelf = Self::default();
        let retired = |version: &str| {
            library.version(version).and_then(|known| known.stage(&place)) == Some(Stage::Retired)
        };
        let own = library.names(&place).filter(|name| wanted(name));
        shelf
            .own
            .extend(own.filter_map(|name| Some((Arc::clone(name), Arc::clone(library.head(&place, name)?)))));
        let heads =
            library.names(&Place::Library).chain(library.aliases().keys()).filter(|name| wanted(name));
        for name in heads {
            // What could not be mended is not used any more by this task.
            if let Some(version) = library.public(name).filter(|version| !retired(&version.hash)) {
                shelf.public.insert(Arc::clone(name), Arc::clone(&version.hash));
            }
        }
        for version in shelf.own.values().chain(shelf.public.values()) {
            let facts = library.version(version).and_then(|known| known.facts.as_ref());
            let description = facts.map(|facts| Arc::clone(&facts.description)).unwrap_or_default();
            shelf.descriptions.insert(Arc::clone(version), description);
        }
        shelf
    }
}

/// Which tools there are, private ones first.
pub(super) async fn tools(task: Arc<Task>) -> Result<Value, Undone> {
    let reading = Arc::clone(&task);
    // A name that leads to another one can be called, but one tool is listed once.
    let listed = move |library: &Library| {
        let has = |place: &Place, name: &str| library.head(place, name).is_some();
        Shelf::of(library, &reading, |name| has(&Place::Library, name) || has(&reading.place(), name))
    };
    let reading = Arc::clone(&task);
    let shelf = beside(move || reading.look(listed)).await?;
    let catalogue = &task.bench.catalogue;
    let entry = |name: &str, description: &str, from: &str| json!({"name": name, "description": cut(description, DESCRIPTION), "from": from});
    let described = |version: &Arc<str>| shelf.descriptions.get(version).map_or("", |text| &**text);
    let mut listed: Vec<Value> =
        shelf.own.iter().map(|(name, version)| entry(name, described(version), "task")).collect();
    // A name means what the user points at first.
    let of_library = |name: &str| !catalogue.contains(name) || catalogue.is_of_library(name);
    for (name, version) in &shelf.public {
        if !shelf.own.contains_key(name) && of_library(name) {
            listed.push(entry(name, described(version), "library"));
        }
    }
    for name in catalogue.offered() {
        if !shelf.own.contains_key(&name) && !catalogue.is_of_library(&name) {
            let description = catalogue.sketch(&name).map(|tool| Arc::clone(&tool.description));
            listed.push(entry(&name, &description.unwrap_or_default(), "configured"));
        }
    }
    Ok(json!({"tools": listed, "allowed": allowed(&catalogue.config().permissions)}))
}

/// What a tool may declare, in words for its author.
fn allowed(permissions: &Permissions) -> String {
    let paths = |paths: &[PathBuf]| match paths {
        [] => "none".to_owned(),
        paths => paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
    };
    let names: Vec<&str> = permissions.allow_env.names().collect();
    let all = format!(
        "network: {}\nread_paths: {}\nwrite_paths: {}\nenv: {}",
        if permissions.allow_network.is_on() { "yes" } else { "no" },
        paths(&permissions.allow_read),
        paths(&permissions.allow_write),
        if names.is_empty() { "none".to_owned() } else { names.join(", ") },
    );
    cut(&all, DESCRIPTION)
}

/// What [`bindings`] is given.
#[derive(Deserialize)]
struct Given {
    #[serde(default)]
    names: Vec<Value>,
}

/// What names mean, ready to be called, with their texts kept by the run.
pub(super) async fn bindings(task: Arc<Task>) -> Result<Value, Undone> {
    let Given { names } = task.given()?;
    let names: BTreeSet<Arc<str>> = names.iter().filter_map(Value::as_str).map(Arc::from).collect();
    let (reading, wanted) = (Arc::clone(&task), names.clone());
    let shelf =
        beside(move || reading.look(|library| Shelf::of(library, &reading, |name| wanted.contains(name))))
            .await?;
    let (mut tools, mut missing, mut refused) = (Map::new(), Vec::new(), Map::new());
    for name in names {
        match bound(&task, &shelf, &name).await? {
            Ok(Some(tool)) => drop(tools.insert(name.to_string(), json!(*tool))),
            Ok(None) => missing.push(name),
            Err(why) => {
                refused.insert(name.to_string(), cut(&why, REASON).into());
                missing.push(name);
            }
        }
    }
    Ok(json!({"tools": tools, "missing": missing, "refused": refused}))
}

/// What a name means, or why it can't be used.
async fn bound(
    task: &Task,
    shelf: &Shelf,
    name: &Arc<str>,
) -> Result<Result<Option<Arc<ToolDef>>, String>, Error> {
    let catalogue = &task.bench.catalogue;
    let own = shelf.own.get(name);
    let public =
        || shelf.public.get(name).filter(|_| !catalogue.contains(name) || catalogue.is_of_library(name));
    let tool = match own.or_else(public) {
        Some(version) => library_tool(task, name, version).await?.map(Some),
        // One of the library's that the task has given up.
        None if catalogue.is_of_library(name) => Ok(None),
        None => match catalogue.ready(name).await {
            Err(errors) if errors.class() == ErrorClass::State => return Err(errors.into()),
            ready => ready.map_err(|errors| whole(&errors)),
        },
    };
    let Ok(Some(tool)) = tool else { return Ok(tool) };
    Ok(match pinned(task, &tool).await {
        Ok(()) => Ok(Some(tool)),
        Err(error) if error.is_of_machine() => return Err(error),
        Err(error) => Err(error.diagnostics.first().map(|first| first.message.clone()).unwrap_or_default()),
    })
}

/// A version of the library's by this name, ready to be called; or what is wrong with it.
pub(super) async fn library_tool(
    task: &Task,
    name: &Arc<str>,
    version: &str,
) -> Result<Result<Arc<ToolDef>, String>, Error> {
    match task.bench.workshop.of_library(name, version).await {
        Err(error) if error.class == ErrorClass::State => Err(error.into()),
        tool => Ok(tool.map_err(|error| said(&error))),
    }
}

/// Keeps the text of a tool with the run.
async fn pinned(task: &Task, tool: &ToolDef) -> Result<(), Error> {
    let known = secrets::named(&task.bench.config);
    record::pin(&task.bench.store, &task.bench.catalogue, std::iter::once(tool), &known).await
}

/// What is wrong with a tool, in words for who may use it or write it anew.
pub(super) fn said(error: &ToolError) -> String {
    match error.help.as_str() {
        "" => error.message.clone(),
        help => format!("{} ({help})", error.message),
    }
}

fn whole(errors: &CatalogueErrors) -> String {
    errors.0.iter().map(said).collect::<Vec<_>>().join("; ")
}
