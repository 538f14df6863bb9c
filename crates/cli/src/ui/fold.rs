//! Lines on stderr in a terminal's columns, broken at spaces. What has to be copied stays in one piece: a command and what stands
//! in backticks; a word that is longer than a line is broken by the terminal, which takes it as one.

use unicode_width::UnicodeWidthStr;

/// Columns by which what follows of a line is set in more than its beginning.
const MORE: usize = 2;

/// A text whose lines are at most so many columns wide, where they have spaces to be broken at.
pub(super) fn folded(text: &str, columns: usize) -> String {
    text.split_inclusive('\n').map(|line| fold(line, columns)).collect()
}

fn fold(line: &str, columns: usize) -> String {
    let whole = line.trim_end_matches('\n');
    if width(whole.trim_end()) <= columns {
        return line.to_owned();
    }
    let indent = whole.len() - whole.trim_start_matches(' ').len();
    let (begin, words) = whole.split_at(indent);
    let indent = if indent + MORE > columns / 2 { 0 } else { indent + MORE };
    let room = columns - indent;
    let mut text = begin.to_owned();
    let mut used = begin.len();
    let mut fresh = true;
    for piece in pieces(words, room) {
        let wide = width(piece.trim_end());
        if !fresh && used + wide > columns {
            text.truncate(text.trim_end().len());
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            used = indent;
        }
        text.push_str(piece);
        used += wide;
        if used > columns {
            // What is longer than a line goes on in the next one.
            used %= columns;
        }
        used += width(piece) - wide;
        fresh = false;
    }
    if line.len() > whole.len() {
        text.push('\n');
    }
    text
}

/// The pieces of a line that stay whole, with the spaces behind them: words, what stands in backticks where it fits, and the
/// command at the end.
fn pieces(line: &str, room: usize) -> Vec<&str> {
    const COMMAND: &str = "selvedge ";
    let behind = || line.rfind(": selvedge ").map(|at| at + ": ".len());
    let command = if line.starts_with(COMMAND) { Some(0) } else { behind() };
    let (words, command) = command.and_then(|at| line.split_at_checked(at)).unwrap_or((line, ""));
    // What follows a command in the same sentence is no part of it.
    let sentence = [";", "`", ", "].iter().any(|mark| command.contains(mark));
    let (words, command) = if sentence { (line, "") } else { (words, command) };
    let mut pieces = Vec::new();
    let (mut from, mut quoted) = (0, false);
    for (at, character) in words.char_indices() {
        match character {
            '`' => quoted = !quoted && closes(words.get(at + 1..).unwrap_or_default(), room),
            ' ' if !quoted && words.as_bytes().get(at + 1) != Some(&b' ') => {
                pieces.extend(words.get(from..=at));
                from = at + 1;
            }
            _ => {}
        }
    }
    pieces.extend(words.get(from..).filter(|rest| !rest.is_empty()));
    pieces.extend(Some(command).filter(|command| !command.is_empty()));
    pieces
}

/// Whether what begins here ends with a backtick in a line.
fn closes(text: &str, room: usize) -> bool {
    text.find('`').is_some_and(|end| text.get(..end).is_some_and(|text| width(text) + 2 <= room))
}

/// Columns of a text, without the colours in it.
fn width(text: &str) -> usize {
    let mut rest = text;
    let mut columns = 0;
    while let Some(at) = rest.find("\u{1b}[") {
        let (before, colour) = rest.split_at(at);
        columns += before.width();
        rest = colour.find('m').and_then(|end| colour.get(end + 1..)).unwrap_or_default();
    }
    columns + rest.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces() {
        let text = "error[P-25]: nothing can supply {{flie}}: there is no \"flie\" here\n  help: declare it in `inputs`\n";
        assert_eq!(
            folded(text, 30),
            "error[P-25]: nothing can\n  supply {{flie}}: there is no\n  \"flie\" here\n  help: declare it in `inputs`\n"
        );
        assert_eq!(folded(text, 100), text);
        assert_eq!(folded("  y, n, show, or Enter: ", 12), "  y, n,\n    show, or\n    Enter: ");
        for columns in 1..60 {
            let lines = folded(text, columns);
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&lines), words(text), "{columns}");
            assert!(columns < 20 || lines.lines().all(|line| line.width() <= columns), "{columns}: {lines}");
        }
    }

    /// A command is copied in one piece, also where it is longer than a line.
    #[test]
    fn what_is_copied_stays_whole() {
        let help = "  help: finished work is kept; once the cause is gone: selvedge resume jxcvk1m84nh0nf\n";
        assert_eq!(
            folded(help, 50),
            "  help: finished work is kept; once the cause is\n    gone: selvedge resume jxcvk1m84nh0nf\n"
        );
        let long = "go on with: selvedge resume jxcvk1m84nh0nf --state-dir /a/b";
        assert_eq!(folded(long, 30), "go on with:\n  selvedge resume jxcvk1m84nh0nf --state-dir /a/b");
        assert_eq!(folded("see what `selvedge runs` lists", 23), "see what\n  `selvedge runs` lists");
        let alone = "    selvedge fork jxcvk1m84nh0nf --document fail.json\n";
        assert_eq!(folded(alone, 30), alone);
        // A backtick that closes nothing, and one that closes too late.
        assert_eq!(folded("a ` b c d e f", 8), "a ` b c\n  d e f");
        assert_eq!(folded("a `b c d e f` g", 8), "a `b c d\n  e f` g");
    }

    #[test]
    fn colours_and_wide_letters_count_for_what_is_seen() {
        assert_eq!(
            folded("\u{1b}[1;31merror\u{1b}[0m: one two three", 15),
            "\u{1b}[1;31merror\u{1b}[0m: one two\n  three"
        );
        assert_eq!(folded("数据 数据 数据", 10), "数据 数据\n  数据");
    }
}
