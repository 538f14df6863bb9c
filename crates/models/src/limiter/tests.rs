use super::learned::Learned;
use super::window::Window;
use super::{Answer, Limiter, Pace};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// E-51: a server that takes two calls at a time is asked two at a time once it has refused the rest.
#[test]
fn refusals_tell_how_many_calls_are_taken() {
    let mut learned = Learned::default();
    assert!(learned.allows(1_000));
    for others in (2..16).rev() {
        learned.refused(others);
    }
    assert!(learned.allows(1) && !learned.allows(2));
    (0..31).for_each(|_| learned.taken(true));
    assert!(!learned.allows(2), "what was refused is tried again after 32 calls only");
    learned.taken(true);
    assert!(learned.allows(2));
    learned.refused(2);
    assert!(!learned.allows(2));
    (0..63).for_each(|_| learned.taken(true));
    assert!(!learned.allows(2), "and then after twice as many");
}

/// E-51: a refusal of a call that was alone says nothing of how many are taken at a time.
#[test]
fn a_call_that_is_refused_alone_is_followed_by_more() {
    let mut learned = Learned::default();
    learned.refused(0);
    assert!(learned.allows(0) && !learned.allows(1));
    learned.taken(true);
    learned.taken(true);
    assert!(learned.allows(2));
}

fn window(pace: Pace) -> Window {
    let mut window = Window::default();
    window.pace = pace;
    window
}

/// E-51: requests, tokens and calls at a time, each by its own limit.
#[test]
fn a_model_is_asked_as_much_as_its_configuration_says() {
    let now = Instant::now();
    let later = |seconds| now + Duration::from_secs(seconds);
    let mut requests = window(Pace { requests_per_minute: Some(2), ..Pace::default() });
    assert!(requests.enter(now, 0).is_ok() && requests.enter(later(1), 0).is_ok());
    assert_eq!(requests.enter(later(2), 0), Err(Some(later(60))));
    assert!(requests.enter(later(60), 0).is_ok());

    let mut tokens = window(Pace { tokens_per_minute: Some(100), ..Pace::default() });
    let first = tokens.enter(now, 500).expect("one alone");
    assert_eq!(tokens.enter(now, 10), Err(Some(later(60))));
    tokens.leave(first, Some(80));
    assert!(tokens.enter(now, 20).is_ok(), "what was used counts, and not what it might have been");

    let mut parallel = window(Pace { max_parallel: Some(1), ..Pace::default() });
    let first = parallel.enter(now, 0).expect("the first");
    assert_eq!(parallel.enter(now, 0), Err(None));
    parallel.leave(first, None);
    assert!(parallel.enter(now, 0).is_ok());
}

/// E-51: calls have their turn in the order in which they came; one that is dropped leaves the queue.
#[tokio::test]
async fn calls_have_their_turn_in_order() {
    let (model, pace) = (Arc::from("m"), Pace { max_parallel: Some(1), ..Pace::default() });
    let limiter = Limiter::of("http://in.order/", None, &model, pace);
    let first = limiter.turn(&model, 0, |_| panic!("nothing to wait for")).await.expect("a turn");
    let order = Arc::new(AtomicUsize::new(0));
    let mut calls = Vec::new();
    for n in 0..5 {
        let (limiter, model, order) = (Arc::clone(&limiter), Arc::clone(&model), Arc::clone(&order));
        calls.push(tokio::spawn(async move {
            let permit = limiter.turn(&model, 0, |_| {}).await.expect("a turn");
            let at = order.fetch_add(1, Ordering::Relaxed);
            permit.end(Answer::Taken(1));
            (n, at)
        }));
        tokio::task::yield_now().await;
    }
    calls.remove(1).abort();
    tokio::task::yield_now().await;
    first.end(Answer::Taken(1));
    let mut came = Vec::new();
    for call in calls {
        came.push(call.await.expect("a call"));
    }
    assert_eq!(came, [(0, 0), (2, 1), (3, 2), (4, 3)]);
}

/// E-51: what an endpoint asks of one call holds for all, and for those of other models.
#[tokio::test]
async fn a_pause_holds_for_the_whole_endpoint() {
    let (one, other): (Arc<str>, Arc<str>) = (Arc::from("one"), Arc::from("other"));
    let limiter = Limiter::of("http://pause/", None, &one, Pace::default());
    let same = Limiter::of("http://pause/", None, &other, Pace::default());
    assert!(Arc::ptr_eq(&limiter, &same));
    let pause = Duration::from_millis(80);
    let began = Instant::now();
    let refused = limiter.turn(&one, 0, |_| {}).await.expect("a turn");
    refused.end(Answer::Refused(Some(pause)));
    let mut waits = None;
    let permit = same.turn(&other, 0, |wait| waits = wait.pause).await.expect("a turn");
    assert!(began.elapsed() >= pause && waits.is_some());
    permit.end(Answer::Other);
}
