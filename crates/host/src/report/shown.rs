//! JSON as it is shown to anybody: without keys, and with nothing in it that hides or steers a terminal.

use crate::secrets::clean_printed;
use selvedge_dialects::diagnostic::is_hidden;
use selvedge_http::{Secret, Secrets};
use serde_json::Value;
use std::borrow::Cow;

/// JSON without these keys (C-06): only texts in it that are data are changed, so that it stays JSON and what it was.
pub fn redacted<'t>(json: &'t str, secrets: &[Secret]) -> Cow<'t, str> {
    let clean = secrets.iter().fold(Cow::Borrowed(json), |text, secret| match secret.redact(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => Cow::Owned(clean),
    });
    let Cow::Owned(clean) = clean else { return clean };
    match selvedge_runtime::recorded::<Value>(json.as_bytes()) {
        Ok(mut value) => {
            clean_printed(&mut value, &Secrets::new(secrets));
            let end = json.get(json.trim_end().len()..).unwrap_or_default();
            Cow::Owned(format!("{value}{end}"))
        }
        Err(_) => Cow::Owned(clean),
    }
}

/// JSON in which nothing hides and nothing steers a terminal: such characters stand in strings only, where an escape is the
/// same. Line breaks around values stay.
pub fn escaped(json: &str) -> Cow<'_, str> {
    let hides = |character: &char| is_hidden(*character) && *character != '\n';
    if json.is_ascii() && !json.contains('\u{7f}') || !json.chars().any(|c| hides(&c)) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for character in json.chars() {
        match hides(&character) {
            // What JSON does not take bare is no text of a string: it is left for its reader to refuse.
            true if character >= '\u{7f}' => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    escaped.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C-04: JSON is the same with escapes; what is no string's text is not touched.
    #[test]
    fn json_is_equal_with_escapes() {
        let wild = serde_json::json!({"a\u{202e}": "\u{9b}2J\u{7f}\u{200f}\u{2066} 完了 👩\u{200d}💻 \u{e0041}\u{1b}"});
        for json in [format!("{wild}\n"), format!("{wild:#}")] {
            let escaped = escaped(&json);
            assert!(!escaped.chars().any(|c| is_hidden(c) && c != '\n'), "{escaped:?}");
            assert!(escaped.contains("完了 👩\u{200d}💻 \\udb40\\udc41"), "{escaped}");
            assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), wild);
        }
        assert!(matches!(escaped("{\"a\": \"ä\"}\n"), Cow::Borrowed(_)));
    }
}
