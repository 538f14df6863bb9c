//! Runs: a list of them, and one (C-02, C-15).

use crate::app::App;
use crate::call::Call;
use crate::problem::Problem;
use crate::reply::Reply;
use selvedge_host::options::RunOptions;
use selvedge_host::report::{self, RunReport};
use selvedge_host::{Begun, Error, can_resume, time};
use selvedge_runtime::{Clock, SystemClock, graph_of};
use selvedge_store::{RunInfo, RunStatus, RunsPage};
use serde_json::{Value, json};

/// Runs of a page, where nothing else is asked for.
const PAGE: u64 = 50;

/// `GET /v1/runs`.
pub(crate) fn list(app: &App, call: &Call) -> Result<Reply, Problem> {
    let after = match call.text("cursor") {
        Some(cursor) => Some(cursor.parse().map_err(|_| {
            Problem::bad(
                "bad-parameter",
                &format!("the parameter \"cursor\" is `next` of a page, not {cursor:?}"),
            )
        })?),
        None => None,
    };
    let page = RunsPage {
        status: call.text("status").and_then(|status| status.parse().ok()),
        dialect: call.text("dialect").map(str::to_owned),
        text: call.text("text").map(str::to_owned),
        parent: call.text("parent").map(str::to_owned),
        without_children: call.text("children") == Some("no"),
        after,
        limit: u32::try_from(call.number("limit").unwrap_or(PAGE)).unwrap_or(u32::MAX),
    };
    let found = app.store.page_of_runs(&page)?;
    let (mut rows, mut damaged) = (Vec::new(), found.runs.damaged);
    for info in &found.runs.sound {
        let fault = report::failed_of(&app.store, info).unwrap_or_else(|error| {
            damaged.push(error);
            None
        });
        rows.push(report::row(info, is_driven(app, info), fault.as_ref()));
    }
    let damaged: Vec<Value> =
        damaged.into_iter().map(|error| Problem::from(Error::from(error)).json()).collect();
    let next = found.next.map(|next| next.to_string());
    Ok(Reply::json(json!({"runs": rows, "next": next, "damaged": damaged})))
}

/// Whether somebody drives a run, where that says something.
fn is_driven(app: &App, info: &RunInfo) -> bool {
    info.status != RunStatus::Running || app.store.is_driven(&info.id).unwrap_or(true)
}

/// `GET /v1/runs/{id}`.
pub(crate) fn one(app: &App, call: &Call) -> Result<Reply, Problem> {
    let id = app.run_id(call)?;
    let brief = call.text("brief") == Some("yes");
    Ok(Reply::json(described(app, &id, call.number("at"), brief)?))
}

/// C-02's object, with what the list says of the run.
pub(crate) fn object(app: &App, id: &str, at: Option<u64>) -> Result<Value, Problem> {
    described(app, id, at, false)
}

/// The same of a run that has just begun here: nothing of it is read again.
pub(crate) fn begun(begun: &Begun) -> Value {
    let report = RunReport {
        run: &begun.id,
        state: &begun.state,
        scripted: begun.info.scripted,
        warnings: &begun.warnings,
        graph: &begun.graph,
        driven: true,
        now: Some(SystemClock.now_ms()),
    };
    let events = begun.state.events();
    with_row(report.json(), &begun.info, true, (events, events))
}

fn described(app: &App, id: &str, at: Option<u64>, brief: bool) -> Result<Value, Problem> {
    let driven = app.store.is_driven(id).unwrap_or(true);
    let info = app.store.run(id)?;
    let graph = graph_of(&app.store, &info)?;
    let options = RunOptions::stored(&info.options);
    app.kept.look(id, at, |run, journal| {
        let events = journal.events;
        let at = run.state.events();
        let report = RunReport {
            run: id,
            state: &run.state,
            scripted: info.scripted,
            warnings: &options.warnings,
            graph: &graph,
            // Whoever drives it drives its present, not its past.
            driven: driven || at < events,
            now: (at == events).then(|| SystemClock.now_ms()),
        };
        let object = if brief { report.brief() } else { report.json() };
        let mut object = with_row(object, &info, driven, (at, events));
        if let Some(fields) = object.as_object_mut() {
            let can = at == events && !driven && can_resume(&run.state);
            fields.insert("can_resume".to_owned(), can.into());
        }
        Ok(object)
    })
}

/// C-02's object after event `at` of `events`, with what the list says of the run.
fn with_row(mut object: Value, info: &RunInfo, driven: bool, (at, events): (u64, u64)) -> Value {
    if let Some(fields) = object.as_object_mut() {
        let ended = info.ended_ms.filter(|_| at == events);
        let fork = info.fork.as_ref().map(|fork| json!({"run": fork.run, "events": fork.events}));
        let more = [
            ("name", info.name.as_str().into()),
            ("dialect", info.dialect.as_str().into()),
            ("started", time::rfc3339(info.started_ms).into()),
            ("ended", json!(ended.map(time::rfc3339))),
            ("driven", driven.into()),
            ("parent", json!(info.parent)),
            ("at", at.into()),
            ("events", events.into()),
            ("fork_of", json!(fork)),
        ];
        fields.extend(more.map(|(name, value)| (name.to_owned(), value)));
    }
    object
}
