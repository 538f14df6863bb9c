//! A document's text: loading it within limits, and finding lines and columns in it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::diagnostic::Diagnostic;
use crate::fields::near;
use crate::files::{Files, Folder};
use crate::json::Span;
use crate::{Diagnostics, DocumentLimits, Finding};

/// Distance in bytes of the notes from which a line and column are counted.
const STRIDE: usize = 4096;

/// The text of one document, under the name that the user gave.
#[derive(Clone, Debug)]
pub struct Source {
    name: Arc<str>,
    text: Arc<str>,
    notes: OnceLock<Vec<Note>>,
    /// Where files that it names come from; of a text that is no file, nowhere.
    files: Option<Arc<dyn Files>>,
}

/// A line and a column of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// What is in front of the offset `n * STRIDE` of the text.
#[derive(Clone, Debug)]
struct Note {
    /// Line breaks before it.
    lines: u32,
    /// Characters before it.
    characters: u32,
    /// Offset at which the line that holds it starts.
    line_start: usize,
}

impl Source {
    /// A source from text, without its byte-order mark if it has one (`E-28`). `name` is the file's name as
    /// the user gave it.
    pub fn new(name: impl Into<Arc<str>>, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Source { name: name.into(), text: text.into(), notes: OnceLock::new(), files: None }
    }

    /// The same source, whose document may name these files.
    #[must_use]
    pub fn beside(self, files: Arc<dyn Files>) -> Self {
        Source { files: Some(files), ..self }
    }

    /// Where files that it names come from.
    pub(crate) fn files(&self) -> Option<&dyn Files> {
        self.files.as_deref()
    }

    /// The name of the file as the user gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text, without a byte-order mark. All offsets count in it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text at `span`; empty if the span is not one of this text.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }

    /// Line and column of a byte offset, in time that does not depend on the document's size (the first call
    /// reads the text once). Offsets beyond the end count as the end.
    pub fn place(&self, offset: usize) -> Place {
        let offset = self.text.floor_char_boundary(offset.min(self.text.len()));
        let (note, between) = self.note_before(offset);
        let line_start = match between.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => offset - between.len() + newline + 1,
            None => note.line_start,
        };
        let line = note.lines + count(between, |byte| byte == b'\n');
        let column = self.characters_before(offset) - self.characters_before(line_start);
        Place { line: line + 1, column: column + 1 }
    }

    fn characters_before(&self, offset: usize) -> u32 {
        let (note, between) = self.note_before(offset);
        note.characters + count(between, starts_character)
    }

    /// The last note at or before `offset`, and the bytes from there to `offset`.
    fn note_before(&self, offset: usize) -> (&Note, &[u8]) {
        const FIRST: &Note = &Note { lines: 0, characters: 0, line_start: 0 };
        let notes = self.notes.get_or_init(|| take_notes(self.text.as_bytes()));
        let index = offset / STRIDE;
        let between = self.text.as_bytes().get(index * STRIDE..offset).unwrap_or_default();
        (notes.get(index).unwrap_or(FIRST), between)
    }
}

fn take_notes(text: &[u8]) -> Vec<Note> {
    let mut notes = Vec::with_capacity(text.len() / STRIDE + 1);
    let (mut lines, mut characters, mut line_start) = (0, 0, 0);
    for (index, stretch) in text.chunks(STRIDE).enumerate() {
        notes.push(Note { lines, characters, line_start });
        lines += count(stretch, |byte| byte == b'\n');
        characters += count(stretch, starts_character);
        if let Some(newline) = stretch.iter().rposition(|byte| *byte == b'\n') {
            line_start = index * STRIDE + newline + 1;
        }
    }
    // An offset at the very end may fall behind the last whole stretch.
    notes.push(Note { lines, characters, line_start });
    notes
}

fn count(bytes: &[u8], is: impl Fn(u8) -> bool) -> u32 {
    bytes.iter().fold(0, |sum, byte| sum + u32::from(is(*byte)))
}

/// Whether a byte of UTF-8 is the first of a character.
fn starts_character(byte: u8) -> bool {
    byte & 0b1100_0000 != 0b1000_0000
}

/// Makes a source of a file's bytes: within the limit on size, valid UTF-8, not empty (`E-28`).
///
/// `name` is the file's name as the user gave it.
///
/// # Errors
/// One diagnostic that says what is wrong with the bytes, with its place.
pub fn load(name: &str, bytes: Vec<u8>, limits: &DocumentLimits) -> Result<Source, Box<Diagnostic>> {
    if bytes.len() as u64 > limits.bytes_in_force() {
        return Err(too_large(name, limits));
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Err(not_utf8(name, &error)),
    };
    let source = Source::new(name, &text);
    if source.text().trim().is_empty() {
        let finding = Finding::error("C-11", "empty-document", Span::default(), "the document is empty")
            .help("write a JSON object, such as {\"task\": \"…\", \"nodes\": []}");
        return Err(Box::new(only(&source, finding)));
    }
    Ok(source)
}

