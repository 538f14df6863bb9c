//! What is wrong with a tool before any run began (C-04).

use selvedge_engine::is_hidden;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Whose matter an error is (C-03).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The tool, the document or the call is wrong.
    Document,
    /// The machine or its configuration is.
    Environment,
    /// The state folder can't be written, as where the disk is full: nothing may follow from that (E-40).
    State,
}

/// A text in one line that can't steer a terminal: what was broken into lines is joined, control characters and those that
/// turn the direction of writing or hide are escaped (C-04).
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for part in text.split(['\n', '\r']) {
        // The first one may begin as it likes.
        let part = if line.is_empty() { part } else { part.trim_start() };
        if part.trim().is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.truncate(line.trim_end().len());
            line.push(' ');
        }
        line.push_str(&shown(&part.replace('\t', " ")));
    }
    line
}

/// A name from elsewhere as it may be shown: what could steer a terminal or hide is escaped.
pub(crate) fn shown(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for character in name.chars() {
        match is_hidden(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// One error: what, where and what to do.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolError {
    /// Whose matter it is.
    pub class: ErrorClass,
    /// The rule it breaks, `A-08`.
    pub rule: &'static str,
    /// The file it is in, if it is in one.
    pub file: Option<PathBuf>,
    /// The line in that file, counted from 1, if known.
    pub line: Option<u32>,
    /// The column in that line, in characters from 1, if known.
    pub column: Option<u32>,
    /// The text of that line, if known.
    pub shown: Option<String>,
    /// What is wrong and why.
    pub message: String,
    /// What to do about it; may be empty.
    pub help: String,
}

impl ToolError {
    /// A wrong tool, document or call.
    pub fn document(rule: &'static str, message: impl Into<String>) -> Self {
        let class = ErrorClass::Document;
        Self {
            class,
            rule,
            file: None,
            line: None,
            column: None,
            shown: None,
            message: one_line(&message.into()),
            help: String::new(),
        }
    }
    /// Something this machine lacks or refuses.
    pub fn environment(rule: &'static str, message: impl Into<String>) -> Self {
        Self { class: ErrorClass::Environment, ..Self::document(rule, message) }
    }
    /// A file of the state folder that can't be written.
    pub(crate) fn unkept(file: &Path, error: &io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let (message, help) = match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => (
                format!("no room left to write {}: {error}", file.display()),
                "free some space (or raise the quota or file-size limit), then resume the run",
            ),
            _ => (
                format!("{} can't be written: {error}", file.display()),
                "make the folder writable for this user, then resume the run",
            ),
        };
        Self { class: ErrorClass::State, ..Self::document("C-14", message).help(help) }
    }
    /// The same error in a file, at a line if known.
    #[must_use]
    pub fn at(mut self, file: &Path, line: Option<u32>) -> Self {
        self.file = Some(file.to_owned());
        self.line = line;
        self
    }
    /// The same error at a column of its line, if known.
    #[must_use]
    pub fn column(mut self, column: Option<u32>) -> Self {
        self.column = self.line.and(column);
        self
    }
    /// The same error with the text of its line, which is one of `text` (C-04).
    #[must_use]
    pub fn showing(mut self, text: &[u8]) -> Self {
        if self.shown.is_some() {
            return self;
        }
        let nth = |line: u32| text.split(|byte| *byte == b'\n').nth((line as usize).checked_sub(1)?);
        let line = self.line.and_then(nth).map(|line| String::from_utf8_lossy(line).trim_end().to_owned());
        // A byte-order mark takes no column.
        let line = line.map(|line| line.trim_start_matches('\u{feff}').to_owned());
        self.shown = line.filter(|line| !line.is_empty());
        self
    }
    /// The same error with this in place of the text of its line.
    #[must_use]
    pub(crate) fn hiding(self, instead: &str) -> Self {
        Self { shown: Some(instead.to_owned()), ..self }
    }
    /// The same error with what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line, self.column) {
            (Some(file), Some(line), Some(column)) => write!(f, "{}:{line}:{column}: ", file.display())?,
            (Some(file), Some(line), None) => write!(f, "{}:{line}: ", file.display())?,
            (Some(file), None, _) => write!(f, "{}: ", file.display())?,
            (None, ..) => {}
        }
        write!(f, "error[{}]: {}", self.rule, self.message)?;
        if self.help.is_empty() { Ok(()) } else { write!(f, " ({})", self.help) }
    }
}

impl std::error::Error for ToolError {}

/// All errors found at once, in the order of names or files.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogueErrors(pub Vec<ToolError>);

impl CatalogueErrors {
    /// `State` if the state folder stands in the way of any, else `Document` if any error is the document's, else `Environment`.
    pub fn class(&self) -> ErrorClass {
        let any = |class: &ErrorClass| self.0.iter().any(|error| error.class == *class);
        [ErrorClass::State, ErrorClass::Document].into_iter().find(any).unwrap_or(ErrorClass::Environment)
    }
}

impl From<ToolError> for CatalogueErrors {
    fn from(error: ToolError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for CatalogueErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for CatalogueErrors {}

#[cfg(test)]
mod tests {
    use super::*;

    /// C-04: a message is one line, whatever the program said that it quotes.
    #[test]
    fn c04_messages_are_one_line_and_steer_nothing() {
        let error = ToolError::document("A-20", "it can't be had:  \n\n   Because of a,\r\n\tb.\n");
        assert_eq!(error.message, "it can't be had: Because of a, b.");
        assert_eq!(one_line("a\u{1b}[31mb\u{202e}c\u{7}"), "a\\u{1b}[31mb\\u{202e}c\\u{7}");
        assert_eq!(one_line("größe  x"), "größe  x");
    }
}
