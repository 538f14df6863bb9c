//! One node: the calls of its last visit, what came of them, and what its tools printed (C-15, A-30).

use crate::look::Found;
use crate::look::answers::Answer;
use crate::look::events::node_of;
use crate::look::page::{BOLD, CYAN, DIM, MAGENTA, Page, RED, YELLOW, clean};
use crate::printed::{cause, message, parts};
use crate::ui::Ui;
use selvedge_engine::{EffectId, Event, Fault, Outcome, Printed, Record, Request, State};
use selvedge_host::Error;
use selvedge_host::hints::or_meant;
use selvedge_runtime::Reading;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// Where values stand behind their names.
const INDENT: usize = 12;
/// Lines of arguments, of a value, and of each stream.
const ARGUMENTS: usize = 12;
const VALUE: usize = 40;
const PRINTED: usize = 500;
/// Nodes that an error names.
const NAMED: usize = 20;

/// A request of the node, and what came of it.
#[derive(Clone, Debug, Default)]
struct Call {
    effect: Arc<str>,
    /// The tool; nothing for a request to a model.
    tool: Option<Arc<str>>,
    arguments: Value,
    outcome: Option<Outcome>,
    /// Nobody knew whether it had happened, as the process ended.
    lost: bool,
    printed: Option<Arc<Printed>>,
    /// Whose outcome it took.
    reused: Option<Arc<str>>,
}

/// The last visit of a node.
#[derive(Debug, Default)]
struct Visit {
    name: Arc<str>,
    calls: Vec<Call>,
    answers: Vec<Answer>,
    fault: Option<Box<Fault>>,
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
    let visit = read(found, node, at)?;
    if ui.json {
        let calls: Vec<Value> = visit.calls.iter().map(Call::json).collect();
        let mut object = json!({"node": node, "name": visit.name, "calls": calls, "fault": visit.fault});
        if let (false, Some(fields)) = (visit.answers.is_empty(), object.as_object_mut()) {
            fields.insert("answers".to_owned(), visit.answers.iter().map(Answer::json).collect());
        }
        ui.result(&format!("{object}\n"));
        return Ok(());
    }
    let mut page = Page::whole();
    let name = if *visit.name == *node { String::new() } else { clean(&visit.name) };
    page.line(&format!("{}  {name}", page.paint(BOLD, &format!("node {}", clean(node)))));
    for answer in &visit.answers {
        page.labelled("  answer", MAGENTA, INDENT, &answer.told(), VALUE);
    }
    visit.calls.iter().for_each(|call| call.show(&mut page));
    if visit.calls.is_empty() {
        page.labelled("", DIM, 2, "it has asked for nothing", 1);
    }
    if let Some(fault) = &visit.fault {
        page.gap();
        let printed = visit.calls.last().and_then(|call| call.printed.as_deref());
        let text = format!("{}: {}", fault.kind.name(), message(fault, printed));
        page.labelled("  failed", RED, INDENT, &text, VALUE);
    }
    page.print(ui);
    Ok(())
}

/// Reads what the journal tells of a node.
fn read(found: &Found, id: &str, at: Option<u64>) -> Result<Visit, Error> {
    let mut reading = Reading::open(&found.store, found.run())?;
    let mut state = State::new(Arc::clone(reading.graph()));
    let (mut visit, mut before) = (Visit::default(), HashMap::new());
    for entry in found.store.journal(found.run(), 1)?.until(at.unwrap_or(u64::MAX)) {
        let entry = entry?;
        let event = reading.event(&entry)?;
        let record = Record { at: entry.at_ms, event };
        state.apply_record(&record);
        visit.event(&state, id, record.event, &mut before);
    }
    let node = state.graph().nodes.values().find(|node| *node.id == *id);
    let node = node.ok_or_else(|| {
        let names: Vec<&str> = state.graph().nodes.values().take(NAMED).map(|node| &*node.id).collect();
        let message = format!("run {} has no node \"{id}\"", found.run());
        let more = if state.graph().nodes.len() > NAMED { ", …" } else { "" };
        let known: Vec<&str> = state.graph().nodes.values().map(|node| &*node.id).collect();
        let help = or_meant(id, &known, &format!("its nodes are: {}{more}", names.join(", ")));
        Error::usage("C-15", "unknown-node", &message).help(&help)
    })?;
    visit.name = node.name.clone();
    Ok(visit)
}

