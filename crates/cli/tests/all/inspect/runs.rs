//! `runs` (C-12, C-15), and what works on a folder that can only be read.

use super::world::{completed, driven, end, failed, killed, place, waiting};
use crate::support::{Place, finish, says};
use selvedge_store::{Mode, NewRun, RunStatus, Store};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

fn list(place: &Place, options: &[&str]) -> Vec<Value> {
    let runs = place.run(&[&["runs", "--json"], options].concat()).exits(0).json();
    runs["runs"].as_array().unwrap().clone()
}

fn ids(runs: &[Value]) -> Vec<&str> {
    runs.iter().map(|run| run["run_id"].as_str().unwrap()).collect()
}

/// RFC 3339 in UTC, so that texts sort like times.
fn is_time(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.len() == 24 && text.ends_with('Z') && text.as_bytes()[10] == b'T' && text.starts_with("20")
}

#[test]
fn runs_are_listed_newest_first_in_the_shape_of_the_contract() {
    let place = place();
    assert_eq!(list(&place, &[]), [] as [Value; 0]);
    assert!(!place.state().exists(), "looking creates nothing");
    let done = completed(&place, "one");
    failed(&place, "two");
    waiting(&place, "three");
    let all = list(&place, &[]);
    assert_eq!(ids(&all), ["three", "two", "one"]);
    for run in &all {
        let keys: Vec<&str> = run.as_object().unwrap().keys().map(String::as_str).collect();
        let why = if run["status"] == "failed" { &["fault"][..] } else { &[] };
        assert_eq!(
            keys,
            [&["run_id", "name", "dialect", "status", "started", "ended", "usage"], why].concat()
        );
        assert!(is_time(&run["started"]), "{run}");
        assert_eq!(run["dialect"], "plan");
    }
    let one = &all[2];
    assert_eq!((&one["name"], &one["status"]), (&json!("sums"), &json!("completed")));
    assert_eq!(one["usage"], done["usage"]);
    assert!(is_time(&one["ended"]) && one["ended"].as_str() >= one["started"].as_str(), "{one}");
    assert_eq!((&all[0]["status"], &all[0]["ended"]), (&json!("waiting"), &Value::Null));
    assert_eq!(ids(&list(&place, &["--waiting"])), ["three"]);
    assert_eq!(ids(&list(&place, &["--status", "failed"])), ["two"]);
    assert_eq!(list(&place, &["--status", "cancelled"]).len(), 0);
    place.run(&["runs", "--status", "nonsense"]).exits(2);
    place.run(&["runs", "--status", "failed", "--waiting"]).exits(2);
}

#[test]
fn the_table_is_aligned_and_cuts_long_names() {
    let place = place();
    failed(&place, "two");
    let plan = json!({"task": "t", "name": "数据 ".repeat(60), "nodes": []});
    place.write("long.json", &plan.to_string());
    place.run(&["run", "long.json", "--run-id", "a-rather-long-id"]).exits(0);
    let table = place.run(&["runs"]).exits(0).stdout;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[0].starts_with("RUN               STATUS     STARTED (UTC)"), "{table}");
    assert!(lines[1].starts_with("a-rather-long-id  completed  20") && lines[1].ends_with('…'), "{table}");
    assert!(lines[2].starts_with("two               failed     20"), "{table}");
    assert!(!table.contains('\u{1b}'), "no colours where there is no terminal");
}

/// The reason of a failure and the cost stand in the list; columns in which nothing stands do not.
#[test]
fn the_list_says_why_and_what_it_cost() {
    let place = place();
    completed(&place, "one");
    let plain = place.run(&["runs"]).exits(0).stdout;
    assert!(!plain.contains("WHY") && !plain.contains("COST"), "{plain}");
    failed(&place, "two");
    let table = place.run(&["runs"]).exits(0).stdout;
    assert!(!table.contains("COST"), "{table}");
    let fault = place.run(&["show", "two", "--json"]).exits(0).json()["fault"].clone();
    assert_eq!(list(&place, &["--status", "failed"])[0]["fault"], fault);
    let (kind, node) = (fault["kind"].as_str().unwrap(), fault["node"].as_str().unwrap());
    let row = table.lines().find(|line| line.starts_with("two")).unwrap();
    assert!(row.contains(&format!("{kind} at {node}")), "{table}");
}

