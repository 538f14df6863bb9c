//! What holds for every case, whatever it expects: it can be replayed, crashed and reordered, and nobody can tell.

use super::case::{Case, Crash};
use super::compare::{data_out, metadata, observable};
use super::messages::{invalid, short};
use super::ports::Pace;
use super::run::{Compiled, Seen, Session};
use selvedge_engine::{Graph, Input, MessageIx, Record, RunStatus, State, ThreadView, View};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many other orders of outcomes are tried.
const ORDERS: u64 = 3;

/// Checks the laws for a run that came to its first stop.
///
/// # Errors
/// If a run could not be driven at all.
pub fn check(
    case: &Case,
    compiled: &Compiled,
    session: &Session,
    seen: &Seen,
) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    wrong.extend(conversations(seen));
    wrong.extend(touched(&session.graph, &session.records));
    if !case.order_matters && !case.options.sequential {
        let reference = summary(session, Some(seen));
        for seed in 0..ORDERS {
            let (other, seen) = other(case, compiled, &session.graph, Pace::Shuffled(seed), false)?;
            let what = format!("another order of outcomes (seed {seed}) shows (E-07)");
            wrong.extend(unlike(&what, &reference, &summary(&other, Some(&seen))));
        }
        // A run that waits has gone as far as it can: one node after another, that is not as far.
        if session.state.status() != RunStatus::Waiting {
            let (other, seen) = other(case, compiled, &session.graph, Pace::AsWritten, true)?;
            wrong.extend(unlike(
                "one node after another gives something else (P-20)",
                &reference,
                &summary(&other, Some(&seen)),
            ));
        }
    }
    if case.crash == Crash::Every {
        wrong.extend(crashes(session, 0)?);
    }
    Ok(wrong)
}

fn other(
    case: &Case,
    compiled: &Compiled,
    graph: &Arc<Graph>,
    pace: Pace,
    sequential: bool,
) -> Result<(Session, Seen), String> {
    let mut session = Session::new(case, Arc::clone(graph), pace)?;
    let seen = session.start(compiled, sequential)?;
    Ok((session, seen))
}

/// Every request is a valid conversation (E-10).
pub fn conversations(seen: &Seen) -> Option<String> {
    seen.requests.iter().find_map(|request| {
        let why = invalid(&request.messages)?;
        Some(format!("the request {} is no valid conversation (E-10): {why}", request.effect))
    })
}

/// Feeds a new state with the inputs of a journal and compares every event derived from them (E-18).
pub fn replay(graph: &Arc<Graph>, records: &[Record]) -> Option<String> {
    let mut state = State::new(Arc::clone(graph));
    for (at, record) in records.iter().enumerate() {
        let recorded = serde_json::to_string(&record.event).unwrap_or_default();
        if !record.event.is_input() {
            let derived = state.step().map(|event| serde_json::to_string(&event).unwrap_or_default());
            if derived.as_ref() != Some(&recorded) {
                return Some(format!(
                    "the replay diverges at event {} (E-18)\n  recorded: {recorded}\n  derived:  {derived:?}",
                    at + 1
                ));
            }
        }
        state.apply_record(record);
    }
    let more = state.step().map(|event| format!("{event:?}"));
    more.map(|event| format!("the replay derives one more event (E-18): {event}"))
}

/// Who follows a run and looks only at the threads that an event can have changed has all of them, as they are, after every event (S-31).
fn touched(graph: &Arc<Graph>, records: &[Record]) -> Option<String> {
    let mut state = State::new(Arc::clone(graph));
    let mut followed: BTreeMap<String, Vec<MessageIx>> = BTreeMap::new();
    let as_it_is =
        |(name, thread): (Cow<'_, str>, ThreadView<'_>)| (name.into_owned(), thread.numbers().collect());
    for record in records {
        let status = state.status();
        state.apply_record(record);
        let view = state.view();
        let all: BTreeMap<String, Vec<MessageIx>> = view.threads().map(as_it_is).collect();
        match view.touched(&record.event, status) {
            Some(touched) => followed.extend(touched.map(as_it_is)),
            None => followed = all.clone(),
        }
        if followed != all {
            return Some(format!("{:?} changes threads that it can't touch (S-31)", record.event));
        }
    }
    None
}

