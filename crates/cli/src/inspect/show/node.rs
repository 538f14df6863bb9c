//! One node: the calls of its last visit, what came of them, and what its tools printed (C-15, A-30).

use crate::frames;
use crate::inspect::Found;
use crate::inspect::answers::Answer;
use crate::inspect::page::{BOLD, CYAN, DIM, MAGENTA, Page, RED, YELLOW, clean};
use crate::inspect::timeline;
use crate::printed::{cause, message, parts};
use crate::ui::Ui;
use selvedge_engine::graph::Node;
use selvedge_engine::place::Place;
use selvedge_engine::{Outcome, Printed, State};
use selvedge_host::Error;
use selvedge_host::text::or_meant;
use selvedge_host::timeline::{Attempt, Call, CallKind, NodeTimeline, Timeline, Visit};
use serde_json::{Map, Value, json};

/// Where values stand behind their names.
const INDENT: usize = 12;
/// Lines of arguments, of a value, and of each stream.
const ARGUMENTS: usize = 12;
const VALUE: usize = 40;
const PRINTED: usize = 500;
/// Nodes that an error names.
const NAMED: usize = 20;

/// An attempt of a call of the node.
#[derive(Clone, Copy)]
struct Tried<'t> {
    call: &'t Call,
    attempt: &'t Attempt,
}

/// The exit code and the streams of an output that is those, as of `python` and `shell`: lines are told as lines.
fn of_process(output: &Value) -> Option<(i64, Printed)> {
    let fields = output.as_object().filter(|fields| fields.len() == 3)?;
    let text = |name: &str| Some(fields.get(name)?.as_str()?.to_owned());
    let streams = Printed { stdout: text("stdout")?, stderr: text("stderr")?, ..Printed::default() };
    Some((fields.get("exit_code")?.as_i64()?, streams))
}

/// Prints a node as it is after event `at`, or now.
pub(super) fn print(found: &Found, node: &str, at: Option<u64>, ui: &Ui) -> Result<(), Error> {
    let (state, timeline) = timeline::read(found, at, |_, _| {})?;
    let (def, row) = find(found, &state, &timeline, node)?;
    let answers = row.into_iter().flat_map(|row| &row.answers);
    let answers: Vec<Answer> = answers.map(|answer| Answer::new(&answer.ask, &answer.value)).collect();
    let visit = row.and_then(|row| row.visits.last());
    let attempts = visit.into_iter().flat_map(Visit::attempts);
    let mut calls: Vec<Tried<'_>> = attempts.map(|(call, attempt)| Tried { call, attempt }).collect();
    calls.sort_by_key(|tried| tried.attempt.requested);
    let fault = visit.and_then(|visit| visit.fault.as_ref());
    if ui.json {
        let calls: Vec<Value> = calls.iter().map(|tried| tried.json()).collect();
        let mut object = json!({"node": node, "name": called(def, node).1, "calls": calls, "fault": fault});
        if let (false, Some(fields)) = (answers.is_empty(), object.as_object_mut()) {
            fields.insert("answers".to_owned(), answers.iter().map(Answer::json).collect());
        }
        ui.result(&format!("{object}\n"));
        return Ok(());
    }
    let mut page = Page::whole();
    let (id, name) = called(def, node);
    let name = if id == name { String::new() } else { clean(name) };
    page.line(&format!("{}  {name}", page.paint(BOLD, &format!("node {}", clean(node)))));
    for answer in &answers {
        page.labelled("  answer", MAGENTA, INDENT, &answer.told(), VALUE);
    }
    calls.iter().for_each(|tried| tried.show(&mut page));
    if calls.is_empty() {
        let opened = visit.and_then(frames::came_to);
        page.labelled("", DIM, 2, &opened.unwrap_or_else(|| "it has asked for nothing".to_owned()), 1);
    }
    if let Some(fault) = fault {
        page.gap();
        let printed = calls.last().and_then(|tried| tried.attempt.printed.as_deref());
        let text = format!("{}: {}", fault.kind.name(), message(fault, printed));
        page.labelled("  failed", RED, INDENT, &text, VALUE);
    }
    page.print(ui);
    Ok(())
}

/// The id and the name of a node that is asked for: a fork is also known by its join, and a loop by its end.
fn called<'d>(def: &'d Node, asked: &str) -> (&'d str, &'d str) {
    let last = asked.rsplit('/').next().unwrap_or(asked);
    match last == &**def.shown_id() && last != &*def.id {
        true => (def.shown_id(), def.shown_name()),
        false => (&def.id, &def.name),
    }
}

