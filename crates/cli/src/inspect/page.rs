//! Text for people on standard output: width, colour, tables, and nothing that could steer a terminal.

use crate::ui::{Part, Ui, tame, wanted_columns};
use selvedge_dialects::diagnostic::is_hidden;
use selvedge_host::text::harmless;
use std::borrow::Cow;
use std::io::IsTerminal;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The narrowest and the widest that text is set.
const BOUNDS: (usize, usize) = (20, 160);
/// The least columns that a table's flexible column is useful with.
const FLEXIBLE: usize = 12;
/// The least columns of any column of a table, and those between two.
const LEAST: usize = 3;
const GAP: usize = 2;

/// Styles, as SGR codes.
pub(crate) const BOLD: &str = "1";
pub(crate) const DIM: &str = "2";
pub(crate) const RED: &str = "1;31";
pub(crate) const GREEN: &str = "32";
pub(crate) const YELLOW: &str = "33";
pub(crate) const MAGENTA: &str = "35";
pub(crate) const CYAN: &str = "36";

/// What is printed, and how wide.
pub(crate) struct Page {
    /// Columns.
    pub(crate) width: usize,
    colour: bool,
    /// Whether what is wider would be wrapped.
    fits: bool,
    /// Whether texts have a limit also where lines stay whole.
    shortens: bool,
    /// Whether a text was cut.
    is_cut: bool,
    text: String,
}

impl Page {
    /// An empty page, as wide as COLUMNS or the terminal say, if they do.
    pub(crate) fn new() -> Self {
        let terminal = terminal_size::terminal_size_of(std::io::stdout());
        let own = terminal.map(|(columns, _)| usize::from(columns.0).clamp(BOUNDS.0, BOUNDS.1));
        // Who reads a pipe gets lines whole, unless he says how wide they are to be.
        let wanted = wanted_columns().map(|columns| columns.max(BOUNDS.0));
        let width = wanted.or(own).unwrap_or(usize::MAX);
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let colour = !plain && !dumb && std::io::stdout().is_terminal();
        let fits = width != usize::MAX;
        Self { width, colour, fits, shortens: true, is_cut: false, text: String::new() }
    }

    /// The same, but lines stay whole where no terminal shows them, for text that is taken on from there.
    pub(crate) fn whole() -> Self {
        let width = if std::io::stdout().is_terminal() { Self::new().width } else { usize::MAX };
        Self { width, shortens: false, ..Self::new() }
    }

