//! Halves of characters in JSON. A server that cuts its text anywhere may escape a character beyond the basic plane
//! half in one event (`\ud83d`) and half in the next (`\ude00`); no parser takes either.

/// What stands for half a character.
const REPLACEMENT: &[u8] = br"\ufffd";
/// The bytes of an escape such as `\u00e4`.
const ESCAPE: usize = 6;

/// `body` with U+FFFD for every escaped half of a surrogate pair whose other half is not beside it; `None` if it has
/// no such half.
pub(crate) fn mended(body: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    let mut found = false;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let (before, escape) = rest.split_at_checked(at)?;
        out.extend_from_slice(before);
        let (taken, lone) = match (unit(escape), escape.get(ESCAPE..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (2 * ESCAPE, false),
            (Some(0xD800..=0xDFFF), _) => (ESCAPE, true),
            // Any other escape, a backslash of its own among them.
            _ => (2, false),
        };
        let (escaped, after) = escape.split_at_checked(taken).unwrap_or((escape, &[]));
        out.extend_from_slice(if lone { REPLACEMENT } else { escaped });
        found |= lone;
        rest = after;
    }
    out.extend_from_slice(rest);
    found.then_some(out)
}

/// The code unit that an escape such as `\u00e4` at the beginning of `text` stands for.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(br"\u")?.get(..4)?;
    let digits = str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::mended;

    fn text(body: &str) -> Option<String> {
        mended(body.as_bytes()).map(|mended| String::from_utf8(mended).unwrap())
    }

    #[test]
    fn only_halves_without_their_other_half_are_replaced() {
        assert_eq!(text(r#"{"a":"\ud83d"}"#).unwrap(), r#"{"a":"\ufffd"}"#);
        assert_eq!(text(r#""x\uDE00y""#).unwrap(), r#""x\ufffdy""#);
        assert_eq!(text(r#""\ud83d\ud83d\ude00\n""#).unwrap(), r#""\ufffd\ud83d\ude00\n""#);
        for whole in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\u00e4\"""#, "plain", r"\", r#""\ud8"#] {
            assert_eq!(text(whole), None, "{whole}");
        }
    }
}
