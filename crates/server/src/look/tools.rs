//! The tool library (A-17, S-27): its tools, and one with its versions.

use crate::app::App;
use crate::blocking::blocking;
use crate::call::Call;
use crate::problem::Problem;
use crate::reply::{Later, Reply};
use selvedge_engine::library::{Library, Version};
use selvedge_host::tools::Listed;
use selvedge_host::{library, report};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Recorded calls that are shown: the last ones.
const CALLS: usize = 50;

/// `GET /v1/tools`.
pub(crate) fn list(app: &App, _: &Call) -> Result<Reply, Problem> {
    let library = library::read(&app.store)?;
    let names: BTreeSet<&Arc<str>> = library.versions().map(|version| &version.name).collect();
    let tools = names.into_iter().map(|name| {
        let versions = library::of_name(&library, name)?;
        let shown = library.public(name).or(versions.last().copied());
        let mut object = shown.map(|version| head(version, &library)).unwrap_or_default();
        if let Some(fields) = object.as_object_mut() {
            fields.insert("name".to_owned(), (**name).into());
            fields.insert("versions".to_owned(), versions.len().into());
        }
        Ok(object)
    });
    Ok(Reply::json(json!({"tools": tools.collect::<Result<Vec<Value>, Problem>>()?})))
}

/// `GET /v1/catalogue`.
pub(crate) fn catalogue(app: Arc<App>, _: Call) -> Later {
    Box::pin(async move {
        // Looking may start programs, which say what they are: one at a time.
        let _turn = app.cataloguing.lock().await;
        let (reading, settings) = (Arc::clone(&app), Arc::clone(&app));
        let library = blocking(move || Ok(library::read(&reading.store)?)).await?;
        let check = blocking(move || Ok(settings.host.check(settings.defaults.clone())?)).await?;
        let catalogue = check.catalogue(&[]).await?;
        let tools: Vec<Value> =
            Listed::all(&app.host.environment, &catalogue, &library).iter().map(Listed::json).collect();
        let warnings: Vec<&str> = catalogue.warnings().iter().map(|warning| &*warning.message).collect();
        Ok(Reply::json(json!({"tools": tools, "warnings": warnings})))
    })
}

/// `GET /v1/tools/{name}`.
pub(crate) fn one(app: &App, call: &Call) -> Result<Reply, Problem> {
    let (library, name) = (library::read(&app.store)?, call.part("name"));
    let mut versions = library::of_name(&library, name)?;
    let current = library.public(name).map(|version| &version.hash);
    let shown = match call.text("version") {
        Some(prefix) => Some(library::find(&library, name, prefix)?),
        None => library.public(name).or(versions.last().copied()),
    };
    versions.reverse();
    let mut object = shown.map(|version| head(version, &library)).unwrap_or_default();
    if let Some((fields, version)) = object.as_object_mut().zip(shown) {
        fields.insert("name".to_owned(), name.into());
        fields.insert("code".to_owned(), library::text(&app.store, &version.hash)?.into());
        fields.insert(
            "input_schema".to_owned(),
            json!(version.facts.as_ref().map(|facts| &facts.input_schema)),
        );
        fields.insert("metadata".to_owned(), json!(version.facts.as_ref().map(|facts| &facts.metadata)));
        fields.insert("calls".to_owned(), calls(app, version)?.into());
        let versions = versions.iter().map(|version| report::version(version, current));
        fields.insert("versions".to_owned(), versions.collect());
    }
    Ok(Reply::json(object))
}

fn head(version: &Version, library: &Library) -> Value {
    let facts = version.facts.as_ref();
    json!({
        "version": version.hash,
        "state": version.shown().stage.name(),
        "current": library.public(&version.name).is_some_and(|public| public.hash == version.hash),
        "effects": facts.and_then(|facts| facts.effects),
        "description": facts.map(|facts| &facts.description),
    })
}

/// The calls that are kept of a version, the last one first.
fn calls(app: &App, version: &Version) -> Result<Vec<Value>, Problem> {
    let calls = version.calls.iter().rev().take(CALLS).map(|call| {
        // A large one is only told of: a page of them could be as large as the library.
        let mut object = match call.bytes {
            0 => json!(library::sample_of(&app.store, &call.sample)?),
            bytes => {
                let fault = call.fault.map(|kind| json!({"kind": kind}));
                let note = format!("a call of {bytes} bytes, which are not shown here");
                json!({"bytes": bytes, "arguments": null, "output": null, "fault": fault, "note": note})
            }
        };
        if let Some(fields) = object.as_object_mut() {
            fields.insert("run".to_owned(), json!(call.origin.as_ref().map(|origin| &origin.run)));
        }
        Ok(object)
    });
    calls.collect()
}
