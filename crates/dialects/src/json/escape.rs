//! JSON string literals: resolving escapes, and finding the place of a part of a resolved string.

use std::borrow::Cow;

use super::Span;

/// One character of a literal: how many bytes it takes there, and what it stands for.
pub(super) struct Unit {
    /// Bytes in the literal (1 for `a`, 2 for `\n`, 6 for `\u0041`, 12 for a surrogate pair).
    pub(super) written: usize,
    /// The character.
    pub(super) character: char,
}

/// Why an escape can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadEscape {
    /// A backslash before a character that has no escape.
    Unknown,
    /// `\u` without four hexadecimal digits.
    Digits,
    /// Half of a surrogate pair.
    Surrogate,
}

/// Reads the escape at the start of `rest`, which begins with a backslash.
pub(super) fn read_escape(rest: &str) -> Result<Unit, BadEscape> {
    let simple = |character| Ok(Unit { written: 2, character });
    match rest.as_bytes().get(1) {
        Some(b'"') => simple('"'),
        Some(b'\\') => simple('\\'),
        Some(b'/') => simple('/'),
        Some(b'b') => simple('\u{8}'),
        Some(b'f') => simple('\u{c}'),
        Some(b'n') => simple('\n'),
        Some(b'r') => simple('\r'),
        Some(b't') => simple('\t'),
        Some(b'u') => read_unicode(rest),
        _ => Err(BadEscape::Unknown),
    }
}

fn read_unicode(rest: &str) -> Result<Unit, BadEscape> {
    let first = hex4(rest, 2).ok_or(BadEscape::Digits)?;
    if let Some(character) = char::from_u32(first) {
        return Ok(Unit { written: 6, character });
    }
    // A high surrogate needs the low one right behind it.
    let is_pair = (0xD800..0xDC00).contains(&first) && rest.get(6..8) == Some("\\u");
    let second = if is_pair { hex4(rest, 8) } else { None };
    let second = second.filter(|low| (0xDC00..0xE000).contains(low)).ok_or(BadEscape::Surrogate)?;
    let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    let character = char::from_u32(code).ok_or(BadEscape::Surrogate)?;
    Ok(Unit { written: 12, character })
}

fn hex4(rest: &str, from: usize) -> Option<u32> {
    let digits = rest.get(from..from + 4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

/// Resolves the escapes of the inside of a literal that was already found to be well formed.
pub(super) fn resolve(inside: &str) -> Cow<'_, str> {
    if !inside.contains('\\') {
        return Cow::Borrowed(inside);
    }
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        text.push_str(plain);
        let Ok(unit) = read_escape(escape) else {
            // Unreachable for a checked literal; the text as written is the least surprising reading.
            text.push_str(escape);
            return Cow::Owned(text);
        };
        text.push(unit.character);
        rest = escape.get(unit.written..).unwrap_or_default();
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The place in the document of a part of a string.
///
/// `text` is the document's text, `literal` the place of a string literal in it (quotes included), and `part`
/// a range of bytes of the string that the literal stands for. The result covers what was written for that
/// part, escapes included. A range that cuts a character is widened to it; one beyond the end is cut off.
pub fn place_in_string(text: &str, literal: Span, part: std::ops::Range<usize>) -> Span {
    places_in_string(text, literal, [part]).first().copied().unwrap_or(literal)
}

/// The places of parts of a string, as [`place_in_string`] gives them, in time linear in the string: the parts
/// must be in its order and apart from each other.
pub fn places_in_string(
    text: &str,
    literal: Span,
    parts: impl IntoIterator<Item = std::ops::Range<usize>>,
) -> Vec<Span> {
    let inside_start = literal.start as usize + 1;
    let inside_end = (literal.end as usize).saturating_sub(1).max(inside_start);
    let inside = text.get(inside_start..inside_end).unwrap_or_default();
    let (mut written, mut resolved) = (0, 0);
    let place = |part: std::ops::Range<usize>| {
        let end_wanted = part.end.max(part.start);
        let mut start = None;
        while let Some(unit) = unit_at(inside, written) {
            let resolved_end = resolved + unit.character.len_utf8();
            if start.is_none() && (resolved >= end_wanted || part.start < resolved_end) {
                start = Some(written);
            }
            if start.is_some() && resolved >= end_wanted {
                break;
            }
            written += unit.written;
            resolved = resolved_end;
        }
        Span::new(inside_start + start.unwrap_or(written), inside_start + written)
    };
    parts.into_iter().map(place).collect()
}

fn unit_at(inside: &str, at: usize) -> Option<Unit> {
    let rest = inside.get(at..)?;
    let character = rest.chars().next()?;
    let plain = Unit { written: character.len_utf8(), character };
    if character == '\\' { Some(read_escape(rest).unwrap_or(plain)) } else { Some(plain) }
}

/// Where each byte of the string that a literal stands for is written: an offset into the document's `text` for
/// every offset into the string, its end included. `literal` is the literal's place, quotes included.
pub fn offsets_in_string(text: &str, literal: Span) -> Vec<u32> {
    let inside_start = literal.start as usize + 1;
    let inside_end = (literal.end as usize).saturating_sub(1).max(inside_start);
    let inside = text.get(inside_start..inside_end).unwrap_or_default();
    let mut offsets = Vec::with_capacity(inside.len() + 1);
    let mut written = 0;
    while let Some(unit) = unit_at(inside, written) {
        let place = Span::new(inside_start + written, inside_start + written).start;
        offsets.extend(std::iter::repeat_n(place, unit.character.len_utf8()));
        written += unit.written;
    }
    offsets.push(Span::new(inside_start + written, inside_start + written).start);
    offsets
}