/// Reads a document file; never more of it than the limit on size (`E-28`).
///
/// # Errors
/// One diagnostic: the file is missing, is a folder, can't be read (`C-12`), or what [`load`] says.
pub fn read_file(path: &Path, limits: &DocumentLimits) -> Result<Source, Box<Diagnostic>> {
    let name = path.display().to_string();
    let limit = limits.bytes_in_force();
    if is_unopened_pipe(path) {
        return Err(whole_file(&name, "C-12", "not-a-file", "this is a named pipe, not a document file")
            .with_help("name a file, or /dev/stdin to read what another program writes"));
    }
    let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
    let facts = file.metadata().map_err(|error| unreadable(&name, &error))?;
    if facts.is_dir() {
        return Err(whole_file(&name, "C-12", "not-a-file", "this is a folder, not a document file")
            .with_help("name a file inside it"));
    }
    if is_of_the_kernel(path) && facts.is_file() {
        let what = "this is a file that the system makes up, not a document file";
        return Err(whole_file(&name, "C-12", "not-a-file", what).with_help("copy its content into a file"));
    }
    if facts.len() > limit {
        return Err(too_large(&name, limits));
    }
    // The size may be unknown (a pipe) or change while reading, so the reading itself is limited as well.
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&name, &error))?;
    let source = load(&name, bytes, limits)?;
    Ok(match facts.is_file() {
        true => source.beside(Arc::new(Folder(path.parent().unwrap_or(Path::new("")).to_owned()))),
        false => source,
    })
}

/// Whether opening the path would wait for somebody to write, maybe for ever. A pipe that the shell has opened for
/// us (`/dev/stdin`, `/dev/fd/N`) does not.
#[cfg(unix)]
fn is_unopened_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let opened = ["/dev/fd", "/dev/stdin", "/proc/self/fd"].iter().any(|place| path.starts_with(place));
    !opened && path.metadata().is_ok_and(|facts| facts.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_unopened_pipe(_path: &Path) -> bool {
    false
}

/// Whether a path leads to where reading may never come to an end (`/proc/kmsg`, `trace_pipe` below `/sys`).
#[cfg(unix)]
fn is_of_the_kernel(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| ["/proc", "/sys"].iter().any(|place| real.starts_with(place)))
}

#[cfg(not(unix))]
fn is_of_the_kernel(_path: &Path) -> bool {
    false
}

/// The file beside a missing one that is probably meant.
pub fn near_file(missing: &Path) -> Option<String> {
    /// Files that are looked at.
    const FILES: usize = 1_000;
    let name = missing.file_name()?.to_str()?;
    let folder = missing.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?.take(FILES).flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort_unstable();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let near = near(name, &names)?;
    Some(folder.map_or(near.into(), |folder| folder.join(near)).display().to_string())
}

fn unreadable(name: &str, error: &io::Error) -> Box<Diagnostic> {
    match error.kind() {
        io::ErrorKind::NotFound => {
            let help = "check the path; relative paths start at the current folder";
            let help = match near_file(Path::new(name)) {
                Some(near) => format!("did you mean `{near}`? Else {help}"),
                None => help.to_owned(),
            };
            whole_file(name, "C-12", "file-not-found", "there is no such file").with_help(&help)
        }
        io::ErrorKind::PermissionDenied => {
            whole_file(name, "C-12", "unreadable-file", "the file may not be read (permission denied)")
                .with_help("allow reading it, or run as a user who may")
        }
        _ => whole_file(name, "C-12", "unreadable-file", &format!("the file can't be read: {error}"))
            .with_help("check the path and the disk"),
    }
}

fn too_large(name: &str, limits: &DocumentLimits) -> Box<Diagnostic> {
    let message = format!("the document has more than {} bytes", limits.bytes_in_force());
    whole_file(name, "E-28", "document-too-large", &message)
        .with_help("split the document, or raise the setting `document_bytes` of `[limits]`")
}

fn not_utf8(name: &str, error: &std::string::FromUtf8Error) -> Box<Diagnostic> {
    let at = error.utf8_error().valid_up_to();
    let bytes = error.as_bytes();
    let byte = bytes.get(at).copied().unwrap_or_default();
    let mut help = "save the file as UTF-8";
    if matches!(bytes, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]) {
        help = "the file looks like UTF-16: save it as UTF-8";
    }
    // The text in front of the bad byte is enough to find its line and column, and to show the line.
    let before = String::from_utf8_lossy(bytes.get(..at).unwrap_or_default());
    let source = Source::new(name, &before);
    let end = source.text().len();
    let message = format!("the document is not valid UTF-8: byte 0x{byte:02X} at offset {at}");
    let finding = Finding::error("E-28", "invalid-utf8", Span::new(end, end), message).help(help);
    Box::new(only(&source, finding))
}

/// A diagnostic about a file as a whole, without a place in it.
fn whole_file(name: &str, rule: &'static str, code: &'static str, message: &str) -> Diagnostic {
    Diagnostic::about_file(name, rule, code, message)
}

fn only(source: &Source, finding: Finding) -> Diagnostic {
    let fallback = Diagnostic::about_file(source.name(), finding.rule, finding.code, &finding.message);
    let mut diagnostics = Diagnostics::new();
    diagnostics.push(finding);
    diagnostics.report(source).into_iter().next().unwrap_or(fallback)
}

#[cfg(test)]
mod tests;
