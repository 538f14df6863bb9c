//! What a run looks like from outside: C-02's object, and the words for people.

use crate::asks::{self, prompt};
use crate::failure::{Exit, is_refused_key};
use crate::printed;
use crate::ui::Ui;
use crate::ways::Way;
use crate::ways::{self, KEPT, listed};
use crate::words::command;
use selvedge_dialects::DocumentLimits;
use selvedge_engine::{Fault, FaultKind, Graph, RunStatus, State, Warning};
use selvedge_host::report::{RunReport, unasked};
use selvedge_host::text::{harmless, one_line};
use selvedge_host::{Defined, Definitions, Error, RecordedRun};
use selvedge_runtime::{Clock, SystemClock};
use selvedge_store::Store;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::IsTerminal;

/// Characters of a node's id that a line shows.
const NAME: usize = 200;

/// Lines of a traceback, and of each stream of a failed call.
const PRINTED: usize = 12;

/// A run and what its state does not say.
pub(crate) struct Report<'a> {
    /// Where its journal is.
    pub(crate) store: &'a Store,
    /// The run's id.
    pub(crate) run: &'a str,
    /// Its state.
    pub(crate) state: &'a State,
    /// Whether a scripted model answered (C-07).
    pub(crate) scripted: bool,
    /// What the checker said about its document.
    pub(crate) warnings: &'a [Warning],
    /// The graph it was started with, in which tools are as they were.
    pub(crate) graph: &'a Graph,
    /// False for a run that goes on by itself while no live process drives it (C-12).
    pub(crate) driven: bool,
    /// Whether what the run warns of was told as it came.
    pub(crate) warned: bool,
    /// The time by which open questions may have expired; `None` for a moment in the past.
    pub(crate) now: Option<i64>,
}

/// Prints a run as its journal has it.
pub(crate) fn print_run(run: &RecordedRun, driven: bool, ui: &Ui) -> Result<Exit, Error> {
    let (graph, warnings) = (run.graph()?, run.warnings());
    let report = Report {
        store: &run.store,
        run: run.id(),
        state: &run.state,
        scripted: run.info.scripted,
        warnings: &warnings,
        graph: &graph,
        driven,
        warned: false,
        now: Some(SystemClock.now_ms()),
    };
    report.print(ui);
    Ok(if run.is_poisoned()? { Exit::Internal } else { report.exit() })
}

