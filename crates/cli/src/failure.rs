//! The one error of the command line: what happened, where, why, what to do, and the exit code (C-03, C-04).

use crate::hints::command;
use crate::ui::Ui;
use selvedge_dialects::diagnostic::{Excerpt, RenderOptions, error_json, render};
use selvedge_dialects::{Diagnostic, Severity, Source, Span};
use selvedge_engine::{Fault, FaultKind};
use selvedge_runtime::{DriveError, LoadError};
use selvedge_store::StoreError;
use selvedge_tools::{CatalogueErrors, ErrorClass, ToolError};
use serde_json::Value;

/// The exit codes (C-03).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Completed.
    Completed = 0,
    /// The run failed or was cancelled.
    Failed = 1,
    /// The document or the call is wrong.
    Usage = 2,
    /// Waiting for a person.
    Waiting = 3,
    /// Configuration or environment.
    Environment = 4,
    /// A bug.
    Internal = 5,
    /// Interrupted; the run can be resumed.
    Interrupted = 130,
}

/// Why a command ended before a run began, or could not go on.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What is shown, the errors among them first in `--json`'s sense; never empty.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Failure {
    /// One error that is in no file.
    pub(crate) fn new(exit: Exit, rule: &'static str, code: &'static str, message: &str) -> Self {
        Self { exit, diagnostics: vec![Diagnostic::about_file("", rule, code, message)] }
    }

    /// A wrong call (exit 2).
    pub(crate) fn usage(rule: &'static str, code: &'static str, message: &str) -> Self {
        Self::new(Exit::Usage, rule, code, message)
    }

    /// Something this machine or its configuration lacks (exit 4).
    pub(crate) fn environment(rule: &'static str, code: &'static str, message: &str) -> Self {
        Self::new(Exit::Environment, rule, code, message)
    }

    /// A bug (exit 5).
    pub(crate) fn internal(message: &str) -> Self {
        Self::new(Exit::Internal, "E-17", "internal-error", message)
            .help("this is a bug: please report it with the command and the document")
    }

    /// A result that could not be written, whichever command made it (exit 4).
    pub(crate) fn lost(error: &std::io::Error) -> Self {
        let message = format!("the result can't be written to stdout: {error}");
        let lost = Self::environment("C-02", "output", &message);
        match crate::ui::result_run() {
            // The run itself is not lost with what it printed.
            Some(run) => lost.help(&format!(
                "check where the output goes; run {run} is recorded: {}",
                command(&["show", run])
            )),
            None => lost.help("check where the output goes"),
        }
    }

    /// Findings about files.
    pub(crate) fn findings(exit: Exit, diagnostics: Vec<Diagnostic>) -> Self {
        if diagnostics.is_empty() {
            return Self::internal("an error without a finding");
        }
        Self { exit, diagnostics }
    }

    /// Something that could not be done with a file (exit 2).
    pub(crate) fn about_file(file: &str, rule: &'static str, code: &'static str, message: &str) -> Self {
        Self { exit: Exit::Usage, diagnostics: vec![Diagnostic::about_file(file, rule, code, message)] }
    }

    /// The same with a way out for its first error.
    #[must_use]
    pub(crate) fn help(mut self, help: &str) -> Self {
        if let Some(first) = self.diagnostics.first_mut() {
            first.help = help.to_owned();
        }
        self
    }

    /// The same with more findings.
    #[must_use]
    pub(crate) fn and(mut self, more: Vec<Diagnostic>) -> Self {
        self.diagnostics.extend(more);
        self
    }

    /// The same behind others, which are its cause.
    #[must_use]
    pub(crate) fn behind(mut self, mut first: Vec<Diagnostic>) -> Self {
        first.append(&mut self.diagnostics);
        Self { diagnostics: first, ..self }
    }

    /// The same where what is wrong is in the environment and not on the command line (exit 4, C-03).
    #[must_use]
    pub(crate) fn of_environment(self) -> Self {
        Self { exit: Exit::Environment, ..self }
    }

    /// The same at a place of its file; 0 stands for an unknown one.
    #[must_use]
    pub(crate) fn at(mut self, line: u64, column: u64) -> Self {
        let known = |n: u64| u32::try_from(n).ok().filter(|n| *n > 0);
        if let Some(first) = self.diagnostics.first_mut() {
            first.line = known(line);
            first.column = known(line).and(known(column).or(Some(1)));
        }
        self
    }

    /// The same with the line of `text` that it is about.
    #[must_use]
    pub(crate) fn showing(mut self, text: &str) -> Self {
        let Some(first) = self.diagnostics.first_mut() else { return self };
        let (Some(line), Some(column)) = (first.line, first.column) else { return self };
        if let Some(line) = text.lines().nth(line.saturating_sub(1) as usize) {
            let at =
                line.char_indices().nth(column.saturating_sub(1) as usize).map_or(line.len(), |(at, _)| at);
            first.excerpt = Some(Excerpt::around(&Source::new("", line), Span::new(at, at)));
        }
        self
    }

    /// The same advice where no run is there yet that could be resumed.
    pub(crate) fn before_run(error: StoreError) -> Self {
        let full = matches!(error, StoreError::Full { .. });
        let failure = Self::from(error);
        match full {
            true => failure.help(
                "free some space (or raise the quota or file-size limit), then start the run anew: none was recorded",
            ),
            false => failure,
        }
    }

    /// Prints it: text for people, and with `--json` the first error as stderr's last line (C-04).
    pub(crate) fn print(&self, ui: &Ui) {
        // A message may repeat what was handed in (C-06).
        let ui = &crate::secrets::guarded(ui);
        for diagnostic in &self.diagnostics {
            ui.error_text(&text(diagnostic, ui.colour));
        }
        if ui.json {
            self.print_json(ui);
        }
    }

    /// Prints the first error as one line of JSON on stderr.
    pub(crate) fn print_json(&self, ui: &Ui) {
        ui.error_json(&self.json());
    }

    fn json(&self) -> Value {
        let error = self.diagnostics.iter().find(|d| d.severity == Severity::Error);
        let Some(error) = error.or(self.diagnostics.first()) else { return Value::Null };
        let mut json = error_json(error);
        if error.file.is_empty()
            && let Some(fields) = json.get_mut("error").and_then(Value::as_object_mut)
        {
            for name in ["file", "pointer"] {
                fields.insert(name.to_owned(), Value::Null);
            }
        }
        json
    }
}

