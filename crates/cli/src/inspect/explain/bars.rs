//! Lines of time: what a node did when, beside the others.

use crate::inspect::page::pad;
use selvedge_host::timeline::{Activity, Interval};

const BAR: (usize, usize) = (16, 60);

/// Columns of the lines of time: a third of the page, less of a narrow one.
pub(super) fn width(page: usize) -> usize {
    (if page < 100 { page / 4 } else { page / 3 }).clamp(BAR.0, BAR.1)
}

/// The time in which any node ran, on so many columns. Time in which none did, between a failure and its resume
/// for example, takes no room.
pub(super) struct Scale {
    /// Times when nodes ran, merged, each with the milliseconds before it.
    busy: Vec<(i64, i64, i64)>,
    pub(super) total: i64,
    pub(super) width: usize,
}

impl Scale {
    /// Of nodes that ran at these times.
    pub(super) fn new(mut times: Vec<(i64, i64)>, width: usize) -> Self {
        times.sort_unstable();
        let (mut busy, mut total): (Vec<(i64, i64, i64)>, i64) = (Vec::new(), 0);
        for (from, to) in times {
            match busy.last_mut() {
                Some((_, end, _)) if from <= *end => {
                    total += (to - *end).max(0);
                    *end = to.max(*end);
                }
                _ => {
                    busy.push((from, to, total));
                    total += to - from;
                }
            }
        }
        Self { busy, total, width }
    }

    /// How long no node ran between the first and the last that did.
    pub(super) fn idle(&self) -> i64 {
        let whole = self.busy.first().zip(self.busy.last()).map(|(first, last)| last.1 - first.0);
        whole.unwrap_or_default() - self.total
    }

    /// The column in which a time stands.
    fn column(&self, at: i64) -> usize {
        let part = self.busy.iter().rev().find(|(from, ..)| *from <= at);
        let since = part.map_or(0, |(from, to, before)| before + (at.min(*to) - from));
        let total = usize::try_from(self.total.max(1)).unwrap_or(1);
        usize::try_from(since).unwrap_or_default().saturating_mul(self.width) / total
    }

    /// A bar of what was done one after the other between two times, at least one column long; what is rarer to see goes
    /// over the rest: work over waiting.
    /// `now` is what goes on in a node that has not ended.
    pub(super) fn bar(&self, (from, to): (i64, i64), pieces: &[Interval], now: Option<Activity>) -> String {
        let start = self.column(from).min(self.width.saturating_sub(1));
        let end = self.column(to).clamp(start + 1, self.width.max(start + 1));
        // Shorter than a column.
        if self.column(from) == self.column(to) {
            let drawn = now.map_or('▏', glyph);
            return pad(&format!("{}{drawn}", " ".repeat(start)), self.width);
        }
        let mut drawn = vec![' '; start];
        drawn.resize(end, glyph(Activity::Other));
        let mut painted: Vec<&Interval> = pieces.iter().collect();
        painted.sort_by_key(|piece| std::cmp::Reverse(piece.activity));
        for piece in painted {
            let from = self.column(piece.from).min(end - 1);
            let to = self.column(piece.to).clamp(from + 1, end.max(from + 1));
            drawn.iter_mut().take(to).skip(from).for_each(|column| *column = glyph(piece.activity));
        }
        pad(&drawn.into_iter().collect::<String>(), self.width)
    }
}

/// How a bar shows what is done.
fn glyph(activity: Activity) -> char {
    match activity {
        Activity::Working => '█',
        Activity::InFlight => '▓',
        Activity::Queued => '░',
        Activity::Asking | Activity::Retrying | Activity::Other => '·',
    }
}

/// What the parts of bars stand for, of which these are seen; nothing where all of it is work.
pub(super) fn legend(shown: &str) -> Option<String> {
    let words = [
        (Activity::Working, "works"),
        (Activity::InFlight, "a call out: work, or waiting for its turn"),
        (Activity::Queued, "queued: waits for its turn"),
        (Activity::Other, "waits: for a person, another try, or other nodes"),
    ];
    let told: Vec<String> = words
        .iter()
        .filter(|(doing, _)| shown.contains(glyph(*doing)))
        .map(|(doing, words)| format!("{} {words}", glyph(*doing)))
        .collect();
    let waits = words.iter().skip(1).any(|(doing, _)| shown.contains(glyph(*doing)));
    waits.then(|| told.join("   "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    fn works(scale: &Scale, from: i64, to: i64) -> String {
        scale.bar((from, to), &[Interval { activity: Activity::Working, from, to }], None)
    }

    #[test]
    fn bars_share_the_width_and_leave_idle_time_out() {
        let scale = Scale::new(vec![(0, 10), (5, 20), (1_000_020, 1_000_040)], 40);
        assert_eq!((scale.total, scale.idle()), (40, 1_000_000));
        assert_eq!(works(&scale, 0, 10), pad(&"█".repeat(10), 40));
        assert_eq!(works(&scale, 5, 20), pad(&format!("     {}", "█".repeat(15)), 40));
        assert_eq!(works(&scale, 1_000_020, 1_000_040), format!("{}{}", " ".repeat(20), "█".repeat(20)));
        assert_eq!(works(&scale, 1_000_040, 1_000_040).width(), 40, "an instant at the end still shows");
        assert!(works(&scale, 20, 20).contains('▏'));
        for (now, drawn) in [(Activity::InFlight, '▓'), (Activity::Asking, '·'), (Activity::Other, '·')] {
            assert!(scale.bar((20, 20), &[], Some(now)).contains(drawn), "it has not ended");
        }
        let nothing = Scale::new(vec![(7, 7)], 16);
        assert_eq!(works(&nothing, 7, 7).width(), 16);
    }

    #[test]
    fn a_bar_tells_waiting_from_work() {
        let scale = Scale::new(vec![(0, 40)], 40);
        let piece = |activity, from, to| Interval { activity, from, to };
        let pieces = [
            piece(Activity::Queued, 0, 20),
            piece(Activity::Working, 20, 30),
            piece(Activity::Retrying, 30, 36),
            piece(Activity::InFlight, 36, 40),
        ];
        let bar = scale.bar((0, 40), &pieces, None);
        assert_eq!(bar, format!("{}{}······▓▓▓▓", "░".repeat(20), "█".repeat(10)));
        assert!(legend(&bar).unwrap().contains("░ queued"));
        assert_eq!(legend(&works(&scale, 0, 40)), None, "what is work alone needs no words");
    }
}
