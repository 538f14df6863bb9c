//! A key or token, and how it is kept out of what a run shows and keeps (C-06).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// What stands where a secret stood (C-06).
pub const REDACTED: &str = "[redacted]";

/// Secrets shorter than this are placeholders such as `none` or `EMPTY`; replacing them would mangle plain text.
const SHORTEST: usize = 8;

/// A key or token. It prints as [`REDACTED`] and knows how to remove itself from text (C-06).
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    text: Arc<str>,
    /// Whether it has characters that JSON or a URL may write otherwise.
    odd: bool,
}

impl Secret {
    /// Wraps a secret; surrounding white space, as files have it, is dropped.
    pub fn new(value: &str) -> Self {
        let text = value.trim();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        Self { text: text.into(), odd: !text.bytes().all(plain) }
    }

    /// The secret itself, for the request that needs it.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// `text` without the secret, as it is or as JSON (`\/`, `\u002f`) and URLs (`%2F`) write its characters. Secrets of
    /// fewer than 8 bytes are left alone.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.text.len() < SHORTEST {
            return Cow::Borrowed(text);
        }
        let clean = if text.contains(&*self.text) {
            Cow::Owned(text.replace(&*self.text, REDACTED))
        } else {
            Cow::Borrowed(text)
        };
        if !self.odd || !clean.bytes().any(|byte| matches!(byte, b'\\' | b'%')) {
            return clean;
        }
        match self.without_escaped(&clean) {
            Some(clean) => Cow::Owned(clean),
            None => clean,
        }
    }

    /// `text` without the secret in its other ways of writing; `None` if it is not there.
    fn without_escaped(&self, text: &str) -> Option<String> {
        let mut out = String::new();
        let (mut kept, mut at) = (0, 0);
        while let Some(rest) = text.as_bytes().get(at..).filter(|rest| !rest.is_empty()) {
            match self.length_at(rest) {
                Some(length) => {
                    out.push_str(text.get(kept..at)?);
                    out.push_str(REDACTED);
                    at += length;
                    kept = at;
                }
                None => at += 1,
            }
        }
        (kept > 0).then(|| out + text.get(kept..).unwrap_or_default())
    }

    /// How many bytes at the beginning of `text` are the secret.
    fn length_at(&self, text: &[u8]) -> Option<usize> {
        let mut length = 0;
        for byte in self.text.bytes() {
            length += written(byte, text.get(length..)?)?;
        }
        Some(length)
    }
}

/// How many bytes at the beginning of `text` stand for `byte`: itself, `%XX`, or an escape of JSON, whose backslash is
/// doubled each time that JSON is put into a text of JSON.
fn written(byte: u8, text: &[u8]) -> Option<usize> {
    let (first, rest) = text.split_first()?;
    let is_hex = |digits: Option<&[u8]>| {
        let text = digits.and_then(|digits| str::from_utf8(digits).ok());
        text.is_some_and(|text| u16::from_str_radix(text, 16) == Ok(u16::from(byte)))
    };
    match first {
        b'%' if is_hex(rest.get(..2)) => return Some(3),
        b'\\' => {
            let more = rest.iter().take_while(|byte| **byte == b'\\').count();
            let escaped = rest.get(more..).unwrap_or_default();
            if escaped.first() == Some(&b'u') && is_hex(escaped.get(1..5)) {
                return Some(1 + more + 5);
            }
            if escaped.first() == Some(&byte) && !byte.is_ascii_alphanumeric() {
                return Some(1 + more + 1);
            }
            if byte == b'\\' {
                // One of its own may be written as two.
                return Some(1 + more.min(1));
            }
        }
        _ => {}
    }
    (*first == byte).then_some(1)
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_print_and_are_removed() {
        let secret = Secret::new(" sk-1234567890\n");
        assert_eq!(format!("{secret:?}"), "[redacted]");
        assert_eq!(secret.redact("bad key sk-1234567890!"), "bad key [redacted]!");
        assert_eq!(Secret::new("none").redact("none of it"), "none of it");
    }

    #[test]
    fn escapes_of_json_and_urls_do_not_hide_a_secret() {
        let secret = Secret::new("sk-SECRET+/=\"123");
        for written in [
            r#"sk-SECRET+/="123"#,
            r#"sk-SECRET+\/=\"123"#,
            r#"sk-SECRET+\\/=\\\"123"#,
            r"sk-SECRET\u002b\u002F\u003d\u0022123",
            r"sk-SECRET\\u002b/=\\u0022123",
            "sk-SECRET%2B%2F%3D%22123",
            "sk-SECRET%2b/%3d%22123",
            "sk%2DSECRET%2B%2F%3D%22123",
        ] {
            assert_eq!(secret.redact(&format!("ä{written}")), "ä[redacted]", "{written}");
            let twice = format!("a \\ 5% {written}{written}ä{written}.");
            assert_eq!(secret.redact(&twice), "a \\ 5% [redacted][redacted]ä[redacted].", "{written}");
        }
        for other in ["sk-SECRET%2B%2F", r"sk-SECRET+\/=", "sk-SECRET%2C/=%22123", "100 % of \\ ä"] {
            assert!(matches!(secret.redact(other), Cow::Borrowed(same) if same == other), "{other}");
        }
        let slashed = Secret::new(r"aaaa\bbbb\\c");
        assert_eq!(slashed.redact(r"x aaaa\\bbbb\\\\c"), "x [redacted]");
        assert_eq!(slashed.redact(r"x aaaa\bbbb\\c"), "x [redacted]");
    }
}