/// A diagnostic as text; one that is about no file begins with the word "error".
pub(crate) fn text(diagnostic: &Diagnostic, colour: bool) -> String {
    let text = render(diagnostic, RenderOptions { colour, columns: crate::ui::columns() });
    if diagnostic.file.is_empty() { text.trim_start_matches(": ").to_owned() } else { text }
}

/// Whether a provider refused the key, which is a matter of configuration and not of the run (C-03, E-14).
pub(crate) fn is_refused_key(fault: &Fault) -> bool {
    fault.kind == FaultKind::ProviderError && matches!(status(fault), Some(401 | 403))
}

/// Whether a provider had too many requests, and says so (E-14).
pub(crate) fn is_rate_limit(fault: &Fault) -> bool {
    fault.kind == FaultKind::ProviderError && status(fault) == Some(429)
}

/// The status of HTTP that led to a fault.
fn status(fault: &Fault) -> Option<u64> {
    // Google's word for a wrong key is 400; `means` says what it stands for.
    let field = |name: &str| fault.cause.as_ref()?.get(name)?.as_u64();
    field("means").or_else(|| field("status"))
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (exit, rule, code) = match &error {
            StoreError::AlreadyExists { .. } => (Exit::Usage, "C-12", "run-id-used"),
            StoreError::UnknownRun { .. } => (Exit::Usage, "C-12", "unknown-run"),
            StoreError::AmbiguousRun { .. } => (Exit::Usage, "C-12", "ambiguous-run"),
            StoreError::Driven { .. } => (Exit::Usage, "C-12", "run-driven"),
            StoreError::Damaged { .. } | StoreError::UnknownBlob { .. } => {
                (Exit::Environment, "C-03", "state-damaged")
            }
            StoreError::DamagedRun { .. } => (Exit::Environment, "E-44", "run-damaged"),
            StoreError::Vanished { .. } | StoreError::Emptied { .. } => {
                (Exit::Environment, "E-44", "state-vanished")
            }
            StoreError::Newer { .. } => (Exit::Environment, "C-03", "state-newer"),
            StoreError::Missing { .. } => (Exit::Environment, "C-14", "state-missing"),
            StoreError::ReadOnly { .. } => (Exit::Environment, "C-14", "state-read-only"),
            StoreError::Full { .. } => (Exit::Environment, "C-14", "state-full"),
            StoreError::Locked { .. } => (Exit::Environment, "C-14", "state-locked"),
            StoreError::Io { .. } => (Exit::Environment, "C-14", "state-unusable"),
            StoreError::LibraryChanged { .. } => (Exit::Environment, "C-14", "library-changed"),
            // Whoever appends first has the run (E-04): the other one is no driver any more.
            StoreError::OutOfOrder { .. } => (Exit::Usage, "C-12", "run-driven"),
            StoreError::Closed => (Exit::Internal, "E-17", "internal-error"),
        };
        let help = match &error {
            // Asking it to stop is that process's own: nothing else may write to the journal (E-03).
            StoreError::Driven { run, pid } => {
                let whom = pid.map_or_else(String::new, |pid| format!(", or `kill -INT {pid}`"));
                let cancel = command(&["cancel", run]);
                format!(
                    "wait for its end, or stop it there (Ctrl-C{whom}): it can be resumed then, or ended with {cancel}"
                )
            }
            StoreError::DamagedRun { run, event: Some(bad @ 2..), .. } => sound_before(run, *bad),
            StoreError::DamagedRun { run, event: None, .. } => format!(
                "restore the state folder from a backup; {} prints the events, which prove themselves",
                command(&["export", run])
            ),
            other => other.help().to_owned(),
        };
        Self::new(exit, rule, code, &error.what()).help(&help)
    }
}

