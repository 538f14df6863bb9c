//! What the time of a node went into: work, its turn, a person, another try (C-15). All of it comes from the journal.

use super::Timeline;
use super::history::{Attempt, Moment, NodeTimeline, Visit};
use selvedge_engine::Took;
use serde::Serialize;

/// What goes on at a time in a node that has started; where several things do, the first of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// A call is under way.
    Working,
    /// A call is under way or waits for its turn: it has not ended, or an earlier version recorded it.
    InFlight,
    /// A call waits for its turn under the limits on parallel calls.
    Queued,
    /// A person is asked.
    Asking,
    /// A call that failed waits to be tried again, as after a rate limit.
    Retrying,
    /// None of these: other nodes' calls come first, or no process drove the run.
    Other,
}

const KINDS: usize = 6;

/// A time in which a node did one thing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// What it did.
    pub activity: Activity,
    /// From when.
    pub from: Moment,
    /// Until when.
    pub to: Moment,
}

/// One thing after the other, on the line of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// What was done.
    pub activity: Activity,
    /// From when, in milliseconds.
    pub from: i64,
    /// Until when.
    pub to: i64,
}

impl Timeline {
    /// When the current visit of a node began and ended on the line of time; one that goes on ends at `until`.
    pub fn extent(&self, node: &NodeTimeline, until: Moment) -> Option<(i64, i64)> {
        let visit = node.current()?;
        let from = self.line(visit.started?);
        Some((from, self.line(visit.ended.unwrap_or(until)).max(from)))
    }

    /// What the current visit of a node did one after the other, until it ended or until then; what was done in frames that it
    /// opened is its own.
    pub fn intervals(&self, node: &NodeTimeline, until: Moment) -> Vec<Interval> {
        match self.extent(node, until) {
            Some((from, to)) => intervals(&self.spans(node, until), from, to, |at| self.line(at)),
            None => Vec::new(),
        }
    }

    /// What the time of a node went into until then, with that of the frames that it opened; in no order.
    pub fn spans(&self, node: &NodeTimeline, until: Moment) -> Vec<Span> {
        let mut spans = Vec::new();
        for visit in self.within(node).filter_map(NodeTimeline::current) {
            self.add_spans(visit, until, &mut spans);
        }
        spans
    }

    fn add_spans(&self, visit: &Visit, until: Moment, spans: &mut Vec<Span>) {
        let goes_on = visit.ended.is_none() && self.ended.is_none();
        for (_, attempt) in visit.attempts().filter(|(call, _)| call.reused.is_none()) {
            match attempt.ended {
                Some(_) if attempt.lost => {}
                Some(ended) => spans.extend(attempt.spans(ended, attempt.took)),
                None if goes_on && attempt.is_open() => spans.extend(attempt.spans(until, None)),
                // Until it was cut off with its node.
                None if visit.cancelled => {
                    spans.extend(visit.ended.into_iter().flat_map(|ended| attempt.spans(ended, None)));
                }
                None => {}
            }
        }
        for question in &visit.questions {
            let to = question.closed.or(goes_on.then_some(until));
            spans.extend(to.map(|to| Span {
                activity: Activity::Asking,
                from: question.shown.unwrap_or(question.asked),
                to,
            }));
        }
    }

    /// What goes on in a node that has not ended, if a call or a question does.
    pub fn activity(&self, node: &NodeTimeline, until: Moment) -> Option<Activity> {
        if self.ended.is_some() {
            return None;
        }
        node.current().filter(|visit| visit.ended.is_none())?;
        let open = self.open_attempts(node);
        let waits = |attempt: &Attempt| attempt.after_ms > 0 && attempt.due() >= until.at;
        let calls = open.map(|attempt| match waits(attempt) && attempt.requested.at < until.at {
            true => Activity::Retrying,
            false => Activity::InFlight,
        });
        calls.min().or_else(|| self.open_questions(node).next().map(|_| Activity::Asking))
    }
}

