//! Tasks in processes of their own: what ends one of these ends no other's task (V-01).
#![cfg(target_os = "linux")]

use super::evolution::{data_set, lines, until};
use crate::support::{Place, finish};
use serde_json::json;
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

fn signal(process: &str, signal: rustix::process::Signal) {
    let pid = process.parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
    // It may be gone.
    let _ = rustix::process::kill_process(pid, signal);
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
    // The only one has this task, and no other meanwhile.
    let workers = started_by(&process);
    assert_eq!(workers.len(), 1);
    // As a failed allocation does.
    signal(&workers[0], rustix::process::Signal::ABORT);
    let done = finish(process).exits(0).json();
    assert_eq!((&done["done"], &done["failed"], &done["accuracy"]), (&json!(4), &json!(0), &json!(1.0)));
    assert_eq!(lines(&place.work().join("out/predictions.jsonl")).len(), 4);
    place.run(&["replay", &run_of_t2(&place).unwrap()]).exits(0);
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
