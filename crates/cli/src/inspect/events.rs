//! The journal, event by event: `show --events` (C-15), and the head that exported events have too.

use super::Found;
use super::out::Out;
use super::page::{CYAN, DIM, GREEN, MAGENTA, Page, RED, Table, YELLOW};
use crate::durations::{duration, offset};
use crate::names;
use crate::recovery::chosen;
use crate::ui::Ui;
use selvedge_engine::{
    Body, EffectId, End, Event, Joined, Outcome, Record, Recovered, Replaced, Role, StandIn, State,
};
use selvedge_host::Error;
use selvedge_host::report::{self, name_of};
use selvedge_host::text::counted;
use selvedge_runtime::{LoadError, graph_of};
use selvedge_store::Entry;
use serde_json::{Value, json};

/// Rows that are aligned together; a longer journal is not held in memory for its columns.
const TOGETHER: usize = 512;

/// Prints events `1..=at`, or all. Of a damaged journal it prints those before the damage, as whole as the others, and fails
/// then (E-44).
pub(super) fn print(found: &Found, at: Option<u64>, ui: &Ui) -> Result<(), Error> {
    // What else is wrong with the journal is told of once the events before it have been printed.
    if let Err(newer @ LoadError::Newer { .. }) = selvedge_runtime::beginning(&found.store, found.run()) {
        return Err(newer.into());
    }
    let mut out = if ui.json { Out::new(ui) } else { Out::paged(ui) };
    let mut entries = found.store.journal(found.run(), 1)?.until(at.unwrap_or(u64::MAX));
    let mut damage = None;
    let sound = entries.by_ref().map_while(|entry| entry.map_err(|error| damage = Some(error)).ok());
    if ui.json { print_object(found, sound, &mut out) } else { print_table(found, sound, &mut out) }?;
    out.finish()?;
    damage.map_or(Ok(()), |error| Err(error.into()))
}

fn print_object(found: &Found, entries: impl Iterator<Item = Entry>, out: &mut Out<'_>) -> Result<(), Error> {
    let names = names_of(found)?;
    out.write("{\"events\":[")?;
    for entry in entries {
        let separator = if entry.n > 1 { "," } else { "" };
        let unreadable =
            |error: serde_json::Error| found.unreadable(format!("event {}", entry.n), error.to_string());
        let object = report::event(&names, &entry).map_err(unreadable)?;
        if !out.json(separator, &object.to_string(), "")? {
            break;
        }
    }
    out.write("]}\n")?;
    Ok(())
}

fn print_table(found: &Found, entries: impl Iterator<Item = Entry>, out: &mut Out<'_>) -> Result<(), Error> {
    let mut page = Page::new();
    let names = names_of(found)?;
    let mut began = None;
    let mut rows: Vec<Row> = Vec::new();
    for entry in entries {
        let began = *began.get_or_insert(entry.at_ms);
        rows.push(Row::new(found, &names, &entry, began)?);
        if rows.len() == TOGETHER {
            page.table(&table(&page, std::mem::take(&mut rows)));
            if !out.write(&page.take())? {
                return Ok(());
            }
        }
    }
    if !rows.is_empty() {
        page.table(&table(&page, rows));
        out.write(&page.take())?;
    }
    Ok(())
}

/// What things in a run are called, by its graph: no event is applied to it.
fn names_of(found: &Found) -> Result<State, Error> {
    Ok(State::new(graph_of(&found.store, &found.info)?))
}

/// Of its events behind the first so many those that `shown` picks, as lines for people.
pub(crate) fn lines(
    page: &mut Page,
    names: &State,
    records: &[Record],
    behind: usize,
    shown: impl Fn(&Event) -> bool,
) {
    let began = records.first().map_or(0, |first| first.at);
    let shown = (1..).zip(records).skip(behind).filter(|(_, record)| shown(&record.event));
    let rows: Vec<Row> = shown.map(|(n, record)| Row::of(names, n, record, began)).collect();
    let table = table(page, rows);
    page.table(&table);
}

