//! Where words go: results to stdout, everything else to stderr (C-04). Nothing here panics on a closed pipe.

use crate::args::Common;
use crate::inspect::pager::{self, Pager};
use selvedge_dialects::diagnostic::is_hidden;
use selvedge_dialects::{Diagnostic, Severity};
use selvedge_host::report::escaped;
use selvedge_host::secrets::{is_own_word, known};
use selvedge_host::text::harmless;
use selvedge_host::trust::Gate;
use selvedge_host::{Config, Environment, Error, Host, Observer};
use selvedge_http::Secret;
use serde_json::Value;
use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

mod fold;

/// Why a result could not be written, a full disk for example.
static RESULT_LOST: Mutex<Option<std::io::Error>> = Mutex::new(None);

/// Why a result was lost on its way out, if one was: then a command has not done what it was asked to.
pub(crate) fn result_lost() -> Option<std::io::Error> {
    RESULT_LOST.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The run whose result this process prints.
static RESULT_OF: OnceLock<String> = OnceLock::new();

/// Takes note of the run whose result is printed: should the result be lost, it can be shown again.
pub(crate) fn result_of(run: &str) {
    RESULT_OF.get_or_init(|| run.to_owned());
}

/// The run whose result was printed, if it was one.
pub(crate) fn result_run() -> Option<&'static str> {
    RESULT_OF.get().map(String::as_str)
}

/// Takes text that is in the way of a picture on the terminal; `false` if there is none.
static PICTURE: OnceLock<fn(&str) -> bool> = OnceLock::new();

/// From here on, text goes to `take` first.
pub(crate) fn draws(take: fn(&str) -> bool) {
    PICTURE.get_or_init(|| take);
}

/// What is told of a call beside its outcome: where it is from, how many bytes of it were not kept, how many lines are not
/// shown, and the last lines.
#[derive(Debug, PartialEq)]
pub(crate) struct Part {
    /// `traceback`, `stdout`, `stderr`.
    pub(crate) name: &'static str,
    /// What is left out before the lines, in words.
    pub(crate) left_out: Option<String>,
    /// The lines.
    pub(crate) lines: Vec<String>,
}

/// How a command talks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ui {
    /// Machine output.
    pub(crate) json: bool,
    /// No progress and no notes.
    pub(crate) quiet: bool,
    /// How much more is told (`-v`).
    pub(crate) verbose: u8,
    /// Whether stderr gets colours.
    pub(crate) colour: bool,
    /// Whether stderr is a terminal on which a run can be shown live.
    pub(crate) live: bool,
    /// Whether a person sits at the terminal who can be asked (C-20).
    pub(crate) may_ask: bool,
    /// Keys in use, which are never shown (C-06).
    pub(crate) secrets: Vec<Secret>,
    /// What this process was started with.
    pub(crate) environment: Environment,
}

impl Ui {
    /// A talker for these options; colours only on a terminal, and never with `NO_COLOR`.
    pub(crate) fn new(environment: Environment, json: bool, quiet: bool, verbose: u8) -> Self {
        let plain = environment.path("NO_COLOR").is_some();
        // An empty one counts as not set elsewhere; here it says that nothing is known of the terminal.
        let term = environment.path("TERM");
        let dumb = environment.is_set("TERM") && term.is_none_or(|term| term.as_os_str() == "dumb");
        let terminal = !dumb && std::io::stderr().is_terminal();
        let colour = !plain && terminal;
        let may_ask = !json && !quiet && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        Self {
            json,
            quiet,
            verbose,
            colour,
            live: terminal && !quiet,
            may_ask,
            secrets: Vec::new(),
            environment,
        }
    }

    /// What may be trusted without a question, and whether one may be asked (C-20): only on a terminal, and never for machine
    /// output.
    ///
    /// # Errors
    /// `SELVEDGE_TRUST` is neither 1 nor 0.
    pub(crate) fn gate(&self, common: &Common) -> Result<Gate, Error> {
        Ok(Gate::new(selvedge_host::options::trusts(&self.environment)? || common.trust, self.may_ask))
    }

