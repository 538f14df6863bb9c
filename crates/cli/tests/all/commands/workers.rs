//! Tasks in processes of their own: what ends one of these ends no other's task (V-01).
#![cfg(target_os = "linux")]

use super::evolution::{data_set, lines, until};
use crate::support::{Done, Place, finish};
use rustix::process::{Pid, Signal};
use selvedge_store::{Mode, Store};
use serde_json::{Value, json};
use std::process::Child;

/// A data set of which one task waits, so long that it has to be cut off, or only for a moment.
fn place(delay_ms: u64) -> Place {
    let place = Place::new();
    data_set(&place, 4);
    let none = json!({"required_tool_names": [], "tool_usage_guidance": "", "tool_requests": []});
    let rules = json!([
        {"when": {"node": "manager", "contains": "Say 2."}, "reply": {"json": none, "delay_ms": delay_ms}},
        {"when": {"node": "manager"}, "reply": {"json": none}},
        {"when": {"node": "executor"}, "reply": {"text": "Said."}},
        {"when": {"node": "judge"}, "reply": {"json": {"status": "FINISH", "reason": "It is said."}}},
        {"when": {"node": "integrate"}, "reply": {"json": {"final_answer": "said", "reasoning_summary": "Said."}}},
    ]);
    place.write("script.yaml", &rules.to_string());
    place
}

fn evolve(workers: &'static str) -> [&'static str; 9] {
    ["evolve", "tasks.jsonl", "--out", "out", "--script", "script.yaml", "--workers", workers, "--json"]
}

/// The processes that a process has started.
fn started_by(process: &Child) -> Vec<String> {
    let id = process.id();
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    children.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// The process that drives the task that waits.
fn driver_of_t2(place: &Place) -> Option<Pid> {
    let store = Store::open(&place.state(), Mode::ReadOnly).ok()?;
    let pid = store.other_driver(&run_of_t2(place)?)?;
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Waits until another process than these drives the task that waits.
#[track_caller]
fn next_driver_of_t2(place: &Place, before: &[Pid]) -> Pid {
    let mut driver = None;
    until("another process drives the task that waits", || {
        driver = driver_of_t2(place).filter(|pid| !before.contains(pid));
        driver.is_some()
    });
    driver.unwrap()
}

fn signal(process: Pid, signal: Signal) {
    // It may be gone.
    let _ = rustix::process::kill_process(process, signal);
}

/// Only the task that waits has failed, and its line says what ended its processes.
#[track_caller]
fn only_t2_has_failed(place: &Place, done: &Done, why: &[&str]) {
    let done = done.json();
    assert_eq!((&done["done"], &done["failed"]), (&json!(4), &json!(1)));
    let predictions = lines(&place.work().join("out/predictions.jsonl"));
    let failed: Vec<&Value> = predictions.iter().filter(|line| line["status"] == "failed").collect();
    assert_eq!((predictions.len(), failed.len(), &failed[0]["task_id"]), (4, 1, &json!("t2")));
    let said = failed[0]["fault"]["message"].as_str().unwrap();
    assert!(why.iter().all(|why| said.contains(why)), "{said}");
    place.run(&["replay", &run_of_t2(place).unwrap()]).exits(0);
}

/// Whether a process has ended.
fn gone(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.is_empty() || status.contains(") Z ")
}

fn run_of_t2(place: &Place) -> Option<String> {
    let runs = place.run(&["runs", "--children", "--json"]).exits(0).json();
    let found = runs["runs"].as_array().unwrap().iter().find(|run| run["name"] == "t2")?;
    Some(found["run_id"].as_str().unwrap().to_owned())
}

/// V-01: a task whose process dies goes on in another one, once.
#[test]
fn v01_a_task_goes_on_where_its_process_has_died() {
    let place = place(10_000);
    let process = place.start(&evolve("1"));
    until("the task that waits has begun", || run_of_t2(&place).is_some());
    // As a failed allocation does.
    signal(next_driver_of_t2(&place, &[]), Signal::ABORT);
    let done = finish(process).exits(0).json();
    assert_eq!((&done["done"], &done["failed"], &done["accuracy"]), (&json!(4), &json!(0), &json!(1.0)));
    assert_eq!(lines(&place.work().join("out/predictions.jsonl")).len(), 4);
    place.run(&["replay", &run_of_t2(&place).unwrap()]).exits(0);
}

/// V-01: one that ends every process is failed, with what has ended them, and the batch goes on.
#[test]
fn v01_a_task_that_ends_its_processes_ends_no_batch() {
    let place = place(1_000_000);
    let process = place.start(&evolve("2"));
    let first = next_driver_of_t2(&place, &[]);
    signal(first, Signal::ABORT);
    signal(next_driver_of_t2(&place, &[first]), Signal::KILL);
    only_t2_has_failed(&place, &finish(process).exits(0), &["SIGABRT", "SIGKILL"]);
}

/// V-01: such processes end with the one that has started them, and leave the runs to be gone on with.
#[test]
fn v01_processes_end_with_the_one_that_has_started_them() {
    let place = place(1_000_000);
    let mut process = place.start(&evolve("2"));
    until("the task that waits has begun", || run_of_t2(&place).is_some());
    let workers = started_by(&process);
    process.kill().unwrap();
    process.wait().unwrap();
    until("they have ended", || workers.iter().all(|worker| gone(worker)));
    let fast = std::fs::read_to_string(place.work().join("script.yaml")).unwrap().replace("1000000", "0");
    place.write("script.yaml", &fast);
    let done = place.run(&evolve("2")).exits(0).json();
    assert_eq!((&done["done"], &done["failed"], &done["batches"]), (&json!(4), &json!(0), &json!(1)));
}
