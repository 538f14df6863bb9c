//! A key in hex with something between its bytes: `aa bb`, `aa:bb`, `0xaa, 0xbb`, and the lines of `xxd`, `od -t x1` and
//! `hexdump -C`, which have a place before the bytes and, some, their characters behind them.

/// How many signs may lie between two bytes in a line, white space of any width aside: `, ` and a hyphen in a table.
const BETWEEN: usize = 3;
/// How wide the column of characters and white space around it may be.
const COLUMN: usize = 96;
/// How many digits the place has that a line begins with.
const PLACE: std::ops::RangeInclusive<usize> = 4..=16;

/// How a text begins, of which a key is sought in hex.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Hexed {
    /// With so many bytes that are the key, and whether what follows may belong to them.
    Whole(usize, bool),
    /// It ends within what may be the key.
    Begins,
    /// Otherwise.
    Other,
}

/// What stands between two bytes.
enum Gap {
    /// So many signs, among them the end of a line and the place of the next.
    Over(usize, bool),
    /// The text ends within it.
    Open,
}

/// Whether a key begins here in hex, with or without something between its bytes.
pub(super) fn hexed(key: &[u8], text: &[u8]) -> Hexed {
    let (mut at, mut lines) = (0, false);
    for (index, byte) in key.iter().enumerate() {
        let rest = text.get(at..).unwrap_or_default();
        let found = match index {
            0 => digits(*byte, rest).map(|length| (length, false)),
            _ => next(*byte, rest),
        };
        match found {
            Ok((length, line)) => (at, lines) = (at + length, lines | line),
            Err(other) => return other,
        }
    }
    let column = if lines { column(text.get(at..).unwrap_or_default()) } else { Some(0) };
    match column {
        Some(column) => Hexed::Whole(at + column, false),
        None => Hexed::Whole(text.len(), true),
    }
}

/// The next byte, with what stands before it.
fn next(byte: u8, text: &[u8]) -> Result<(usize, bool), Hexed> {
    let mut open = false;
    for gap in [nothing, signs, line, placed_line] {
        match gap(text) {
            Some(Gap::Over(length, line)) => match digits(byte, text.get(length..).unwrap_or_default()) {
                Ok(more) => return Ok((length + more, line)),
                Err(Hexed::Begins) => open = true,
                Err(_) => {}
            },
            Some(Gap::Open) => open = true,
            None => {}
        }
    }
    Err(if open { Hexed::Begins } else { Hexed::Other })
}

/// The two digits of a byte.
fn digits(byte: u8, text: &[u8]) -> Result<usize, Hexed> {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).map(|digit| digit as u8);
    for (at, nibble) in [byte >> 4, byte & 15].into_iter().enumerate() {
        match text.get(at) {
            None => return Err(Hexed::Begins),
            Some(found) if Some(found.to_ascii_lowercase()) == digit(nibble) => {}
            Some(_) => return Err(Hexed::Other),
        }
    }
    Ok(2)
}

fn nothing(_: &[u8]) -> Option<Gap> {
    Some(Gap::Over(0, false))
}

/// Signs in a line, and what says that hex follows.
fn signs(text: &[u8]) -> Option<Gap> {
    let mut length = blanks(text);
    let marks = text.iter().skip(length).take(BETWEEN).take_while(|byte| b":,;.-_|/".contains(byte)).count();
    length += marks;
    length += blanks(text.get(length..).unwrap_or_default());
    let rest = text.get(length..).unwrap_or_default();
    match rest {
        [] | [b'0' | b'\\'] => Some(Gap::Open),
        [b'0', b'x' | b'X', ..] | [b'\\', b'x', ..] => Some(Gap::Over(length + 2, false)),
        _ => Some(Gap::Over(length, false)),
    }
}

/// The end of a line, and the margin of the next.
fn line(text: &[u8]) -> Option<Gap> {
    let end = line_end(text, blanks(text))?;
    let length = end + blanks(text.get(end..).unwrap_or_default());
    Some(if length == text.len() { Gap::Open } else { Gap::Over(length, false) })
}

/// The same with a column of characters before it, if there is one, and the place that the next line begins with.
fn placed_line(text: &[u8]) -> Option<Gap> {
    let start = match blanks(text) {
        wide @ 2.. => {
            let within = text.get(..COLUMN).unwrap_or(text);
            let escape = || within.windows(2).position(|pair| pair == b"\\n");
            match within.iter().position(|byte| *byte == b'\n').or_else(escape) {
                Some(newline) => line_end(text, newline)?,
                None if within.len() < COLUMN && wide <= within.len() => return Some(Gap::Open),
                None => return None,
            }
        }
        narrow => line_end(text, narrow)?,
    };
    let rest = text.get(start..).unwrap_or_default();
    let place = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let colon = usize::from(rest.get(place) == Some(&b':'));
    let behind = rest.get(place + colon..).unwrap_or_default();
    let white = blanks(behind);
    if white == behind.len() {
        return Some(Gap::Open);
    }
    (PLACE.contains(&place) && white > 0).then_some(Gap::Over(start + place + colon + white, true))
}

/// Where the next line begins if one ends at `at`, as it is or as texts of JSON have it; or where the text ends within that.
fn line_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at..)? {
        [] | [b'\r' | b'\\'] => Some(text.len()),
        [b'\n', ..] => Some(at + 1),
        [b'\r', b'\n', ..] | [b'\\', b'n', ..] => Some(at + 2),
        _ => None,
    }
}

/// How long the rest of a line is that has the characters of its bytes, some of them the key's; `None` where it can't be said yet.
fn column(text: &[u8]) -> Option<usize> {
    let within = text.get(..COLUMN).unwrap_or(text);
    match within.iter().position(|byte| *byte == b'\n') {
        Some(newline) => Some(newline),
        None if within.len() < COLUMN => None,
        None => Some(0),
    }
}

fn blanks(text: &[u8]) -> usize {
    text.iter().take(COLUMN).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}
