//! Two texts in one: what is the same, what was removed and what was added.

use crate::inspect::page::{DIM, GREEN, Page, RED, clean, pad};
use selvedge_host::diff::{Piece, Tag, pieces};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of what is the same that are shown beside what is not.
const AROUND: usize = 60;

/// Adds the texts behind a label, at most `most` lines of them.
pub(super) fn texts(page: &mut Page, label: &str, indent: usize, (a, b): (&str, &str), most: usize) {
    let mut lines =
        Lines { page, label: label.to_owned(), indent, used: 0, line: String::new(), count: 0, most };
    let pieces = pieces(a, b);
    let last = pieces.len().saturating_sub(1);
    for (at, Piece { tag, text }) in pieces.iter().enumerate() {
        match tag {
            Tag::Same => lines.add("", &shortened(text, at == 0, at == last)),
            Tag::Removed => lines.marked(RED, ("[-", "-]"), text),
            Tag::Added => lines.marked(GREEN, ("{+", "+}"), text),
        }
    }
    lines.end();
}

/// What is the same is shown as far as it is near to what is not.
fn shortened(text: &str, first: bool, last: bool) -> String {
    let count = text.chars().count();
    let (before, after) = (if first { 0 } else { AROUND }, if last { 0 } else { AROUND });
    if count <= before + after + AROUND {
        return text.to_owned();
    }
    let head: String = text.chars().take(before).collect();
    let tail: String = text.chars().skip(count - after).collect();
    format!("{head} … {tail}")
}

struct Lines<'p> {
    page: &'p mut Page,
    label: String,
    indent: usize,
    used: usize,
    line: String,
    count: usize,
    most: usize,
}

impl Lines<'_> {
    fn marked(&mut self, style: &str, (open, close): (&str, &str), text: &str) {
        match self.page.colours() {
            true => self.add(style, text),
            false => self.add("", &format!("{open}{text}{close}")),
        }
    }

    fn add(&mut self, style: &str, text: &str) {
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.end();
            }
            let mut run = String::new();
            for word in clean(line).split_inclusive(' ') {
                // Words stay whole where they are no longer than a line.
                if self.used > 0 && self.used + word.trim_end().width() > self.room() {
                    self.paint(style, &std::mem::take(&mut run));
                    self.end();
                }
                for character in word.chars() {
                    let columns = character.width().unwrap_or(0);
                    if self.used + columns > self.room() && character != ' ' {
                        self.paint(style, &std::mem::take(&mut run));
                        self.end();
                    }
                    run.push(character);
                    self.used += columns;
                }
            }
            self.paint(style, &run);
        }
    }

    /// Columns of a line.
    fn room(&self) -> usize {
        self.page.width.saturating_sub(self.indent).max(20)
    }

    fn paint(&mut self, style: &str, text: &str) {
        self.line.push_str(&self.page.paint(style, text));
    }

    fn end(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.used = 0;
        self.count += 1;
        let begin = pad(&std::mem::take(&mut self.label), self.indent);
        match self.count {
            count if count <= self.most => {
                let wide = begin.width() > self.indent;
                let begin = if wide { format!("{begin}  ") } else { begin };
                self.page.line(&format!("{begin}{line}"));
            }
            count if count == self.most + 1 => {
                let more = self.page.paint(DIM, "…");
                self.page.line(&format!("{begin}{more}"));
            }
            _ => {}
        }
    }
}