impl Attempt {
    /// What its time went into, if it ended then. Its own figures end with it; what they leave is before them.
    fn spans(&self, end: Moment, took: Option<Took>) -> Vec<Span> {
        let moment = |at: i64| Moment { at, ..end };
        let back = |at: i64, ms: u32| moment(at.saturating_sub(ms.into()).max(self.requested.at));
        let retry = |from: i64| Span {
            activity: Activity::Retrying,
            from: self.requested,
            to: moment(self.due().min(from)),
        };
        match took {
            Some(Took { queued_ms, worked_ms }) => {
                let began = back(end.at, worked_ms);
                let queued = back(began.at, queued_ms);
                vec![
                    retry(queued.at),
                    Span { activity: Activity::Queued, from: queued, to: began },
                    Span { activity: Activity::Working, from: began, to: end },
                ]
            }
            None => {
                let retry = retry(end.at);
                vec![retry, Span { activity: Activity::InFlight, from: retry.to, to: end }]
            }
        }
    }
}

/// What a node did one after the other between two times. Where it did several things at once, the first kind counts.
pub fn intervals(spans: &[Span], from: i64, to: i64, line: impl Fn(Moment) -> i64) -> Vec<Interval> {
    let mut edges: Vec<(i64, Activity, bool)> = Vec::with_capacity(spans.len() * 2);
    for span in spans {
        let (begin, end) = (line(span.from).clamp(from, to.max(from)), line(span.to).min(to));
        if begin < end {
            edges.extend([(begin, span.activity, true), (end, span.activity, false)]);
        }
    }
    edges.sort_unstable_by_key(|(at, ..)| *at);
    let (mut open, mut done) = ([0_usize; KINDS], Vec::new());
    let mut at = from;
    for (until, activity, begins) in edges.into_iter().chain([(to, Activity::Other, true)]) {
        add(&mut done, first(&open), at, until);
        at = until;
        if let Some(open) = open.get_mut(activity as usize) {
            *open = if begins { *open + 1 } else { open.saturating_sub(1) };
        }
    }
    done
}

fn first(open: &[usize; KINDS]) -> Activity {
    use Activity::{Asking, InFlight, Queued, Retrying, Working};
    let all = [Working, InFlight, Queued, Asking, Retrying];
    let is_open = |activity: &Activity| open.get(*activity as usize).is_some_and(|open| *open > 0);
    all.into_iter().find(is_open).unwrap_or(Activity::Other)
}

fn add(done: &mut Vec<Interval>, activity: Activity, from: i64, to: i64) {
    match done.last_mut() {
        _ if from >= to => {}
        Some(last) if last.activity == activity => last.to = to,
        _ => done.push(Interval { activity, from, to }),
    }
}

/// The sums of intervals, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Durations([i64; KINDS]);

impl Durations {
    /// The sums of these.
    pub fn of(intervals: &[Interval]) -> Self {
        let mut sums = Self::default();
        for interval in intervals {
            if let Some(sum) = sums.0.get_mut(interval.activity as usize) {
                *sum += interval.to - interval.from;
            }
        }
        sums
    }

    /// Both together.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut sums = *self;
        sums.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
        sums
    }

    /// How long that was done.
    pub fn get(&self, activity: Activity) -> i64 {
        self.0.get(activity as usize).copied().unwrap_or_default()
    }

    /// All of it.
    pub fn total(&self) -> i64 {
        self.0.iter().sum()
    }

    /// What was work, as far as the journal tells it from waiting for a turn.
    pub fn worked(&self) -> i64 {
        self.get(Activity::Working) + self.get(Activity::InFlight)
    }

    /// How long calls waited for their turn.
    pub fn queued(&self) -> i64 {
        self.get(Activity::Queued)
    }

    /// Neither work nor its turn.
    pub fn waited(&self) -> i64 {
        use Activity::{Asking, Other, Retrying};
        [Asking, Retrying, Other].into_iter().map(|activity| self.get(activity)).sum()
    }
}

#[cfg(test)]
mod tests;
