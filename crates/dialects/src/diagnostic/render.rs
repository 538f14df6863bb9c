//! Diagnostics as text for people (`C-04`): the first line `file:line:column: error[RULE]: message`, the source
//! line with the place underlined, and the way out.

use std::borrow::Cow;
use std::fmt::Write;

use unicode_width::UnicodeWidthChar;

use super::{Diagnostic, Severity};
use crate::Source;
use crate::json::Span;

/// Columns of a source line that are shown at most.
const WIDTH: usize = 100;
/// Columns in front of the place that are shown at most.
const WIDTH_BEFORE: usize = 60;
/// Bytes on each side of a place that are looked at, so that one endless line costs no more than a short one.
const REACH: usize = 600;
/// A tab is shown as this many spaces.
const TAB: &str = "    ";

/// How to render.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenderOptions {
    /// Whether to use ANSI colours.
    pub colour: bool,
    /// The columns of the terminal, if it is one: source lines are cut to them, so that the mark stays under its place.
    pub columns: Option<usize>,
}

/// The source line around a place, ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The line, cut to a bearable length around the place, without tabs and control characters.
    pub text: String,
    /// Terminal columns in front of the place.
    pub before: usize,
    /// Terminal columns of the place itself, at least 1.
    pub width: usize,
}

impl Excerpt {
    /// The line around the start of `span`. A span of several lines is underlined to the end of its first.
    pub fn around(source: &Source, span: Span) -> Self {
        let text = source.text();
        let start = text.floor_char_boundary((span.start as usize).min(text.len()));
        let reach_back = text.floor_char_boundary(start.saturating_sub(REACH));
        let reach_on = text.floor_char_boundary((start + REACH).min(text.len()));
        let before = text.get(reach_back..start).unwrap_or_default();
        let behind = text.get(start..reach_on).unwrap_or_default();

        let (before, cut_before) = match before.rfind('\n') {
            Some(newline) => (before.get(newline + 1..).unwrap_or_default(), false),
            None => (before, reach_back > 0),
        };
        let (behind, cut_behind) = match behind.find('\n') {
            Some(newline) => (behind.get(..newline).unwrap_or_default().trim_end_matches('\r'), false),
            None => (behind, reach_on < text.len()),
        };
        let length = (span.end as usize).saturating_sub(start).min(behind.len());
        let (place, rest) = behind.split_at(behind.floor_char_boundary(length));
        Self::lay_out(before, cut_before, place, rest, cut_behind)
    }

    /// The same in fewer columns, around the place.
    fn fitted(&self, columns: usize) -> Cow<'_, Self> {
        let wide: usize = self.text.chars().map(columns_of).sum();
        // A mark behind the end of the line takes a column as well.
        if wide.max(self.before + 1) <= columns {
            return Cow::Borrowed(self);
        }
        let columns = columns.max(4);
        let marked = self.width.min(columns / 2);
        let from = if self.before + marked < columns { 0 } else { self.before.saturating_sub(columns / 2) };
        let (mut text, mut used) = if from > 0 { ("…".to_owned(), 1) } else { (String::new(), 0) };
        let (mut at, mut before) = (0, None);
        for character in self.text.chars() {
            let (start, width) = (at, columns_of(character));
            at += width;
            // One column is the ellipsis'.
            if from > 0 && start <= from {
                continue;
            }
            if start >= self.before {
                before.get_or_insert(used);
            }
            if used + width + usize::from(at < wide) > columns {
                text.push('…');
                break;
            }
            text.push(character);
            used += width;
        }
        let before = before.unwrap_or(used);
        let width = self.width.min(columns.saturating_sub(before)).max(1);
        Cow::Owned(Excerpt { text, before, width })
    }

    fn lay_out(before: &str, cut_before: bool, place: &str, rest: &str, cut_behind: bool) -> Self {
        let mut shown = String::new();
        let tail = last_columns(before, WIDTH_BEFORE);
        if cut_before || tail.len() < before.len() {
            shown.push('…');
        }
        let mut columns = shown.chars().count();
        columns += show(&mut shown, tail, usize::MAX).columns;
        let marked = show(&mut shown, place, WIDTH.saturating_sub(columns));
        let mut all = marked.all;
        if all {
            all = show(&mut shown, rest, WIDTH.saturating_sub(columns + marked.columns)).all;
        }
        if cut_behind || !all {
            shown.push('…');
        }
        let text = shown.trim_end().to_owned();
        Excerpt { text, before: columns, width: marked.columns.max(1) }
    }
}

struct Shown {
    columns: usize,
    /// Whether all of the text had room.
    all: bool,
}

/// Appends `text` as it may stand on a terminal, as far as `room` columns go.
fn show(out: &mut String, text: &str, room: usize) -> Shown {
    let mut columns = 0;
    for character in text.chars() {
        let width = columns_of(character);
        if columns + width > room {
            return Shown { columns, all: false };
        }
        columns += width;
        match character {
            '\t' => out.push_str(TAB),
            other => out.push(harmless(other)),
        }
    }
    Shown { columns, all: true }
}

fn last_columns(text: &str, most: usize) -> &str {
    let mut columns = 0;
    for (at, character) in text.char_indices().rev() {
        columns += columns_of(character);
        if columns > most {
            return text.get(at + character.len_utf8()..).unwrap_or_default();
        }
    }
    text
}

fn columns_of(character: char) -> usize {
    match character {
        '\t' => TAB.len(),
        other => harmless(other).width().unwrap_or(0),
    }
}

/// The character itself, or a stand-in for one that would steer the terminal or turn the text around.
fn harmless(character: char) -> char {
    let turns =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if character.is_control() || turns { '\u{fffd}' } else { character }
}

/// One diagnostic as text, ending with a line break.
pub fn render(diagnostic: &Diagnostic, options: RenderOptions) -> String {
    let paint = Paint { on: options.colour };
    let mut out = String::new();
    out.extend(diagnostic.file.chars().map(harmless));
    if let (Some(line), Some(column)) = (diagnostic.line, diagnostic.column) {
        let _ = write!(out, ":{line}:{column}");
    }
    let label = format!("{}[{}]", diagnostic.severity.as_str(), diagnostic.rule);
    let colour = match diagnostic.severity {
        Severity::Error => "1;31",
        Severity::Warning => "1;33",
    };
    let message: String = diagnostic.message.chars().map(harmless).collect();
    let _ = writeln!(out, ": {}: {message}", paint.with(colour, &label));
    if let (Some(line), Some(excerpt)) = (diagnostic.line, &diagnostic.excerpt) {
        let margin = line.to_string().len().max(4);
        let room = options.columns.map_or(usize::MAX, |columns| columns.saturating_sub(margin + 4));
        let excerpt = excerpt.fitted(room);
        let underline = paint.with(colour, &"^".repeat(excerpt.width));
        let _ = writeln!(out, " {line:>margin$} | {}", excerpt.text);
        let _ = writeln!(out, " {:margin$} | {:before$}{underline}", "", "", before = excerpt.before);
    }
    if !diagnostic.help.is_empty() {
        let help: String = diagnostic.help.chars().map(harmless).collect();
        let _ = writeln!(out, "  {} {help}", paint.with("1;36", "help:"));
    }
    out
}

struct Paint {
    on: bool,
}

impl Paint {
    fn with(&self, colour: &str, text: &str) -> String {
        if self.on { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
