//! Texts that come from elsewhere, as they may be shown: nothing in them hides, and nothing steers a terminal.

use selvedge_dialects::diagnostic::is_hidden;
use selvedge_dialects::fields::near;
use std::fmt::Display;

/// Characters of a name that is probably meant.
const MEANT: usize = 200;

/// Text that can't steer a terminal or hide anything: control characters are escaped, line breaks become spaces, the end is cut.
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == most {
            line.push('…');
            break;
        }
        match character {
            '\n' | '\t' | '\r' => line.push(' '),
            other if is_hidden(other) => line.extend(other.escape_unicode()),
            other => line.push(other),
        }
    }
    line
}

/// A text with its lines and tabs as it is, but nothing else in it that could steer a terminal or hide.
pub fn harmless(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => clean.push(character),
            other if is_hidden(other) => clean.extend(other.escape_default()),
            other => clean.push(other),
        }
    }
    clean
}

/// Advice about a name that is not there, with the one first that is probably meant.
pub fn or_meant(name: &str, known: &[&str], help: &str) -> String {
    match near(name, known) {
        Some(near) => format!("did you mean `{}`? {help}", one_line(near, MEANT)),
        None => help.to_owned(),
    }
}

/// `1 tool`, `3 tools`, `0 batches`.
pub fn counted(count: impl Display, one: &str) -> String {
    let count = count.to_string();
    if count == "1" {
        return format!("1 {one}");
    }
    match one.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o'])) {
        Some(stem) => format!("{count} {stem}ies"),
        None if one.ends_with(['s', 'x']) || one.ends_with("ch") => format!("{count} {one}es"),
        None => format!("{count} {one}s"),
    }
}

/// A word as a shell reads it. A choice like `yes|no` is quoted, too: pasted without quotes, its first word would be taken.
pub fn quoted(word: &str) -> String {
    // Inside of a word, a shell takes these as they are.
    let plain = |c: char| c.is_alphanumeric() || "_-./:+@,%=~".contains(c);
    let bare = !word.is_empty() && !word.starts_with(['~', '=']) && word.chars().all(plain);
    match bare {
        true => word.to_owned(),
        false => format!("'{}'", one_line(&harmless(word), usize::MAX).replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal() {
        let wild = "a\u{1b}[31m\u{7}\u{9b}2J\u{202e}\r\0\u{7f}\u{200b}\u{2060}\u{feff}\u{e0041}\u{e0100}\u{3164}\n\tb";
        for clean in [one_line(wild, 100), harmless(wild)] {
            assert!(!clean.chars().any(|c| is_hidden(c) && !matches!(c, '\n' | '\t')), "{clean:?}");
            assert!(clean.starts_with('a') && clean.ends_with('b'), "{clean:?}");
        }
        assert!(harmless(wild).ends_with("\\u{e0041}\\u{e0100}\\u{3164}\n\tb"));
        // What joins and chooses pictures stays.
        let joined = "👩\u{200d}💻 ❤\u{fe0f} می\u{200c}خواهم";
        assert_eq!(harmless(joined), joined);
    }

    /// As in findings about a document: one function says what is an escape.
    #[test]
    fn nothing_hides_in_a_line_and_pictures_stay_whole() {
        assert_eq!(one_line("a\u{200b}b 👩\u{200d}💻", 100), "a\\u{200b}b 👩\u{200d}💻");
    }

    #[test]
    fn one_of_something_is_one() {
        let all =
            [(1, "tool"), (0, "tool"), (2, "batch"), (1, "batch"), (3, "retry"), (2, "process"), (2, "day")];
        assert_eq!(
            all.map(|(count, one)| counted(count, one)),
            ["1 tool", "0 tools", "2 batches", "1 batch", "3 retries", "2 processes", "2 days"]
        );
    }

    #[test]
    fn a_word_is_one_to_a_shell() {
        assert_eq!(quoted("a'b"), "'a'\\''b'");
        assert_eq!(quoted("a;b"), "'a;b'");
        assert_eq!(quoted("~x"), "'~x'");
        assert_eq!(quoted(""), "''");
    }
}
