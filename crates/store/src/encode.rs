//! Entries with long strings: each long string is stored once, by content, and the entry refers to it (E-08).
//!
//! An entry of up to [`LARGE_ENTRY`] bytes is stored as it is and never looked into. In a larger one every string
//! token of at least [`LONG_STRING`] bytes is replaced by a reference. The work is done on the text's string
//! *tokens*, so everything else (numbers, spaces, key order) stays byte for byte what it was, nesting has no
//! limit, and decoding gives exactly the text that was encoded.
//!
//! Inside an encoded entry a string token is
//! - `"@<64 hex digits>"`: a reference to the blob that holds the token's raw text (without the quotes);
//! - `"@@…"`: the user's own string `"@…"`;
//! - anything else: itself.
//!
//! Whether a stored body is encoded is told by its SQLite type (`BLOB` if it is, `TEXT` if not), so no text that
//! a user can write is ever mistaken for a reference.

use crate::BlobHash;

/// Entries of up to this many bytes are stored as they are.
pub(crate) const LARGE_ENTRY: usize = 4 * 1024;
/// String tokens of at least this many bytes are stored by content.
pub(crate) const LONG_STRING: usize = 1024;

/// An entry whose long strings were taken out.
#[derive(Debug)]
pub(crate) struct Encoded {
    /// The text with references.
    pub(crate) body: String,
    /// The contents that `body` refers to, each hash once.
    pub(crate) blobs: Vec<(BlobHash, Vec<u8>)>,
}

/// Takes the long strings out of `json`. `None` if the entry is small, has none, or is not JSON: then it is
/// stored as it is.
pub(crate) fn encode(json: &str) -> Option<Encoded> {
    if json.len() <= LARGE_ENTRY {
        return None;
    }
    let mut body = String::new();
    let mut blobs: Vec<(BlobHash, Vec<u8>)> = Vec::new();
    let mut rest = json;
    while let Some((head, token, tail)) = next_string(rest)? {
        body.push_str(head);
        if token.len() >= LONG_STRING {
            let hash = BlobHash::of(token.as_bytes());
            body.push('@');
            body.push_str(&hash.to_string());
            if !blobs.iter().any(|(known, _)| *known == hash) {
                blobs.push((hash, token.as_bytes().to_vec()));
            }
        } else {
            if token.starts_with('@') {
                body.push('@');
            }
            body.push_str(token);
        }
        body.push('"');
        rest = tail;
    }
    body.push_str(rest);
    (!blobs.is_empty()).then_some(Encoded { body, blobs })
}

/// Puts the strings back. `content` appends the raw text stored under a hash; `broken` makes the error for a
/// body that [`encode`] cannot have written.
pub(crate) fn decode<E>(
    body: &str,
    mut content: impl FnMut(BlobHash, &mut String) -> Result<(), E>,
    broken: impl Fn() -> E,
) -> Result<String, E> {
    let mut json = String::with_capacity(body.len());
    let mut rest = body;
    while let Some((head, token, tail)) = next_string(rest).ok_or_else(&broken)? {
        json.push_str(head);
        match token.strip_prefix('@') {
            None => json.push_str(token),
            Some(escaped) if escaped.starts_with('@') => json.push_str(escaped),
            Some(hash) => content(hash.parse().map_err(|_| broken())?, &mut json)?,
        }
        json.push('"');
        rest = tail;
    }
    json.push_str(rest);
    Ok(json)
}

/// A string token in its surroundings: the text before it with its opening quote, the token itself, and what
/// follows its closing quote.
type Token<'a> = (&'a str, &'a str, &'a str);

/// The next string token: `Some(None)` if there is none, `None` if it is not closed.
#[allow(clippy::option_option, reason = "three answers: a token, the end, not JSON")]
fn next_string(text: &str) -> Option<Option<Token<'_>>> {
    let Some(open) = text.find('"') else { return Some(None) };
    let (head, tail) = text.split_at(open + 1);
    let mut escaped = false;
    let close = tail.bytes().position(|byte| {
        let ends = !escaped && byte == b'"';
        escaped = !escaped && byte == b'\\';
        ends
    })?;
    let (token, tail) = tail.split_at(close);
    Some(Some((head, token, tail.strip_prefix('"')?)))
}

#[cfg(test)]
mod tests;
