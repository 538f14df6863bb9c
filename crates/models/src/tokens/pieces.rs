//! Pieces of a text that are cut into tokens each by itself.

use super::Encoding;
use regex::Regex;
use std::sync::OnceLock;

/// The patterns of `tiktoken`, but for what only looks ahead: `\s+(?!\S)` before the last `\s+`. See [`Pieces::next`].
const CL100K: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+$|\s*[\r\n]+|\s+";
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+",
);

fn pattern(encoding: Encoding) -> Option<&'static Regex> {
    static PATTERNS: [OnceLock<Option<Regex>>; 2] = [OnceLock::new(), OnceLock::new()];
    let [cl100k, o200k] = &PATTERNS;
    // They are constants: tests use them.
    match encoding {
        Encoding::Cl100kBase => cl100k.get_or_init(|| Regex::new(CL100K).ok()),
        Encoding::O200kBase => o200k.get_or_init(|| Regex::new(O200K).ok()),
    }
    .as_ref()
}

/// The pieces of a text, in order.
pub(super) struct Pieces<'t> {
    pattern: Option<&'static Regex>,
    rest: &'t str,
}

impl<'t> Pieces<'t> {
    pub(super) fn of(encoding: Encoding, text: &'t str) -> Self {
        Self { pattern: pattern(encoding), rest: text }
    }
}

impl<'t> Iterator for Pieces<'t> {
    type Item = &'t str;

    /// Every character begins a match. A run of spaces leaves its last one to what follows, if it has another: `\s+(?!\S)`. Such a run has no end of
    /// line in it, with which it would have been one of `\s*[\r\n]+`.
    fn next(&mut self) -> Option<&'t str> {
        let whole = self.rest;
        let end = match self.pattern.and_then(|pattern| pattern.find(whole)) {
            Some(found) if found.start() == 0 && found.end() > 0 => found.end(),
            _ => whole.len(),
        };
        let piece = whole.get(..end)?;
        let last = piece.chars().next_back()?;
        let spaces = last.is_whitespace() && !matches!(last, '\r' | '\n') && end < whole.len();
        let kept = end - last.len_utf8();
        let end = if spaces && kept > 0 { kept } else { end };
        let (piece, rest) = whole.split_at_checked(end)?;
        self.rest = rest;
        Some(piece)
    }
}
