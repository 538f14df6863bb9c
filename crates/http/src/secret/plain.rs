//! A text as it was before an encoder wrapped, indented or escaped it.

use super::forms::SLASHES;
use std::ops::Range;

/// How many bytes may lie between two lines of one word: the end of a line, and the margin of the next.
const MARGIN: usize = 80;

/// A text without its escapes and without what stands between its lines: what encoders wrap is one word again.
pub(super) struct Plain {
    pub(super) bytes: Vec<u8>,
    /// From which of the bytes on they stand from where on in the text; two for one where something was left out before it.
    places: Vec<(usize, usize)>,
    /// From where on it can't be said yet what stands there, an escape that the text ends within or a margin; the text's end if
    /// that is nowhere.
    pub(super) unfinished: usize,
}

/// What white space comes to.
enum Gap {
    /// It lies between two lines, and is so long.
    Break(usize),
    /// So much of it is a part of the text.
    Words(usize),
    /// The text ends within it: what is known of it is so long, and nothing but white space or not.
    Open(usize, bool),
}

impl Plain {
    pub(super) fn of(text: &[u8]) -> Self {
        let mut plain =
            Self { bytes: Vec::with_capacity(text.len()), places: vec![(0, 0)], unfinished: text.len() };
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let special = |byte: &u8| matches!(byte, b'\\' | b'%') || is_white(*byte);
            let usual = rest.iter().position(special).unwrap_or(rest.len());
            plain.bytes.extend_from_slice(rest.get(..usual).unwrap_or_default());
            at += usual;
            let Some(rest) = rest.get(usual..).filter(|rest| !rest.is_empty()) else { break };
            let Some((byte, length)) = sign(rest) else {
                plain.unfinished = at;
                break;
            };
            if !is_white(byte) {
                plain.push(byte, at, length);
                at += length;
                continue;
            }
            at = match gap(rest) {
                Gap::Break(length) => {
                    plain.places.extend([(plain.bytes.len(), at), (plain.bytes.len(), at + length)]);
                    at + length
                }
                Gap::Words(length) => plain.words(rest.get(..length).unwrap_or_default(), at),
                Gap::Open(length, white) => {
                    plain.unfinished = if white { at + length } else { at };
                    break;
                }
            };
        }
        plain
    }

    /// What stands at `at` for so many bytes of the text.
    fn push(&mut self, byte: u8, at: usize, length: usize) {
        if length > 1 {
            self.places.extend([(self.bytes.len(), at), (self.bytes.len() + 1, at + length)]);
        }
        self.bytes.push(byte);
    }

    /// Takes white space as what it is; says where it ends.
    fn words(&mut self, text: &[u8], mut at: usize) -> usize {
        let mut rest = text;
        while let Some((byte, length)) = sign(rest).filter(|_| !rest.is_empty()) {
            self.push(byte, at, length);
            (at, rest) = (at + length, rest.get(length..).unwrap_or_default());
        }
        at
    }

    /// Where a byte stands in the text.
    pub(super) fn start(&self, index: usize) -> usize {
        let behind = self.places.partition_point(|(from, _)| *from <= index);
        let known = behind.checked_sub(1).and_then(|last| self.places.get(last));
        known.map_or(index, |(from, place)| place + (index - from))
    }

    /// Where something stands in the text.
    pub(super) fn place(&self, range: Range<usize>) -> Range<usize> {
        let first = self.places.partition_point(|(from, _)| *from < range.end);
        let end = match self.places.get(first) {
            // What was left out behind its last byte is none of it.
            Some((from, place)) if *from == range.end => *place,
            _ => self.start(range.end),
        };
        self.start(range.start)..end
    }
}

fn is_white(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\x0b'
}

/// What the white space is that a text begins with: the break of a line with what is around it, white space and such signs as
/// stand in margins, with white space behind them so that they are none of the next line. It is looked at no further than [`MARGIN`].
fn gap(text: &[u8]) -> Gap {
    let (mut end, mut white_end, mut breaks) = (0, 0, false);
    while end <= MARGIN {
        let rest = text.get(end..).unwrap_or_default();
        let Some((byte, length)) = sign(rest).filter(|_| !rest.is_empty()) else {
            return Gap::Open(end, white_end == end);
        };
        end += length;
        if is_white(byte) {
            white_end = end;
            breaks |= matches!(byte, b'\n' | b'\r');
        } else if !matches!(byte, b'|' | b'>' | b'#' | b'*') {
            return if breaks { Gap::Break(white_end) } else { Gap::Words(white_end) };
        }
    }
    Gap::Words(white_end)
}

/// What stands at the beginning of a text: a byte, or an escape of JSON or a URL for one, and its length; `None` where the
/// text ends within an escape.
fn sign(text: &[u8]) -> Option<(u8, usize)> {
    let first = text.first().copied().unwrap_or_default();
    let hex = |digits: Option<&[u8]>| {
        let digits = digits.and_then(|digits| str::from_utf8(digits).ok())?;
        digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
        u8::try_from(u16::from_str_radix(digits, 16).ok()?).ok().filter(u8::is_ascii)
    };
    let is_begin = |digits: &[u8], all: usize| digits.len() < all && digits.iter().all(u8::is_ascii_hexdigit);
    match first {
        b'%' => {
            let digits = text.get(1..).unwrap_or_default();
            match hex(digits.get(..2)) {
                Some(byte) => Some((byte, 3)),
                None if is_begin(digits, 2) => None,
                None => Some((first, 1)),
            }
        }
        b'\\' => {
            let slashes = text.iter().take(SLASHES + 1).take_while(|byte| **byte == b'\\').count();
            if slashes > SLASHES {
                return Some((first, 1));
            }
            let rest = text.get(slashes..).filter(|rest| !rest.is_empty())?;
            let digits = rest.get(1..).unwrap_or_default();
            match rest.first().copied().unwrap_or_default() {
                b'u' => match hex(digits.get(..4)) {
                    Some(byte) => Some((byte, slashes + 5)),
                    None if is_begin(digits, 4) => None,
                    None => Some((first, 1)),
                },
                b'n' => Some((b'\n', slashes + 1)),
                b'r' => Some((b'\r', slashes + 1)),
                b't' => Some((b'\t', slashes + 1)),
                other if other.is_ascii_punctuation() => Some((other, slashes + 1)),
                _ => Some((first, 1)),
            }
        }
        byte => Some((byte, 1)),
    }
}
