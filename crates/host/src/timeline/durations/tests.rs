use super::*;
use selvedge_engine::EffectId;

fn at(at: i64) -> Moment {
    Moment { n: 1, at }
}

fn attempt(requested: i64, after_ms: u64) -> Attempt {
    Attempt { after_ms, ..Attempt::new(&EffectId("a/ask/1/1".into()), at(requested)) }
}

fn line(moment: Moment) -> i64 {
    moment.at
}

/// C-15.
#[test]
fn c15_a_call_tells_its_turn_and_its_work_and_what_is_left_is_before_them() {
    let spans = attempt(100, 50).spans(at(1_000), Some(Took { queued_ms: 300, worked_ms: 400 }));
    let all = intervals(&spans, 90, 1_010, line);
    let told: Vec<(Activity, i64, i64)> = all.iter().map(|p| (p.activity, p.from, p.to)).collect();
    assert_eq!(
        told,
        [
            (Activity::Other, 90, 100),
            (Activity::Retrying, 100, 150),
            (Activity::Other, 150, 300),
            (Activity::Queued, 300, 600),
            (Activity::Working, 600, 1_000),
            (Activity::Other, 1_000, 1_010),
        ]
    );
    let sums = Durations::of(&all);
    assert_eq!((sums.total(), sums.worked(), sums.waited()), (920, 400, 220));
}

#[test]
fn c15_what_goes_on_at_once_counts_once_and_work_comes_first() {
    let span = |activity, from, to| Span { activity, from: at(from), to: at(to) };
    let spans = [
        span(Activity::Queued, 0, 50),
        span(Activity::Working, 10, 30),
        span(Activity::Working, 20, 40),
        span(Activity::Asking, 0, 60),
    ];
    let sums = Durations::of(&intervals(&spans, 0, 70, line));
    assert_eq!((sums.get(Activity::Working), sums.queued()), (30, 20));
    assert_eq!((sums.get(Activity::Asking), sums.get(Activity::Other), sums.total()), (10, 10, 70));
}

/// A clock that was set back meanwhile, and a journal of an earlier version.
#[test]
fn c15_figures_that_do_not_fit_and_none_at_all() {
    let spans = attempt(100, 0).spans(at(110), Some(Took { queued_ms: 5_000, worked_ms: 9_000 }));
    assert_eq!(Durations::of(&intervals(&spans, 100, 110, line)).worked(), 10);
    let spans = attempt(100, 4).spans(at(110), None);
    let sums = Durations::of(&intervals(&spans, 100, 110, line));
    assert_eq!((sums.worked(), sums.waited(), sums.get(Activity::InFlight)), (6, 4, 6));
}
