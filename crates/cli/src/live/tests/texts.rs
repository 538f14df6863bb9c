//! Text of any kind in columns.

use super::super::text::{calm, cut, last_lines, pad, short, width};
use crate::durations::elapsed;

const WILD: &[&str] = &[
    "plain",
    "日本語の名前がとても長い",
    "عنوان عربي طويل جدا",
    "עברית",
    "👩‍👩‍👧‍👦 family 👍🏽 flags 🇩🇪🇯🇵 ❤️",
    "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301} zalgo",
    "\u{1b}[31mred\u{7}\u{9b}2J\u{202e}evil\u{0}\r\n\ttab",
    "zero\u{200b}width\u{feff}\u{2060}\u{200f}x\u{ad}y",
    "ก็ไทย नमस्ते",
    "\u{301}leading mark",
    "",
];

#[test]
fn every_text_is_one_line_that_steers_nothing_and_fits() {
    for text in WILD {
        let calm = calm(text);
        assert!(!calm.chars().any(|c| selvedge_dialects::diagnostic::is_hidden(c) || c == '\n'), "{calm:?}");
        for most in 0..40 {
            let short = cut(&calm, most);
            assert!(width(&short) <= most, "{most}: {short:?}");
            assert!(
                width(&short) + 2 >= most.min(width(&calm)),
                "{most}: too much is cut from {calm:?}: {short:?}"
            );
            assert_eq!(width(&pad(&short, most)), most);
        }
        for most in 2..30 {
            for rows in 0..5 {
                let lines = last_lines(&format!("first\n{text}\n{text}"), most, rows);
                assert!(lines.len() <= rows && lines.iter().all(|line| width(line) <= most), "{lines:?}");
            }
        }
    }
}

#[test]
fn pictures_lose_their_joiners_and_letters_keep_theirs() {
    assert_eq!(calm("👩‍👧 👍🏽 ❤️"), "👩👧 👍 ❤");
    assert_eq!(calm("می‌خواهم"), "می‌خواهم");
    assert_eq!(width("日本"), 4);
}

#[test]
fn text_is_broken_at_spaces_and_its_end_is_shown() {
    let text = "one two three four five\n\nsix seven";
    assert_eq!(last_lines(text, 11, 9), ["one two", "three four", "five", "", "six seven"]);
    assert_eq!(last_lines(text, 11, 2), ["", "six seven"]);
    assert_eq!(last_lines("abcdefghij", 4, 9), ["abcd", "efgh", "ij"]);
    assert_eq!(last_lines("", 4, 9), [""; 0]);
}

#[test]
fn numbers_are_short() {
    let times = [-5, 0, 9_990, 10_000, 99_999, 100_000, 3_725_000].map(elapsed);
    assert_eq!(times, ["0.0 s", "0.0 s", "9.9 s", "10 s", "99 s", "1m40s", "62m05s"]);
    assert_eq!([0, 9_999, 12_345, 1_234_567].map(short), ["0", "9999", "12.3k", "1.2M"]);
}