    /// Who hears what a host tells.
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(self.clone())
    }

    /// The host of a command.
    ///
    /// # Errors
    /// Those of [`Self::gate`].
    pub(crate) fn host(&self, common: &Common) -> Result<Host, Error> {
        let host = Host::new(self.environment.clone()).heard_by(self.observer(), self.gate(common)?);
        Ok(host.in_state_dir(common.state_dir.as_deref()))
    }

    /// The same, which knows the keys of this configuration besides those that it knows.
    pub(crate) fn guarded_by(&self, config: &Config) -> Self {
        let mut ui = self.clone();
        for secret in known(config) {
            if !ui.secrets.contains(&secret) {
                ui.secrets.push(secret);
            }
        }
        ui
    }

    /// The same, which knows the keys of this environment, whatever it is made to say (C-06).
    pub(crate) fn guarded(&self) -> Self {
        self.guarded_by(&Config::of_keys(&self.environment))
    }

    /// Text without the secrets in use (C-06). A key that is a word of our own, as a status is, hides none of them.
    pub(crate) fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        redacted(text, self.secrets.iter().filter(|secret| !is_own_word(secret.expose())))
    }

    /// JSON without the secrets in use (C-06): only texts in it that are data are changed, so that it stays JSON and what
    /// it was.
    pub(crate) fn redacted_json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        selvedge_host::report::redacted(json, &self.secrets)
    }

    /// A note on stderr that `--quiet` leaves out.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.error_text(&format!("{text}\n"));
        }
    }

    /// A note on stderr that always appears.
    pub(crate) fn notice(&self, text: &str) {
        self.error_text(&format!("{text}\n"));
    }

    /// What is told of a call beside its outcome, on stderr, as lines: traceback, and what was printed.
    pub(crate) fn notice_parts(&self, indent: &str, parts: &[Part]) {
        for Part { name, left_out, lines } in parts {
            self.notice(&format!("{indent}{}:", self.paint("2", name)));
            if let Some(words) = left_out {
                self.notice(&format!("{indent}  {}", self.paint("2", &format!("… {words}"))));
            }
            for line in lines {
                let line = format!("{indent}  {}", harmless(&self.redacted(line)));
                self.error_lines(&format!("{}\n", line.trim_end()));
            }
        }
    }

    /// Text on stderr, as it is but for what steers a terminal; on one, in lines that are broken at spaces.
    pub(crate) fn error_text(&self, text: &str) {
        let text = self.redacted(text);
        let text = tame(&text, self.colour);
        match columns() {
            Some(columns) => stderr(&fold::folded(&text, columns)),
            None => stderr(&text),
        }
    }

    /// Asks for a yes at the terminal: nothing else is one.
    pub(crate) fn is_confirmed(&self, question: &str) -> bool {
        self.error_text(question);
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        if !matches!(read, Ok(count) if count > 0) {
            self.error_text("\n");
        }
        read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
    }

    /// The same of lines that others wrote, and that stay what they are.
    pub(crate) fn error_lines(&self, lines: &str) {
        stderr(&tame(&self.redacted(lines), self.colour));
    }

    /// A line of JSON on stderr.
    pub(crate) fn error_json(&self, json: &Value) {
        stderr(&escaped(&self.redacted_json(&format!("{json}\n"))));
    }

    /// A result on stdout; one that is lost is reported when the command ends. A reader that went away is no error: whoever closed the pipe has what it wanted.
    pub(crate) fn result(&self, text: &str) {
        let text = self.printed(text);
        let mut out = std::io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        if let Err(error) = written
            && error.kind() != std::io::ErrorKind::BrokenPipe
        {
            *RESULT_LOST.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }

    /// A page for people: what a terminal has no room for is shown by a pager.
    pub(crate) fn page(&self, text: &str) {
        let shown = self.printed(text);
        match pager::is_long(&shown).then(|| Pager::start(self)).flatten() {
            Some(pager) => pager.show(&shown),
            None => self.result(text),
        }
    }

    /// A result as it is printed: without the keys in use, and JSON without what steers a terminal.
    fn printed<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.json {
            true => Cow::Owned(escaped(&self.redacted_json(text)).into_owned()),
            false => self.redacted(text),
        }
    }

    /// The columns of the terminal that stderr is; `None` for a pipe or a file.
    pub(crate) fn columns(&self) -> Option<usize> {
        columns()
    }

    /// A piece of text in a colour, if colours are on: an SGR code such as `1;31`.
    pub(crate) fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

impl Observer for Ui {
    fn note(&self, text: &str) {
        Self::note(self, text);
    }

