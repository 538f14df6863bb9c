//! Threads: which there are, and parts of one (S-05).

use crate::app::App;
use crate::call::Call;
use crate::problem::Problem;
use crate::reply::Reply;
use selvedge_engine::{Ix, Message, MessageIx, Slice, ThreadView, View};
use selvedge_host::Error;
use selvedge_host::explain::{Seen, Story};
use selvedge_host::text::or_meant;
use selvedge_host::timeline::Followed;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// Messages of a page, where nothing else is asked for.
const PAGE: u64 = 100;

/// `GET /v1/runs/{id}/threads`.
pub(crate) fn list(app: &App, call: &Call) -> Result<Reply, Problem> {
    let id = app.run_id(call)?;
    let object = app.kept.look(&id, call.number("at"), |run, _| {
        Ok(json!({"run_id": id, "at": run.state.events(), "threads": all(run)}))
    })?;
    Ok(Reply::json(object))
}

/// All threads, each with how many messages it has, and its mark.
pub(crate) fn all(run: &Followed) -> Vec<Value> {
    let object = |(name, thread): (Cow<'_, str>, ThreadView<'_>)| json!({"name": name, "messages": thread.len(), "mark": mark(&thread)});
    run.state.view().threads().map(object).collect()
}

/// What stands for the messages of a thread: as long as it is the same, so are they (E-09).
fn mark(thread: &ThreadView<'_>) -> String {
    format!("{:016x}", thread.thread().mark())
}

/// `GET /v1/runs/{id}/threads/{name}`.
pub(crate) fn one(app: &App, call: &Call) -> Result<Reply, Problem> {
    let (id, name) = (app.run_id(call)?, call.part("name"));
    let object = app.kept.look(&id, call.number("at"), |run, _| {
        let state = &run.state;
        let view = state.view();
        let thread = found(view, name, &id)?;
        let (of, from, to) = page(call, &thread);
        let messages = messages(run, &thread, from, to);
        let until =
            |to: usize| mark(&thread.slice(Slice(Some(0), Some(i64::try_from(to).unwrap_or(i64::MAX)))));
        Ok(json!({
            "run_id": id, "at": state.events(), "thread": name, "of": of, "from": from,
            "next": (to < of).then_some(to), "before": until(from), "mark": until(to), "messages": messages,
        }))
    })?;
    Ok(Reply::json(object))
}

/// A thread, by its name.
fn found<'s>(view: View<'s>, name: &str, run: &str) -> Result<ThreadView<'s>, Error> {
    view.thread(name).ok_or_else(|| {
        let known: Vec<String> = view.threads().map(|(name, _)| name.into_owned()).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let message = format!("run {run} has no thread \"{name}\"");
        Error::usage("C-15", "unknown-thread", &message).help(&or_meant(
            name,
            &known,
            "the list of threads has their names",
        ))
    })
}

/// How many messages a thread has, and which of them are asked for: from one on and before another.
fn page(call: &Call, thread: &ThreadView<'_>) -> (usize, usize, usize) {
    let limit = usize::try_from(call.number("limit").unwrap_or(PAGE)).unwrap_or(usize::MAX);
    let of = thread.len();
    let from = match call.signed("from").unwrap_or_default() {
        back @ ..0 => of.saturating_sub(usize::try_from(back.unsigned_abs()).unwrap_or(usize::MAX)),
        from => usize::try_from(from).unwrap_or(usize::MAX).min(of),
    };
    (of, from, from.saturating_add(limit).min(of))
}

/// `GET /v1/runs/{id}/threads/{name}/readers`: whose models were shown each message (S-23).
pub(crate) fn readers(app: &App, call: &Call) -> Result<Reply, Problem> {
    let (id, name) = (app.run_id(call)?, call.part("name"));
    let object = app.kept.look(&id, call.number("at"), |run, journal| {
        let state = &run.state;
        let thread = found(state.view(), name, &id)?;
        let (of, from, to) = page(call, &thread);
        let place = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
        let part = thread.slice(Slice(Some(place(from)), Some(place(to))));
        let speakers: Vec<Option<&Arc<str>>> = state.speakers_in(&part).collect();
        let story = Story::new(&run.timeline, state.graph(), None);
        let readers = Seen::new(&story, state, journal.shown).readers(thread.thread(), (from, to), &speakers);
        Ok(json!({"run_id": id, "at": state.events(), "thread": name, "of": of, "from": from, "readers": readers}))
    })?;
    Ok(Reply::json(object))
}

/// Messages of a thread, from one on and before another, each with who said it.
pub(crate) fn messages(run: &Followed, thread: &ThreadView<'_>, from: usize, to: usize) -> Vec<Value> {
    let place = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
    let part = thread.slice(Slice(Some(place(from)), Some(place(to))));
    let said = part.iter().zip(run.state.speakers_in(&part)).zip(part.numbers()).enumerate();
    let object = |at: usize, message: &Message, node: Option<&Arc<str>>, number: MessageIx| {
        let mut object = json!(message);
        if let Some(fields) = object.as_object_mut() {
            fields.insert("index".to_owned(), (from + at).into());
            fields.insert("number".to_owned(), number.get().into());
            let node = node.map(|node| run.state.told_name(node));
            fields.insert("node".to_owned(), json!(node));
        }
        object
    };
    said.map(|(at, ((message, node), number))| object(at, message, node, number)).collect()
}
