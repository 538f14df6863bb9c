//! The one error of this crate: what happened, where, why and what to do, and of which kind it is (C-03, C-04).

use crate::ways::WayOut;
use selvedge_dialects::diagnostic::{Excerpt, error_json};
use selvedge_dialects::{Diagnostic, Severity, Source, Span};
use selvedge_runtime::{DriveError, LoadError};
use selvedge_store::StoreError;
use selvedge_tools::{CatalogueErrors, ErrorClass, ToolError};
use serde_json::Value;
use std::fmt;

/// The code of what nobody has trusted (C-20).
pub const NOT_TRUSTED: &str = "not-trusted";
/// The code of processes for tasks that can't be had (V-01).
pub const NO_WORKER: &str = "no-worker";
/// The code of a key in the file of a tool (C-06).
pub const IN_TOOL: &str = "secret-in-tool";

/// What kind of thing is wrong: who could do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The document or the call.
    Usage,
    /// The configuration, or what this machine has.
    Environment,
    /// Nothing: somebody wanted an end of it.
    Interrupted,
    /// Selvedge itself: a bug.
    Internal,
}

/// Why something could not be begun, or could not go on.
#[derive(Debug)]
pub struct Error {
    /// What kind of thing is wrong.
    pub kind: ErrorKind,
    /// What is shown, the errors among them first in `--json`'s sense; never empty.
    pub diagnostics: Vec<Diagnostic>,
}

impl Error {
    /// One error that is in no file.
    pub fn new(kind: ErrorKind, rule: &'static str, code: &'static str, message: &str) -> Self {
        Self { kind, diagnostics: vec![Diagnostic::about_file("", rule, code, message)] }
    }

    /// Whether it is the error of that code.
    pub fn is(&self, code: &str) -> bool {
        self.diagnostics.first().is_some_and(|first| first.code == code)
    }

    /// Whether it is the state folder that something is wrong with, as where the disk is full, or that no process can be had: whatever was
    /// to be done, that is not what came of it.
    pub fn is_of_machine(&self) -> bool {
        self.diagnostics
            .first()
            .is_some_and(|first| first.code.starts_with("state-") || first.code == NO_WORKER)
    }

    /// A wrong call.
    pub fn usage(rule: &'static str, code: &'static str, message: &str) -> Self {
        Self::new(ErrorKind::Usage, rule, code, message)
    }

    /// Something this machine or its configuration lacks.
    pub fn environment(rule: &'static str, code: &'static str, message: &str) -> Self {
        Self::new(ErrorKind::Environment, rule, code, message)
    }

    /// A bug.
    pub fn internal(message: &str) -> Self {
        Self::new(ErrorKind::Internal, "E-17", "internal-error", message)
            .help("this is a bug: please report it with the command and the document")
    }

    /// An end that was wanted before anything was recorded (C-05).
    pub fn interrupted() -> Self {
        let message = "interrupted before the run began; nothing was recorded";
        Self::new(ErrorKind::Interrupted, "C-05", "interrupted", message).help("give the command again")
    }

    /// Findings about files.
    pub fn findings(kind: ErrorKind, diagnostics: Vec<Diagnostic>) -> Self {
        if diagnostics.is_empty() {
            return Self::internal("an error without a finding");
        }
        Self { kind, diagnostics }
    }

    /// Something that could not be done with a file.
    pub fn about_file(file: &str, rule: &'static str, code: &'static str, message: &str) -> Self {
        Self { kind: ErrorKind::Usage, diagnostics: vec![Diagnostic::about_file(file, rule, code, message)] }
    }

    /// The same with a way out for its first error.
    #[must_use]
    pub fn help(mut self, help: &str) -> Self {
        if let Some(first) = self.diagnostics.first_mut() {
            first.help = help.to_owned();
        }
        self
    }

    /// The same with more findings.
    #[must_use]
    pub fn and(mut self, more: Vec<Diagnostic>) -> Self {
        self.diagnostics.extend(more);
        self
    }

    /// The same behind others, which are its cause.
    #[must_use]
    pub fn behind(mut self, mut first: Vec<Diagnostic>) -> Self {
        first.append(&mut self.diagnostics);
        Self { diagnostics: first, ..self }
    }

    /// The same where what is wrong is in the environment and not on the command line (C-03).
    #[must_use]
    pub fn of_environment(self) -> Self {
        Self { kind: ErrorKind::Environment, ..self }
    }

    /// The same at a place of its file; 0 stands for an unknown one.
    #[must_use]
    pub fn at(mut self, line: u64, column: u64) -> Self {
        let known = |n: u64| u32::try_from(n).ok().filter(|n| *n > 0);
        if let Some(first) = self.diagnostics.first_mut() {
            first.line = known(line);
            first.column = known(line).and(known(column).or(Some(1)));
        }
        self
    }