/// Cuts the journal after each of its events beyond the first `from` and lets a new process go on (E-05).
///
/// # Errors
/// If a run could not be driven at all.
pub fn crashes(session: &Session, from: usize) -> Result<Option<String>, String> {
    let reference = without_attempts(summary(session, None));
    // The inputs of one step are one commit: no crash comes between them.
    let inputs = session.records.iter().skip(from).take_while(|record| record.event.is_input()).count();
    for events in from + inputs.max(1)..session.records.len() {
        let mut other = session.again()?;
        other.restart(events)?;
        let mut seen = other.drive(Vec::new())?;
        // A write that was in flight is asked about: whoever knows that it did not happen says yes.
        while let Some(answers) = lost(&other, session) {
            seen = other.drive(answers)?;
        }
        let what = format!("a crash after event {events} shows (E-05)");
        let found = conversations(&seen)
            .or_else(|| unlike(&what, &reference, &without_attempts(summary(&other, None))))
            .or_else(|| replay(&other.graph, &other.records).map(|why| format!("{what}: {why}")));
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Yes to every ask that the reference does not have.
fn lost(session: &Session, reference: &Session) -> Option<Vec<Input>> {
    let open = session.state.asks().keys().filter(|ask| !reference.state.asks().contains_key(*ask));
    let answers: Vec<Input> = open.map(|ask| Input::Answer(Arc::clone(ask), json!("yes"))).collect();
    (!answers.is_empty()).then_some(answers)
}

/// All that can be observed of a run.
pub(crate) fn summary(session: &Session, seen: Option<&Seen>) -> Value {
    let view = session.state.view();
    let mut warnings: Vec<Value> = session.state.warnings().iter().map(|warning| json!(warning)).collect();
    warnings.retain(|warning| visible(session, view, warning["node"].as_str()));
    warnings.sort_by_key(Value::to_string);
    let threads: serde_json::Map<String, Value> = view
        .threads()
        .map(|(name, messages)| (name.to_string(), messages.iter().map(|m| short(m)).collect()))
        .collect();
    json!({
        "status": view.status(), "output": view.output(), "fault": view.fault(), "threads": threads,
        "data_out": data_out(view), "results": view.results().collect::<Vec<_>>(), "warnings": warnings,
        "metadata": metadata(view), "effects": seen.map(|seen| effects(session, view, seen)),
    })
}

fn visible(session: &Session, view: View<'_>, node: Option<&str>) -> bool {
    node.is_none_or(|node| observable(session, view).contains_key(node))
}

/// Which effects were requested with which content, node by node.
fn effects(session: &Session, view: View<'_>, seen: &Seen) -> Value {
    let order = observable(session, view);
    let requests = seen.requests.iter().map(|request| {
        let messages: Vec<Value> = request.messages.iter().map(|m| short(m)).collect();
        let tools: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
        (&request.node, json!([request.effect, request.role, messages, tools, request.settings]))
    });
    let calls = seen.calls.iter();
    let calls = calls.map(|call| (&call.node, json!([call.effect, call.tool.name, call.args])));
    let mut all: Vec<(usize, Value)> =
        requests.chain(calls).filter_map(|(node, effect)| Some((*order.get(&**node)?, effect))).collect();
    all.sort_by_key(|(node, effect)| (*node, effect.to_string()));
    all.into_iter().map(|(_, effect)| effect).collect()
}

/// A call that is repeated after a crash is one more attempt.
pub(crate) fn without_attempts(mut summary: Value) -> Value {
    for result in summary["results"].as_array_mut().into_iter().flatten() {
        result["attempts"] = Value::Null;
    }
    summary
}

pub(crate) fn unlike(what: &str, expected: &Value, got: &Value) -> Option<String> {
    let keys = expected.as_object().into_iter().flat_map(|object| object.keys());
    let different: Vec<String> = keys
        .filter(|key| expected[key.as_str()] != got[key.as_str()])
        .map(|key| {
            format!(
                "  {key}\n    reference: {}\n    here:      {}",
                expected[key.as_str()],
                got[key.as_str()]
            )
        })
        .collect();
    (!different.is_empty()).then(|| format!("{what}\n{}", different.join("\n")))
}
