//! Names that placeholders can say (`D-09`).

/// Whether a placeholder can name this step: `[\p{L}_][\p{L}\p{N}_-]*`, or digits only (`D-09`).
pub fn is_nameable(name: &str) -> bool {
    let mut characters = name.chars();
    let Some(first) = characters.next() else { return false };
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        return true;
    }
    let goes_on = |c: char| c.is_alphabetic() || c.is_numeric() || c == '_' || c == '-';
    (first.is_alphabetic() || first == '_') && characters.all(goes_on)
}
