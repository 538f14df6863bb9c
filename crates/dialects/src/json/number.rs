//! Integers of documents, read from the digits that were written.

use super::{Kind, Node, parse};
use crate::{Diagnostics, DocumentLimits, Finding, Source};

/// A number that was written as an integer (no fraction, no exponent).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer {
    /// Its value; one that 64 bits can't hold is clamped to the nearest that they can.
    pub value: i64,
    /// Whether it was clamped.
    pub clamped: bool,
}

impl Node<'_> {
    /// The number, if this is one written as an integer in `source`, from which the node was parsed.
    ///
    /// `1.0` and `1e0` are not integers here, as in Python, whose slices `P-05` names. Digits beyond 64 bits
    /// are clamped, because out-of-range ends of slices clamp.
    pub fn as_integer(&self, source: &Source) -> Option<Integer> {
        if !matches!(self.kind, Kind::Number(_)) {
            return None;
        }
        let digits = source.slice(self.span);
        if digits.is_empty() || digits.contains(['.', 'e', 'E']) {
            return None;
        }
        Some(match digits.parse::<i64>() {
            Ok(value) => Integer { value, clamped: false },
            Err(_) if digits.starts_with('-') => Integer { value: i64::MIN, clamped: true },
            Err(_) => Integer { value: i64::MAX, clamped: true },
        })
    }

    /// What is said of the first integer in the tree that 64 bits can't hold, and that would become another number.
    pub fn inexact(&self, source: &Source) -> Option<Finding> {
        match &self.kind {
            Kind::Number(number) => {
                let whole = !source.slice(self.span).contains(['.', 'e', 'E']);
                // `-0` is one number, however it is kept.
                let becomes_another =
                    whole && number.as_f64() != Some(0.0) && !number.is_i64() && !number.is_u64();
                becomes_another.then(|| {
                    let message = "64 bits can't hold this integer: it would become another number";
                    let finding = Finding::error("A-21", "inexact-number", self.span, message.to_owned());
                    finding.help("put it in quotes if a text will do")
                })
            }
            Kind::Array(elements) => elements.iter().find_map(|element| element.inexact(source)),
            Kind::Object(members) => members.iter().find_map(|member| member.value.inexact(source)),
            Kind::Null | Kind::Bool(_) | Kind::String(_) => None,
        }
    }
}

/// As [`parse`], where an integer that would become another number is a finding, too.
pub fn parse_exactly<'s>(
    source: &'s Source,
    limits: &DocumentLimits,
    diagnostics: &mut Diagnostics,
) -> Option<Node<'s>> {
    let node = parse(source, limits, diagnostics)?;
    if let Some(finding) = node.inexact(source) {
        diagnostics.push(finding);
    }
    Some(node)
}