/// The node that reports call so, or people are told it is (W-03), and what happened to it: of one in a loop, in the iteration that was
/// last.
fn find<'s>(
    found: &Found,
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
    let message = format!("run {} has no node \"{id}\"", found.run());
    Err(Error::usage("C-15", "unknown-node", &message).help(&help))
}

impl Tried<'_> {
    /// The tool; nothing for a request to a model or an operation.
    fn tool(&self) -> Option<&str> {
        match &self.call.kind {
            CallKind::Tool(name) => Some(name),
            _ => None,
        }
    }

    fn arguments(&self) -> &Value {
        match (&self.call.kind, &self.call.arguments) {
            (CallKind::Operation(_), _) | (_, None) => &Value::Null,
            (_, Some(arguments)) => arguments,
        }
    }

    fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("effect".to_owned(), json!(self.attempt.effect));
        if let Some(tool) = self.tool() {
            object.insert("tool".to_owned(), json!(tool));
        }
        if !self.arguments().is_null() {
            object.insert("arguments".to_owned(), self.arguments().clone());
        }
        let came = match &self.attempt.outcome {
            Some(Outcome::Reply(reply)) => Some(("reply", json!(reply))),
            Some(Outcome::Output(output)) => Some(("output", Value::clone(output))),
            Some(Outcome::Operated(operated)) => Some(("output", Value::clone(&operated.output))),
            Some(Outcome::Failed(failure)) => Some(("fault", json!(failure.fault))),
            None => None,
        };
        let printed = self.attempt.printed.as_ref().map(|printed| ("printed", json!(printed)));
        let reused = self.call.reused.as_ref().map(|from| ("reused_from", json!(from)));
        let lost = self.attempt.lost.then(|| ("lost", json!(true)));
        for (name, value) in [came, printed, reused, lost].into_iter().flatten() {
            object.insert(name.to_owned(), value);
        }
        Value::Object(object)
    }

    fn show(&self, page: &mut Page) {
        page.gap();
        let what = match self.tool() {
            Some(tool) => format!("{tool} {}", self.arguments()),
            None if self.arguments().is_null() => "model".to_owned(),
            None => self.arguments().to_string(),
        };
        page.labelled("  call", CYAN, INDENT, &what, ARGUMENTS);
        if let Some(from) = &self.call.reused {
            page.labelled("  reused", DIM, INDENT, &format!("the recorded result of {from}"), 2);
        }
        let fault = match &self.attempt.outcome {
            Some(Outcome::Reply(reply)) => {
                if !reply.text.is_empty() || reply.calls.is_empty() {
                    page.labelled("  reply", "", INDENT, &reply.text, VALUE);
                }
                for call in &reply.calls {
                    let text = format!("{} {}", call.name, call.arguments);
                    page.labelled("  calls", MAGENTA, INDENT, &text, ARGUMENTS);
                }
                None
            }
            Some(Outcome::Output(output)) if let Some((code, streams)) = of_process(output) => {
                page.labelled("  output", "", INDENT, &format!("exit code {code}"), 1);
                return page.printed(INDENT, &parts(None, Some(&streams), PRINTED), "");
            }
            Some(Outcome::Output(output)) => {
                page.labelled("  output", "", INDENT, &shown_output(output), VALUE);
                None
            }
            Some(Outcome::Operated(operated)) => {
                page.labelled("  output", "", INDENT, &shown_output(&operated.output), VALUE);
                None
            }
            Some(Outcome::Failed(failure)) => {
                let fault = &failure.fault;
                let text =
                    format!("{}: {}", fault.kind.name(), message(fault, self.attempt.printed.as_deref()));
                page.labelled("  fault", RED, INDENT, &text, VALUE);
                if let Some(cause) = cause(fault) {
                    page.labelled("  cause", DIM, INDENT, &cause.to_string(), ARGUMENTS);
                }
                Some(fault)
            }
            None if self.call.reused.is_some() => None,
            None if self.attempt.lost => {
                let text = "nobody knows whether it happened: the process ended while it was under way";
                page.labelled("  lost", DIM, INDENT, text, 2);
                None
            }
            None => {
                page.labelled("  waits", DIM, INDENT, "nothing has come back yet", 1);
                None
            }
        };
        page.printed(INDENT, &parts(fault, self.attempt.printed.as_deref(), PRINTED), YELLOW);
    }
}

/// Texts as they are, anything else as JSON that can be read.
fn shown_output(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    }
}
