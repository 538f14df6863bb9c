//! E-14: waits go by a clock that can't be set, here and after a resume; E-03: the journal's times never go back.

use selvedge_engine::{
    Event, Failure, FaultKind, Graph, Input, ModelReply, ModelRequest, Record, State, ToolRequest,
};
use selvedge_runtime::{
    CallContext, Clock, Controls, Driver, Halt, Journal, Limits, Model, Pending, Stop, SystemClock, Tools,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const HOUR: i64 = 3_600_000;
const NOW: i64 = 1_800_000_000_000;

/// Clocks that a test sets, in milliseconds.
#[derive(Default)]
struct Set {
    now: AtomicI64,
    suspended: AtomicU64,
}

impl Clock for Set {
    fn now_ms(&self) -> i64 {
        NOW + self.now.load(Ordering::Relaxed)
    }

    fn running(&self) -> Duration {
        Duration::from_millis(self.suspended.load(Ordering::Relaxed))
    }
}

/// Fails until its turn has come, asks to wait 20 s each time, and does something to the clock meanwhile.
struct Busy<F> {
    failures: u32,
    calls: AtomicU32,
    meanwhile: F,
}

impl<F: Fn() + Send + Sync> Model for Busy<F> {
    fn call(&self, _: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        let nth = self.calls.fetch_add(1, Ordering::Relaxed);
        (self.meanwhile)();
        let mut failure = Failure::transient(FaultKind::ProviderError, "busy");
        failure.retry_after_ms = Some(20_000);
        let reply = if nth < self.failures {
            Err(failure)
        } else {
            Ok(ModelReply { text: "done".into(), ..ModelReply::default() })
        };
        Box::pin(std::future::ready(reply))
    }
}

struct NoTools;
impl Tools for NoTools {
    fn call(&self, _: ToolRequest, _: CallContext) -> Pending<serde_json::Value> {
        Box::pin(async { Err(Failure::permanent(FaultKind::UnknownTool, "none")) })
    }
}

fn graph() -> Arc<Graph> {
    let graph = r#"{
        "threads": [{"name": "main", "first": "hello"}],
        "nodes": [{"id": "n1", "name": "ask", "body": {"thread": 0, "leaves": [{"name": "model", "act": {"infer": {}}}]}}],
        "tools": {}}"#;
    Arc::new(serde_json::from_str(graph).unwrap())
}

fn driver(clock: &Arc<Set>, model: impl Model + 'static) -> Driver {
    let mut driver = Driver::new(Arc::new(model), Arc::new(NoTools), Limits::default());
    driver.clock = Arc::<Set>::clone(clock);
    driver
}

