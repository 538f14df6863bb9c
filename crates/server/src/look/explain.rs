//! Whom nodes waited for and whose messages they saw, the graph that they are of, and what two runs have in common (C-15).

use crate::app::App;
use crate::call::Call;
use crate::kept;
use crate::problem::Problem;
use crate::reply::Reply;
use selvedge_engine::RunStatus;
use selvedge_host::Error;
use selvedge_host::diff::{Diff, both};
use selvedge_host::explain::{At, Explained, Journal, Seen, Story, critical, path};
use selvedge_host::stores::find_run;
use selvedge_runtime::{Clock, SystemClock};
use serde_json::{Value, json};

/// `GET /v1/runs/{id}/explain`.
pub(crate) fn explain(app: &App, call: &Call) -> Result<Reply, Problem> {
    let id = app.run_id(call)?;
    let (at, events) = kept::moment(&app.store, &id, call.number("at"))?;
    let driven = app.store.is_driven(&id).unwrap_or(true);
    let journal = Journal::read(&app.store, &id, (at < events).then_some(at), driven)?;
    let explained = Explained::new(&journal.run.state, journal.story(), driven);
    let only = call.text("node").map(|node| explained.find(node, &id)).transpose()?;
    let mut seen = Seen::new(&explained.story, explained.state, &journal.shown);
    let nodes = only.map_or(explained.story.all(), |only| only..only + 1);
    let nodes: Vec<Value> =
        nodes.map(|node| explained.object(&id, node, only.is_some(), &mut seen)).collect();
    let critical = only.is_none().then(|| critical(&explained, &path(&explained)));
    Ok(Reply::json(json!({
        "run_id": id,
        "at": explained.state.events(),
        "nodes": nodes,
        "recovery": explained.recovery(only),
        "roles": explained.roles().filter(|_| only.is_none()),
        "critical": critical,
    })))
}

/// `GET /v1/runs/{id}/graph`.
pub(crate) fn graph(app: &App, call: &Call) -> Result<Reply, Problem> {
    let id = app.run_id(call)?;
    let driven = app.store.is_driven(&id).unwrap_or(true);
    let object = app.kept.look(&id, call.number("at"), |run, events| {
        let story = Story::new(&run.timeline, run.state.graph(), None);
        let explained = Explained::new(&run.state, story, driven);
        let (past, last) = (run.state.events() < events, run.timeline.last());
        let now = last.filter(|_| past).map_or_else(|| SystemClock.now_ms(), |last| last.at);
        let goes_on = past || driven || run.state.status() != RunStatus::Running;
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
