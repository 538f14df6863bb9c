//! Evolution in batches: what stays and what is repeated when a process dies, is told to stop, or is given other lines.

use crate::support::{Done, Place};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long something may take that has to happen.
const PATIENCE: Duration = Duration::from_secs(120);
/// Tasks of the data set.
const TASKS: usize = 12;

/// So many tasks, each of which is to say its number.
pub(super) fn data_set(place: &Place, tasks: usize) {
    let line = |n: usize| {
        format!(
            "{}\n",
            json!({"task_id": format!("t{n}"), "question": format!("Say {n}."), "answer": "said"})
        )
    };
    place.write("tasks.jsonl", &(0..tasks).map(line).collect::<String>());
}

/// A data set whose agents only think, each reply after so many milliseconds.
fn place(delay_ms: u64) -> Place {
    let place = Place::new();
    data_set(&place, TASKS);
    let none = json!({"required_tool_names": [], "tool_usage_guidance": "", "tool_requests": []});
    let rules = json!([
        {"when": {"node": "manager"}, "reply": {"json": none, "delay_ms": delay_ms, "usage": {"input_tokens": 7}}},
        {"when": {"node": "executor"}, "reply": {"text": "Said.", "delay_ms": delay_ms}},
        {"when": {"node": "judge"}, "reply": {"json": {"status": "FINISH", "reason": "It is said."}}},
        {"when": {"node": "integrate"}, "reply": {"json": {"final_answer": "said", "reasoning_summary": "Said."}}},
    ]);
    place.write("script.yaml", &rules.to_string());
    place
}

const EVOLVE: [&str; 11] = [
    "evolve",
    "tasks.jsonl",
    "--out",
    "out",
    "--script",
    "script.yaml",
    "--batch-size",
    "4",
    "--concurrency",
    "2",
    "--json",
];

pub(super) fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn children(place: &Place) -> Vec<Value> {
    let runs = place.run(&["runs", "--children", "--json"]).exits(0).json();
    runs["runs"].as_array().unwrap().iter().filter(|run| run.get("parent").is_some()).cloned().collect()
}

#[track_caller]
pub(super) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Each task has one line and one run, and each batch one line of measures.
#[track_caller]
fn exactly_once(place: &Place, done: &Done) {
    let object = done.json();
    assert_eq!(
        (&object["done"], &object["failed"], &object["accuracy"]),
        (&json!(TASKS), &json!(0), &json!(1.0))
    );
    let predictions = lines(&place.work().join("out/predictions.jsonl"));
    let ids: BTreeSet<&str> = predictions.iter().map(|line| line["task_id"].as_str().unwrap()).collect();
    assert_eq!((predictions.len(), ids.len()), (TASKS, TASKS));
    let children = children(place);
    let named: BTreeSet<&str> = children.iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!((children.len(), named.len()), (TASKS, TASKS), "{children:#?}");
    assert!(children.iter().all(|run| run["status"] == "completed"));
    let measures = lines(&place.work().join("out/measures.jsonl"));
    let batches: Vec<u64> = measures.iter().map(|line| line["batch"].as_u64().unwrap()).collect();
    assert_eq!(batches, [1, 2, 3]);
    let total = &measures[2]["total"];
    assert_eq!(
        (&total["done"], &total["right"], &total["roles"]["tool_analyze"]["calls"]),
        (&json!(TASKS), &json!(TASKS), &json!(TASKS))
    );
}

/// V-02, V-03, E-39: a process that dies at any moment has lost and doubled nothing.
#[test]
fn v02_predictions_are_exactly_once_whatever_is_killed() {
    let place = place(40);
    let file = place.work().join("out/predictions.jsonl");
    for kill in 0..6 {
        let mut process = place.start(&EVOLVE);
        let before = lines(&file).len();
        // Now and then before anything of this process has ended.
        if kill % 3 == 2 {
            std::thread::sleep(Duration::from_millis(150));
        } else {
            until("one more task has ended", || {
                lines(&file).len() > before || process.try_wait().unwrap().is_some()
            });
        }
        process.kill().unwrap();
        process.wait().unwrap();
        if kill == 1 {
            // A torn last line.
            let torn = OpenOptions::new().write(true).open(&file).unwrap();
            torn.set_len(torn.metadata().unwrap().len() - 5).unwrap();
        }
    }
    let done = place.run(&EVOLVE).exits(0);
    exactly_once(&place, &done);
    // What is a projection can be lost, and said by somebody else.
    std::fs::remove_file(&file).unwrap();
    std::fs::write(place.work().join("out/measures.jsonl"), "nonsense\n").unwrap();
    let done = place.run(&EVOLVE).exits(0);
    exactly_once(&place, &done);
    let batch = children(&place)[0]["parent"].as_str().unwrap().to_owned();
    place.run(&["replay", &batch]).exits(0);
}