/// Drives a new run to its end; how long that took, in seconds, and what was recorded.
async fn driven(clock: &Arc<Set>, model: impl Model + 'static) -> (f64, Vec<Record>) {
    let (mut state, mut journal) = (State::new(graph()), Journal::Memory(Vec::new()));
    let (driver, began) = (driver(clock, model), Instant::now());
    let start = vec![Input::Start(Box::default())];
    let halt = driver.drive("r", &mut state, &mut journal, start, &mut Controls::default()).await.unwrap();
    assert_eq!((halt, state.view().output()), (Halt::Ended, &"done".into()));
    let Journal::Memory(records) = journal else { panic!() };
    (began.elapsed().as_secs_f64(), records)
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_while_a_run_waits_changes_no_wait() {
    for step in [-HOUR, HOUR, -24 * HOUR, 0] {
        let clock = Arc::new(Set::default());
        let set = Arc::clone(&clock);
        let meanwhile = move || {
            set.now.fetch_add(step, Ordering::Relaxed);
        };
        let (took, records) = driven(&clock, Busy { failures: 2, calls: AtomicU32::new(0), meanwhile }).await;
        // By chance up to 0.5 s more the first time, and up to 1 s the second (E-51).
        assert!((40.0..41.6).contains(&took), "{step}: {took} s for two waits of 20 s");
        assert!(records.windows(2).all(|two| two[0].at <= two[1].at), "times go back: {records:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn suspended_time_counts_as_waited() {
    let clock = Arc::new(Set::default());
    let set = Arc::clone(&clock);
    // The machine sleeps for an hour, three seconds after the wait has begun.
    let meanwhile = move || {
        let set = Arc::clone(&set);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            set.suspended.fetch_add(HOUR.unsigned_abs(), Ordering::Relaxed);
        });
    };
    let (took, _) = driven(&clock, Busy { failures: 1, calls: AtomicU32::new(0), meanwhile }).await;
    assert!((3.0..5.0).contains(&took), "{took} s");
}

/// The run as a process left it that died while it waited.
async fn died_waiting(clock: &Arc<Set>) -> Vec<Record> {
    let (mut state, mut journal) = (State::new(graph()), Journal::Memory(Vec::new()));
    let stop = Stop::default();
    let model = Busy { failures: 1, calls: AtomicU32::new(0), meanwhile: || {} };
    let driver = driver(clock, model);
    let interrupted = stop.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        interrupted.interrupt();
    });
    let start = vec![Input::Start(Box::default())];
    let halt = driver.drive("r", &mut state, &mut journal, start, &mut stop.clone().into()).await.unwrap();
    assert_eq!(halt, Halt::Interrupted);
    let Journal::Memory(records) = journal else { panic!() };
    assert!(matches!(records.last().unwrap().event, Event::Retried { after_ms: 20_000..=20_500, .. }));
    records
}

#[tokio::test(start_paused = true)]
async fn after_a_resume_no_wait_is_longer_than_it_was_to_be() {
    // The clock by then, in milliseconds, and how many of the 20 seconds are left.
    let cases = [(0, 20.0), (5_000, 15.0), (25_000, 0.0), (HOUR, 0.0), (-HOUR, 20.0), (-24 * HOUR, 20.0)];
    for (moved, left) in cases {
        let clock = Arc::new(Set::default());
        let records = died_waiting(&clock).await;
        let mut state = State::new(graph());
        records.iter().for_each(|record| state.apply_record(record));
        clock.now.store(moved, Ordering::Relaxed);
        let began = Instant::now();
        let model = Busy { failures: 0, calls: AtomicU32::new(0), meanwhile: || {} };
        let mut journal = Journal::Memory(records);
        let driver = driver(&clock, model);
        let halt =
            driver.drive("r", &mut state, &mut journal, Vec::new(), &mut Controls::default()).await.unwrap();
        assert_eq!(halt, Halt::Ended);
        let took = began.elapsed().as_secs_f64();
        assert!((left..left + 1.0).contains(&took), "clock moved by {moved} ms: {took} s");
        let Journal::Memory(records) = journal else { panic!() };
        assert!(records.windows(2).all(|two| two[0].at <= two[1].at), "times go back: {records:?}");
    }
}

/// A question that has two seconds, beside a path that asks a model.
fn question() -> Arc<Graph> {
    let graph = r#"{
        "threads": [{"name": "main"}], "control": "flow", "tools": {},
        "nodes": [
            {"id": "who", "name": "who", "ways": [{"when": "fault", "to": 1}],
             "body": {"leaves": [{"name": "ask", "act": {"ask": ["answer", "Who?", {"timeout_s": 2}]}}]}},
            {"id": "nobody", "name": "nobody", "body": {"leaves": [{"name": "set", "act": {"set": ["x", 1]}}]}}]}"#;
    Arc::new(serde_json::from_str(graph).unwrap())
}

