//! A terminal of the plainest kind: it understands what the painter writes, wraps and scrolls.

use unicode_width::UnicodeWidthChar;

pub(super) struct Terminal {
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// Everything that was ever on the screen, line by line; the screen is the end of it.
    pub(super) lines: Vec<Vec<char>>,
    top: usize,
    at: (usize, usize),
    pub(super) wraps: bool,
    pub(super) cursor: bool,
    pub(super) waits: bool,
}

impl Terminal {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        let lines = vec![Vec::new()];
        Self { columns, rows, lines, top: 0, at: (0, 0), wraps: true, cursor: true, waits: false }
    }

    pub(super) fn feed(&mut self, text: &str) {
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            match character {
                '\r' => self.at.1 = 0,
                '\n' => self.down(),
                '\u{1b}' => {
                    assert_eq!(rest.next(), Some('['), "in {text:?}");
                    let mut code = String::new();
                    let last = loop {
                        let next = rest.next().unwrap();
                        if next.is_ascii_alphabetic() {
                            break next;
                        }
                        code.push(next);
                    };
                    self.escape(&code, last);
                }
                other => self.put(other),
            }
        }
    }

    fn escape(&mut self, code: &str, last: char) {
        match (code, last) {
            ("?25", end) => self.cursor = end == 'h',
            ("?7", end) => self.wraps = end == 'h',
            ("?2026", end) => self.waits = end == 'h',
            (up, 'A') => self.at.0 = self.at.0.saturating_sub(up.parse().unwrap_or(1)).max(self.top),
            ("", 'J') => {
                let all = self.at == (self.top, 0) && self.lines.len() > self.top + 1;
                assert!(!all, "tmux moves a screen that is erased as a whole into its history");
                self.lines.truncate(self.at.0 + 1);
                self.lines[self.at.0].truncate(self.at.1);
            }
            ("", 'K') => self.lines[self.at.0].truncate(self.at.1),
            (_, 'm') => {}
            other => panic!("{other:?}"),
        }
    }

    fn down(&mut self) {
        self.at.0 += 1;
        if self.at.0 == self.lines.len() {
            self.lines.push(Vec::new());
        }
        self.top = self.top.max((self.at.0 + 1).saturating_sub(self.rows));
    }

    fn put(&mut self, character: char) {
        let columns = character.width().unwrap_or(0);
        if columns == 0 {
            return;
        }
        if self.at.1 + columns > self.columns {
            if !self.wraps {
                return;
            }
            self.at.1 = 0;
            self.down();
        }
        let line = &mut self.lines[self.at.0];
        line.resize(line.len().max(self.at.1 + columns), ' ');
        line[self.at.1] = character;
        for after in 1..columns {
            line[self.at.1 + after] = '\0';
        }
        self.at.1 += columns;
    }

    /// Becomes narrower or wider: lines that no longer fit are wrapped, as terminals with a history do.
    pub(super) fn resize(&mut self, columns: usize, rows: usize) {
        let mut lines = Vec::new();
        let mut at = self.at;
        for (n, line) in self.lines.iter().enumerate() {
            let begin = lines.len();
            let parts: Vec<&[char]> = line.chunks(columns).collect();
            if n == self.at.0 {
                let part = self.at.1.saturating_sub(1) / columns;
                at = (begin + part.min(parts.len().saturating_sub(1)), self.at.1 - part * columns);
            }
            lines.extend(parts.iter().map(|part| part.to_vec()));
            if parts.is_empty() {
                lines.push(Vec::new());
            }
        }
        (self.lines, self.at, self.columns, self.rows) = (lines, at, columns, rows);
        self.top = (self.at.0 + 1).saturating_sub(rows);
    }

    /// All lines, without what is only filling.
    pub(super) fn text(&self) -> String {
        let line =
            |line: &Vec<char>| line.iter().filter(|c| **c != '\0').collect::<String>().trim_end().to_owned();
        let text: Vec<String> = self.lines.iter().map(line).collect();
        text.join("\n").trim_end().to_owned()
    }
}