/// An event for people.
struct Row {
    n: u64,
    since: String,
    kind: String,
    style: &'static str,
    node: String,
    text: String,
}

fn table(page: &Page, rows: Vec<Row>) -> Table {
    let mut table = Table::new(&["N", "TIME", "KIND", "NODE", "WHAT"], 4);
    table.whole = vec![0, 1];
    for row in rows {
        table.row([
            (row.n.to_string(), DIM),
            (row.since, DIM),
            (row.kind, row.style),
            (page.short(&row.node, 20), ""),
            (row.text, ""),
        ]);
    }
    table
}

impl Row {
    fn new(found: &Found, names: &State, entry: &Entry, began: i64) -> Result<Self, Error> {
        let unreadable =
            |error: serde_json::Error| found.unreadable(format!("event {}", entry.n), error.to_string());
        let event: Event = selvedge_runtime::recorded(entry.json.as_bytes()).map_err(unreadable)?;
        Ok(Self::of(names, entry.n, &Record { at: entry.at_ms, event }, began))
    }

    fn of(names: &State, n: u64, Record { at, event }: &Record, began: i64) -> Self {
        let kind = json!(event).get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        let (node, text) = Telling { names }.told(n, event);
        let node = names.told_name(&node).into_owned();
        let since = format!("+{}", offset(at.saturating_sub(began)));
        // Only the beginning of a text fits into a line.
        let text: String = text.chars().take(400).collect();
        Self { n, since, kind, style: style(event), node, text }
    }
}

/// What a fork has of its source: the first events, and of all that were there what can be reused.
pub(crate) fn of_fork(source: &str, shared: u64, all: u64) -> String {
    let events = if shared == 1 { "event 1".to_owned() } else { format!("events 1–{shared}") };
    format!("{source}: shares {events}, reuses from all its {all}")
}

fn style(event: &Event) -> &'static str {
    match event {
        Event::Completed { outcome: Outcome::Failed(_), .. }
        | Event::NodeFinished { fault: Some(_), .. }
        | Event::Ended { status: End::Failed, .. }
        | Event::Poisoned { .. } => RED,
        Event::NodeFinished { .. } | Event::Ended { status: End::Completed, .. } => GREEN,
        Event::Asked(_) | Event::Answered { .. } | Event::PersonMessage(_) => MAGENTA,
        Event::Retried { .. } | Event::Refused { .. } | Event::Lost { .. } | Event::Ended { .. } => YELLOW,
        Event::Caught { .. } | Event::Recovered(_) | Event::Spliced { .. } | Event::NodeSkipped { .. } => {
            YELLOW
        }
        _ if event.is_input() => CYAN,
        _ => "",
    }
}

/// What events say, with nodes as people are told that they are (W-03).
struct Telling<'s> {
    names: &'s State,
}