impl Visit {
    /// Takes in an event; `before` are the calls of earlier visits, whose outcomes may be taken over.
    fn event(&mut self, state: &State, id: &str, event: Event, before: &mut HashMap<Arc<str>, Call>) {
        let own = |effect: &EffectId| node_of(&effect.0) == id;
        match event {
            Event::NodeStarted { node, .. } if *node == *id => {
                before.extend(self.calls.drain(..).map(|call| (Arc::clone(&call.effect), call)));
                self.fault = None;
            }
            Event::Lost { effect } if own(&effect) => {
                let call = self.calls.iter_mut().rev().find(|call| call.effect == effect.0);
                call.into_iter().for_each(|call| call.lost = true);
            }
            Event::Answered { ask, value } if node_of(&ask) == id => {
                // A person said what came back of a call in doubt, whose effect is the ask.
                let call = self.calls.iter_mut().rev().find(|call| call.lost && call.effect == ask);
                if let (Some(call), Some(output)) = (call, value.get("done")) {
                    call.outcome = Some(Outcome::Output(Arc::new(output.clone())));
                }
                self.answers.push(Answer::new(&ask, &value));
            }
            Event::NodeFinished { node, fault, .. } if *node == *id => self.fault = fault,
            Event::Requested { effect, .. } | Event::Retried { effect, .. } if own(&effect) => {
                let (tool, arguments) = match state.request(&effect) {
                    Some(Request::Tool(request)) => (Some(Arc::clone(&request.tool.name)), request.args),
                    _ => (None, Value::Null),
                };
                self.calls.push(Call { effect: effect.0, tool, arguments, ..Call::default() });
            }
            Event::Reused { effect, from, args } if own(&effect) => {
                let known = before.get(&from.0).cloned().unwrap_or_default();
                let arguments = args.map_or(known.arguments, |args| *args);
                self.calls.push(Call { effect: effect.0, reused: Some(from.0), arguments, ..known });
            }
            Event::Refused { effect, fault, args } if own(&effect) => {
                let outcome = Some(Outcome::from(selvedge_engine::Failure::of(*fault)));
                let arguments = args.map_or(Value::Null, |args| *args);
                self.calls.push(Call { effect: effect.0, outcome, arguments, ..Call::default() });
            }
            Event::Completed { effect, outcome, printed, .. } if own(&effect) => {
                if let Some(call) = self.calls.iter_mut().rev().find(|call| call.effect == effect.0) {
                    (call.outcome, call.printed) = (Some(outcome), printed);
                }
            }
            _ => {}
        }
    }
}

impl Call {
    fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("effect".to_owned(), json!(self.effect));
        if let Some(tool) = &self.tool {
            object.insert("tool".to_owned(), json!(tool));
        }
        if !self.arguments.is_null() {
            object.insert("arguments".to_owned(), self.arguments.clone());
        }
        let came = match &self.outcome {
            Some(Outcome::Reply(reply)) => Some(("reply", json!(reply))),
            Some(Outcome::Output(output)) => Some(("output", Value::clone(output))),
            Some(Outcome::Operated(operated)) => Some(("output", Value::clone(&operated.output))),
            Some(Outcome::Failed(failure)) => Some(("fault", json!(failure.fault))),
            None => None,
        };
        let printed = self.printed.as_ref().map(|printed| ("printed", json!(printed)));
        let reused = self.reused.as_ref().map(|from| ("reused_from", json!(from)));
        let lost = self.lost.then(|| ("lost", json!(true)));
        for (name, value) in [came, printed, reused, lost].into_iter().flatten() {
            object.insert(name.to_owned(), value);
        }
        Value::Object(object)
    }

    fn show(&self, page: &mut Page) {
        page.gap();
        let what = match &self.tool {
            Some(tool) => format!("{tool} {}", self.arguments),
            None if self.arguments.is_null() => "model".to_owned(),
            None => self.arguments.to_string(),
        };
        page.labelled("  call", CYAN, INDENT, &what, ARGUMENTS);
        if let Some(from) = &self.reused {
            page.labelled("  reused", DIM, INDENT, &format!("the recorded result of {from}"), 2);
        }
        let fault = match &self.outcome {
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
                let text = format!("{}: {}", fault.kind.name(), message(fault, self.printed.as_deref()));
                page.labelled("  fault", RED, INDENT, &text, VALUE);
                if let Some(cause) = cause(fault) {
                    page.labelled("  cause", DIM, INDENT, &cause.to_string(), ARGUMENTS);
                }
                Some(fault)
            }
            None if self.reused.is_some() => None,
            None if self.lost => {
                let text = "nobody knows whether it happened: the process ended while it was under way";
                page.labelled("  lost", DIM, INDENT, text, 2);
                None
            }
            None => {
                page.labelled("  waits", DIM, INDENT, "nothing has come back yet", 1);
                None
            }
        };
        page.printed(INDENT, &parts(fault, self.printed.as_deref(), PRINTED), YELLOW);
    }
}

/// Texts as they are, anything else as JSON that can be read.
fn shown_output(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    }
}
