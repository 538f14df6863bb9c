//! From the bytes of a piece to its tokens: of all neighbours that make a token together, those of the lowest rank are joined first, the first of
//! equals; until there are none.

use super::tables::Table;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No part.
const NONE: usize = usize::MAX;
/// The longest token of any table has fewer bytes.
const LONGEST: usize = 256;

/// A part of a piece, with those beside it.
#[derive(Clone, Copy)]
struct Part {
    end: usize,
    before: usize,
    after: usize,
}

/// Room for one piece after the other.
#[derive(Default)]
pub(super) struct Merging {
    /// By their first byte; one that is joined to the one before it has the end 0.
    parts: Vec<Part>,
    /// What could be joined: the rank, where it begins, and where it would end.
    joins: BinaryHeap<Reverse<(u32, usize, usize)>>,
}

impl Merging {
    /// Tells the number of bytes of each token of a piece.
    pub(super) fn each(&mut self, table: &Table, piece: &[u8], token: &mut impl FnMut(usize)) {
        if piece.len() == 1 || piece.len() < LONGEST && table.rank(piece).is_some() {
            return token(piece.len());
        }
        self.join(table, piece);
        let mut at = 0;
        while let Some(part) = self.parts.get(at) {
            token(part.end - at);
            at = part.after;
        }
    }

    fn join(&mut self, table: &Table, piece: &[u8]) {
        self.parts.clear();
        self.joins.clear();
        let last = piece.len().saturating_sub(1);
        self.parts.extend((0..piece.len()).map(|at| Part {
            end: at + 1,
            before: at.checked_sub(1).unwrap_or(NONE),
            after: if at == last { NONE } else { at + 1 },
        }));
        for at in 0..last {
            self.offer(table, piece, at);
        }
        while let Some(Reverse((_, at, end))) = self.joins.pop() {
            // One of the two may have been joined to something else since.
            let Some(part) = self.parts.get(at).copied().filter(|part| part.end > 0) else { continue };
            let Some(next) = self.parts.get(part.after).copied().filter(|next| next.end == end) else {
                continue;
            };
            if let Some(gone) = self.parts.get_mut(part.after) {
                gone.end = 0;
            }
            if let Some(part) = self.parts.get_mut(at) {
                (part.end, part.after) = (end, next.after);
            }
            if let Some(after) = self.parts.get_mut(next.after) {
                after.before = at;
            }
            self.offer(table, piece, at);
            self.offer(table, piece, part.before);
        }
    }

    /// A part could be joined with the one behind it.
    fn offer(&mut self, table: &Table, piece: &[u8], at: usize) {
        let Some(part) = self.parts.get(at) else { return };
        let Some(next) = self.parts.get(part.after) else { return };
        let joined = piece.get(at..next.end).filter(|joined| joined.len() < LONGEST);
        if let Some(rank) = joined.and_then(|joined| table.rank(joined)) {
            self.joins.push(Reverse((rank, at, next.end)));
        }
    }
}