/// What can still be done with a run that is damaged at an event (E-44).
fn sound_before(run: &str, bad: u64) -> String {
    let last = (bad - 1).to_string();
    let at = |word: &str| command(&[word, run, "--at", &last]);
    let events = if bad == 2 { "event 1 is".to_owned() } else { format!("events 1 to {last} are") };
    format!(
        "{events} sound: {} shows the run as of then, {} prints them, {} goes on from there as a new run",
        at("show"),
        command(&["export", run]),
        at("fork"),
    )
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Store(error) => error.into(),
            LoadError::Unreadable { .. } => Self::environment("C-03", "run-unreadable", &error.to_string())
                .help("use the selvedge that wrote it or a later one"),
            LoadError::Newer { ref run, .. } => Self::environment("E-42", "run-newer", &error.to_string()).help(
                &format!("use the selvedge that recorded it, or a later one; {} prints its events as they are stored", command(&["export", run])),
            ),
        }
    }
}

impl From<DriveError> for Failure {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Store(error) => error.into(),
            DriveError::Unwritable(_) => Self::internal(&error.to_string()),
        }
    }
}

impl From<CatalogueErrors> for Failure {
    fn from(errors: CatalogueErrors) -> Self {
        let exit = match errors.class() {
            ErrorClass::Document => Exit::Usage,
            ErrorClass::Environment => Exit::Environment,
        };
        Self::findings(exit, errors.0.into_iter().map(tool_diagnostic).collect())
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        CatalogueErrors::from(error).into()
    }
}

/// A tool's error in the shape of every other.
pub(crate) fn tool_diagnostic(error: ToolError) -> Diagnostic {
    let file = error.file.map(|file| file.display().to_string()).unwrap_or_default();
    let code = match error.class {
        _ if error.rule == "C-20" => crate::trust::NOT_TRUSTED,
        _ if error.rule == "C-06" => crate::secrets::IN_TOOL,
        ErrorClass::Document => "tool",
        ErrorClass::Environment => "tool-environment",
    };
    let mut diagnostic = Diagnostic::about_file(&file, error.rule, code, &error.message);
    diagnostic.line = error.line;
    let shown = error.shown.unwrap_or_default();
    // Without a column, what is meant is what the line begins with.
    let start = shown.chars().take_while(|c| c.is_whitespace()).count();
    let column = error.column.map_or(start, |column| (column as usize).saturating_sub(1));
    diagnostic.column = error.line.map(|_| u32::try_from(column + 1).unwrap_or(u32::MAX));
    if !shown.is_empty() {
        let at = shown.char_indices().nth(column).map_or(shown.len(), |(at, _)| at);
        let to = if error.column.is_some() { at } else { shown.len() };
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let span = Span { start: offset(at), end: offset(to) };
        diagnostic.excerpt = Some(Excerpt::around(&Source::new(file.as_str(), &shown), span));
    }
    diagnostic.help = error.help;
    diagnostic
}

/// A panic is a bug: it is told in one line and ends with exit 5 (C-03, E-17). A run's own panic is caught by
/// the driver, which poisons that run alone.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
        let text = panic.payload_as_str().unwrap_or("no message");
        crate::ui::stderr(&format!(
            "selvedge: internal error{place}: {text}; this is a bug, please report it\n"
        ));
    }));
}
