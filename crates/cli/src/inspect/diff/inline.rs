//! Two texts in one: what is the same, what was removed and what was added.

use crate::inspect::page::{DIM, GREEN, Page, RED, clean, pad};
use selvedge_host::diff::{Piece, Tag, pieces};
use selvedge_host::text::counted;
use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of what is the same that are shown beside what is not.
const AROUND: usize = 60;
/// Characters of what was removed or added that are shown where lines have no end.
const CHANGED: usize = 4_000;

/// Adds the texts behind a label, at most `most` lines of them.
pub(super) fn texts(page: &mut Page, label: &str, indent: usize, (a, b): (&str, &str), most: usize) {
    let mut lines =
        Lines { page, label: label.to_owned(), indent, used: 0, line: String::new(), count: 0, most };
    let pieces = pieces(a, b);
    let last = pieces.len().saturating_sub(1);
    for (at, Piece { tag, text }) in pieces.iter().enumerate() {
        match tag {
            Tag::Same => lines.add("", &shortened(text, at == 0, at == last)),
            Tag::Removed => lines.marked(RED, ("[-", "-]"), &cut(text, lines.changed())),
            Tag::Added => lines.marked(GREEN, ("{+", "+}"), &cut(text, lines.changed())),
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

/// A text of which at most so many characters are shown: its end, too, and how much is not.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= most {
        return Cow::Borrowed(text);
    }
    let (before, after) = (most / 2, most / 4);
    let head: String = text.chars().take(before).collect();
    let tail: String = text.chars().skip(count - after).collect();
    let left_out = counted(count - before - after, "character");
    Cow::Owned(format!("{head} … {left_out} more: --json has all … {tail}"))
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

    /// Characters of a change that are shown, so that what was removed and what was added both are.
    fn changed(&self) -> usize {
        if self.page.width == usize::MAX { CHANGED } else { self.room() * self.most / 3 }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// However long a change is, what was removed and what was added are both seen.
    #[test]
    fn a_long_change_is_shown_by_its_beginning_and_its_end() {
        let (a, b) = (format!("<{}>", "x".repeat(1_000_000)), format!("({})", "y".repeat(1_000_000)));
        for width in [usize::MAX, 80, 20] {
            let mut page = Page::new();
            page.width = width;
            texts(&mut page, "text", 16, (&a, &b), 8);
            let shown = page.take();
            assert!(shown.len() < 20_000, "{width}: {} bytes", shown.len());
            if width > 20 {
                assert!(["x>", "(y", "y)", "--json"].iter().all(|part| shown.contains(part)), "{shown}");
            }
        }
    }
}
