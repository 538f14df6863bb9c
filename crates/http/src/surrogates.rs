//! Halves of characters. A server that cuts its text anywhere may escape a character beyond the basic plane half in one
//! event (`\ud83d`) and half in the next (`\ude00`), or write some of its bytes in one and the others in the next. No
//! parser takes either, and no text can hold either.
//!
//! So [`marked`] puts a *mark* and a private character in the place of each half. Both are carried through parsing and
//! are put beside each other where pieces of a text are; [`settled`] then makes characters of halves that belong together,
//! and U+FFFD of all others. No text has the mark: it is a noncharacter of Unicode.

use bytes::Bytes;
use serde_json::Value;
use std::borrow::Cow;

/// Stands before what stands for a half.
const MARK: char = '\u{10FFFF}';
/// What stands for the first code unit of a pair, U+D800; the others follow it.
const HALVES: u32 = 0x10_D800;
/// What stands for the byte 0 of a character in UTF-8; the others follow it.
const BYTES: u32 = 0x10_E000;
/// The bytes of an escape such as `\u00e4`.
const ESCAPE: usize = 6;
/// More halves than a character has, even one of a pair whose units were written as bytes.
const LONGEST: usize = 32;

/// A half of a character.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Half {
    /// A code unit of a surrogate pair.
    Unit(u16),
    /// A byte of UTF-8.
    Byte(u8),
}

impl Half {
    fn push_to(self, out: &mut Vec<u8>) {
        let code = match self {
            Self::Unit(unit) => HALVES + u32::from(unit - 0xD800),
            Self::Byte(byte) => BYTES + u32::from(byte),
        };
        for sign in [MARK, char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)] {
            out.extend_from_slice(sign.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// What the character behind a mark stands for.
    fn of(sign: char) -> Option<Self> {
        let code = u32::from(sign);
        let within = |from: u32, many: u32| code.checked_sub(from).filter(|at| *at < many);
        if let Some(at) = within(HALVES, 0x800) {
            return u16::try_from(0xD800 + at).ok().map(Self::Unit);
        }
        within(BYTES, 0x100).and_then(|byte| u8::try_from(byte).ok()).map(Self::Byte)
    }
}

/// `body` with marks for every escaped half of a surrogate pair whose other half is not beside it, and for bytes that are
/// no UTF-8; `None` if it has none of these.
pub fn marked(body: &[u8]) -> Option<Vec<u8>> {
    let body = readable(body);
    let mut found = matches!(body, Cow::Owned(_));
    let mut out = Vec::with_capacity(body.len());
    let mut rest = &*body;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let (before, escape) = rest.split_at_checked(at)?;
        out.extend_from_slice(before);
        let (taken, lone) = match (unit(escape), escape.get(ESCAPE..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (2 * ESCAPE, None),
            (Some(half @ 0xD800..=0xDFFF), _) => (ESCAPE, Some(half)),
            // Any other escape, a backslash of its own among them.
            _ => (2, None),
        };
        let (escaped, after) = escape.split_at_checked(taken).unwrap_or((escape, &[]));
        match lone {
            Some(half) => Half::Unit(half).push_to(&mut out),
            None => out.extend_from_slice(escaped),
        }
        found |= lone.is_some();
        rest = after;
    }
    out.extend_from_slice(rest);
    found.then_some(out)
}

/// `body` with U+FFFD for every half of a character whose other half is not beside it; `None` if it has no such half.
pub fn mended(body: &[u8]) -> Option<Vec<u8>> {
    let marked = String::from_utf8(marked(body)?).ok()?;
    settled(&marked).map(|(whole, _)| whole.into_bytes())
}

/// `bytes` with marks for those that are no UTF-8.
fn readable(bytes: &[u8]) -> Cow<'_, [u8]> {
    if str::from_utf8(bytes).is_ok() {
        return Cow::Borrowed(bytes);
    }
    let mut out = Vec::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        out.extend_from_slice(chunk.valid().as_bytes());
        chunk.invalid().iter().for_each(|byte| Half::Byte(*byte).push_to(&mut out));
    }
    Cow::Owned(out)
}

/// The code unit that an escape such as `\u00e4` at the beginning of `text` stands for.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(br"\u")?.get(..4)?;
    let digits = str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
}

/// `text` with characters in the place of marked halves, and how many of these make none; `None` if it has no marks.
pub fn settled(text: &str) -> Option<(String, u32)> {
    if !text.contains(MARK) {
        return None;
    }
    let (mut out, mut lost) = (String::with_capacity(text.len()), 0);
    let mut halves = Vec::new();
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        let half = signs.peek().filter(|_| sign == MARK).and_then(|next| Half::of(*next));
        match half {
            Some(half) => {
                signs.next();
                halves.push(half);
            }
            None => {
                lost += join(&mut halves, &mut out);
                out.push(sign);
            }
        }
    }
    lost += join(&mut halves, &mut out);
    Some((out, lost))
}

