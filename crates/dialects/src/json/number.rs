//! Integers of documents, read from the digits that were written.

use super::{Kind, Node};
use crate::Source;

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
}