/// At 80 columns the other columns give way to what a run cost.
#[test]
fn what_runs_cost_stands_in_a_narrow_list() {
    let place = place();
    failed(&place, "a-run-that-failed");
    place.plan("paid.json", json!([says("a", "x")]));
    place.write("paid.yaml", "- reply: {text: y, usage: {input_tokens: 1, cost: 0.0123}}\n");
    place.run(&["run", "paid.json", "--script", "paid.yaml", "--run-id", "paid", "-q"]).exits(0);
    let table = |columns: usize| {
        finish(place.command(&["runs"]).env("COLUMNS", columns.to_string()).spawn().unwrap()).exits(0).stdout
    };
    for columns in [80, 100, 140] {
        let table = table(columns);
        assert!(table.contains("COST") && table.contains("0.0123"), "{columns}: {table}");
        assert!(table.contains("WHY") && table.contains("STARTED (UTC)"), "{columns}: {table}");
        assert!(table.lines().all(|line| line.chars().count() <= columns), "{columns}: {table}");
        // The year of runs of one year stands where there is room.
        let row = table.lines().find(|line| line.starts_with("paid")).unwrap();
        let has_year = row.split_whitespace().any(|word| word.len() == 10 && word.matches('-').count() == 2);
        assert_eq!(has_year, columns >= 100, "{columns}: {table}");
    }
    let narrow = table(50);
    assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
}

#[test]
fn the_list_can_be_shortened() {
    let place = place();
    for id in ["a", "b", "c"] {
        completed(&place, id);
    }
    failed(&place, "d");
    assert_eq!(ids(&list(&place, &["--limit", "2"])), ["d", "c"]);
    assert_eq!(ids(&list(&place, &["--limit", "2", "--status", "completed"])), ["c", "b"]);
    assert_eq!(ids(&list(&place, &["--name", "SUM", "--limit", "9"])), ["c", "b", "a"]);
    assert_eq!(ids(&list(&place, &["--name", "nothing of the kind"])).len(), 0);
    place.run(&["runs", "--limit", "0"]).exits(2);
}

#[test]
fn c15_people_are_shown_the_latest_thousand_and_scripts_all() {
    let place = place();
    let store = Store::open(&place.state(), Mode::ReadWrite).unwrap();
    let run = |n: i64| NewRun {
        id: format!("run-{n}"),
        name: "One of many".into(),
        dialect: "plan".into(),
        status: RunStatus::Cancelled,
        started_ms: n,
        graph: None,
        scripted: false,
        options: "{}".into(),
        fork: None,
        parent: None,
    };
    let begin = |of: std::ops::Range<i64>| {
        let commits: Vec<_> = of.map(|n| store.create_run(run(n), Vec::new())).collect();
        commits.into_iter().for_each(|commit| commit.wait().unwrap());
    };
    let shown = |options: &[&str]| {
        let list = place.run(&[&["runs"], options].concat()).exits(0);
        (list.stdout.lines().filter(|line| line.starts_with("run-")).count(), list.stderr)
    };
    begin(0..1_000);
    assert_eq!(shown(&[]), (1_000, String::new()));
    begin(1_000..1_005);
    let (rows, note) = shown(&[]);
    assert!(rows == 1_000 && note.contains("the latest 1000 runs; `--limit N` lists more"), "{rows}: {note}");
    assert_eq!(shown(&["--limit", "1003"]), (1_003, String::new()));
    assert_eq!(ids(&list(&place, &[])).len(), 1_005);
}

