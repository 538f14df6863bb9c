//! A node: what it is, what it was sent and what came back (S-24).

use crate::app::App;
use crate::call::Call;
use crate::problem::Problem;
use crate::reply::Reply;
use selvedge_engine::{EffectId, Request};
use selvedge_host::timeline::{CallKind, Followed};
use selvedge_host::{Definitions, report};
use serde_json::{Value, json};

/// Requests that are shown as they were sent: those of the last calls.
const REQUESTS: usize = 20;

/// `GET /v1/runs/{id}/nodes/{node}`.
pub(crate) fn one(app: &App, call: &Call) -> Result<Reply, Problem> {
    let id = app.run_id(call)?;
    let written = Definitions::read(&app.host.environment, &app.store.run(&id)?, &app.limits);
    Ok(Reply::json(object(app, (&id, call.part("node")), call.number("at"), written.as_ref())?))
}

/// A node of a run, as of an event.
fn object(
    app: &App,
    (id, name): (&str, &str),
    at: Option<u64>,
    written: Option<&Definitions>,
) -> Result<Value, Problem> {
    let (mut object, sent) = app.kept.look(id, at, |run, _| {
        without_requests(run, &mut report::Nodes::of(&run.state, &run.timeline), (id, name), written)
    })?;
    // The first one first: each is a step from the one before.
    for sent in sent.iter().rev() {
        sent.put(app, id, &mut object)?;
    }
    Ok(object)
}

/// A request that a node has sent.
pub(crate) struct Sent {
    /// Which of the node's calls it is of.
    call: usize,
    effect: EffectId,
    /// The event with which it was asked for.
    pub(crate) n: u64,
}

impl Sent {
    /// Puts the request into the node's object, as it was when it was asked for.
    ///
    /// # Errors
    /// The run can't be read.
    pub(crate) fn put(&self, app: &App, id: &str, object: &mut Value) -> Result<(), Problem> {
        let request = app.kept.look(id, Some(self.n), |run, _| Ok(request(&run.state, &self.effect)))?;
        let calls = object.get_mut("calls").and_then(Value::as_array_mut);
        let call = calls.and_then(|calls| calls.get_mut(self.call)?.as_object_mut());
        if let Some((call, request)) = call.zip(request) {
            call.insert("request".to_owned(), request);
        }
        Ok(())
    }
}

/// The same of one of the nodes of a run as it is, and the requests that are still to be put into it, the last one first.
///
/// # Errors
/// There is no such node.
pub(crate) fn without_requests(
    run: &Followed,
    nodes: &mut report::Nodes<'_>,
    (id, name): (&str, &str),
    written: Option<&Definitions>,
) -> Result<(Value, Vec<Sent>), Problem> {
    let (def, row) = nodes.find(id, name)?;
    let mut object = report::node(name, def, row);
    if let Some(fields) = object.as_object_mut() {
        fields.insert("run_id".to_owned(), id.into());
        fields.insert("at".to_owned(), run.state.events().into());
        fields.insert("definition".to_owned(), json!(def));
        let place = written.and_then(|written| written.of(def));
        fields.insert("place".to_owned(), json!(place));
    }
    let visit = row.and_then(|row| row.visits.last());
    let tried = visit.map(report::tried).unwrap_or_default();
    let sent = tried.iter().enumerate().rev().filter(|(_, (call, _))| call.kind == CallKind::Model);
    let sent = sent.take(REQUESTS).map(|(call, (_, attempt))| Sent {
        call,
        effect: attempt.effect.clone(),
        n: attempt.requested.n,
    });
    Ok((object, sent.collect()))
}

/// What a model was asked: messages in order, tools and schema.
fn request(state: &selvedge_engine::State, effect: &EffectId) -> Option<Value> {
    let Some(Request::Model(request)) = state.request(effect) else { return None };
    let tools = request.tools.iter().map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema, "version": tool.version}));
    Some(json!({
        "role": request.role,
        "thread": request.thread,
        "messages": request.messages.iter().collect::<Vec<_>>(),
        "tools": tools.collect::<Vec<_>>(),
        "schema": request.schema.as_ref().map(|schema| &schema.schema),
        "settings": request.settings,
        "timeout_s": request.timeout_s,
    }))
}
