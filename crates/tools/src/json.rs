//! What programs answer as JSON, read within what a run keeps: no deeper than its documents may be (E-28), and no
//! number as another one (E-25).

use crate::failures::tool_failure;
use crate::limits::ToolLimits;
use selvedge_engine::json::is_duplicate_key;
use selvedge_engine::{Failure, FaultKind};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

/// Why a text was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// More objects and arrays inside each other than may be.
    Deep,
    /// An integer beyond 64 bits: read as JSON is usually read, it would become another one.
    Large(String),
    /// A key stands twice in an object: nobody knows which of the two is meant.
    Twice(serde_json::Error),
    /// No JSON, or not what was expected.
    Wrong(serde_json::Error),
}

/// Reads a JSON text with at most `nesting` objects and arrays inside each other.
///
/// # Errors
/// The first reason found.
pub(crate) fn read<T: DeserializeOwned>(text: &[u8], nesting: usize) -> Result<T, Unread> {
    if depth(text) > nesting {
        // What is no JSON may have as many brackets as it likes; this way of reading it takes no stack.
        let ignored = serde_json::from_slice::<IgnoredAny>(text);
        return Err(ignored.err().map_or(Unread::Deep, Unread::Wrong));
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    // The depth is known to be bearable: serde's own limit is neither ours nor a setting.
    reader.disable_recursion_limit();
    let twice = |error: serde_json::Error| match is_duplicate_key(&error) {
        true => Unread::Twice(error),
        false => Unread::Wrong(error),
    };
    let value = T::deserialize(&mut reader).map_err(twice)?;
    reader.end().map_err(Unread::Wrong)?;
    Ok(value)
}

/// The same, where every integer must be one that stays what it is.
///
/// # Errors
/// The first reason found.
pub(crate) fn read_exactly<T: DeserializeOwned>(text: &[u8], nesting: usize) -> Result<T, Unread> {
    let value = read(text, nesting);
    // Only what is JSON has integers; one with hundreds of digits is out of range for the reader itself.
    match (&value, large_integer(text)) {
        (Ok(_), Some(digits)) => Err(Unread::Large(digits)),
        (Err(Unread::Wrong(error)), Some(digits)) if error.to_string().contains("out of range") => {
            Err(Unread::Large(digits))
        }
        _ => value,
    }
}

impl Unread {
    /// What it means for the call of a tool.
    pub(crate) fn failure(self, tool: &str, limits: &ToolLimits) -> Failure {
        match self {
            Self::Deep => Failure::permanent(
                FaultKind::LimitExceeded,
                format!(
                    "the output of the tool `{tool}` has more than {} objects and arrays inside each other \
                     (`json_nesting` in [limits])",
                    limits.json_nesting
                ),
            ),
            Self::Large(digits) => tool_failure(
                "parsing_tool_error",
                format!(
                    "the output of `{tool}` has the integer {digits}, which 64 bits can't hold: return it as a text"
                ),
            ),
            Self::Twice(error) | Self::Wrong(error) => tool_failure(
                "parsing_tool_error",
                format!("the output of `{tool}` cannot be parsed: {error}"),
            ),
        }
    }
}

/// The most brackets that are open at a time.
pub(crate) fn depth(text: &[u8]) -> usize {
    let (mut open, mut most) = (0usize, 0usize);
    for part in Parts(text) {
        match part {
            Part::Other(b'{' | b'[') => {
                open += 1;
                most = most.max(open);
            }
            Part::Other(b'}' | b']') => open = open.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// The most objects and arrays of a value inside each other.
pub(crate) fn depth_of(value: &Value) -> usize {
    let (mut left, mut most) = (vec![(value, 1_usize)], 0);
    while let Some((value, depth)) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => left.extend(fields.values().map(|field| (field, depth + 1))),
            _ => continue,
        }
        most = most.max(depth);
    }
    most
}

/// The first integer that neither a signed nor an unsigned number of 64 bits can hold, shortened if it is long.
pub(crate) fn large_integer(text: &[u8]) -> Option<String> {
    Parts(text).find_map(|part| {
        let Part::Number(digits) = part else { return None };
        // Fewer digits always fit.
        if digits.len() < 19 || digits.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
            return None;
        }
        let digits = std::str::from_utf8(digits).ok()?;
        let fits = digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok();
        let shown = || match digits.get(..40) {
            Some(start) if digits.len() > 40 => format!("{start}… of {} digits", digits.len()),
            _ => digits.to_owned(),
        };
        (!fits).then(shown)
    })
}

/// What of a JSON text is outside of its strings.
enum Part<'t> {
    Number(&'t [u8]),
    Other(u8),
}

struct Parts<'t>(&'t [u8]);

