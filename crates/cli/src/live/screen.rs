//! A block of lines at the bottom of a terminal, painted over itself; what is above stays and scrolls away.
//!
//! Each picture is one write that leaves the terminal as it found it: wrapping on, cursor visible and behind the
//! last line. So there is nothing to restore, in whatever way the process ends.

use super::frame::Line;

/// Update at once where that is known (DEC 2026), cursor hidden.
const BEGIN: &str = "\u{1b}[?2026h\u{1b}[?25l";
const END: &str = "\u{1b}[?25h\u{1b}[?2026l";
const NO_WRAP: &str = "\u{1b}[?7l";
const WRAP: &str = "\u{1b}[?7h";
/// From the cursor to the end of the screen, and of the line.
const ERASE_BELOW: &str = "\u{1b}[J";
const ERASE_RIGHT: &str = "\u{1b}[K";
/// This line and all below it. Not at once: a screen that is erased from its very first character on is one that
/// tmux keeps in its history.
const ERASE_BLOCK: &str = "\u{1b}[K\r\n\u{1b}[J\u{1b}[A";

/// What stands at the bottom of the terminal.
#[derive(Debug, Default)]
pub(super) struct Screen {
    drawn: Vec<Line>,
    size: (usize, usize),
    colour: bool,
}

impl Screen {
    /// A terminal without a block, in colour or not.
    pub(super) fn new(colour: bool) -> Self {
        Self { colour, ..Self::default() }
    }

    /// Forgets the block: the cursor has been moved by others, and stands on a line of its own.
    pub(super) fn forget(&mut self) {
        self.drawn.clear();
    }

    /// What to write so that `above` (whole lines) stands above the block and the block shows `lines`. `size` is
    /// the terminal's in columns and rows; no line may be as wide.
    pub(super) fn paint(&mut self, above: &str, lines: Vec<Line>, size: (usize, usize)) -> String {
        let same = above.is_empty() && size == self.size;
        let nothing = above.is_empty() && lines.is_empty() && self.drawn.is_empty();
        if nothing || (same && lines == self.drawn) {
            return String::new();
        }
        let mut out = String::from(BEGIN);
        out.push('\r');
        let up = self.height(size).saturating_sub(1).min(size.1.saturating_sub(1));
        if up > 0 {
            out.push_str(&format!("\u{1b}[{up}A"));
        }
        if !same {
            out.push_str(if up > 0 { ERASE_BLOCK } else { ERASE_BELOW });
        }
        for line in above.lines() {
            out.push_str(line);
            out.push_str("\r\n");
        }
        out.push_str(NO_WRAP);
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                out.push_str("\r\n");
            }
            // The last one is always written, so that the cursor stands behind it.
            if !same || at + 1 == lines.len() || self.drawn.get(at) != Some(line) {
                self.write(&mut out, line);
                out.push_str(ERASE_RIGHT);
            }
        }
        if same && self.drawn.len() > lines.len() {
            out.push_str(ERASE_BELOW);
        }
        out.push_str(WRAP);
        out.push_str(END);
        (self.drawn, self.size) = (lines, size);
        out
    }

    /// Rows of the block in a terminal of this size: one that became narrower has wrapped what no longer fits.
    fn height(&self, size: (usize, usize)) -> usize {
        let rows = |line: &Line| match size.0 {
            0 => 1,
            columns => line.width().div_ceil(columns).max(1),
        };
        self.drawn.iter().map(rows).sum()
    }

    fn write(&self, out: &mut String, line: &Line) {
        for (style, text) in &line.0 {
            if self.colour && !style.is_empty() {
                out.push_str(&format!("\u{1b}[{style}m{text}\u{1b}[0m"));
            } else {
                out.push_str(text);
            }
        }
    }
}
