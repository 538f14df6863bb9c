//! Whom nodes waited for and whose messages they saw, the graph that they are of, and what two runs have in common (C-15).

use crate::app::App;
use crate::call::Call;
use crate::problem::Problem;
use crate::reply::Reply;
use selvedge_host::Error;
use selvedge_host::diff::{Diff, both};
use selvedge_host::explain::{self, At, Explained, Seen, Story, critical, path};
use selvedge_host::stores::find_run;
use selvedge_runtime::{Clock, SystemClock};
use serde_json::{Value, json};
use std::collections::HashMap;

/// `GET /v1/runs/{id}/explain`.
pub(crate) fn explain(app: &App, call: &Call) -> Result<Reply, Problem> {
    let id = app.run_id(call)?;
    let driven = app.store.is_driven(&id).unwrap_or(true);
    let object = app.kept.look(&id, call.number("at"), |run, journal| {
        let now = Some(&run.state).filter(|state| state.events() == journal.events);
        let now = now.and_then(|state| explain::now(state, driven));
        let story = Story::new(&run.timeline, run.state.graph(), now);
        let explained = Explained::new(&run.state, story, driven);
        let only = only(&explained, call.texts("node"), &id)?;
        let mut seen = Seen::new(&explained.story, explained.state, journal.shown);
        let mut nodes = only.clone().unwrap_or_else(|| explained.story.all().collect());
        if call.text("afresh") == Some("yes") {
            nodes.retain(|node| !explained.afresh(*node).is_empty());
        }
        let nodes: Vec<Value> =
            nodes.iter().map(|node| explained.object(&id, *node, only.is_some(), &mut seen)).collect();
        let critical = only.is_none().then(|| critical(&explained, &path(&explained)));
        Ok(json!({
            "run_id": id,
            "at": explained.state.events(),
            "nodes": nodes,
            "recovery": explained.recovery(only.as_deref()),
            "roles": explained.roles().filter(|_| only.is_none()),
            "critical": critical,
        }))
    })?;
    Ok(Reply::json(object))
}

/// The nodes that are asked for by name, if any are: one that is not there is an error, and of several it is left out.
fn only(explained: &Explained<'_>, names: &[String], run: &str) -> Result<Option<Vec<At>>, Error> {
    match names {
        [] => Ok(None),
        [name] => Ok(Some(vec![explained.find(name, run)?])),
        names => {
            // As `named` finds them, without a look at all nodes for each of them.
            let story = &explained.story;
            let mut told: HashMap<&str, At> = HashMap::new();
            for at in story.root().chain(story.all()) {
                told.entry(explained.name(at)).or_insert(at);
            }
            let find = |name: &String| told.get(&**name).copied().or_else(|| explained.named(name));
            Ok(Some(names.iter().filter_map(find).collect()))
        }
    }
}

/// `GET /v1/runs/{id}/graph`.
pub(crate) fn graph(app: &App, call: &Call) -> Result<Reply, Problem> {
    let id = app.run_id(call)?;
    let driven = app.store.is_driven(&id).unwrap_or(true);
    let object = app.kept.look(&id, call.number("at"), |run, journal| {
        let story = Story::new(&run.timeline, run.state.graph(), None);
        let explained = Explained::new(&run.state, story, driven);
        let (past, last) = (run.state.events() < journal.events, run.timeline.last());
        let now = last.filter(|_| past).map_or_else(|| SystemClock.now_ms(), |last| last.at);
        let goes_on = past || driven;
        let node = |at: At| {
            let waited = explained.waits(at).iter();
            let waited = waited.map(|waited| json!({"node": explained.name(waited.at), "why": waited.why}));
            json!({
                "node": explained.name(at),
                "status": run.timeline.standing(explained.story.node(at), now, goes_on),
                "waited_for": waited.collect::<Vec<_>>(),
            })
        };
        let nodes: Vec<Value> = explained.story.root().map(node).collect();
        Ok(json!({"run_id": id, "at": run.state.events(), "graph": **run.state.graph(), "nodes": nodes}))
    })?;
    Ok(Reply::json(object))
}

/// `GET /v1/diff`.
pub(crate) fn diff(app: &App, call: &Call) -> Result<Reply, Problem> {
    let found = |name: &str| call.text(name).map(|run| find_run(&app.store, run)).transpose();
    let (first, second) = (found("a")?.unwrap_or_default(), found("b")?);
    let (a, b) = match second {
        Some(second) => (first, second),
        None => match app.store.run(&first)?.fork {
            Some(point) => (point.run, first),
            None => {
                let message =
                    format!("run {first} is no fork: say with `b` which run it is to be compared with");
                return Err(Error::usage("C-15", "no-fork", &message).into());
            }
        },
    };
    let (a, b, shared) = both(&app.store, &a, &b)?;
    let diff = Diff::of(&a, &b);
    let mut object = diff.head((&a, &b), shared.as_ref());
    if let Some(fields) = object.as_object_mut() {
        let lists = diff.lists((&a, &b)).into_iter();
        fields.extend(lists.map(|(name, entries)| (name.to_owned(), entries.collect())));
    }
    Ok(Reply::json(object))
}
