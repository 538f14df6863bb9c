//! What the time of a node went into: work, its turn, a person, another try (C-15). All of it comes from the journal.

use super::story::Moment;
use selvedge_engine::{EffectId, Took};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// What goes on at a time in a node that has started; where several things do, the first of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Doing {
    /// A call is under way.
    Working,
    /// A call is under way or waits for its turn: it has not ended, or an earlier version recorded it.
    Flying,
    /// A call waits for its turn under the limits on parallel calls.
    Queued,
    /// A person is asked.
    Person,
    /// A call that failed waits to be tried again, as after a rate limit.
    Again,
    /// None of these: other nodes' calls come first, or no process drove the run.
    Other,
}

const KINDS: usize = 6;

/// A time in which a node did one thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) doing: Doing,
    pub(super) from: Moment,
    pub(super) to: Moment,
}

/// One thing after the other, on the line of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) doing: Doing,
    pub(super) from: i64,
    pub(super) to: i64,
}

/// The calls and the asks that are open, while a journal is read.
#[derive(Debug, Default)]
pub(super) struct Open {
    calls: HashMap<EffectId, (Moment, u64)>,
    asks: HashMap<Arc<str>, (String, Moment)>,
}

impl Open {
    /// A call was asked for, and is dispatched after so many milliseconds.
    pub(super) fn call(&mut self, effect: &EffectId, at: Moment, after_ms: u64) {
        self.calls.insert(effect.clone(), (at, after_ms));
    }

    /// A call came to an end: what its time went into. Its own figures end with it; what they leave is before them.
    pub(super) fn ended(&mut self, effect: &EffectId, end: Moment, took: Option<Took>) -> Vec<Span> {
        let Some((asked, after_ms)) = self.calls.remove(effect) else { return Vec::new() };
        let moment = |at: i64| Moment { at, line: at, ..end };
        let back = |at: i64, ms: u32| moment(at.saturating_sub(ms.into()).max(asked.at));
        let after = |from: i64| {
            let until = asked.at.saturating_add(i64::try_from(after_ms).unwrap_or(i64::MAX)).min(from);
            Span { doing: Doing::Again, from: asked, to: moment(until) }
        };
        match took {
            Some(Took { queued_ms, worked_ms }) => {
                let began = back(end.at, worked_ms);
                let queued = back(began.at, queued_ms);
                vec![
                    after(queued.at),
                    Span { doing: Doing::Queued, from: queued, to: began },
                    Span { doing: Doing::Working, from: began, to: end },
                ]
            }
            None => {
                let again = after(end.at);
                vec![again, Span { doing: Doing::Flying, from: again.to, to: end }]
            }
        }
    }

    /// A person is asked for a node.
    pub(super) fn ask(&mut self, ask: &Arc<str>, node: &str, at: Moment) {
        self.asks.insert(ask.clone(), (node.to_owned(), at));
    }

    /// A person answered: for which node, and how long it waited.
    pub(super) fn answer(&mut self, ask: &Arc<str>, to: Moment) -> Option<(String, Span)> {
        let (node, from) = self.asks.remove(ask)?;
        Some((node, Span { doing: Doing::Person, from, to }))
    }
}

/// What a node did one after the other between two times. Where it did several things at once, the first kind counts.
pub(super) fn pieces(spans: &[Span], from: i64, to: i64) -> Vec<Piece> {
    let mut edges: Vec<(i64, Doing, bool)> = Vec::with_capacity(spans.len() * 2);
    for span in spans {
        let (begin, end) = (span.from.line.clamp(from, to.max(from)), span.to.line.min(to));
        if begin < end {
            edges.extend([(begin, span.doing, true), (end, span.doing, false)]);
        }
    }
    edges.sort_unstable_by_key(|(at, ..)| *at);
    let (mut open, mut done) = ([0_usize; KINDS], Vec::new());
    let mut at = from;
    for (until, doing, begins) in edges.into_iter().chain([(to, Doing::Other, true)]) {
        add(&mut done, first(&open), at, until);
        at = until;
        if let Some(open) = open.get_mut(doing as usize) {
            *open = if begins { *open + 1 } else { open.saturating_sub(1) };
        }
    }
    done
}

fn first(open: &[usize; KINDS]) -> Doing {
    let all = [Doing::Working, Doing::Flying, Doing::Queued, Doing::Person, Doing::Again];
    all.into_iter()
        .find(|doing| open.get(*doing as usize).is_some_and(|open| *open > 0))
        .unwrap_or(Doing::Other)
}