impl Telling<'_> {
    /// The node of an event, and what it says in a line.
    fn told(&self, n: u64, event: &Event) -> (String, String) {
        let of = |effect: &EffectId| name_of(&effect.0);
        let id = |effect: &EffectId| names::call(self.names, &effect.0).into_owned();
        let ask = |id: &str| names::call(self.names, id).into_owned();
        match event {
            Event::Started(start) => {
                let graph = start.graph.get(..12).unwrap_or(&start.graph);
                (String::new(), format!("graph {graph}, edition {}", start.edition))
            }
            Event::Completed { effect, outcome, .. } => {
                (of(effect), format!("{}: {}", id(effect), outcome_text(outcome)))
            }
            Event::Lost { effect } => {
                (of(effect), format!("{}: nobody knows whether it happened", id(effect)))
            }
            Event::Answered { ask: answered, value } => {
                (String::new(), format!("{}: {value}", ask(answered)))
            }
            Event::PersonMessage(message) => {
                let to = message.to.as_deref().unwrap_or_default();
                (to.to_owned(), format!("{}: {}", message.by.as_deref().unwrap_or("a person"), message.text))
            }
            Event::CancelRequested => (String::new(), String::new()),
            Event::Expired { seconds } => (String::new(), format!("after {seconds} s")),
            Event::BudgetSet { budget } => (String::new(), json!(budget).to_string()),
            Event::LimitsSet { limits } => (String::new(), json!(limits).to_string()),
            Event::ModelsSet { models } => (String::new(), json!(models).to_string()),
            Event::Resumed { tools } => (String::new(), format!("{} changed", counted(tools.len(), "tool"))),
            Event::Forked(fork) => {
                let anew = if fork.graph.is_some() { "; begins its document anew" } else { "" };
                (String::new(), format!("{}{anew}", of_fork(&fork.source, n.saturating_sub(1), fork.events)))
            }
            Event::Fired { timer } => (String::new(), format!("the time of {} is up", ask(timer))),
            Event::Unsent { effects } => {
                let ids: Vec<String> = effects.iter().map(id).collect();
                (effects.first().map(of).unwrap_or_default(), format!("{}: not sent", ids.join(", ")))
            }
            Event::Poisoned { message } => (String::new(), message.clone()),
            Event::NodeStarted { node, .. } => (node.to_string(), String::new()),
            Event::Opened { node, thread, from, start, end } => {
                (node.to_string(), format!("{thread} from {from}[{start}:{end}]"))
            }
            // On no thread: what a model is told about a failed step, and what it answers.
            Event::Appended { node, thread, body } if thread.is_empty() => {
                (node.to_string(), self.body_text(body))
            }
            Event::Appended { node, thread, body } => {
                (node.to_string(), format!("{thread}: {}", self.body_text(body)))
            }
            Event::Requested { effect, args, .. } => {
                let args = args.as_ref().map(|args| format!(" {args}")).unwrap_or_default();
                (of(effect), format!("{}{args}", id(effect)))
            }
            Event::Retried { effect, after_ms, reason } => {
                let wait = duration(i64::try_from(*after_ms).unwrap_or(i64::MAX));
                (of(effect), format!("{} in {wait}: {reason}", id(effect)))
            }
            Event::Reused { effect, from, .. } => {
                (of(effect), format!("{} takes the result of {}", id(effect), id(from)))
            }
            Event::Refused { effect, fault, .. } => {
                (of(effect), format!("{}: {}: {}", id(effect), fault.kind.name(), fault.message))
            }
            Event::Asked(asked) => (asked.node.to_string(), format!("{}: {}", ask(&asked.ask), asked.prompt)),
            Event::Published { node, to, .. } => (node.to_string(), format!("to {to}")),
            Event::NodeFinished { node, fault, .. } => (node.to_string(), fault_text(fault.as_deref())),
            Event::Caught { node, fault } => (node.to_string(), fault_text(Some(fault))),
            Event::Recovered(recovered) => {
                let Recovered { node, action, by, reason, tool, .. } = &**recovered;
                let tool = tool.as_ref().map(|tool| format!(" {tool}")).unwrap_or_default();
                (node.to_string(), format!("{}{tool}{}: {reason}", action.name(), chosen(*action, *by)))
            }
            Event::Spliced { node, warnings, .. }
                if warnings.iter().any(|w| &*w.code == "steps-left-out") =>
            {
                (node.to_string(), "no steps take the place of this one and all after it".to_owned())
            }
            Event::Spliced { node, effect, .. } => {
                (node.to_string(), format!("from here on the steps of {effect} take the place of the others"))
            }
            Event::NodeSkipped { node, because } => {
                (node.to_string(), format!("may depend on {because}, which has no result"))
            }
            Event::Entered { node, paths, iteration, .. } => {
                let paths = paths.map(|paths| {
                    if paths == 1 { "1 path begins".to_owned() } else { format!("{paths} paths begin") }
                });
                let iteration = iteration.map(|iteration| format!("goes round, {iteration}"));
                (node.to_string(), paths.or(iteration).unwrap_or_else(|| "begins what it holds".to_owned()))
            }
            Event::Left { node, joined } => {
                (node.to_string(), joined.as_deref().map(join_text).unwrap_or_default())
            }
            Event::Unrouted { node, fault } => (node.to_string(), fault_text(Some(fault))),
            Event::Edited { node, thread, replaced } => (node.to_string(), edit_text(thread, replaced)),
            Event::Bound { node, tools } => {
                let bound = tools.iter().map(|(name, tool)| match tool {
                    Some(tool) => format!("{name} is {}", tool.version),
                    None => format!("{name} is what it was"),
                });
                (node.to_string(), bound.collect::<Vec<_>>().join(", "))
            }
            Event::Warned { node, warning } => (node.to_string(), format!("warns: {}", warning.message)),
            Event::Given { node, value } => (node.to_string(), value.to_string()),
            Event::Set { node, name, value } => (node.to_string(), format!("{name} is {value}")),
            Event::Ended { status, fault } => {
                let status = json!(status).as_str().unwrap_or_default().to_owned();
                let fault = fault_text(fault.as_deref());
                (String::new(), if fault.is_empty() { status } else { format!("{status}: {fault}") })
            }
        }
    }

    fn body_text(&self, body: &Body) -> String {
        let call = |id: &str| names::call(self.names, id).into_owned();
        match body {
            Body::Text(role, text) => format!("{}: {text}", role_name(*role)),
            Body::Reply(effect) => format!("the reply of {}", call(&effect.0)),
            Body::Call(effect) => format!("the call {}", call(&effect.0)),
            Body::Output(effect) => format!("the result of {}", call(&effect.0)),
            Body::Answer(ask) => format!("the answer to {}", call(ask)),
            Body::PersonMessage(number) => format!("message {} of a person", number + 1),
        }
    }
}

