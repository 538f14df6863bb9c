//! Diagnostics: findings about a document, with rule, place and way out (`C-04`).
//!
//! Readers and checkers push [`Finding`]s, which know only their [`Span`], into a [`Diagnostics`] collector.
//! [`Diagnostics::report`] turns them into [`Diagnostic`]s with file, line, column and JSON pointer in one pass
//! over the text, so that a finding costs nothing to place until someone wants to see it.

mod render;

pub use selvedge_engine::is_hidden;
use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::Source;
use crate::json::{Span, pointers};

pub use render::{Excerpt, RenderOptions, render};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document can't be run.
    Error,
    /// The document can be run, and something in it is probably not meant so.
    Warning,
}

impl Severity {
    /// "error" or "warning".
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// Something found in a document, before its place is resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A stable name of the kind of finding, in kebab case, such as "unknown-field".
    pub code: &'static str,
    /// The rule of the specification, such as "P-05".
    pub rule: &'static str,
    /// What is wrong, as one sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub help: String,
    /// Where.
    pub span: Span,
}

impl Finding {
    /// An error; say what to do about it with [`Finding::help`].
    pub fn error(rule: &'static str, code: &'static str, span: Span, message: impl Into<String>) -> Self {
        let message = message.into();
        Finding { severity: Severity::Error, code, rule, message, help: String::new(), span }
    }

    /// A warning; say what to do about it with [`Finding::help`].
    pub fn warning(rule: &'static str, code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Finding { severity: Severity::Warning, ..Finding::error(rule, code, span, message) }
    }

    /// The same finding with a way out.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

/// A finding with its place, in the shape of `check --json` (`C-04`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A stable name of the kind of finding, in kebab case.
    pub code: &'static str,
    /// The rule of the specification.
    pub rule: &'static str,
    /// What is wrong.
    pub message: String,
    /// The file's name as the user gave it.
    pub file: String,
    /// Line, from 1; absent (null) when the finding is about the file as a whole.
    pub line: Option<u32>,
    /// Column in characters, from 1; absent with `line`.
    pub column: Option<u32>,
    /// JSON pointer of the value concerned; "" is the whole document.
    pub pointer: String,
    /// What to do about it.
    pub help: String,
    /// The place in the text; absent with `line`.
    #[serde(skip)]
    pub span: Option<Span>,
    /// The source line around the place, cut to a bearable length.
    #[serde(skip)]
    pub excerpt: Option<Excerpt>,
}

impl Diagnostic {
    /// An error about a file as a whole: it has no place in the text.
    pub fn about_file(file: &str, rule: &'static str, code: &'static str, message: &str) -> Self {
        Diagnostic {
            severity: Severity::Error,
            code,
            rule,
            message: message.to_owned(),
            file: file.to_owned(),
            line: None,
            column: None,
            pointer: String::new(),
            help: String::new(),
            span: None,
            excerpt: None,
        }
    }

    /// The same diagnostic, boxed, with a way out.
    #[must_use]
    pub fn with_help(mut self, help: &str) -> Box<Self> {
        self.help = help.to_owned();
        Box::new(self)
    }
}

/// What `check --json` prints on stdout (`C-04`).
pub fn check_json(diagnostics: &[Diagnostic]) -> Value {
    serde_json::json!({ "diagnostics": diagnostics })
}

/// What a command with `--json` prints as the last line on stderr when no run began (`C-04`).
pub fn error_json(diagnostic: &Diagnostic) -> Value {
    let mut error = serde_json::json!(diagnostic);
    if let Some(fields) = error.as_object_mut() {
        fields.shift_remove("severity");
    }
    serde_json::json!({ "error": error })
}

/// Collects findings about one document; bounded (`E-12`): of each code the first 200 are kept and the rest
/// counted.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    findings: Vec<Finding>,
    of_code: BTreeMap<(Severity, &'static str), Kept>,
    errors: usize,
    warnings: usize,
    /// Names that were searched for near ones, see [`Diagnostics::may_search`].
    compared: usize,
    /// Those about other files that the document names, with their places there.
    elsewhere: Vec<Diagnostic>,
}

#[derive(Clone, Debug)]
struct Kept {
    seen: usize,
    first_dropped: Option<Finding>,
}

impl Diagnostics {
    /// How many findings of one code and severity are kept.
    pub const KEPT_OF_A_CODE: usize = 200;

    /// An empty collector.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a finding.
    pub fn push(&mut self, finding: Finding) {
        match finding.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        let key = (finding.severity, finding.code);
        let kept = self.of_code.entry(key).or_insert(Kept { seen: 0, first_dropped: None });
        kept.seen += 1;
        if kept.seen <= Self::KEPT_OF_A_CODE {
            self.findings.push(finding);
        } else if kept.first_dropped.is_none() {
            kept.first_dropped = Some(finding);
        }
    }

