//! The terminal: what is shown there, and why not more.

use super::{Report, Verdict};
use selvedge_host::Environment;
use std::io::IsTerminal;

/// Looks at standard output and standard error.
pub(super) fn look(environment: &Environment, report: &mut Report) {
    let (out, err) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
    let size = terminal_size::terminal_size_of(std::io::stdout());
    let size = size.or_else(|| terminal_size::terminal_size_of(std::io::stderr()));
    let size = size.map(|(columns, rows)| format!(", {} columns and {} rows", columns.0, rows.0));
    let colour = match (environment.variable("NO_COLOR"), environment.variable("TERM").as_deref()) {
        (Some(_), _) => "no colours (NO_COLOR)",
        (_, Some("dumb")) => "no colours (TERM=dumb)",
        _ if out || err => "colours",
        _ => "no colours",
    };
    let what = match (out, err) {
        (true, true) => "a terminal",
        (false, true) => "no terminal for results, one for progress",
        (true, false) => "a terminal for results, none for progress",
        (false, false) => "none: results and progress go to files or pipes",
    };
    report.add("terminal", Verdict::Ok, format!("{what}{}; {colour}", size.unwrap_or_default()));
}
