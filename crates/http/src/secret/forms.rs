//! The ways in which keys are written, and where they stand in a text.

use super::REDACTED;
use super::hex::{Hexed, hexed};
use super::plain::Plain;
use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use std::borrow::Cow;
use std::ops::Range;

/// Secrets shorter than this are placeholders such as `none` or `EMPTY`; replacing them would mangle plain text.
const SHORTEST: usize = 8;
/// Backslashes in a row that may be those of an escape; each level of JSON in JSON doubles them.
pub(super) const SLASHES: usize = 32;

/// What texts are searched for.
#[derive(Default)]
pub(super) struct Forms {
    /// Keys as they are, and what hex and base64 make of them.
    all: Vec<Vec<u8>>,
    /// Keys with characters that JSON or a URL may write otherwise.
    odd: Vec<Vec<u8>>,
    /// Keys, each of which is looked for in hex, too, with something between its bytes.
    keys: Vec<Vec<u8>>,
    /// Whether one of them begins with a byte.
    begins: Vec<bool>,
    /// Looks for all of them at once.
    finder: Option<AhoCorasick>,
}

impl Forms {
    /// The forms of these keys.
    pub(super) fn of<'s>(keys: impl IntoIterator<Item = &'s str>) -> Self {
        let mut forms = Self::default();
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        for key in keys.into_iter().map(str::as_bytes).filter(|key| key.len() >= SHORTEST) {
            if !key.iter().all(plain) {
                forms.odd.push(key.to_vec());
            }
            forms.all.push(key.to_vec());
            forms.keys.push(key.to_vec());
            // What texts are searched for it as well has no escapes and no lines; a key may have its own.
            forms.all.extend(Some(Plain::of(key).bytes).filter(|plain| plain.len() >= SHORTEST));
            forms.all.push(key.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect());
            forms.all.push(key.iter().flat_map(|byte| format!("{byte:02X}").into_bytes()).collect());
            forms.all.extend(base64(key));
            forms.all.extend(spelled(key));
        }
        // Most processes have no keys, and what looks for none takes as long to make.
        if forms.is_empty() {
            return forms;
        }
        let begins = |byte| forms.keys.iter().any(|key| key.first() == Some(&byte));
        forms.begins = (0..=u8::MAX).map(begins).collect();
        forms.all.sort();
        forms.all.dedup();
        // It fails for patterns of gigabytes only.
        let found = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&forms.all);
        forms.finder = found.ok();
        forms
    }

    /// Whether nothing is searched for.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// `text` with [`REDACTED`] in the place of each of them.
    pub(super) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let spans = self.spans(text);
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for span in spans {
            out.push_str(text.get(at..span.start).unwrap_or_default());
            out.push_str(REDACTED);
            at = span.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// Where they stand, in order and apart from each other.
    pub(super) fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let Some(finder) = &self.finder else { return Vec::new() };
        let mut spans: Vec<Range<usize>> = finder.find_iter(text).map(|found| found.range()).collect();
        let bytes = text.as_bytes();
        if bytes.iter().any(|byte| matches!(byte, b'\\' | b'%' | b'\n' | b'\r')) {
            let plain = Plain::of(bytes);
            spans.extend(finder.find_iter(&plain.bytes).map(|found| plain.place(found.range())));
            for key in &self.odd {
                let mut at = 0;
                while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
                    let Written::Whole(length) = written(key, rest) else {
                        at += 1;
                        continue;
                    };
                    spans.push(at..at + length);
                    at += length;
                }
            }
        }
        let hexed = self.hexed(bytes).filter_map(|(at, found)| match found {
            Hexed::Whole(length, _) => Some(at..at + length),
            _ => None,
        });
        spans.extend(hexed);
        spans.sort_by_key(|span| (span.start, span.end));
        // Of two that overlap, all that belongs to either.
        spans.dedup_by(|next, before| {
            let overlaps = next.start < before.end;
            if overlaps {
                before.end = before.end.max(next.end);
            }
            overlaps
        });
        spans.retain(|span| text.is_char_boundary(span.start) && text.is_char_boundary(span.end));
        spans
    }

    /// Where a key is in hex, or may be.
    fn hexed<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = (usize, Hexed)> + 't {
        // Few places of a text have the two digits with which a key begins.
        let digit = move |at: usize| text.get(at).map(|byte| char::from(*byte).to_digit(16));
        let may_begin = move |at: &usize| match (digit(*at).flatten(), digit(*at + 1)) {
            (Some(high), Some(Some(low))) => self.begins.get((high << 4 | low) as usize) == Some(&true),
            // The text ends behind it.
            (Some(_), None) => true,
            _ => false,
        };
        let each = move |at: usize| {
            let rest = text.get(at..).unwrap_or_default();
            self.keys.iter().map(move |key| (at, hexed(key, rest)))
        };
        (0..text.len()).filter(may_begin).flat_map(each).filter(|(_, found)| *found != Hexed::Other)
    }

    /// From where on the end of `text` could be the beginning of one of them.
    pub(super) fn beginnings(&self, text: &str) -> Vec<usize> {
        let bytes = text.as_bytes();
        let plain = Plain::of(bytes);
        let longest = self.all.iter().map(Vec::len).max().unwrap_or_default();
        let begins = |text: &[u8], at: usize| {
            let tail = text.get(at..).unwrap_or_default();
            self.all.iter().any(|form| form.len() > tail.len() && form.starts_with(tail))
        };
        let ends = |text: &[u8]| text.len().saturating_sub(longest)..text.len();
        let mut found: Vec<usize> = ends(bytes).filter(|at| begins(bytes, *at)).collect();
        let wrapped = ends(&plain.bytes).filter(|at| begins(&plain.bytes, *at));
        found.extend(wrapped.map(|at| plain.start(at)));
        let odd = |at: &usize| {
            let tail = bytes.get(*at..).unwrap_or_default();
            self.odd.iter().any(|key| written(key, tail) == Written::Begins)
        };
        found.extend((0..bytes.len()).filter(odd));
        let open = |found: Hexed| matches!(found, Hexed::Begins | Hexed::Whole(_, true));
        found.extend(self.hexed(bytes).filter(|(_, found)| open(*found)).map(|(at, _)| at));
        found.extend((plain.unfinished < bytes.len()).then_some(plain.unfinished));
        found.sort_unstable();
        found
    }
}

