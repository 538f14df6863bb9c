//! Generous bounds that catch a wrong order of magnitude; `cargo test --release -- --nocapture speed` shows figures.

use std::time::Instant;

use selvedge_store::{Entry, Mode, Store};

use crate::support::new_run;

fn step(n: u64) -> Entry {
    let json = format!(r#"{{"kind":"completed","effect":"main/{n}/1/1","outcome":"{}"}}"#, "x".repeat(100));
    Entry { n, at_ms: 1_700_000_000_000 + n as i64, json }
}

#[test]
fn a_hundred_thousand_events_are_read_at_once() {
    const EVENTS: u64 = 100_000;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    store.create_run(new_run("r"), (1..=EVENTS).map(step).collect()).wait().unwrap();
    let start = Instant::now();
    assert_eq!(store.journal("r", 1).unwrap().map(Result::unwrap).count() as u64, EVENTS);
    let took = start.elapsed();
    println!("read {EVENTS} events in {took:?}");
    assert!(took.as_millis() < 3_000, "{took:?}");
}

#[test]
fn a_step_takes_little_room() {
    const EVENTS: u64 = 2_000;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let payload = step(1).json.len() as u64;
    let size = || std::fs::metadata(dir.path().join("selvedge.db")).unwrap().len();
    let empty = size();
    store.create_run(new_run("r"), Vec::new()).wait().unwrap();
    let commits: Vec<_> = (1..=EVENTS).map(|n| store.append("r", vec![step(n)])).collect();
    commits.into_iter().for_each(|commit| commit.wait().unwrap());
    drop(store);
    let overhead = (size() - empty) as i64 / EVENTS as i64 - payload as i64;
    println!("{overhead} bytes an event besides its {payload}");
    assert!(overhead < 42, "{overhead}");
}

#[test]
fn many_runs_share_a_sync() {
    const RUNS: usize = 32;
    const EVENTS: u64 = 25;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Mode::ReadWrite).unwrap();
    let names: Vec<String> = (0..RUNS).map(|run| run.to_string()).collect();
    let append = |run: &str, from: u64| {
        (from..from + EVENTS).for_each(|n| store.append(run, vec![step(n)]).wait().unwrap())
    };
    names.iter().for_each(|run| store.create_run(new_run(run), Vec::new()).wait().unwrap());

    let start = Instant::now();
    append(&names[0], 1);
    let alone = start.elapsed();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for (index, run) in names.iter().enumerate() {
            let append = &append;
            scope.spawn(move || append(run, if index == 0 { 1 + EVENTS } else { 1 }));
        }
    });
    let together = start.elapsed();
    let rate =
        |runs: usize, took: std::time::Duration| (runs as f64 * EVENTS as f64 / took.as_secs_f64()) as u64;
    println!("{} events/s alone, {} with {RUNS} runs", rate(1, alone), rate(RUNS, together));
    // One after the other the runs would take 32 times as long.
    assert!(
        together < alone * (RUNS as u32) / 2 + std::time::Duration::from_millis(500),
        "{alone:?} {together:?}"
    );
}

#[test]
fn memory_needs_no_disk() {
    let store = Store::memory().unwrap();
    store.create_run(new_run("r"), Vec::new()).wait().unwrap();
    let start = Instant::now();
    (1..=5_000).for_each(|n| store.append("r", vec![step(n)]).wait().unwrap());
    println!("{:?} a commit in memory", start.elapsed() / 5_000);
    assert!(start.elapsed().as_secs() < 5);
}