    /// A text in one line of at most so many columns; whole where lines are.
    pub(crate) fn short(&self, text: &str, most: usize) -> String {
        if self.width == usize::MAX { clean(text) } else { cut(&clean(text), most) }
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// Adds an empty line, unless the page is empty.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// The beginning of a text that has more characters than `most` of the widest lines, if lines stay whole: one line may have
    /// megabytes.
    fn beginning<'t>(&self, text: &'t str, most: usize) -> Option<&'t str> {
        let limit = most.saturating_mul(BOUNDS.1);
        let is_long = self.shortens && self.width == usize::MAX && text.len() > limit;
        let (at, _) = is_long.then(|| text.char_indices().nth(limit)).flatten()?;
        text.get(..at)
    }

    /// Names the commands that show all of the texts, if one was cut; each in a line of its own, so that it can be copied.
    pub(crate) fn tell_cut(&mut self, commands: &[String]) {
        if self.is_cut {
            self.gap();
            self.line(&self.paint(DIM, "… texts are cut here; all of them:"));
            commands.iter().for_each(|command| self.line(&format!("  {command}")));
        }
    }

    /// Adds text behind a label, wrapped and indented to `indent`, at most `most` lines.
    pub(crate) fn labelled(&mut self, label: &str, style: &str, indent: usize, text: &str, most: usize) {
        let beginning = self.beginning(text, most);
        let width = self.width.saturating_sub(indent).max(20);
        let lines = wrap(beginning.unwrap_or(text), width, most.saturating_add(1));
        let cut = lines.len() > most || beginning.is_some();
        self.is_cut |= cut;
        let shown = lines.len().min(most);
        for (at, line) in lines.into_iter().take(shown).enumerate() {
            let label = if at == 0 { label } else { "" };
            let ellipsis = if cut && at + 1 == shown { " …" } else { "" };
            let label = self.paint(style, &pad(label, indent));
            self.line(&format!("{label}{line}{ellipsis}"));
        }
    }

    /// The same, but where it is too long its middle is left out: what ends it may be what matters, as in the end of a
    /// program's errors.
    pub(crate) fn labelled_ends(&mut self, label: &str, style: &str, indent: usize, text: &str, most: usize) {
        /// Lines that stay of the beginning.
        const BEGINNING: usize = 3;
        let lines = wrap(text, self.width.saturating_sub(indent).max(20), usize::MAX);
        let out = lines.len().saturating_sub(most);
        let mut label = label;
        for (at, line) in lines.into_iter().enumerate() {
            if out > 0 && (BEGINNING..=BEGINNING + out).contains(&at) {
                if at == BEGINNING {
                    self.line(&format!("{}…", pad("", indent)));
                }
                continue;
            }
            let begin = self.paint(style, &pad(label, indent));
            self.line(&format!("{begin}{line}"));
            label = "";
        }
    }

    /// Adds what a tool printed, and tracebacks: lines as they are, each under its name.
    pub(crate) fn printed(&mut self, indent: usize, parts: &[Part], style: &str) {
        for Part { name, left_out, lines } in parts {
            let mut label = format!("  {name}");
            // A name that is longer than its column has a line of its own.
            if label.len() >= indent {
                self.line(&self.paint(style, &label));
                label.clear();
            }
            let left_out = left_out.iter().map(|words| (DIM, format!("… {words}")));
            for (of, line) in left_out.chain(lines.iter().map(|line| ("", harmless(line)))) {
                let begin = self.paint(style, &pad(&std::mem::take(&mut label), indent));
                self.line(&format!("{begin}{}", self.paint(of, &line)));
            }
        }
    }

    /// Adds a table; the names of the spare columns for which there was no room.
    pub(crate) fn table(&mut self, table: &Table) -> Vec<&'static str> {
        let (lines, out) = table.lines(self.width, self.fits, |style, text| self.paint(style, text));
        lines.iter().for_each(|line| self.line(line));
        out
    }

    /// Whether what is painted shows.
    pub(crate) fn colours(&self) -> bool {
        self.colour
    }

    /// A piece of text in a style, if colours are on.
    pub(crate) fn paint(&self, style: &str, text: &str) -> String {
        match self.colour && !style.is_empty() && !text.trim().is_empty() {
            true => format!("\u{1b}[{style}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }

    /// Takes what was written so far.
    pub(crate) fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        match tame(&text, self.colour) {
            Cow::Owned(clean) => clean,
            Cow::Borrowed(_) => text,
        }
    }

    /// Prints the page.
    pub(crate) fn print(mut self, ui: &Ui) {
        ui.page(&self.take());
    }
}

/// A table: columns as wide as their content, one that takes the rest, maybe some that go if there is no room.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// The names of the columns.
    pub(crate) header: Vec<&'static str>,
    /// The column that is cut to what the others leave.
    pub(crate) flexible: usize,
    /// The columns that are left out, one after the other, until the flexible one is wide enough; and where nothing stands in them.
    pub(crate) spare: Vec<usize>,
    /// How wide that is, if not as wide as is usual.
    pub(crate) enough: Option<usize>,
    /// The columns that are never cut: numbers, and what has to be typed. A part of either is worse than none.
    pub(crate) whole: Vec<usize>,
    /// The columns, before the others, that are left out where nothing stands in any row.
    pub(crate) optional: Vec<usize>,
    rows: Vec<Vec<(String, &'static str)>>,
}

impl Table {
    /// A table of these columns.
    pub(crate) fn new(header: &[&'static str], flexible: usize) -> Self {
        Self { header: header.to_vec(), flexible, ..Self::default() }
    }

    /// Adds a row of texts with their styles.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (String, &'static str)>) {
        self.rows.push(cells.into_iter().map(|(text, style)| (clean(&text), style)).collect());
    }

    /// The same without the optional columns in which nothing stands.
    fn filled(&self) -> Self {
        let empty =
            |at: &usize| self.rows.iter().all(|row| row.get(*at).is_none_or(|(text, _)| text.is_empty()));
        let gone: Vec<usize> = self.optional.iter().copied().filter(empty).collect();
        let place = |at: usize| at - gone.iter().filter(|gone| **gone < at).count();
        let stays = |at: &usize| !gone.contains(at);
        let row = |row: &Vec<(String, &'static str)>| {
            row.iter().enumerate().filter(|(at, _)| stays(at)).map(|(_, cell)| cell.clone()).collect()
        };
        Self {
            header: self
                .header
                .iter()
                .enumerate()
                .filter(|(at, _)| stays(at))
                .map(|(_, name)| *name)
                .collect(),
            flexible: place(self.flexible),
            spare: self.spare.iter().copied().filter(|at| stays(at)).map(place).collect(),
            enough: self.enough,
            whole: self.whole.iter().copied().filter(|at| stays(at)).map(place).collect(),
            optional: Vec::new(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    /// The lines, and the spare columns that are not in them.
    fn lines(
        &self,
        width: usize,
        fits: bool,
        paint: impl Fn(&str, &str) -> String,
    ) -> (Vec<String>, Vec<&'static str>) {
        if !self.optional.is_empty() {
            return self.filled().lines(width, fits, paint);
        }
        let (widths, out) = self.widths(width, fits);
        let header: Vec<(String, &'static str)> =
            self.header.iter().map(|name| ((*name).to_owned(), DIM)).collect();
        let line = |row: &Vec<(String, &'static str)>| {
            let cells = row.iter().zip(&widths).enumerate().filter(|(at, _)| !out.contains(at));
            let cells =
                cells.map(|(_, ((text, style), width))| paint(style, &pad(&cut(text, *width), *width)));
            cells.collect::<Vec<_>>().join(&" ".repeat(GAP))
        };
        let lines = std::iter::once(&header).chain(&self.rows).map(line).collect();
        (lines, out.iter().filter_map(|at| self.header.get(*at).copied()).collect())
    }

    /// How wide each column is, and which are left out.
    fn widths(&self, width: usize, fits: bool) -> (Vec<usize>, Vec<usize>) {
        let mut widths: Vec<usize> = self.header.iter().map(|name| name.width()).collect();
        for row in &self.rows {
            for (most, (text, _)) in widths.iter_mut().zip(row) {
                *most = (*most).max(text.width());
            }
        }
        let natural = widths.get(self.flexible).copied().unwrap_or_default();
        let rest = |out: &[usize]| {
            let others =
                widths.iter().enumerate().filter(|(at, _)| *at != self.flexible && !out.contains(at));
            width.saturating_sub(others.map(|(_, width)| width + GAP).sum())
        };
        let empty = |at: &usize| {
            self.rows.iter().all(|row| row.get(*at).is_none_or(|(text, _)| text.trim().is_empty()))
        };
        let (mut out, full): (Vec<usize>, Vec<usize>) = self.spare.iter().partition(|at| empty(at));
        for at in full {
            if rest(&out) < natural.min(self.enough.unwrap_or(FLEXIBLE)) {
                out.push(at);
            }
        }
        let most = natural.min(rest(&out).max(FLEXIBLE));
        if let Some(flexible) = widths.get_mut(self.flexible) {
            *flexible = most;
        }
        let total = |widths: &[usize]| -> usize {
            let kept = widths.iter().enumerate().filter(|(at, _)| !out.contains(at));
            kept.map(|(_, width)| width + GAP).sum::<usize>().saturating_sub(GAP)
        };
        while fits && total(&widths) > width {
            // The first column names what the row is about: it gives way last.
            let may = |(at, width): &(usize, &mut usize)| {
                !out.contains(at) && !self.whole.contains(at) && **width > LEAST
            };
            let widest =
                widths.iter_mut().enumerate().filter(may).max_by_key(|(at, width)| (*at > 0, **width));
            let Some((_, widest)) = widest else { break };
            *widest -= 1;
        }
        (widths, out)
    }
}

/// Text in one line that can't steer a terminal: line breaks become spaces, control characters are escaped.
pub(crate) fn clean(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' | '\r' => line.push(' '),
            other if is_hidden(other) => line.extend(other.escape_unicode()),
            other => line.push(other),
        }
    }
    line
}

/// The beginning of a line that fits into `width` columns, with `…` if something was cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut used = 0;
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used + 1 > width {
            break;
        }
        cut.push(character);
    }
    cut.push('…');
    cut
}

/// A line filled with spaces to `width` columns.
pub(crate) fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Text in lines of at most `width` columns, broken at spaces where there are any; never empty, and no more
/// than `most` lines of it.
pub(crate) fn wrap(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    for paragraph in text.trim_end().lines() {
        for word in clean(paragraph).split_inclusive(' ') {
            if used + word.trim_end().width() > width && !line.trim().is_empty() {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
                used = 0;
            }
            for character in word.chars() {
                let columns = character.width().unwrap_or(0);
                if used + columns > width && character != ' ' {
                    lines.push(std::mem::take(&mut line));
                    used = 0;
                }
                line.push(character);
                used += columns;
            }
            if lines.len() >= most {
                lines.truncate(most);
                return lines;
            }
        }
        lines.push(std::mem::take(&mut line).trim_end().to_owned());
        used = 0;
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines.truncate(most);
    lines
}

#[cfg(test)]
mod tests;