/// E-37: nobody drives a run that waits for a person, and its time passes all the same: what came due meanwhile comes before what
/// is said. A clock that is set back fires nothing.
#[tokio::test(start_paused = true)]
async fn an_ask_expires_while_nobody_drives() {
    for (moved, late) in [(1_999, false), (2_000, true), (-365 * 24 * HOUR, false), (365 * 24 * HOUR, true)] {
        let clock = Arc::new(Set::default());
        let (mut state, mut journal) = (State::new(question()), Journal::Memory(Vec::new()));
        let driver = driver(&clock, Busy { failures: 0, calls: AtomicU32::new(0), meanwhile: || {} });
        let start = vec![Input::Start(Box::default())];
        let halt =
            driver.drive("r", &mut state, &mut journal, start, &mut Controls::default()).await.unwrap();
        assert_eq!(halt, Halt::Waiting);
        let Journal::Memory(records) = journal else { panic!() };
        let mut state = State::new(question());
        records.iter().for_each(|record| state.apply_record(record));
        clock.now.store(moved, Ordering::Relaxed);
        let answer = Input::Answer("who/ask".into(), selvedge_engine::answered("Ann".into(), None, None));
        let mut journal = Journal::Memory(Vec::new());
        let halt = driver
            .drive("r", &mut state, &mut journal, vec![answer], &mut Controls::default())
            .await
            .unwrap();
        assert_eq!(halt, Halt::Ended, "{moved}");
        let Journal::Memory(records) = journal else { panic!() };
        let first = &records.first().unwrap().event;
        assert_eq!(matches!(first, Event::Fired { .. }), late, "{moved}: {first:?}");
        assert_eq!(matches!(first, Event::Answered { .. }), !late, "{moved}: {first:?}");
    }
}

/// E-37: a run that is held by a handle fires its own timers while it only waits for people, whatever becomes of the clock that can be set.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_held_fires_its_timers() {
    for moved in [0, 365 * 24 * HOUR, -365 * 24 * HOUR] {
        let clock = Arc::new(Set::default());
        let driver = driver(&clock, Busy { failures: 0, calls: AtomicU32::new(0), meanwhile: || {} });
        let (journal, start) = (Journal::Memory(Vec::new()), vec![Input::Start(Box::default())]);
        let began = Instant::now();
        let (handle, driven) = driver.driven("r", State::new(question()), journal, start, None);
        let set = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            clock.now.store(moved, Ordering::Relaxed);
        };
        let (driven, ()) = tokio::join!(driven, set);
        assert_eq!(driven.halt.unwrap(), Halt::Ended, "{moved}");
        assert_eq!(began.elapsed().as_secs(), 2, "{moved}");
        let Journal::Memory(records) = driven.journal else { panic!() };
        assert!(records.iter().any(|record| matches!(record.event, Event::Fired { .. })), "{moved}");
        drop(handle);
    }
}

/// A fork of two paths that has ten seconds. On one of them a question has two, and then, if it is expired, `after` follows; the
/// other one says what it has to say at once.
fn question_on_a_path(after: &str) -> Arc<Graph> {
    let graph = format!(
        r#"{{"threads": [{{"name": "main"}}], "control": "flow", "tools": {{}},
        "nodes": [{{"id": "both", "name": "both", "body": {{"leaves": [{{"name": "do", "act": {{"fork": {{
            "of": {{"listed": [["a", 0], ["b", 1]]}}, "join": {{"strategy": "all_completed", "timeout_s": 10}}}}}}}}]}}}}],
        "graphs": [{{"threads": [{{"name": "main"}}], "control": "flow", "tools": {{}}, "nodes": [
            {{"id": "who", "name": "who", "ways": [{{"when": "fault", "to": 1}}],
             "body": {{"leaves": [{{"name": "ask", "act": {{"ask": ["answer", "Who?", {{"timeout_s": 2}}]}}}}]}}}},
            {{"id": "after", "name": "after", "body": {{"thread": 0, "leaves": [{{"name": "do", "act": {after}}}]}}}}]}},
            {{"threads": [{{"name": "main"}}], "control": "flow", "tools": {{}}, "nodes": [
            {{"id": "set", "name": "set", "body": {{"leaves": [{{"name": "set", "act": {{"set": ["x", 1]}}}}]}}}}]}}]}}"#
    );
    Arc::new(serde_json::from_str(&graph).unwrap())
}

