//! Patterns of schemas: which can be matched in linear time, and what that costs (E-45).

use regex_syntax::hir::{Class, Hir, HirKind};

/// What a pattern is to the engine that matches without going back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// It can be matched.
    Plain(Size),
    /// It is a pattern, and only an engine that goes back can match it: it looks ahead or behind, or refers back.
    Beyond,
    /// It is none: the validator says so.
    Wrong,
}

/// How large a pattern is when it is written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Places that a match can be at: what one byte of text costs at worst.
    pub(crate) places: u64,
    /// What compiling it costs.
    pub(crate) parts: u64,
}

impl Size {
    pub(super) fn and(self, other: Size) -> Size {
        Size {
            places: self.places.saturating_add(other.places),
            parts: self.parts.saturating_add(other.parts),
        }
    }

    /// Steps that compiling it takes; of more than may be, nothing is compiled.
    pub(crate) fn price(self) -> u64 {
        const PART: u64 = 15;
        self.parts.min(super::PATTERNS) * PART
    }

    fn times(self, count: u32) -> Size {
        let count = u64::from(count.max(1));
        Size { places: self.places.saturating_mul(count), parts: self.parts.saturating_mul(count) }
    }
}

/// Steps that reading a pattern takes, and what compiling takes of it however small it is. It is known by the text alone, as
/// reading is what may take long.
pub(crate) fn price(pattern: &str) -> u64 {
    const EACH: u64 = 6_000;
    const BYTE: u64 = 32;
    /// A class of characters that each have their other case looked for, of a million at most.
    const FOLDED: u64 = 800_000;
    let length = pattern.len() as u64;
    // Classes by letter become those of ECMA-262, each of which has all of the pattern parsed anew, and makes it longer.
    let (mut rounds, mut longer, mut wide, mut ranges, mut far) =
        (1_u64, 0_u64, 0_u64, 0_u64, !pattern.is_ascii());
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        let escaped = if char == '\\' { chars.next() } else { None };
        match (char, escaped) {
            (_, Some('c')) => rounds += 1,
            (_, Some('d' | 'D' | 'w' | 'W')) => (rounds, longer) = (rounds + 1, longer + 12),
            (_, Some('s' | 'S')) => (rounds, longer) = (rounds + 1, longer + 240),
            (_, Some('p' | 'P')) => wide += 1,
            (_, Some('u' | 'x' | 'U')) => far = true,
            ('-', None) => ranges += 1,
            _ => {}
        }
    }
    let folded = match ignores_case(pattern) {
        true => wide + if far { ranges } else { 0 },
        false => 0,
    };
    let parsed = rounds.saturating_mul(6 * length + 3 * longer);
    (EACH + BYTE * length).saturating_add(parsed).saturating_add(folded.saturating_mul(FOLDED))
}

/// Whether it has a group of flags with `i` among them.
fn ignores_case(pattern: &str) -> bool {
    let flags = |after: &str| after.chars().take_while(char::is_ascii_alphabetic).any(|flag| flag == 'i');
    pattern.split("(?").skip(1).any(flags)
}

/// Reads a pattern as the validator does.
pub(super) fn read(pattern: &str) -> Pattern {
    let parsed = jsonschema_regex::to_rust_regex(pattern).ok();
    match parsed.and_then(|translated| regex_syntax::parse(&translated).ok()) {
        Some(hir) => Pattern::Plain(size(&hir)),
        None if jsonschema_regex::is_valid_ecma_regex(pattern) => Pattern::Beyond,
        None => Pattern::Wrong,
    }
}

/// The parser limits how deep patterns are nested.
pub(crate) fn size(hir: &Hir) -> Size {
    let flat = |places: u64, parts: usize| Size { places, parts: parts as u64 };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => flat(1, 1),
        HirKind::Literal(literal) => flat(literal.0.len() as u64, literal.0.len()),
        HirKind::Class(Class::Bytes(class)) => flat(1, class.ranges().len()),
        // A character has up to four bytes.
        HirKind::Class(Class::Unicode(class)) => flat(4, class.ranges().len().saturating_mul(4)),
        HirKind::Capture(capture) => size(&capture.sub),
        HirKind::Repetition(some) => size(&some.sub).times(some.max.unwrap_or(some.min)).and(flat(1, 1)),
        HirKind::Concat(all) | HirKind::Alternation(all) => all.iter().map(size).fold(flat(1, 1), Size::and),
    }
}