/// A key as encoders spell it that escape all beyond ASCII, as Python's of JSON (in JSON again, too) and of bytes; and with the
/// `+` of forms for a space.
fn spelled(key: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    if key.contains(&b' ') {
        forms.push(key.iter().map(|byte| if *byte == b' ' { b'+' } else { *byte }).collect());
    }
    if key.is_ascii() {
        return forms;
    }
    let text = String::from_utf8_lossy(key);
    for slashes in [1, 2, 4].map(|count| "\\".repeat(count)) {
        let units = |char: char| {
            let escape = |unit: &u16| format!("{slashes}u{unit:04x}");
            char.encode_utf16(&mut [0; 2]).iter().map(escape).collect::<String>()
        };
        let bytes = |char: char| {
            let escape = |byte: &u8| format!("{slashes}x{byte:02x}");
            char.encode_utf8(&mut [0; 4]).as_bytes().iter().map(escape).collect::<String>()
        };
        let all = |of: &dyn Fn(char) -> String| -> String {
            text.chars().map(|char| if char.is_ascii() { char.to_string() } else { of(char) }).collect()
        };
        let json = all(&units);
        forms.push(all(&|char| units(char).to_uppercase().replace('U', "u")).into_bytes());
        forms.push(json.into_bytes());
        forms.push(all(&bytes).into_bytes());
    }
    forms
}

/// What of a key's base64 says what it is, in both alphabets, wherever it begins in what is encoded. The first and the last
/// letter may be its neighbours' as well; but for those of a key by itself they are left.
fn base64(key: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for engine in [BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD] {
        forms.push(engine.encode(key).into_bytes());
        for before in 0..3 {
            let whole = engine.encode([vec![0; before], key.to_vec()].concat()).into_bytes();
            let (from, to) = ((before * 8).div_ceil(6), (before + key.len()) * 8 / 6);
            forms.extend(whole.get(from..to).map(<[u8]>::to_vec));
        }
    }
    forms
}

/// How a text begins, of which a key is sought that JSON or a URL may write otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Written {
    /// With so many bytes that are the key.
    Whole(usize),
    /// It ends within what may be the key.
    Begins,
    /// Otherwise.
    Other,
}

fn written(key: &[u8], text: &[u8]) -> Written {
    let mut length = 0;
    for byte in key {
        match written_byte(*byte, text.get(length..).unwrap_or_default()) {
            Written::Whole(more) => length += more,
            other => return other,
        }
    }
    Written::Whole(length)
}

/// How many bytes at the beginning of `text` stand for `byte`: itself, `%XX`, or an escape of JSON, whose backslash is
/// doubled each time that JSON is put into a text of JSON.
fn written_byte(byte: u8, text: &[u8]) -> Written {
    let Some((first, rest)) = text.split_first() else { return Written::Begins };
    let is_hex = |digits: &[u8]| {
        let text = str::from_utf8(digits).ok();
        text.is_some_and(|text| u16::from_str_radix(text, 16) == Ok(u16::from(byte)))
    };
    let own = if *first == byte { Written::Whole(1) } else { Written::Other };
    let digits = |from: &[u8], all: usize, length: usize| match from.get(..all) {
        Some(digits) if is_hex(digits) => Written::Whole(length),
        None if own == Written::Other && from.iter().all(u8::is_ascii_hexdigit) => Written::Begins,
        _ => own,
    };
    if *first == b'%' {
        return digits(rest, 2, 3);
    }
    if *first != b'\\' {
        return own;
    }
    let more = rest.iter().take(SLASHES).take_while(|byte| **byte == b'\\').count();
    // One of its own may be written as two.
    let own = if own == Written::Other { own } else { Written::Whole(1 + more.min(1)) };
    match rest.get(more..).and_then(<[u8]>::split_first) {
        None if own == Written::Other => Written::Begins,
        Some((b'u', behind)) => match digits(behind, 4, 1 + more + 5) {
            Written::Whole(1) => own,
            found => found,
        },
        Some((sign, _)) if *sign == byte && !byte.is_ascii_alphanumeric() => Written::Whole(1 + more + 1),
        _ => own,
    }
}