    fn warning(&self, text: &str) {
        Self::note(self, &format!("{}: {text}", self.paint("1;33", "warning")));
    }

    fn finding(&self, finding: &Diagnostic) {
        if !self.quiet {
            self.alert(finding);
        }
    }

    /// Warnings about a document, in a line each, where something else was asked for: `check` shows their places, and what
    /// to do about them.
    fn findings(&self, findings: &[Diagnostic]) {
        /// Lines at most.
        const LISTED: usize = 10;
        let warnings: Vec<&Diagnostic> =
            findings.iter().filter(|finding| finding.severity == Severity::Warning).collect();
        for warning in warnings.iter().take(LISTED) {
            let text = crate::failure::text(warning, self.colour);
            self.note(text.lines().next().unwrap_or_default());
        }
        if !warnings.is_empty() {
            let more = warnings.len().saturating_sub(LISTED);
            let more = if more > 0 { format!("… {more} more warnings; ") } else { String::new() };
            self.note(
                &self.paint("2", &format!("  {more}`selvedge check` shows the places, and what to do")),
            );
        }
    }

    fn alert(&self, finding: &Diagnostic) {
        self.error_text(&crate::failure::text(finding, self.colour));
    }

    fn trusts(&self, question: &str) -> bool {
        self.notice(question);
        self.is_confirmed("Trust it? [y/N] ")
    }
}

fn redacted<'t, 's>(text: &'t str, secrets: impl Iterator<Item = &'s Secret>) -> Cow<'t, str> {
    secrets.fold(Cow::Borrowed(text), |text, secret| match secret.redact(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => Cow::Owned(clean),
    })
}

/// The columns of the terminal that stderr is; `None` for a pipe or a file.
pub(crate) fn columns() -> Option<usize> {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    let own = size.map(|(columns, _)| columns.0.into()).filter(|columns| *columns > 0);
    own.map(|own| wanted_columns().unwrap_or(own))
}

/// The columns that the environment asks for.
pub(crate) fn wanted_columns() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.trim().parse().ok().filter(|columns| *columns > 0)
}

/// Writes to stderr in one piece, above a live view if there is one; there is nowhere left to report a failure to.
pub(crate) fn stderr(text: &str) {
    if PICTURE.get().is_some_and(|take| take(text)) {
        return;
    }
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Text for a terminal in which nothing hides and nothing steers it but our own colours, if they are on: what comes from elsewhere is escaped
/// where it is put in, and here whatever was not.
pub(crate) fn tame(text: &str, colour: bool) -> Cow<'_, str> {
    let own = |character: char| matches!(character, '\n' | '\t') || colour && character == '\u{1b}';
    let wild = |(at, character): (usize, char)| {
        let rest = text.get(at..).unwrap_or_default();
        is_hidden(character) && (!own(character) || character == '\u{1b}' && !is_colour(rest))
    };
    if !text.char_indices().any(wild) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 64);
    for (at, character) in text.char_indices() {
        match wild((at, character)) {
            true => clean.extend(character.escape_unicode()),
            false => clean.push(character),
        }
    }
    Cow::Owned(clean)
}

/// Whether a text begins with what chooses a colour: `ESC [ 1 ; 31 m`.
fn is_colour(text: &str) -> bool {
    let Some(code) = text.strip_prefix("\u{1b}[") else { return false };
    code.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_joins_and_chooses_pictures_stays() {
        let joined = "👩\u{200d}💻 ❤\u{fe0f} می\u{200c}خواهم";
        assert_eq!(tame(joined, false), Cow::Borrowed(joined));
    }

    /// C-04: our own colours stay where they are on, and nothing else steers.
    #[test]
    fn nothing_but_colours_steers_a_terminal() {
        let text = "\u{1b}[1;33mwarning\u{1b}[0m: a\u{1b}[2J\u{9b}31m\u{202e}b\u{200f}\r\n\tc ä";
        let clean = tame(text, true);
        assert_eq!(
            clean,
            "\u{1b}[1;33mwarning\u{1b}[0m: a\\u{1b}[2J\\u{9b}31m\\u{202e}b\\u{200f}\\u{d}\n\tc ä"
        );
        assert!(!tame(text, false).contains('\u{1b}'));
        assert!(matches!(tame("plain ä\n", false), Cow::Borrowed(_)));
    }
}
