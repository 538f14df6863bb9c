//! Texts that a pattern matches.

use crate::rng::Rng;
use regex_syntax::hir::{Class, Hir, HirKind};

/// How often more than at least what may be repeated is.
const MORE: u32 = 3;
/// Characters of a text at most.
const LONG: usize = 10_000;

/// A text that `pattern` matches; nothing where the pattern looks around, or is none.
pub(super) fn text(pattern: &str, rng: &mut Rng) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let mut text = String::new();
    write(&hir, rng, &mut text)?;
    Some(text)
}

fn write(hir: &Hir, rng: &mut Rng, text: &mut String) -> Option<()> {
    if text.len() > LONG {
        return None;
    }
    match hir.kind() {
        // Where a text begins and ends decides nothing: there is nothing before and behind it.
        HirKind::Empty | HirKind::Look(_) => Some(()),
        HirKind::Literal(literal) => {
            text.push_str(std::str::from_utf8(&literal.0).ok()?);
            Some(())
        }
        HirKind::Class(class) => {
            text.push(char_of(class, rng)?);
            Some(())
        }
        HirKind::Repetition(repeated) => {
            let most = repeated.max.unwrap_or(repeated.min.saturating_add(MORE));
            let more = most.saturating_sub(repeated.min).min(MORE);
            let more = u32::try_from(rng.below(more as usize + 1)).unwrap_or(0);
            (0..repeated.min.saturating_add(more)).try_for_each(|_| write(&repeated.sub, rng, text))
        }
        HirKind::Capture(capture) => write(&capture.sub, rng, text),
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| write(part, rng, text)),
        HirKind::Alternation(ways) => write(rng.pick(ways)?, rng, text),
    }
}

/// A character of a class, one that can be read if there is one.
fn char_of(class: &Class, rng: &mut Rng) -> Option<char> {
    let Class::Unicode(class) = class else { return None };
    let plain = class.ranges().iter().filter(|range| range.start() <= '~' && range.end() >= ' ');
    let plain: Vec<(char, char)> =
        plain.map(|range| (range.start().max(' '), range.end().min('~'))).collect();
    let (low, high) = match rng.pick(&plain) {
        Some(range) => *range,
        None => class.ranges().first().map(|range| (range.start(), range.start()))?,
    };
    char::from_u32(u32::try_from(rng.within(i64::from(u32::from(low)), i64::from(u32::from(high)))).ok()?)
}