/// V-01, V-03: a line that says something else is another task, and those that are as they were have been done.
#[test]
fn v03_an_edited_line_is_another_task() {
    let place = place(0);
    place.run(&EVOLVE).exits(0);
    let text = std::fs::read_to_string(place.work().join("tasks.jsonl")).unwrap();
    place.write("tasks.jsonl", &text.replace("Say 3.", "Say three."));
    let done = place.run(&EVOLVE).exits(0).json();
    assert_eq!((&done["tasks"], &done["done"], &done["batches"]), (&json!(TASKS), &json!(TASKS), &json!(4)));
    let predictions = lines(&place.work().join("out/predictions.jsonl"));
    assert_eq!(predictions.iter().filter(|line| line["task_id"] == "t3").count(), 2);
    assert_eq!((predictions.len(), children(&place).len()), (TASKS + 1, TASKS + 1));
}

/// V-01, V-14: of a batch that is half done when lines of it are edited only those tasks count that are meant now, and what earlier processes have
/// used is in the figures.
#[test]
fn v01_what_is_no_longer_meant_does_not_count() {
    let place = place(0);
    data_set(&place, 4);
    let script = std::fs::read_to_string(place.work().join("script.yaml")).unwrap();
    let mut rules: Vec<Value> = serde_json::from_str(&script).unwrap();
    let slow = json!({"when": {"node": "executor", "contains": "Say 3."}, "reply": {"text": "Said.", "delay_ms": 600_000}});
    rules.insert(0, slow);
    place.write("script.yaml", &json!(rules).to_string());
    let words = ["evolve", "tasks.jsonl", "--out", "out", "--script", "script.yaml", "--batch-size", "4"];
    let mut process = place.start(&words);
    let file = place.work().join("out/predictions.jsonl");
    until("three tasks have ended", || lines(&file).len() == 3);
    process.kill().unwrap();
    process.wait().unwrap();
    place.write("script.yaml", &script);
    // One that is done, and one that is not.
    let text = std::fs::read_to_string(place.work().join("tasks.jsonl")).unwrap();
    place.write("tasks.jsonl", &text.replace("Say 2.", "Say two.").replace("Say 3.", "Say three."));
    let done = place.run(&words).exits(0);
    let told = |what: &str| done.stderr.lines().filter(|line| line.contains(what)).count();
    assert!(done.stderr.contains("4 tasks, 2 of them done before"), "{done:#?}");
    assert!(done.stderr.contains("right t3, whose line is no longer meant (2 of 4 done"), "{done:#?}");
    // The last task, and the end of its batch.
    assert_eq!((told("(4 of 4 done"), told("batch 2 done (4 of 4 done, 42 tokens)")), (2, 1), "{done:#?}");
    assert!(done.stdout.starts_with("4 of 4 tasks done, 0 of them failed\n4 of 4 right"), "{done:#?}");
    assert_eq!(lines(&file).len(), 6);
    // A part of it is as much as that.
    let part = place.run(&[&words[..], &["--limit", "1"]].concat()).exits(0);
    assert!(part.stdout.starts_with("1 of 1 task done, 0 of them failed\n1 of 1 right"), "{part:#?}");
}

/// E-39: who cancels a run cancels those that it has begun; the same command begins their tasks anew.
#[test]
fn e39_a_cancel_reaches_the_runs_of_tasks() {
    let place = place(100_000);
    let process = place.start(&EVOLVE);
    until("two tasks run", || children(&place).len() == 2);
    let batch = children(&place)[0]["parent"].as_str().unwrap().to_owned();
    // Two processes do not evolve the same at once.
    assert_eq!(place.run(&EVOLVE).exits(2).error()["code"], "run-driven");
    place.run(&["cancel", &batch]).exits(0);
    let done = crate::support::finish(process).exits(1);
    assert!(done.stderr.contains("was cancelled"), "{done:#?}");
    let left = children(&place);
    assert!(left.len() >= 2 && left.iter().all(|run| run["status"] == "cancelled"), "{left:#?}");
    let fast = std::fs::read_to_string(place.work().join("script.yaml")).unwrap().replace("100000", "0");
    place.write("script.yaml", &fast);
    let done = place.run(&EVOLVE).exits(0).json();
    assert_eq!((&done["done"], &done["failed"]), (&json!(TASKS), &json!(0)));
}
