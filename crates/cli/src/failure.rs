//! The exit codes (C-03), and errors as they are printed (C-04).

use crate::ui::Ui;
use crate::words::command;
use selvedge_dialects::Diagnostic;
use selvedge_dialects::diagnostic::{RenderOptions, render};
use selvedge_engine::{Fault, FaultKind};
use selvedge_host::report::http_status;
pub(crate) use selvedge_host::report::is_refused_key;
use selvedge_host::{Error, ErrorKind};

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

impl From<&Error> for Exit {
    fn from(error: &Error) -> Self {
        error.kind.into()
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Usage => Self::Usage,
            ErrorKind::Environment => Self::Environment,
            ErrorKind::Interrupted => Self::Interrupted,
            ErrorKind::Internal => Self::Internal,
        }
    }
}

/// A result that could not be written, whichever command made it .
pub(crate) fn lost(error: &std::io::Error) -> Error {
    let message = format!("the result can't be written to stdout: {error}");
    let lost = Error::environment("C-02", "output", &message);
    match crate::ui::result_run() {
        // The run itself is not lost with what it printed.
        Some(run) => lost.help(&format!(
            "check where the output goes; run {run} is recorded: {}",
            command(&["show", run])
        )),
        None => lost.help("check where the output goes"),
    }
}

/// Prints an error: text for people, and with `--json` the first error as stderr's last line (C-04).
pub(crate) fn print(error: &Error, ui: &Ui) {
    // A message may repeat what was handed in (C-06).
    let ui = &ui.guarded();
    for diagnostic in &error.diagnostics {
        ui.error_text(&text(diagnostic, ui.colour));
    }
    if ui.json {
        print_json(error, ui);
    }
}

/// Prints the first error as one line of JSON on stderr.
pub(crate) fn print_json(error: &Error, ui: &Ui) {
    ui.error_json(&error.json());
}

/// A diagnostic as text; one that is about no file begins with the word "error".
pub(crate) fn text(diagnostic: &Diagnostic, colour: bool) -> String {
    let text = render(diagnostic, RenderOptions { colour, columns: crate::ui::columns() });
    if diagnostic.file.is_empty() { text.trim_start_matches(": ").to_owned() } else { text }
}

/// Whether a provider had too many requests, and says so (E-14).
pub(crate) fn is_rate_limit(fault: &Fault) -> bool {
    fault.kind == FaultKind::ProviderError && http_status(fault) == Some(429)
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