/// E-37: of a question and its join that both came due while nobody drove, the question did first, and what follows from that is
/// there before the join's time is up: a path that needs nothing more from outside has ended by then, as it would have with a
/// driver. One that does has not, and is asked nothing in vain.
#[tokio::test(start_paused = true)]
async fn what_came_due_while_nobody_drove_did_so_in_its_order() {
    for (after, met) in [(r#"{"set": ["y", 2]}"#, true), (r#"{"infer": {}}"#, false)] {
        let clock = Arc::new(Set::default());
        let (mut state, mut journal) = (State::new(question_on_a_path(after)), Journal::Memory(Vec::new()));
        let driver =
            driver(&clock, Busy { failures: 0, calls: AtomicU32::new(0), meanwhile: || panic!("asked") });
        let start = vec![Input::Start(Box::default())];
        let halt =
            driver.drive("r", &mut state, &mut journal, start, &mut Controls::default()).await.unwrap();
        assert_eq!(halt, Halt::Waiting);
        clock.now.store(HOUR, Ordering::Relaxed);
        let halt =
            driver.drive("r", &mut state, &mut journal, Vec::new(), &mut Controls::default()).await.unwrap();
        assert_eq!(halt, Halt::Ended);
        let status = state.status();
        assert_eq!(status == selvedge_engine::RunStatus::Completed, met, "{after}: {status:?}");
        let Journal::Memory(records) = journal else { panic!() };
        let fired = records.iter().filter(|record| matches!(record.event, Event::Fired { .. })).count();
        assert_eq!(fired, if met { 1 } else { 2 }, "{records:#?}");
    }
}

/// Many paths, each with a time of its own, are waited for as one: the alarms cost no look at all of them.
#[tokio::test]
async fn thousands_of_timers_are_cheap() {
    const PATHS: usize = 4_000;
    let graph = format!(
        r#"{{"threads": [{{"name": "main"}}], "control": "flow", "tools": {{}},
        "nodes": [{{"id": "all", "name": "all", "body": {{"leaves": [{{"name": "do", "act": {{"fork": {{
            "of": {{"each": {{"over": {:?}, "item": "it", "graph": 0}}}}, "join": {{"strategy": "all_completed"}}}}}}}}]}}}}],
        "graphs": [{{"threads": [{{"name": "main"}}], "control": "flow", "tools": {{}}, "nodes": [
            {{"id": "sub", "name": "sub", "body": {{"leaves": [{{"name": "do", "act": {{"sub": {{"graph": 1, "timeout_s": 1000}}}}}}]}}}}]}},
            {{"threads": [{{"name": "main"}}], "control": "flow", "tools": {{}}, "nodes": [
            {{"id": "ask", "name": "ask", "body": {{"thread": 0, "leaves": [{{"name": "model", "act": {{"infer": {{}}}}}}]}}}}]}}]}}"#,
        vec![0; PATHS]
    );
    let graph: Arc<Graph> = Arc::new(serde_json::from_str(&graph).unwrap());
    let (mut state, mut journal) = (State::new(graph), Journal::Memory(Vec::new()));
    let model = Busy { failures: 0, calls: AtomicU32::new(0), meanwhile: || {} };
    let driver = Driver::new(Arc::new(model), Arc::new(NoTools), Limits::default());
    let start = vec![Input::Start(Box::default())];
    let began = std::time::Instant::now();
    let halt = driver.drive("r", &mut state, &mut journal, start, &mut Controls::default()).await.unwrap();
    assert_eq!((halt, state.status()), (Halt::Ended, selvedge_engine::RunStatus::Completed));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn the_machines_own_clocks_go_on() {
    let (now, running) = (SystemClock.now_ms(), SystemClock.running());
    std::thread::sleep(Duration::from_millis(30));
    assert!(SystemClock.running() >= running + Duration::from_millis(20));
    assert!(SystemClock.now_ms() > now);
}