fn add(done: &mut Vec<Piece>, doing: Doing, from: i64, to: i64) {
    match done.last_mut() {
        _ if from >= to => {}
        Some(last) if last.doing == doing => last.to = to,
        _ => done.push(Piece { doing, from, to }),
    }
}

/// The sums of pieces, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums([i64; KINDS]);

impl Sums {
    pub(super) fn of(pieces: &[Piece]) -> Self {
        let mut sums = Self::default();
        for piece in pieces {
            if let Some(sum) = sums.0.get_mut(piece.doing as usize) {
                *sum += piece.to - piece.from;
            }
        }
        sums
    }

    pub(super) fn get(&self, doing: Doing) -> i64 {
        self.0.get(doing as usize).copied().unwrap_or_default()
    }

    /// All of it.
    pub(super) fn all(&self) -> i64 {
        self.0.iter().sum()
    }

    /// What was work, as far as the journal tells it from waiting for a turn.
    pub(super) fn worked(&self) -> i64 {
        self.get(Doing::Working) + self.get(Doing::Flying)
    }

    /// Neither work nor its turn.
    pub(super) fn waited(&self) -> i64 {
        [Doing::Person, Doing::Again, Doing::Other].into_iter().map(|doing| self.get(doing)).sum()
    }

    /// C-15's figures. What the journal does not tell is null.
    pub(super) fn json(&self) -> Value {
        let known = self.get(Doing::Flying) == 0;
        json!({
            "total_ms": self.all(),
            "worked_ms": known.then(|| self.worked()),
            "queued_ms": known.then(|| self.get(Doing::Queued)),
            "waited_ms": self.waited(),
            "waited": {
                "person_ms": self.get(Doing::Person),
                "retry_ms": self.get(Doing::Again),
                "other_ms": self.get(Doing::Other),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at: i64) -> Moment {
        Moment { n: 1, at, line: at }
    }

    #[test]
    fn a_call_tells_its_turn_and_its_work_and_what_is_left_is_before_them() {
        let mut open = Open::default();
        let effect = EffectId("a/ask/1/1".into());
        open.call(&effect, at(100), 50);
        let spans = open.ended(&effect, at(1_000), Some(Took { queued_ms: 300, worked_ms: 400 }));
        let told: Vec<(Doing, i64, i64)> =
            pieces(&spans, 90, 1_010).iter().map(|p| (p.doing, p.from, p.to)).collect();
        assert_eq!(
            told,
            [
                (Doing::Other, 90, 100),
                (Doing::Again, 100, 150),
                (Doing::Other, 150, 300),
                (Doing::Queued, 300, 600),
                (Doing::Working, 600, 1_000),
                (Doing::Other, 1_000, 1_010),
            ]
        );
        let sums = Sums::of(&pieces(&spans, 90, 1_010));
        assert_eq!((sums.all(), sums.worked(), sums.waited()), (920, 400, 220));
    }

    #[test]
    fn what_goes_on_at_once_counts_once_and_work_comes_first() {
        let span = |doing, from, to| Span { doing, from: at(from), to: at(to) };
        let spans = [
            span(Doing::Queued, 0, 50),
            span(Doing::Working, 10, 30),
            span(Doing::Working, 20, 40),
            span(Doing::Person, 0, 60),
        ];
        let sums = Sums::of(&pieces(&spans, 0, 70));
        assert_eq!((sums.get(Doing::Working), sums.get(Doing::Queued)), (30, 20));
        assert_eq!((sums.get(Doing::Person), sums.get(Doing::Other), sums.all()), (10, 10, 70));
    }

    /// A clock that was set back meanwhile, and a journal of an earlier version.
    #[test]
    fn figures_that_do_not_fit_and_none_at_all() {
        let mut open = Open::default();
        let effect = EffectId("a/ask/1/1".into());
        open.call(&effect, at(100), 0);
        let spans = open.ended(&effect, at(110), Some(Took { queued_ms: 5_000, worked_ms: 9_000 }));
        assert_eq!(Sums::of(&pieces(&spans, 100, 110)).worked(), 10);
        open.call(&effect, at(100), 4);
        let spans = open.ended(&effect, at(110), None);
        let sums = Sums::of(&pieces(&spans, 100, 110));
        assert_eq!((sums.worked(), sums.waited()), (6, 4));
        assert_eq!(sums.json()["worked_ms"], Value::Null);
        assert!(open.ended(&effect, at(120), None).is_empty(), "it has ended");
    }
}
