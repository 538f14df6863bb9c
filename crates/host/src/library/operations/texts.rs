//! Texts for models and coders, of bounded size.

use serde_json::Value;

/// A text of at most so many bytes: of a longer one the beginning and the end, with a note of what was left out.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let head = text.get(..text.floor_char_boundary(half)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len().saturating_sub(half))..).unwrap_or_default();
    let left = text.len().saturating_sub(head.len()).saturating_sub(tail.len());
    format!("{head}\n[… {left} bytes are left out …]\n{tail}")
}

/// A value as JSON, cut; a text as it is.
pub(super) fn value(value: &Value, most: usize) -> String {
    match value {
        Value::String(text) => cut(text, most),
        other => cut(&other.to_string(), most),
    }
}

/// A text between two lines that nothing in it can be taken for.
pub(super) fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.saturating_add(1).max(3));
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted_and_no_character_is_halved() {
        assert_eq!(cut("abc", 3), "abc");
        let long = "é".repeat(1000);
        let text = cut(&long, 101);
        assert!(text.contains("[… 1900 bytes are left out …]") && text.len() < 200, "{text}");
    }

    #[test]
    fn a_fence_is_longer_than_any_in_it() {
        assert_eq!(fenced("python", "x"), "```python\nx\n```");
        assert!(fenced("", "a\n````\nb\n").starts_with("`````\n"));
    }
}