impl<'t> Iterator for Parts<'t> {
    type Item = Part<'t>;

    fn next(&mut self) -> Option<Part<'t>> {
        loop {
            let (&first, rest) = self.0.split_first()?;
            match first {
                b'"' => self.0 = behind_string(rest),
                b'-' | b'0'..=b'9' => {
                    let of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                    let length = self.0.iter().take_while(|byte| of_number(byte)).count();
                    let (number, rest) = self.0.split_at_checked(length)?;
                    self.0 = rest;
                    return Some(Part::Number(number));
                }
                _ => {
                    self.0 = rest;
                    return Some(Part::Other(first));
                }
            }
        }
    }
}

/// What follows the end of a string whose begin was read.
fn behind_string(mut text: &[u8]) -> &[u8] {
    while let Some((first, rest)) = text.split_first() {
        text = match first {
            b'"' => return rest,
            b'\\' => rest.get(1..).unwrap_or_default(),
            _ => rest,
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Vec<u8> {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels)).into_bytes()
    }

    #[test]
    fn the_limit_on_nesting_is_the_only_one() {
        assert!(read::<Value>(&nested(128), 128).is_ok());
        assert!(matches!(read::<Value>(&nested(129), 128), Err(Unread::Deep)));
        assert!(read::<Value>(&nested(1000), 1000).is_ok());
        // Brackets in strings, escaped quotes, siblings.
        assert!(read::<Value>(br#"{"a\"[[[": "]]\\", "b": [[]], "c": [[]]}"#, 3).is_ok());
        assert!(matches!(read::<Value>(b"[[]", 3), Err(Unread::Wrong(_))));
        assert!(matches!(read::<Value>(b"[] 1", 3), Err(Unread::Wrong(_))));
        assert!(matches!(read::<Value>(&b"[".repeat(1 << 20), 128), Err(Unread::Wrong(_))));
        assert!(matches!(read::<Value>(&nested(1 << 20), 128), Err(Unread::Deep)));
    }

    #[test]
    fn values_are_as_deep_as_their_texts() {
        for text in ["1", "[]", "{\"a\": [[], 1]}", "[[1], [[2]], {}]"] {
            assert_eq!(depth_of(&read(text.as_bytes(), 9).unwrap()), depth(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn integers_stay_what_they_are_or_are_named() {
        for fits in [
            "18446744073709551615",
            "-9223372036854775808",
            "1e300",
            "123456789012345678901.5",
            "[\"18446744073709551616\"]",
            "{\"18446744073709551616\": -0}",
        ] {
            assert!(read_exactly::<Value>(fits.as_bytes(), 9).is_ok(), "{fits}");
        }
        let huge = format!("{{\"a\": {}}}", "9".repeat(400));
        for large in ["18446744073709551616", "[1, -9223372036854775809]", huge.as_str()] {
            let read = read_exactly::<Value>(large.as_bytes(), 9);
            assert!(matches!(read, Err(Unread::Large(_))), "{large}: {read:?}");
        }
        assert!(matches!(read_exactly::<Value>(b"99999999999999999999x", 9), Err(Unread::Wrong(_))));
    }
}
