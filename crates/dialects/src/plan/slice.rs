//! Slices of threads (`P-05`).

/// A Python slice `[start, end)` over the messages of a thread: negative indices count from the end, `None` is
/// an open end, and ends out of range clamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Index of the first message; `None` is the first of all.
    pub start: Option<i64>,
    /// Index behind the last message; `None` is behind the last of all.
    pub end: Option<i64>,
}

impl Slice {
    /// `[0, 1]`: the first message, the default of a plan node.
    pub const FIRST: Slice = Slice { start: Some(0), end: Some(1) };
    /// `[-1, null]`: the last message, which `"data_in_slice": null` means (`P-08`).
    pub const LAST: Slice = Slice { start: Some(-1), end: None };

    /// The range of indices that the slice selects from `length` messages; empty ranges are `n..n`.
    pub fn over(self, length: usize) -> std::ops::Range<usize> {
        let at = |index: i64| {
            let distance = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
            if index < 0 { length.saturating_sub(distance) } else { distance.min(length) }
        };
        let start = self.start.map_or(0, at);
        let end = self.end.map_or(length, at);
        start..end.max(start)
    }

    /// Whether the slice selects nothing whatever the thread holds.
    pub fn is_always_empty(self) -> bool {
        match (self.start.unwrap_or(0), self.end) {
            (_, Some(0)) => true,
            (start, Some(end)) if (start < 0) == (end < 0) => start >= end,
            _ => false,
        }
    }
}
