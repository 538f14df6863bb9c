//! One node: the calls of its last visit, what came of them, and what its tools printed (C-15, A-30).

use crate::frames;
use crate::inspect::Found;
use crate::inspect::page::{BOLD, CYAN, DIM, MAGENTA, Page, RED, YELLOW, clean};
use crate::inspect::timeline;
use crate::printed::{cause, message, parts};
use crate::ui::Ui;
use crate::words::command;
use selvedge_engine::{Outcome, Printed};
use selvedge_host::Error;
use selvedge_host::report::{self, Nodes, Said, called, tried};
use selvedge_host::timeline::{Attempt, Call};
use serde_json::Value;

/// Where values stand behind their names.
const INDENT: usize = 12;
/// Lines of arguments, of a value, and of each stream.
const ARGUMENTS: usize = 12;
const VALUE: usize = 40;
const PRINTED: usize = 500;

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
    let (def, row) = Nodes::of(&state, &timeline).find(found.run(), node)?;
    if ui.json {
        ui.result(&format!("{}\n", report::node(node, def, row)));
        return Ok(());
    }
    let answers = row.into_iter().flat_map(|row| &row.answers);
    let answers: Vec<Said> = answers.map(|answer| Said::new(&answer.ask, &answer.value)).collect();
    let visit = row.and_then(|row| row.visits.last());
    let calls: Vec<Tried<'_>> = visit
        .map(tried)
        .unwrap_or_default()
        .into_iter()
        .map(|(call, attempt)| Tried { call, attempt })
        .collect();
    let fault = visit.and_then(|visit| visit.fault.as_ref());
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
    page.tell_cut(&[command(&["show", found.run(), "--node", node, "--json"])]);
    page.print(ui);
    Ok(())
}

impl Tried<'_> {
    /// The tool; nothing for a request to a model or an operation.
    fn tool(&self) -> Option<&str> {
        report::tool(self.call)
    }

    fn arguments(&self) -> &Value {
        report::arguments(self.call)
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
