//! Text in columns: what a terminal shows of any name in any script, cut, filled and wrapped.
//!
//! Widths are sums over characters. Terminals disagree about sequences that join (emoji with skin tones, flags of
//! variation), so [`calm`] takes the joiners out where that only changes a picture, and every terminal agrees.

use selvedge_dialects::diagnostic::is_hidden;
use selvedge_host::timeline::{Made, Spent};
use std::collections::BTreeMap;
use std::sync::Arc;
use unicode_width::UnicodeWidthChar;

/// The most marks that one letter carries.
const MARKS: usize = 4;

/// Columns of a text that went through [`calm`].
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

fn columns(character: char) -> usize {
    character.width().unwrap_or(0)
}

/// Text in one line whose width is known and which can't steer a terminal.
pub(super) fn calm(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let (mut last, mut marks) = (0, 0);
    for character in text.chars() {
        match character {
            '\n' | '\t' | '\r' | '\u{2028}' | '\u{2029}' => line.push(' '),
            other if is_hidden(other) => line.extend(other.escape_default()),
            // Variation selectors.
            '\u{fe00}'..='\u{fe0f}' => continue,
            // Joiners and skin tones of pictures; letters keep their joiners.
            '\u{200d}' | '\u{1f3fb}'..='\u{1f3ff}' if last == 2 => continue,
            other if columns(other) == 0 => {
                marks += 1;
                if marks <= MARKS {
                    line.push(other);
                }
                continue;
            }
            other => line.push(other),
        }
        (last, marks) = (columns(character), 0);
    }
    line
}

/// The beginning of a calm line that fits into `most` columns, with `…` if something was cut.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut line = String::new();
    let mut used = 1;
    for character in text.chars() {
        used += columns(character);
        if used > most {
            break;
        }
        line.push(character);
    }
    if most > 0 {
        line.push('…');
    }
    line
}

/// A calm line filled with spaces to `least` columns.
pub(super) fn pad(text: &str, least: usize) -> String {
    format!("{text}{}", " ".repeat(least.saturating_sub(width(text))))
}

/// The last `rows` lines of a text that is set in `most` columns, broken at spaces where there are any.
pub(super) fn last_lines(text: &str, most: usize, rows: usize) -> Vec<String> {
    let whole: Vec<&str> = text.trim_end().lines().collect();
    let from = whole.len().saturating_sub(rows);
    let mut lines: Vec<String> =
        whole.iter().skip(from).flat_map(|line| wrapped(&calm(line), most.max(2))).collect();
    lines.split_off(lines.len().saturating_sub(rows))
}

fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    for word in text.split_inclusive(' ') {
        if used + width(word.trim_end()) > most && !line.trim().is_empty() {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
            used = 0;
        }
        for character in word.chars() {
            let more = columns(character);
            if used + more > most {
                if character == ' ' {
                    continue;
                }
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push(character);
            used += more;
        }
    }
    lines.push(line.trim_end().to_owned());
    lines
}

/// `coder 8100+920`: what each role has used, where there are several; those that used most come first.
pub(crate) fn by_role(roles: &BTreeMap<Arc<str>, Spent>) -> Vec<String> {
    let all = |spent: &Spent| spent.tokens.input.saturating_add(spent.tokens.output);
    let mut used: Vec<(&Arc<str>, &Spent)> = roles.iter().filter(|(_, spent)| all(spent) > 0).collect();
    used.sort_by_key(|(_, spent)| std::cmp::Reverse(all(spent)));
    let told = |(role, spent): &(&Arc<str>, &Spent)| {
        format!("{} {}+{}", calm(role), short(spent.tokens.input), short(spent.tokens.output))
    };
    if used.len() > 1 { used.iter().map(told).collect() } else { Vec::new() }
}

/// `built parse_date`, `10 calls repeated`: what became of the tools that an agent had written.
pub(crate) fn of_tools(made: &Made) -> Vec<String> {
    let named = [("built", &made.built), ("mended", &made.mended), ("gave up", &made.retired)];
    let named = named.into_iter().filter(|(_, names)| !names.is_empty()).map(|(what, names)| {
        let names: Vec<String> = names.iter().map(|name| calm(name)).collect();
        format!("{what} {}", names.join(", "))
    });
    let counted =
        [(made.refused, "file refused", "files refused"), (made.repeated, "call repeated", "calls repeated")];
    let counted = counted.into_iter().filter(|(number, ..)| *number > 0);
    let counted =
        counted.map(|(number, one, many)| format!("{number} {}", if number == 1 { one } else { many }));
    named.chain(counted).collect()
}

/// A number of tokens: `950`, `12.3k`, `4.5M`.
pub(super) fn short(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{}.{}k", number / 1000, number % 1000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}