    /// The same with the line of `text` that it is about.
    #[must_use]
    pub fn showing(mut self, text: &str) -> Self {
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
    pub fn before_run(error: StoreError) -> Self {
        let full = matches!(error, StoreError::Full { .. });
        let failure = Self::from(error);
        match full {
            true => failure.help(
                "free some space (or raise the quota or file-size limit), then start the run anew: none was recorded",
            ),
            false => failure,
        }
    }

    /// The first error as C-04 prints it.
    pub fn json(&self) -> Value {
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

/// What is wrong, each with what to do about it, a line for each.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, found) in self.diagnostics.iter().enumerate() {
            let (line, help) =
                (if at > 0 { "\n" } else { "" }, if found.help.is_empty() { "" } else { "; " });
            write!(f, "{line}{}{help}{}", found.message, found.help)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let (kind, rule, code) = match &error {
            StoreError::AlreadyExists { .. } => (ErrorKind::Usage, "C-12", "run-id-used"),
            StoreError::UnknownRun { .. } => (ErrorKind::Usage, "C-12", "unknown-run"),
            StoreError::AmbiguousRun { .. } => (ErrorKind::Usage, "C-12", "ambiguous-run"),
            StoreError::Driven { .. } => (ErrorKind::Usage, "C-12", "run-driven"),
            StoreError::Damaged { .. } | StoreError::UnknownBlob { .. } => {
                (ErrorKind::Environment, "C-03", "state-damaged")
            }
            StoreError::DamagedRun { .. } => (ErrorKind::Environment, "E-44", "run-damaged"),
            StoreError::Vanished { .. } | StoreError::Emptied { .. } => {
                (ErrorKind::Environment, "E-44", "state-vanished")
            }
            StoreError::Newer { .. } => (ErrorKind::Environment, "C-03", "state-newer"),
            StoreError::Missing { .. } => (ErrorKind::Environment, "C-14", "state-missing"),
            StoreError::ReadOnly { .. } => (ErrorKind::Environment, "C-14", "state-read-only"),
            StoreError::Full { .. } => (ErrorKind::Environment, "C-14", "state-full"),
            StoreError::Locked { .. } => (ErrorKind::Environment, "C-14", "state-locked"),
            StoreError::Io { .. } => (ErrorKind::Environment, "C-14", "state-unusable"),
            StoreError::LibraryChanged { .. } => (ErrorKind::Environment, "C-14", "library-changed"),
            // Whoever appends first has the run (E-04): the other one is no driver any more.
            StoreError::OutOfOrder { .. } => (ErrorKind::Usage, "C-12", "run-driven"),
            StoreError::Closed => (ErrorKind::Internal, "E-17", "internal-error"),
        };
        let help = match &error {
            // Asking it to stop is that process's own: nothing else may write to the journal (E-03).
            StoreError::Driven { run, pid } => {
                let whom = pid.map_or_else(String::new, |pid| format!(", or `kill -INT {pid}`"));
                let cancel = WayOut::Cancel(run);
                format!(
                    "wait for its end, or stop it there (Ctrl-C{whom}): it can be resumed then; {cancel} ends it"
                )
            }
            StoreError::DamagedRun { run, event: Some(bad @ 2..), .. } => sound_before(run, *bad),
            StoreError::DamagedRun { run, event: None, .. } => format!(
                "restore the state folder from a backup; {} prints the events, which prove themselves",
                WayOut::Export(run)
            ),
            StoreError::AlreadyExists { run } => {
                format!("choose another --run-id, or go on with that run: `{}`", WayOut::Resume(run))
            }
            StoreError::UnknownRun { .. } => {
                format!("`{}` lists the runs of this state folder", WayOut::Runs)
            }
            other => other.help().to_owned(),
        };
        Self::new(kind, rule, code, &error.what()).help(&help)
    }
}

/// What can still be done with a run that is damaged at an event (E-44).
fn sound_before(run: &str, bad: u64) -> String {
    let last = bad - 1;
    let events = if bad == 2 { "event 1 is".to_owned() } else { format!("events 1 to {last} are") };
    format!(
        "{events} sound: {} shows the run as of then, {} prints them, {} goes on from there as a new run",
        WayOut::Show { run, at: Some(last) },
        WayOut::Export(run),
        WayOut::Fork { run, at: Some(last) },
    )
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Store(error) => error.into(),
            LoadError::Unreadable { .. } => Self::environment("C-03", "run-unreadable", &error.to_string())
                .help("use the selvedge that wrote it or a later one"),
            LoadError::Newer { ref run, .. } => Self::environment("E-42", "run-newer", &error.to_string()).help(
                &format!("use the selvedge that recorded it, or a later one; {} prints its events as they are stored", WayOut::Export(run)),
            ),
        }
    }
}

impl From<DriveError> for Error {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Store(error) => error.into(),
            DriveError::Unanswered(trouble) => match trouble.downcast::<Self>() {
                Ok(error) => *error,
                Err(trouble) => Self::internal(&trouble.to_string()),
            },
            DriveError::Unwritable(_) => Self::internal(&error.to_string()),
        }
    }
}

impl From<CatalogueErrors> for Error {
    fn from(errors: CatalogueErrors) -> Self {
        let kind = match errors.class() {
            ErrorClass::Document => ErrorKind::Usage,
            ErrorClass::Environment | ErrorClass::State => ErrorKind::Environment,
        };
        Self::findings(kind, errors.0.into_iter().map(tool_diagnostic).collect())
    }
}

impl From<ToolError> for Error {
    fn from(error: ToolError) -> Self {
        CatalogueErrors::from(error).into()
    }
}

/// A tool's error in the shape of every other.
pub fn tool_diagnostic(error: ToolError) -> Diagnostic {
    let file = error.file.map(|file| file.display().to_string()).unwrap_or_default();
    let code = match error.class {
        _ if error.rule == "C-20" => NOT_TRUSTED,
        _ if error.rule == "C-06" => IN_TOOL,
        ErrorClass::Document => "tool",
        ErrorClass::Environment => "tool-environment",
        ErrorClass::State => "state-unusable",
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
