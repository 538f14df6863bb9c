//! One node: the calls of its last visit, and what came of them.

use super::said::Said;
use crate::error::Error;
use crate::text::or_meant;
use crate::timeline::{Attempt, Call, CallKind, NodeTimeline, Timeline, Visit};
use selvedge_engine::graph::Node;
use selvedge_engine::place::Place;
use selvedge_engine::{Graph, Outcome, State};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;

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

/// The nodes of a run by what reports call them, or people are told they are (W-03).
pub struct Nodes<'s> {
    graph: &'s Graph,
    timeline: &'s Timeline,
    /// Those of the document's own graph.
    root: Named<'s, &'s Node>,
    /// Those of frames with what happened to them: of one in a loop, in the iteration that was last.
    inner: Named<'s, &'s NodeTimeline>,
    /// All of them by their own ids.
    by_id: Named<'s, &'s Node>,
}

/// What has names, of which no more are read than were asked for: to make them for all nodes takes longer than to look at one.
struct Named<'s, T> {
    known: HashMap<Cow<'s, str>, T>,
    rest: Box<dyn Iterator<Item = (Cow<'s, str>, T)> + 's>,
}

impl<'s, T: Copy> Named<'s, T> {
    fn new(rest: impl Iterator<Item = (Cow<'s, str>, T)> + 's) -> Self {
        Self { known: HashMap::new(), rest: Box::new(rest) }
    }

    /// The first one of that name.
    fn find(&mut self, name: &str) -> Option<T> {
        if let Some(found) = self.known.get(name) {
            return Some(*found);
        }
        for (next, found) in self.rest.by_ref() {
            let is_it = next == name;
            let first = *self.known.entry(next).or_insert(found);
            if is_it {
                return Some(first);
            }
        }
        None
    }
}

impl<'s> Nodes<'s> {
    /// Those of a run as it is.
    pub fn of(state: &'s State, timeline: &'s Timeline) -> Self {
        let graph = state.graph();
        let of_root = |node: &'s Node| [(Cow::from(&*node.id), node), (Cow::from(&**node.shown_id()), node)];
        let root = Named::new(graph.nodes.values().flat_map(of_root));
        let by_id = Named::new(graph.all_nodes().map(|node| (Cow::from(&*node.id), node)));
        let names = |row: &'s NodeTimeline| {
            let place = Place { frames: row.frame.frames(), node: (&*row.node).into(), visit: 1 }.to_string();
            [state.told_name(&place), state.report_name(&place)]
                .map(|name| (Cow::from(name.into_owned()), row))
        };
        // The last one of a name is asked for.
        let rows = timeline.nodes().iter().rev();
        let inner = Named::new(rows.filter(|row| !row.frame.is_root()).flat_map(names));
        Self { graph, timeline, root, inner, by_id }
    }

    /// The node that is called so in this run, and what happened to it.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&mut self, run: &str, id: &str) -> Result<(&'s Node, Option<&'s NodeTimeline>), Error> {
        if let Some(def) = self.root.find(id) {
            return Ok((def, self.timeline.root(&def.id)));
        }
        let inner = self.inner.find(id);
        if let Some(def) = inner.and_then(|row| self.by_id.find(&row.node)) {
            return Ok((def, inner));
        }
        let known: Vec<&str> = self.graph.nodes.values().map(|node| &*node.id).collect();
        let names = known.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = if known.len() > NAMED { ", …" } else { "" };
        let help = or_meant(id, &known, &format!("its nodes are: {names}{more}"));
        let message = format!("run {run} has no node \"{id}\"");
        Err(Error::usage("C-15", "unknown-node", &message).help(&help))
    }
}