/// Adds the characters that neighbouring halves make, and U+FFFD for each that makes none; how many these are.
fn join(halves: &mut Vec<Half>, out: &mut String) -> u32 {
    let mut lost = 0;
    let mut rest = halves.as_slice();
    while let Some((first, after)) = rest.split_first() {
        // Some servers write the bytes of a half.
        let (unit, behind) = match (rest, first) {
            (
                [
                    Half::Byte(0xED),
                    Half::Byte(high @ 0xA0..=0xBF),
                    Half::Byte(low @ 0x80..=0xBF),
                    behind @ ..,
                ],
                _,
            ) => (Some(0xD000 | u16::from(high & 0x3F) << 6 | u16::from(low & 0x3F)), behind),
            (_, Half::Unit(unit)) => (Some(*unit), after),
            (_, Half::Byte(_)) => (None, rest),
        };
        rest = behind;
        match unit {
            Some(unit) => lost += join_unit(unit, &mut rest, out),
            None => lost += join_bytes(&mut rest, out),
        }
    }
    halves.clear();
    lost
}

/// The character of a unit and the one after it.
fn join_unit(first: u16, rest: &mut &[Half], out: &mut String) -> u32 {
    let (second, behind) = match *rest {
        [Half::Unit(unit), behind @ ..] => (*unit, behind),
        [Half::Byte(0xED), Half::Byte(high @ 0xB0..=0xBF), Half::Byte(low @ 0x80..=0xBF), behind @ ..] => {
            (0xD000 | u16::from(high & 0x3F) << 6 | u16::from(low & 0x3F), behind)
        }
        _ => (0, *rest),
    };
    match char::decode_utf16([first, second]).next() {
        Some(Ok(character)) => {
            out.push(character);
            *rest = behind;
            0
        }
        _ => {
            out.push(char::REPLACEMENT_CHARACTER);
            1
        }
    }
}

/// The characters of the bytes up to what is another kind of half.
fn join_bytes(rest: &mut &[Half], out: &mut String) -> u32 {
    let mut bytes = Vec::new();
    while let [Half::Byte(byte), after @ ..] = *rest {
        if matches!(*rest, [Half::Byte(0xED), Half::Byte(0xA0..=0xBF), Half::Byte(0x80..=0xBF), ..])
            && !bytes.is_empty()
        {
            break;
        }
        bytes.push(*byte);
        *rest = after;
    }
    let mut lost = 0;
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
            lost += 1;
        }
    }
    lost
}

/// Makes characters of the halves in a text; counts those that could not be mended.
pub fn text(text: &mut String) -> u32 {
    match settled(text) {
        Some((clean, lost)) => {
            *text = clean;
            lost
        }
        None => 0,
    }
}

/// The same in all texts of a value, names of fields among them.
pub fn value(json: &mut Value) -> u32 {
    match json {
        Value::String(said) => text(said),
        Value::Array(items) => items.iter_mut().map(value).sum(),
        Value::Object(fields) => {
            let mut lost = fields.values_mut().map(value).sum();
            if fields.keys().any(|name| name.contains(MARK)) {
                let all = std::mem::take(fields).into_iter().map(|(mut name, field)| {
                    lost += text(&mut name);
                    (name, field)
                });
                *fields = all.collect();
            }
            lost
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Bytes that come in chunks, of which one may end within a character.
#[derive(Debug, Default)]
pub struct Characters {
    begun: Vec<u8>,
}

impl Characters {
    /// The characters of a chunk and what was begun before it; what is no UTF-8 is marked.
    pub fn of(&mut self, chunk: Bytes) -> Bytes {
        let chunk = match self.begun.is_empty() {
            true => chunk,
            false => [std::mem::take(&mut self.begun).as_slice(), &chunk].concat().into(),
        };
        if str::from_utf8(&chunk).is_ok() {
            return chunk;
        }
        // Where the end could still become a character, it waits.
        let (whole, begun) = chunk.split_at(chunk.len() - unfinished(&chunk));
        self.begun = begun.to_vec();
        Bytes::from(readable(whole).into_owned())
    }
}

/// How many bytes at the end are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let open = str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    if open { last.len() } else { 0 }
}

/// How many bytes at the end of a text are halves to which another one may belong.
fn waits(text: &str) -> usize {
    const WIDTH: usize = 2 * MARK.len_utf8();
    let mut signs = text.chars().rev();
    let mut waiting = 0;
    while let (Some(sign), Some(MARK)) = (signs.next(), signs.next()) {
        match Half::of(sign) {
            Some(Half::Unit(0xD800..=0xDBFF)) if waiting == 0 => return WIDTH,
            Some(Half::Byte(_)) if waiting < LONGEST => waiting += 1,
            // So many are no character's, whatever follows.
            Some(Half::Byte(_)) => return 0,
            _ => break,
        }
    }
    waiting * WIDTH
}

/// Pieces of a text as they are said: a half waits for the piece behind it.
#[derive(Debug, Default)]
pub struct Said {
    held: String,
}

impl Said {
    /// What can be said of the text so far.
    pub fn more(&mut self, piece: String) -> String {
        if self.held.is_empty() && !piece.contains(MARK) {
            return piece;
        }
        let mut all = std::mem::take(&mut self.held) + &piece;
        let from = all.len() - waits(&all);
        self.held = all.split_off(from);
        settled(&all).map_or(all, |(clean, _)| clean)
    }

    /// What was held back at the end.
    pub fn rest(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        settled(&held).map_or(held, |(clean, _)| clean)
    }
}

#[cfg(test)]
mod tests;
