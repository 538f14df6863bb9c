//! Readers and terminals that go away: the run stays whole and can go on (C-03, C-05).

use crate::support::{Place, finish, says, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn slow(place: &Place, wait_ms: u64) {
    place.plan("slow.json", json!([says("a", "One"), says("b", "Two")]));
    place.write(
        "slow.yaml",
        &format!(
            "- when: {{node: a}}\n  reply: {{text: one}}\n- reply: {{text: two, delay_ms: {wait_ms}}}\n"
        ),
    );
}

const RUN: [&str; 6] = ["run", "slow.json", "--script", "slow.yaml", "--run-id", "r"];

/// Waits until the second node has begun.
fn begun(child: &mut Child) {
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    assert!(lines.any(|line| line.contains("start b")));
    // What else it says is read away.
    std::thread::spawn(move || lines.for_each(drop));
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
}

/// P-10: a reply that was cut is told to people too, not only in C-02's object, and once.
#[test]
fn what_a_run_warns_of_is_told_when_it_happens() {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Go")]));
    for (stop, said) in [("length", "limit of tokens"), ("content_filter", "content_filter")] {
        place.write("s.yaml", &format!("- reply: {{text: done, stop: {stop}}}\n"));
        let done = place.run(&["run", "plan.json", "--script", "s.yaml"]).exits(0);
        let told: Vec<&str> = done.stderr.lines().filter(|line| line.contains("  warn  a: ")).collect();
        assert!(told.len() == 1 && told[0].contains(said), "{}", done.stderr);
        assert!(!done.stderr.contains("warning: "), "{}", done.stderr);
        let quiet = place.run(&["run", "plan.json", "--script", "s.yaml", "--quiet"]).stderr;
        assert!(!quiet.contains("warn"), "{quiet}");
    }
    // Before what comes after it, and not when the run is over.
    place.plan("two.json", json!([says("a", "Go"), says("b", "On")]));
    place.write("s.yaml", "- when: {node: a}\n  reply: {text: done, stop: length}\n- reply: {text: done}\n");
    let told = place.run(&["run", "two.json", "--script", "s.yaml", "--run-id", "r"]).exits(0).stderr;
    assert!(told.find("  warn  a: ").unwrap() < told.find("  start b").unwrap(), "{told}");
    assert_eq!(told.matches("warn").count(), 1, "{told}");
    // Who follows it, or looks at it later, is told, too.
    let followed = place.run(&["show", "r", "--follow"]).exits(0).stderr;
    assert_eq!(followed.matches("  warn  a: ").count(), 1, "{followed}");
}

#[test]
fn a_terminal_that_closes_is_like_ctrl_c() {
    let place = Place::new();
    slow(&place, 300);
    let mut child = place.start(&RUN);
    begun(&mut child);
    send(&child, Signal::HUP);
    finish(child).exits(130);
    let done = place.run(&["resume", "r", "--json"]).exits(0).json();
    assert_eq!((&done["status"], &done["output"]), (&json!("completed"), &json!("two")));
}

/// Under `nohup` the signal is ignored, and stays so.
#[test]
fn nohup_keeps_a_run_going() {
    let place = Place::new();
    slow(&place, 800);
    let mut command = place.command(&[]);
    let program = command.get_program().to_owned();
    let mut command = {
        let mut under = std::process::Command::new("nohup");
        under.arg(program).args(RUN).current_dir(place.work());
        under.env_clear().envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))));
        under.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command = under;
        command
    };
    let mut child = command.spawn().unwrap();
    begun(&mut child);
    send(&child, Signal::HUP);
    assert_eq!(finish(child).exits(0).stdout, "two\n");
}

/// `selvedge … | head -1`: whoever closed the pipe has what it wanted.
#[test]
fn a_reader_that_goes_away_breaks_nothing() {
    let place = Place::new();
    slow(&place, 10);
    for (id, args) in [("out", &[][..]), ("json", &["--json"]), ("verbose", &["-v"])] {
        let args = [&RUN[..4], &["--run-id", id], args].concat();
        let mut child = place.start(&args);
        drop(child.stdout.take());
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{id}");
        let shown = place.run(&["show", id, "--json"]).exits(0).json();
        assert_eq!((&shown["status"], &shown["output"]), (&json!("completed"), &json!("two")));
    }
    for args in [&["export", "out"][..], &["show", "out", "--events"], &["runs"], &["--help"], &["doctor"]] {
        let mut child = place.start(args);
        drop(child.stdout.take());
        let done = finish(child);
        assert!(done.code == 0 && !done.stderr.contains("panic"), "{done:#?}");
    }
}

/// Standard output and error that are closed from the beginning.
#[test]
fn closed_outputs_are_no_reason_to_fail() {
    let place = Place::new();
    slow(&place, 10);
    let command = place.command(&[]);
    let program = command.get_program().to_str().unwrap().to_owned();
    let mut shell = std::process::Command::new("sh");
    let line = format!("{program} {} --run-id closed >&- 2>&-; echo $? > code", RUN[..4].join(" "));
    shell.args(["-c", &line]).current_dir(place.work()).env_clear();
    shell.envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))));
    assert!(shell.status().unwrap().success());
    let code = place.work().join("code");
    wait_for(&code);
    let deadline = Instant::now() + Duration::from_secs(10);
    while std::fs::read_to_string(&code).unwrap().is_empty() {
        assert!(Instant::now() < deadline);
    }
    // The result is lost, which is no success (C-03), but the run is whole.
    assert!(matches!(std::fs::read_to_string(&code).unwrap().trim(), "0" | "4"));
    assert_eq!(place.run(&["show", "closed", "--json"]).exits(0).json()["output"], "two");
}
