//! One node: the calls of its last visit, and what came of them.

use super::said::Said;
use crate::error::Error;
use crate::text::or_meant;
use crate::timeline::{Attempt, Call, CallKind, NodeTimeline, Timeline, Visit};
use selvedge_engine::graph::Node;
use selvedge_engine::place::Place;
use selvedge_engine::{Outcome, State};
use serde_json::{Map, Value, json};

/// Nodes that an error names.
const NAMED: usize = 20;

/// C-15's object of a node that somebody calls `name`: what its last visit asked for, and what people said.
pub fn node(name: &str, def: &Node, row: Option<&NodeTimeline>) -> Value {
    let answers = row.into_iter().flat_map(|row| &row.answers);
    let answers: Vec<Value> = answers.map(|answer| Said::new(&answer.ask, &answer.value).json()).collect();
    let visit = row.and_then(|row| row.visits.last());
    let calls = visit.map(tried).unwrap_or_default();
    let calls: Vec<Value> = calls.into_iter().map(|(call, attempt)| self::call(call, attempt)).collect();
    let fault = visit.and_then(|visit| visit.fault.as_ref());
    let mut object = json!({"node": name, "name": called(def, name).1, "calls": calls, "fault": fault});
    if let (false, Some(fields)) = (answers.is_empty(), object.as_object_mut()) {
        fields.insert("answers".to_owned(), answers.into());
    }
    object
}

/// All attempts of a visit's calls, in the order in which they were asked for.
pub fn tried(visit: &Visit) -> Vec<(&Call, &Attempt)> {
    let mut tried: Vec<_> = visit.attempts().collect();
    tried.sort_by_key(|(_, attempt)| attempt.requested);
    tried
}

/// The tool of a call; nothing for a request to a model or an operation.
pub fn tool(call: &Call) -> Option<&str> {
    match &call.kind {
        CallKind::Tool(name) => Some(name),
        _ => None,
    }
}

/// What a tool was called with; null for a request to a model or an operation.
pub fn arguments(call: &Call) -> &Value {
    match (&call.kind, &call.arguments) {
        (CallKind::Operation(_), _) | (_, None) => &Value::Null,
        (_, Some(arguments)) => arguments,
    }
}

/// An attempt of a call.
fn call(call: &Call, attempt: &Attempt) -> Value {
    let mut object = Map::new();
    object.insert("effect".to_owned(), json!(attempt.effect));
    if let Some(tool) = tool(call) {
        object.insert("tool".to_owned(), json!(tool));
    }
    if !arguments(call).is_null() {
        object.insert("arguments".to_owned(), arguments(call).clone());
    }
    let came = match &attempt.outcome {
        Some(Outcome::Reply(reply)) => Some(("reply", json!(reply))),
        Some(Outcome::Output(output)) => Some(("output", Value::clone(output))),
        Some(Outcome::Operated(operated)) => Some(("output", Value::clone(&operated.output))),
        Some(Outcome::Failed(failure)) => Some(("fault", json!(failure.fault))),
        None => None,
    };
    let printed = attempt.printed.as_ref().map(|printed| ("printed", json!(printed)));
    let reused = call.reused.as_ref().map(|from| ("reused_from", json!(from)));
    let lost = attempt.lost.then(|| ("lost", json!(true)));
    for (name, value) in [came, printed, reused, lost].into_iter().flatten() {
        object.insert(name.to_owned(), value);
    }
    Value::Object(object)
}

/// The id and the name of a node that is asked for: a fork is also known by its join, and a loop by its end.
pub fn called<'d>(def: &'d Node, asked: &str) -> (&'d str, &'d str) {
    let last = asked.rsplit('/').next().unwrap_or(asked);
    match last == &**def.shown_id() && last != &*def.id {
        true => (def.shown_id(), def.shown_name()),
        false => (&def.id, &def.name),
    }
}

/// The node that reports call so, or people are told it is (W-03), and what happened to it: of one in a loop, in the iteration that was
/// last.
///
/// # Errors
/// There is none.
pub fn find<'s>(
    run: &str,
    state: &'s State,
    timeline: &'s Timeline,
    id: &str,
) -> Result<(&'s Node, Option<&'s NodeTimeline>), Error> {
    let graph = state.graph();
    if let Some(def) = graph.nodes.values().find(|node| *node.id == *id || **node.shown_id() == *id) {
        return Ok((def, timeline.root(&def.id)));
    }
    let named = |row: &&NodeTimeline| {
        let place = Place { frames: row.frame.frames(), node: (&*row.node).into(), visit: 1 }.to_string();
        !row.frame.is_root() && (*state.report_name(&place) == *id || *state.told_name(&place) == *id)
    };
    let inner = timeline.nodes().iter().rev().find(named);
    let def = inner.and_then(|row| graph.all_nodes().find(|node| node.id == row.node));
    if let Some(def) = def {
        return Ok((def, inner));
    }
    let known: Vec<&str> = graph.nodes.values().map(|node| &*node.id).collect();
    let names = known.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = if known.len() > NAMED { ", …" } else { "" };
    let help = or_meant(id, &known, &format!("its nodes are: {names}{more}"));
    let message = format!("run {run} has no node \"{id}\"");
    Err(Error::usage("C-15", "unknown-node", &message).help(&help))
}
