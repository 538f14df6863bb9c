//! Many iterations and paths: of those behind the first ones of their node no line each, so that a thousand of them can be
//! followed (C-01). What takes long or fails has a line of its own, and now and then one says how far they have come.

use selvedge_host::timeline::{NodeTimeline, Timeline};
use std::collections::HashMap;

/// So many iterations, or paths, of a node have all their lines.
const FIRST: usize = 10;
/// So many lines of the others are shown as they come; from then on, one in so many milliseconds.
const AT_ONCE: usize = 10;
const BETWEEN_MS: i64 = 1_000;
/// What takes long: so many milliseconds at least, and so many times as long as all before it.
const SLOW_MS: i64 = 1_000;
const SLOWER: i64 = 2;

/// The nodes with many iterations or paths, by their places in the timeline.
#[derive(Debug, Default)]
pub(super) struct Crowds(HashMap<usize, Crowd>);

/// What was told of those of one node.
#[derive(Debug)]
pub(super) struct Crowd {
    /// When it was last told how far they have come.
    counted: i64,
    /// How many lines there were about single ones, and when the last.
    said: usize,
    last: i64,
    /// What has taken longest, in milliseconds.
    longest: i64,
}

impl Crowds {
    /// The crowd that a node is in, if it is in one, at the time `now`; with the place of the node whose crowd it is.
    pub(super) fn of(
        &mut self,
        timeline: &Timeline,
        node: &NodeTimeline,
        now: i64,
    ) -> Option<(usize, &mut Crowd)> {
        let behind = timeline.around(node).filter(|frame| frame.nth >= FIRST);
        let opener = behind.last()?.opener?;
        let new = Crowd { counted: now, said: 0, last: now, longest: 0 };
        Some((opener, self.0.entry(opener).or_insert(new)))
    }
}

impl Crowd {
    /// Whether there may be a line about one of them now.
    pub(super) fn may_say(&mut self, now: i64) -> bool {
        let may = self.said < AT_ONCE || now >= self.last.saturating_add(BETWEEN_MS);
        if may {
            (self.said, self.last) = (self.said + 1, now);
        }
        may
    }

    /// Whether what ended well took longer than is to be expected.
    pub(super) fn is_slow(&mut self, took: i64) -> bool {
        let slow = took >= SLOW_MS && took >= self.longest.saturating_mul(SLOWER);
        self.longest = self.longest.max(took);
        slow
    }

    /// Whether it is time to say how far they have come.
    pub(super) fn is_due(&mut self, now: i64) -> bool {
        let due = now >= self.counted.saturating_add(BETWEEN_MS);
        if due {
            self.counted = now;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crowd() -> Crowd {
        Crowd { counted: 0, said: 0, last: 0, longest: 0 }
    }

    #[test]
    fn lines_are_few_however_many_there_are() {
        let mut crowd = crowd();
        let said = (0..10_000).filter(|at| crowd.may_say(*at)).count();
        assert_eq!(said, AT_ONCE + 9, "ten at once, and then one a second");
        let counted = (0..10_000).filter(|at| crowd.is_due(*at)).count();
        assert_eq!(counted, 9);
    }

    /// However slow everything gets, the lines are as many as times its slowness doubles.
    #[test]
    fn what_takes_long_is_told_from_what_takes_as_long_as_others() {
        let mut crowd = crowd();
        assert!(!crowd.is_slow(900));
        assert!(!crowd.is_slow(1_700) && crowd.is_slow(3_400) && !crowd.is_slow(3_500));
        assert!((3_500..100_000).all(|took| !crowd.is_slow(took)), "little by little");
        assert_eq!((0..60).filter(|doubled| crowd.is_slow(1 << doubled)).count(), 42);
    }
}
