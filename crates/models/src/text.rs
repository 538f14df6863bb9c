//! Texts of others, bounded.

/// At most `limit` bytes of `text`, cut at a character, with a mark where something is missing.
pub(crate) fn bounded(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let cut = text.floor_char_boundary(limit);
    let head = text.get(..cut).unwrap_or_default();
    format!("{head}… ({} bytes in all)", text.len())
}