impl Report<'_> {
    /// The exit code that the run's status means (C-03); a run that can go on was interrupted. A provider that
    /// refused a key shows in it also where the run went on without the node's result (P-16), or without the model's
    /// advice on a fault (D-18).
    pub(crate) fn exit(&self) -> Exit {
        match self.state.status() {
            RunStatus::Waiting => Exit::Waiting,
            RunStatus::Cancelled => Exit::Failed,
            RunStatus::Running => Exit::Interrupted,
            RunStatus::Completed | RunStatus::Failed if !self.refused().is_empty() => Exit::Environment,
            RunStatus::Completed => Exit::Completed,
            RunStatus::Failed => Exit::Failed,
        }
    }

    /// Prints a run that is driven no longer, and says what it came to.
    pub(crate) fn conclude(&self, ui: &Ui) -> Exit {
        let exit = self.exit();
        // C-05: an interrupt says how to resume, for people and scripts alike.
        if exit == Exit::Interrupted {
            ui.notice(&unfinished(self.run));
        }
        if exit != Exit::Interrupted || ui.json {
            self.print(ui);
        }
        exit
    }

    /// The nodes whose calls a provider refused for their key, each with what it said.
    fn refused(&self) -> Vec<(String, String)> {
        let said =
            |node: &str, fault: &Fault| (self.state.report_name(node).into_owned(), fault.message.clone());
        let results = self.state.view().results().filter_map(|result| {
            let fault = result.error.filter(|fault| is_refused_key(fault))?;
            Some((result.name.to_string(), fault.message.clone()))
        });
        let mut refused: Vec<(String, String)> = results.collect();
        let ended = self.state.ended().and_then(|(_, fault)| fault).filter(|fault| is_refused_key(fault));
        refused.extend(
            ended
                .filter(|_| refused.is_empty())
                .map(|fault| said(fault.node.as_deref().unwrap_or_default(), fault)),
        );
        for fault in unasked(self.state) {
            let row = said(fault.node.as_deref().unwrap_or_default(), fault);
            if !refused.contains(&row) {
                refused.push(row);
            }
        }
        refused
    }

    /// The run as everybody is told of it.
    pub(crate) fn reported(&self) -> RunReport<'_> {
        let Self { run, state, scripted, warnings, graph, driven, now, .. } = *self;
        RunReport { run, state, scripted, warnings, graph, driven, now }
    }

    /// C-02's object.
    pub(crate) fn json(&self) -> Value {
        self.reported().json()
    }

    /// Prints the run: the object, or the result on stdout and the rest on stderr.
    pub(crate) fn print(&self, ui: &Ui) {
        crate::ui::result_of(self.run);
        if ui.json {
            let mut object = self.json();
            if let Some(fault) = object.get_mut("fault").and_then(Value::as_object_mut)
                && let Some(defined) = self.defined(ui)
            {
                fault.insert("defined".to_owned(), json!(defined));
            }
            ui.result(&format!("{object}\n"));
            return;
        }
        if !self.warned {
            self.tell_warnings(ui);
        }
        match self.state.status() {
            RunStatus::Completed => {
                // A model's or a tool's text, byte for byte, unless a terminal would obey it.
                let text = plain(self.state.view().output());
                self.tell_refused(ui, |_| true);
                ui.result(&if std::io::stdout().is_terminal() { harmless(&text) } else { text });
            }
            RunStatus::Failed => {
                self.tell_fault(ui);
                // The run's own fault has been told.
                let told = self.state.ended().and_then(|(_, fault)| fault).map(|fault| &fault.message);
                self.tell_refused(ui, |said| Some(said) != told);
            }
            RunStatus::Cancelled => ui.notice(&format!("run {} was cancelled", self.run)),
            RunStatus::Waiting => self.tell_asks(&format!("run {} waits for a person:", self.run), ui),
            RunStatus::Running if self.driven => ui.notice(&format!("run {} is running", self.run)),
            RunStatus::Running => {
                ui.notice(&unfinished(self.run));
                if !self.state.asks().is_empty() {
                    self.tell_asks("it also waits for a person:", ui);
                }
            }
        }
    }

    /// Prints the object of a run that can't have come to an end, as its journal could not be kept.
    pub(crate) fn print_failed(&self, why: &str, ui: &Ui) {
        let mut object = self.json();
        let fault = Fault::new(FaultKind::ExecutionFailure, why);
        let changed = [("status", json!("failed")), ("output", Value::Null), ("fault", json!(fault))];
        if let Some(fields) = object.as_object_mut() {
            changed.into_iter().for_each(|(name, value)| drop(fields.insert(name.to_owned(), value)));
        }
        ui.result(&format!("{object}\n"));
    }

    /// Keys that were refused, also where the run went on: its exit code says so (C-03).
    fn tell_refused(&self, ui: &Ui, shown: impl Fn(&String) -> bool) {
        for (node, said) in self.refused().into_iter().filter(|(_, said)| shown(said)) {
            let label = ui.paint("1;31", "error[provider_error]");
            let (node, said) = (one_line(&node, NAME), one_line(&said, 4000));
            ui.notice(&format!("run {}, node {node}: {label}: {said}", self.run));
        }
    }

    /// What the run itself has to warn of, for people too: a cut reply looks like any other (P-10). The checker's warnings
    /// were told when the run began, and failed nodes when they failed.
    fn tell_warnings(&self, ui: &Ui) {
        const MOST: usize = 20;
        let mut seen = BTreeSet::new();
        let own = self.state.warnings().iter().filter(|warning| &*warning.code != "node-failed");
        let own: Vec<&Warning> = own.filter(|w| seen.insert((&w.code, &w.message, &w.node))).collect();
        for warning in own.iter().take(MOST) {
            let node = warning.node.as_deref().map(|node| self.state.told_name(node));
            let node = node.map(|node| format!("node {}: ", one_line(&node, NAME)));
            let (node, message) = (node.unwrap_or_default(), one_line(&warning.message, 1000));
            ui.note(&format!("{}: {node}{message}", ui.paint("1;33", "warning")));
        }
        if own.len() > MOST {
            let all = command(&["show", self.run, "--json"]);
            ui.note(&format!("… and {} more warnings: {all}", own.len() - MOST));
        }
    }

    /// Where the document defines the node that the run failed at, if its file still says what the run began with.
    fn defined(&self, ui: &Ui) -> Option<Defined> {
        let node = self.state.ended()?.1?.node.as_deref()?;
        let info = self.store.run(self.run).ok()?;
        let written = Definitions::read(&ui.environment, &info, &DocumentLimits::default())?;
        written.of(self.state.node_definition(node)?).filter(|defined| !defined.changed)
    }

    fn tell_fault(&self, ui: &Ui) {
        let run = self.run;
        let fault = self.state.ended().and_then(|(_, fault)| fault);
        let kind = fault.map_or("unknown", |fault| fault.kind.name());
        let node = fault.and_then(|fault| fault.node.as_deref()).map(|node| self.state.told_name(node));
        let node = node.as_deref();
        let place = node.map(|node| format!(", node {}", one_line(node, NAME))).unwrap_or_default();
        let printed = fault.and_then(|fault| printed::of_fault(self.store, run, fault));
        let message =
            fault.map_or("no reason was recorded", |fault| printed::message(fault, printed.as_ref()));
        let label = ui.paint("1;31", &format!("error[{kind}]"));
        let defined =
            self.defined(ui).map(|Defined { file, line, column, .. }| format!("{file}:{line}:{column}: "));
        let defined = defined.unwrap_or_default();
        ui.notice(&format!("{defined}run {run}{place}: {label}: {}", one_line(message, 4000)));
        if let Some(fault) = fault {
            let parts = printed::parts(Some(fault), printed.as_ref(), PRINTED);
            let cut = parts.iter().any(|part| part.left_out.is_some());
            ui.notice_parts("  ", &parts);
            if let Some(node) = node.filter(|_| cut) {
                ui.notice(&format!("  … more of it: {}", command(&["show", run, "--node", node])));
            }
        }
        let help = match self.state.declined() {
            Some((ask, _)) => asks::advice(run, ask),
            None => self.ways(),
        };
        ui.notice(&format!("  {} {help}", ui.paint("1;36", "help:")));
    }

    /// How to go on with what has failed.
    fn ways(&self) -> String {
        let ways = ways::ways(self.store, self.run, self.state);
        match ways.as_slice() {
            [Way { command, when }] => format!("{KEPT}; {when}: {command}"),
            _ => {
                let listed = listed(&ways, 4, crate::ui::columns().unwrap_or(usize::MAX));
                format!("{KEPT}; to go on:\n{}", listed.join("\n"))
            }
        }
    }

    fn tell_asks(&self, said: &str, ui: &Ui) {
        let run = self.run;
        ui.notice(said);
        for (id, ask) in self.state.asks() {
            let prompt = one_line(&prompt(self.state, ask), asks::LINE);
            let until = asks::until(self.state, id, self.now).map(|until| format!("\n    {until}"));
            let open = !asks::is_expired(self.state, id, self.now);
            let answers = open.then(|| format!("\n    {}", asks::answers(self.state, run, id)));
            ui.notice(&format!("  {prompt}{}{}", until.unwrap_or_default(), answers.unwrap_or_default()));
        }
        let waits = self.state.status() == RunStatus::Waiting;
        if let Some(next) = asks::next_timer(self.state, run, self.now).filter(|_| waits) {
            ui.notice(&next);
        }
    }
}

/// How to go on with a run that stopped before its end (C-05).
pub(crate) fn unfinished(run: &str) -> String {
    format!("run {run} is not finished; go on with: {}", command(&["resume", run]))
}

/// A result for people: text as it is, anything else as indented JSON, nothing for null.
pub(crate) fn plain(output: &Value) -> String {
    match output {
        Value::Null => String::new(),
        Value::String(text) if text.ends_with('\n') => text.clone(),
        Value::String(text) => format!("{text}\n"),
        other => format!("{other:#}\n"),
    }
}
