//! Workflows.

use super::world::{Example, contents, findings};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::{Duration, Instant};

const DEBATE: [&str; 4] = ["--script", "script.yaml", "--allow-read", "../../docs"];

#[test]
fn no_workflow_has_findings() {
    for (name, more) in [
        ("debate", &["--allow-read", "../../docs"][..]),
        ("invoices", &[]),
        ("fastest", &[]),
        ("release-notes", &["--allow-write", "out"]),
    ] {
        let done = Example::new(name).with_tools("check", "flow.json", more);
        assert_eq!(done.code, Some(0), "{done:#?}");
        assert_eq!(findings(&done), [Value::Null; 0], "{name}");
    }
}

#[test]
fn the_judge_goes_on_with_what_was_read_and_nothing_twice() {
    let example = Example::new("debate");
    let done = example.run("flow.json", &DEBATE);
    assert_eq!(done.code, Some(0), "{done:#?}");
    assert!(done.stderr.contains("scripted"), "a stand-in says so: {}", done.stderr);
    let result = done.json();
    assert_eq!(result["output"]["winner"], "for");
    let main = contents(&result, "main");
    // 100 passages with their calls; what the judge was asked and said, twice.
    assert_eq!(main.len(), 204, "{main:#?}");
    let text =
        std::fs::read_to_string(example.folder.join("../../docs/decisions/0007-isolation.md")).unwrap();
    let results = result["threads"]["main"].as_array().unwrap().iter().filter(|said| said["role"] == "tool");
    let passages: Vec<String> = results
        .map(|said| serde_json::from_str::<Value>(said["content"].as_str().unwrap()).unwrap())
        .map(|passage| passage["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(passages.join("\n"), text.trim_end(), "the whole text, in order");
    let [asked, said] = main[200..202] else { panic!("{main:#?}") };
    assert!(asked.contains("will judge a debate") && said.starts_with("Who is for it"), "{asked} {said}");
    assert!(main[202].contains("Each layer holds") && main[202].contains("Against it: Six layers"));
    // A fork copies nothing: each message is in the journal once.
    let events = example.call(&["show", "@", "--events", "--json"]).json();
    let events = events["events"].as_array().unwrap().iter();
    let said = events.filter(|event| event["kind"] == "appended").count();
    assert_eq!(said, 200 + 3 * 2 + 2);
    let replayed = example.call(&["replay", "@"]);
    assert_eq!(replayed.code, Some(0), "{replayed:#?}");
}

#[test]
fn twenty_five_invoices_are_enough() {
    let example = Example::new("invoices");
    let done = example.run("flow.json", &["--run-id", "r"]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    let result = done.json();
    assert_eq!((&result["output"]["count"], &result["usage"]["model_calls"]), (&json!(25), &json!(0)));
    let read = result["results"]["enough"]["output"].as_object().unwrap();
    assert_eq!(read.len(), 25);
    // The elements of the list begin with 0, and the files with 1.
    for broken in ["6", "15", "22"] {
        assert!(!read.contains_key(broken), "{broken} is broken: {read:#?}");
    }
    let cents: i64 = read.values().map(|invoice| invoice["total_cents"].as_i64().unwrap()).sum();
    let mean = result["output"]["mean_eur"].as_f64().unwrap();
    assert!((mean - cents as f64 / 2500.0).abs() < 0.01, "{mean} {cents}");
    assert_eq!(example.call(&["replay", "r"]).code, Some(0));
}

/// Three files are broken, so that 28 can't be reached; which is known before all have been read.
#[test]
fn twenty_eight_invoices_are_too_many() {
    let example = Example::copy("invoices");
    let file = example.folder.join("flow.json");
    let text = std::fs::read_to_string(&file).unwrap().replace("\"threshold\": 25", "\"threshold\": 28");
    std::fs::write(&file, text).unwrap();
    let done = example.run("flow.json", &[]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    let said = done.json()["output"]["too few"].as_str().unwrap().to_owned();
    assert!(said.contains("`6` failed (ValueError: the invoice's total is not the sum"), "{said}");
}

/// All processes: number, parent, and when it began.
fn processes() -> Vec<(u32, u32, u64)> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let facts = all.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name before it may hold anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let alive = !matches!(*fields.first()?, "Z" | "X");
        alive.then_some((pid, fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?))
    });
    facts.collect()
}

/// W-07, E-38: the losers would go on for a minute and more.
#[test]
fn the_losers_of_a_race_really_end() {
    let example = Example::new("fastest");
    let started = Instant::now();
    let mut command = example.command(&["run", "flow.json", "--tools", "tools", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (pid, mut below) = (child.id(), Vec::new());
    let done = std::thread::spawn(move || super::world::finish(child));
    while !done.is_finished() {
        let mut family = vec![pid];
        let all = processes();
        while let Some(parent) = family.pop() {
            for child in all.iter().filter(|child| child.1 == parent) {
                family.push(child.0);
                below.push((child.0, child.2));
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let done = done.join().unwrap();
    assert_eq!(done.code, Some(0), "{done:#?}");
    let won = &done.json()["output"]["rho"];
    assert!([2_000_000_011_u64, 4_500_000_013].iter().any(|factor| won["factor"] == *factor), "{won}");
    assert!(started.elapsed() < Duration::from_secs(50), "nobody waited for the others");
    if cfg!(target_os = "linux") {
        assert!(!below.is_empty(), "the tools have processes");
        // The system may take a moment to bury them; left alone they would go on for a minute.
        let deadline = Instant::now() + Duration::from_secs(10);
        while processes().into_iter().any(|one| below.contains(&(one.0, one.2))) {
            assert!(Instant::now() < deadline, "a loser goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_person_edits_and_approves() {
    let example = Example::copy("release-notes");
    let run = ["--script", "script.yaml", "--allow-write", "out", "--run-id", "r"];
    let done = example.run("flow.json", &run);
    assert_eq!(done.code, Some(3), "{done:#?}");
    let asked = &done.json()["asks"][0];
    assert_eq!((&asked["kind"], &asked["node"]), (&json!("edit"), &json!("notes")));
    assert!(asked["value"].as_str().unwrap().starts_with("- **Update:** `lon`"), "{asked}");
    let waiting = example.call(&["runs", "--waiting"]).stdout;
    assert!(waiting.contains("selvedge answer r notes TEXT"), "{waiting}");

    let refused = example.call(&["answer", "r", "\"\"", "--json"]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    std::fs::write(example.folder.join("notes.md"), "- Mine.\n").unwrap();
    let done = example.call(&["answer", "r", "@notes.md", "--by", "ada", "--json"]);
    assert_eq!(done.code, Some(3), "{done:#?}");
    let asked = done.json()["asks"][0].clone();
    assert_eq!((&asked["kind"], &asked["value"]), (&json!("approve"), &json!("- Mine.")));
    let out = example.folder.join("out/NOTES.md");
    assert!(!out.exists());
    let done = example.call(&["answer", "r", "yes", "--json"]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    assert_eq!(std::fs::read_to_string(out).unwrap(), "- Mine.");
    assert_eq!(contents(&done.json(), "main").last(), Some(&"- Mine."));
}

#[test]
fn a_no_writes_nothing() {
    let example = Example::copy("release-notes");
    example.run("flow.json", &["--script", "script.yaml", "--allow-write", "out", "--run-id", "r"]);
    example.call(&["answer", "r", "fine", "--json"]);
    let done = example.call(&["answer", "r", "no", "--json"]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    assert_eq!(done.json()["output"], json!({"not written": "fine"}));
    assert!(!example.folder.join("out").exists());
}
