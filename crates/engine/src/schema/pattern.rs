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

    fn times(self, count: u32) -> Size {
        let count = u64::from(count.max(1));
        Size { places: self.places.saturating_mul(count), parts: self.parts.saturating_mul(count) }
    }
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