#[test]
fn a_run_that_lost_its_driver_says_so() {
    let place = place();
    let child = driven(&place, "live");
    let run = &list(&place, &["--status", "running"])[0];
    assert_eq!((&run["status"], &run["driven"]), (&json!("running"), &json!(true)));
    // What it has used so far is in its journal only.
    assert_eq!((&run["usage"]["model_calls"], &run["usage"]["input_tokens"]), (&json!(1), &json!(4)));
    assert!(!place.run(&["runs"]).stdout.contains("not driven"));
    let shown = place.run(&["show", "live", "--json"]).exits(0).json();
    assert_eq!((&shown["status"], &shown["warnings"]), (&json!("running"), &json!([])));
    for looking in [&["replay", "live"][..], &["export", "live"], &["show", "live", "--events"], &["doctor"]]
    {
        place.run(looking).exits(0);
    }
    end(child);
    let run = &list(&place, &[])[0];
    assert_eq!((&run["status"], &run["driven"]), (&json!("running"), &json!(false)));
    assert!(place.run(&["runs"]).stdout.contains("running (not driven)"));
    let shown = place.run(&["show", "live", "--json"]).exits(0).json();
    assert_eq!(shown["warnings"][0]["code"], "not_driven");
    let page = place.run(&["show", "live"]).exits(0).stdout;
    assert!(page.contains("running (not driven)") && page.contains("selvedge resume live"), "{page}");
    // A moment of its past is not the present.
    let past = place.run(&["show", "live", "--at", "2", "--json"]).exits(0).json();
    assert_eq!((&past["status"], &past["warnings"]), (&json!("running"), &json!([])));
}

/// The binary as a user that permissions bind (root is not bound by them).
fn as_a_user(place: &Place, binary: &Path, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(binary);
    let path = std::env::var_os("PATH").unwrap_or_default();
    command
        .env_clear()
        .env("PATH", path)
        .env("HOME", "/nonexistent")
        .env("SELVEDGE_STATE_DIR", place.state());
    command.args(args).current_dir("/");
    if std::fs::metadata(place.work()).unwrap().uid() == 0 {
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap_or(-1), text)
}

#[test]
fn everything_looks_at_a_folder_that_can_only_be_read() {
    let place = place();
    completed(&place, "one");
    waiting(&place, "two");
    let open = tempfile::tempdir().unwrap();
    let binary = open.path().join("selvedge");
    std::fs::copy(env!("CARGO_BIN_EXE_selvedge"), &binary).unwrap();
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(open.path(), 0o755);
    mode(place.work().parent().unwrap(), 0o755);
    for entry in std::fs::read_dir(place.state()).unwrap() {
        let entry = entry.unwrap();
        mode(&entry.path(), if entry.path().is_dir() { 0o555 } else { 0o444 });
    }
    mode(&place.state(), 0o555);
    for args in [
        &["runs"][..],
        &["show", "one"],
        &["show", "one", "--events", "--json"],
        &["show", "one", "--metadata"],
        &["show", "two", "--json"],
        &["replay", "one"],
        &["export", "one"],
    ] {
        let (code, text) = as_a_user(&place, &binary, args);
        assert_eq!(code, 0, "{args:?}: {text}");
        assert!(!text.contains("error["), "{args:?}: {text}");
    }
    let (code, text) = as_a_user(&place, &binary, &["doctor"]);
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("can only be read") && text.contains("database sound"), "{text}");
    mode(&place.state(), 0o755);
    if std::fs::metadata(place.work()).unwrap().uid() != 0 {
        return;
    }
    // What may not even be read is not said to be looked at, nor that it can't be written.
    mode(&place.state().join("selvedge.db"), 0o600);
    mode(&place.state(), 0o555);
    for args in [&["runs"][..], &["show", "one"]] {
        let (code, text) = as_a_user(&place, &binary, args);
        assert!(code == 4 && text.contains("this user may not read it"), "{args:?}: {text}");
    }
    let (_, text) = as_a_user(&place, &binary, &["doctor"]);
    assert!(!text.contains("looked at") && text.contains("may not read it"), "{text}");
    mode(&place.state(), 0o755);
}

#[test]
fn a_cancelled_run_has_an_end() {
    let place = place();
    killed(&place, "r");
    place.run(&["cancel", "r"]).exits(0);
    let run = &list(&place, &[])[0];
    assert_eq!(run["status"], "cancelled");
    assert!(is_time(&run["ended"]) && run.get("driven").is_none(), "{run}");
}