fn edit_text(thread: &str, replaced: &[Replaced]) -> String {
    let parts = replaced.iter().map(|Replaced { start, end, by }| {
        let which = match end - start {
            1 => format!("message {}", start + 1),
            _ => format!("messages {} to {end}", start + 1),
        };
        match by {
            None => format!("{which} gone"),
            Some(StandIn::Summary(_)) => format!("a summary for {which}"),
            Some(StandIn::Text(text)) => format!("{which} in {}", counted(text.len(), "byte")),
            Some(StandIn::Without(calls)) => format!("{which} without {} of its calls", calls.len()),
        }
    });
    let parts: Vec<String> = parts.collect();
    let parts = if parts.is_empty() { "nothing to take away".to_owned() } else { parts.join(", ") };
    format!("{thread}: {parts}")
}

fn join_text(joined: &Joined) -> String {
    let Joined { completed, failed, cancelled, main, .. } = joined;
    let main = main.as_ref().map(|main| format!("; goes on as {main}")).unwrap_or_default();
    let counts = (completed.len(), failed.len(), cancelled.len());
    format!("{} completed, {} failed, {} cut off{main}", counts.0, counts.1, counts.2)
}

fn fault_text(fault: Option<&selvedge_engine::Fault>) -> String {
    fault.map(|fault| format!("{}: {}", fault.kind.name(), fault.message)).unwrap_or_default()
}

fn outcome_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Reply(reply) if reply.calls.is_empty() => reply.text.clone(),
        Outcome::Reply(reply) => {
            let calls: Vec<String> =
                reply.calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect();
            format!("calls {}", calls.join(", "))
        }
        Outcome::Output(output) => output.to_string(),
        Outcome::Operated(operated) => operated.output.to_string(),
        Outcome::Failed(failure) => fault_text(Some(&failure.fault)),
    }
}

/// The name of a role in messages.
pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}