    /// Adds what was found in another file that the document names; what was told of it before is not told again.
    pub(crate) fn elsewhere(&mut self, other: Diagnostics, source: &Source) {
        for diagnostic in other.report(source) {
            if self.elsewhere.contains(&diagnostic) {
                continue;
            }
            match diagnostic.severity {
                Severity::Error => self.errors += 1,
                Severity::Warning => self.warnings += 1,
            }
            self.elsewhere.push(diagnostic);
        }
    }

    /// Whether further findings of this kind are only counted: then nobody will see their words.
    pub fn is_full(&self, severity: Severity, code: &'static str) -> bool {
        self.of_code.get(&(severity, code)).is_some_and(|kept| kept.seen > Self::KEPT_OF_A_CODE)
    }

    /// Whether it is worth to search so many names for what was meant by one that there is not: a finding that
    /// comes after many others, in a document with many names, is told without.
    pub(crate) fn worth_searching(&self, code: &'static str, names: usize) -> bool {
        const COMPARED: usize = 500_000;
        let seen = self.of_code.get(&(Severity::Error, code)).map_or(0, |kept| kept.seen);
        seen <= Self::KEPT_OF_A_CODE && (seen + 1).saturating_mul(names) <= COMPARED.max(names)
    }

    /// Whether so many names may still be searched for what was meant by one that a result may bring: the cost of all
    /// such searches of a document is limited.
    pub(crate) fn may_search(&mut self, names: usize) -> bool {
        const COMPARED: usize = 500_000;
        let may = self.compared == 0 || self.compared + names <= COMPARED;
        self.compared += if may { names.max(1) } else { 0 };
        may
    }

    /// Whether there is an error among the findings.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The number of errors, those not kept included.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// The number of warnings, those not kept included.
    pub fn warnings(&self) -> usize {
        self.warnings
    }

    /// The findings that were kept, in the order in which they were found.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// All findings with their places in `source`, in the order of the text. Where findings were not kept, one
    /// entry says how many more there are.
    pub fn report(&self, source: &Source) -> Vec<Diagnostic> {
        let mut findings: Vec<Cow<'_, Finding>> = self.findings.iter().map(Cow::Borrowed).collect();
        for kept in self.of_code.values() {
            if let Some(first) = &kept.first_dropped {
                let more = kept.seen - Self::KEPT_OF_A_CODE;
                let message = format!("{} (and {} more of this kind)", first.message, more - 1);
                let message = if more == 1 { first.message.clone() } else { message };
                findings.push(Cow::Owned(Finding { message, ..first.clone() }));
            }
        }
        findings.sort_by_key(|finding| finding.span.start);
        let offsets: Vec<usize> = findings.iter().map(|finding| finding.span.start as usize).collect();
        let pointers = pointers(source.text(), &offsets);
        let placed = findings.iter().zip(pointers);
        let placed = placed.map(|(finding, pointer)| placed_diagnostic(source, finding, pointer));
        placed.chain(self.elsewhere.iter().cloned()).collect()
    }
}

fn placed_diagnostic(source: &Source, finding: &Finding, pointer: String) -> Diagnostic {
    let place = source.place(finding.span.start as usize);
    Diagnostic {
        severity: finding.severity,
        code: finding.code,
        rule: finding.rule,
        message: finding.message.clone(),
        file: source.name().to_owned(),
        line: Some(place.line),
        column: Some(place.column),
        pointer,
        help: finding.help.clone(),
        span: Some(finding.span),
        excerpt: Some(Excerpt::around(source, finding.span)),
    }
}

/// Names for people, in quotes; not too many of them.
pub(crate) fn listed(names: &[&str]) -> String {
    const MOST: usize = 20;
    let shown: Vec<String> = names.iter().take(MOST).map(|name| shown(name)).collect();
    let more = if names.len() > MOST { ", …" } else { "" };
    match names.is_empty() {
        true => "there are none".to_owned(),
        false => format!("{}{more}", shown.join(", ")),
    }
}

/// A text of a document as it may stand in a message: in double quotes, control characters escaped (a document
/// must not steer a terminal), cut after 60 characters.
pub fn shown(text: &str) -> String {
    const MOST: usize = 60;
    let mut quoted = String::from("\"");
    for (count, character) in text.chars().enumerate() {
        if count == MOST {
            quoted.push('…');
            break;
        }
        match character {
            '"' | '\\' | '\n' | '\r' | '\t' | '\0' => quoted.extend(character.escape_debug()),
            other if is_hidden(other) => quoted.extend(other.escape_unicode()),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests;
