//! Whom a project's `selvedge.toml` may start, and what it may send where (C-20): nobody and nothing, until a person trusts it.
//! Everything that reads the configuration to act on it comes through [`Gate::pass`].

pub(crate) mod imported;
mod part;
mod record;
pub mod state;

pub use part::{Does, Part};
pub use record::Record;

use crate::environment::Environment;
use crate::error::NOT_TRUSTED;
use crate::observer::Observer;
use crate::places;
use crate::text::one_line;
use crate::ways::WayOut;
use selvedge_dialects::{Diagnostic, Severity};
use selvedge_engine::Warning;
use std::path::{Path, PathBuf};

/// Parts that a warning names.
const NAMED: usize = 8;
/// Characters of a name that are shown.
const NAME: usize = 200;

/// Whether a command was told to trust what it finds, and whether it may ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gate {
    /// `--trust` or `SELVEDGE_TRUST`.
    pub given: bool,
    asks: bool,
}

impl Gate {
    /// Whether everything is trusted, and whether a person may be asked where it is not.
    pub fn new(given: bool, asks: bool) -> Self {
        Self { given, asks }
    }

    /// The same, which asks nobody.
    pub fn silent(self) -> Self {
        Self { asks: false, ..self }
    }

    /// Whether it may ask a person.
    pub fn may_ask(self) -> bool {
        self.asks
    }

    /// What of a project's file is not trusted; `None` if all of it is, as it was recorded, was given, or is answered now.
    pub fn pass(
        self,
        environment: &Environment,
        file: &Path,
        parts: Vec<Part>,
        observer: &dyn Observer,
    ) -> Option<Untrusted> {
        if self.given || parts.is_empty() {
            return None;
        }
        let untrusted = Untrusted::of(environment, file, &parts)?;
        if !self.asks {
            return Some(untrusted);
        }
        if !untrusted.ask(observer) {
            return Some(untrusted);
        }
        // Who can't keep the answer has given it all the same.
        if let Err(failure) = Record::write(environment, &untrusted.folder, &parts) {
            failure.diagnostics.iter().for_each(|found| observer.alert(found));
        }
        None
    }
}

/// What a person has not trusted of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Untrusted {
    /// The file, for people.
    pub file: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The parts, each with whether it was trusted with another content.
    pub parts: Vec<(Part, bool)>,
    /// Whether the folder was trusted before.
    pub before: bool,
    /// The command that trusts it.
    command: String,
}

impl Untrusted {
    /// What is not trusted of a file that has these parts.
    pub fn of(environment: &Environment, file: &Path, parts: &[Part]) -> Option<Self> {
        let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
        let record = Record::of(environment, &folder);
        let trusted = |part: &Part| record.as_ref().is_some_and(|record| record.has(part));
        let changed =
            |part: &Part| record.as_ref().is_some_and(|record| record.parts.contains_key(&part.name));
        let parts: Vec<(Part, bool)> =
            parts.iter().filter(|part| !trusted(part)).map(|part| (part.clone(), changed(part))).collect();
        if parts.is_empty() {
            return None;
        }
        let found = places::config_files(environment, environment.cwd()).project;
        let here = found.is_some_and(|found| found == file);
        let shown = folder.display().to_string();
        let command = format!("`{}`", WayOut::Trust((!here).then_some(shown.as_str())));
        let file = one_line(&environment.shown(file), usize::MAX);
        Some(Self { file, before: record.is_some(), parts, command, folder })
    }

    /// What it is about, in one line.
    pub fn message(&self) -> String {
        let named = self.parts.iter().take(NAMED).map(|(part, changed)| {
            let name = one_line(&part.name, NAME);
            match (self.before, changed) {
                (false, _) => name,
                (true, true) => format!("{name} (changed)"),
                (true, false) => format!("{name} (new)"),
            }
        });
        let mut names = named.collect::<Vec<_>>().join(", ");
        if self.parts.len() > NAMED {
            names.push_str(&format!(" and {} more", self.parts.len() - NAMED));
        }
        match self.before {
            false => {
                format!("nobody has trusted what this file starts, sends and allows; it is off: {names}")
            }
            true => format!("this file is not what was trusted; what is new is off: {names}"),
        }
    }

    /// What to do about it.
    pub fn help(&self) -> String {
        format!("{} shows it and asks; --trust is for one command", self.command)
    }

    /// The same as a finding about the file.
    pub fn finding(&self) -> Diagnostic {
        let mut found = Diagnostic::about_file(&self.file, "C-20", NOT_TRUSTED, &self.message());
        found.line = self.parts.first().and_then(|(part, _)| part.place());
        found.severity = Severity::Warning;
        found.help = self.help();
        found
    }

    /// The error that a part is needed which is not trusted, at its place in the file.
    pub(crate) fn refusal(&self, part: &str, message: &str) -> Diagnostic {
        let mut found = Diagnostic::about_file(&self.file, "C-20", NOT_TRUSTED, message);
        found.line =
            self.parts.iter().find(|(known, _)| known.name == part).and_then(|(part, _)| part.place());
        found.help = self.help();
        found
    }

    /// The same as a warning of a run.
    pub fn warning(&self) -> Warning {
        let message = format!("{}: {}", self.file, self.message());
        Warning { code: NOT_TRUSTED.into(), message, node: None }
    }

    /// Asks a person about it.
    fn ask(&self, observer: &dyn Observer) -> bool {
        let rows = self.parts.iter().map(|(part, changed)| {
            let state = match (self.before, changed) {
                (false, _) => "",
                (true, true) => "changed",
                (true, false) => "new",
            };
            (part, state)
        });
        observer.trusts(&question(&self.file, rows))
    }
}

/// What a file, or a folder of runs, does that is not trusted, to ask a person about.
pub fn question<'p>(file: &str, parts: impl Iterator<Item = (&'p Part, &'p str)>) -> String {
    let rows: String = parts.map(|(part, state)| row(part, state)).collect();
    format!("{file} is not trusted. It would\n{}", rows.trim_end())
}

/// Where a path leads, as far as it is there.
fn settled(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|part| Some((part, part.canonicalize().ok()?)));
    let Some((part, real)) = there else { return path.to_owned() };
    path.strip_prefix(part).map_or(real.clone(), |rest| real.join(rest))
}

/// What is trusted is no tool's to write: where a grant holds the folder that says so, it has to be there to be kept.
pub fn keep_out(environment: &Environment, granted: &[PathBuf]) {
    let within = |dir: &PathBuf| granted.iter().any(|grant| settled(dir).starts_with(settled(grant)));
    if let Some(dir) = places::trust_dir(environment).filter(within) {
        // Where it can't be made, no tool can make it either.
        let _ = record::make(&dir);
    }
}

/// A line about a part.
pub fn row(part: &Part, state: &str) -> String {
    let does = match part.does {
        Does::Start => "start",
        Does::Send => "send",
        Does::Allow => "allow",
    };
    let state = if state.is_empty() { String::new() } else { format!(", {state}") };
    let line = if part.line == 0 { String::new() } else { format!(", line {}", part.line) };
    format!("  {does:<6} {}  ({}{line}{state})\n", part.what, one_line(&part.name, NAME))
}
