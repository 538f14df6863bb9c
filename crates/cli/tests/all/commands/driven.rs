//! C-13, E-43: commands to runs that other processes drive.

use super::people::driven;
use super::terminal::{asked, says_line, times};
use crate::support::{Done, Place, calls, finish, says, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::Child;
use std::time::{Duration, Instant};

/// The run `r`, driven: a call of `seconds` is under way, and beside it a person is asked.
fn asking(place: &Place, seconds: &str) -> Child {
    asking_beside(place, &format!("echo . >> began; sleep {seconds}"))
}

/// The tool `slow`, which does this in a shell.
pub(super) fn slow_tool(place: &Place, does: &str) {
    place.write(
        "selvedge.toml",
        &format!(
            "[tools.command.slow]\ndescription = \"d\"\ncommand = [\"sh\", \"-c\", \"{does}\"]\n\
             input_schema = {{type = \"object\"}}\neffects = \"read\"\n"
        ),
    );
}

/// The same beside a call that does this, and makes the file `began` first.
fn asking_beside(place: &Place, does: &str) -> Child {
    slow_tool(place, does);
    let mut second = says("b", "Send it");
    (second["require_approval"], second["thread_id"]) = (json!(true), json!("other"));
    place.plan("plan.json", json!([calls("a", "slow", json!({})), second]));
    place.write("s.yaml", "- reply: {text: sent}\n");
    let run = place.start(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r", "--json"]);
    wait_for(&place.work().join("began"));
    let deadline = Instant::now() + Duration::from_secs(20);
    while place.run(&["show", "r", "--json"]).json()["asks"].as_array().is_none_or(Vec::is_empty) {
        assert!(Instant::now() < deadline, "nobody is asked");
    }
    run
}

fn answer(place: &Place, word: &str) -> Done {
    place.run(&["answer", "r", word, "--json"])
}

fn status(run: &Value) -> &str {
    run["status"].as_str().unwrap()
}

fn answers(place: &Place) -> usize {
    place.run(&["export", "r"]).exits(0).stdout.matches(r#""kind":"answered""#).count()
}

#[test]
fn c13_an_answer_reaches_the_process_that_drives_the_run() {
    let place = Place::new();
    let run = asking(&place, "4");
    let error = answer(&place, "perhaps").exits(2).error();
    assert_eq!(error["code"], "bad-answer", "as of a run that nobody drives: {error}");
    let unknown = place.run(&["answer", "r", "x", "yes", "--json"]).exits(2).error();
    assert_eq!(unknown["code"], "unknown-ask");
    let began = Instant::now();
    let said = answer(&place, "yes").exits(0);
    assert!(began.elapsed() < Duration::from_secs(3), "it does not wait for the run: {:?}", began.elapsed());
    assert_eq!((status(&said.json()), &said.json()["asks"]), ("running", &json!([])));
    assert_eq!(said.json()["warnings"].as_array().map_or(0, Vec::len), 0, "{said:?}");
    assert_eq!(answers(&place), 1);
    let done = finish(run).exits(0);
    assert_eq!(status(&done.json()), "completed");
    assert!(done.stderr.contains("start b"), "who drives it sees that it goes on: {}", done.stderr);
    place.run(&["replay", "r"]).exits(0);
    assert_eq!(answer(&place, "yes").exits(2).error()["code"], "ask-answered");
}

#[test]
fn c13_a_cancel_reaches_the_process_that_drives_the_run() {
    let place = Place::new();
    let run = driven(&place);
    let began = Instant::now();
    let cancelled = place.run(&["cancel", "r", "--json"]).exits(0).json();
    assert_eq!(status(&cancelled), "cancelled");
    finish(run).exits(1);
    assert!(began.elapsed() < Duration::from_secs(10), "what was under way is cut off");
    assert_eq!(status(&place.run(&["show", "r", "--json"]).exits(0).json()), "cancelled");
    place.run(&["cancel", "r"]).exits(1);
}

#[test]
fn c13_of_two_processes_that_answer_at_once_one_is_told_that_it_was_too_late() {
    let place = Place::new();
    let run = asking(&place, "4");
    let said: Vec<Child> = (0..4).map(|_| place.start(&["answer", "r", "yes", "--json"])).collect();
    let mut codes: Vec<i32> = said.into_iter().map(|child| finish(child).code).collect();
    codes.sort_unstable();
    assert_eq!((codes, answers(&place)), (vec![0, 2, 2, 2], 1));
    finish(run).exits(0);
}

/// Of two that answer a run that nobody drives, one drives it, and the other one tells it.
#[test]
fn c13_of_two_processes_that_answer_a_waiting_run_one_goes_on_with_it() {
    let place = Place::new();
    finish(asking(&place, "0.1")).exits(3);
    let said: Vec<Child> = (0..3).map(|_| place.start(&["answer", "r", "yes", "--json"])).collect();
    let mut codes: Vec<i32> = said.into_iter().map(|child| finish(child).code).collect();
    codes.sort_unstable();
    assert_eq!((codes, answers(&place)), (vec![0, 2, 2], 1));
}

/// Whoever dies when: what was said is in the journal once, or its command goes on with the run itself.
#[test]
fn c13_an_answer_survives_the_death_of_the_driver() {
    for wait in [0, 1, 3, 10, 30] {
        let place = Place::new();
        // What was under way is sent again, and takes no time then.
        let mut run = asking_beside(&place, "[ -e began ] && exit; echo . >> began; sleep 30");
        let said = place.start(&["answer", "r", "yes", "--json"]);
        std::thread::sleep(Duration::from_millis(wait));
        run.kill().unwrap();
        run.wait().unwrap();
        let said = finish(said).exits(0);
        assert_eq!(answers(&place), 1, "{wait}: {said:?}");
        let last = place.run(&["resume", "r", "--json"]).exits(0).json();
        assert_eq!(status(&last), "completed");
        assert_eq!(answers(&place), 1);
        place.run(&["replay", "r"]).exits(0);
    }
}

/// What a command that was killed has said is said all the same, once.
#[test]
fn c13_an_answer_whose_command_is_killed_is_said_once_or_not_at_all() {
    for wait in [5, 20, 40, 80] {
        let place = Place::new();
        let run = asking(&place, "3");
        let mut said = place.start(&["answer", "r", "yes", "--json"]);
        std::thread::sleep(Duration::from_millis(wait));
        said.kill().unwrap();
        said.wait().unwrap();
        let done = finish(run);
        let answered = answers(&place);
        assert!(answered == usize::from(done.code == 0), "{wait}: {done:?}");
        assert!([0, 3].contains(&done.code) && answered <= 1, "{done:?}");
    }
}

/// A state folder that can only be read: its runs can't be told anything, and the command says so.
#[test]
fn c13_a_run_of_a_folder_that_can_only_be_read_is_told_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    finish(asking(&place, "0.1")).exits(3);
    let rights = |mode: u32, file: u32| {
        for entry in std::fs::read_dir(place.state()).unwrap().flatten() {
            if entry.path().is_file() {
                std::fs::set_permissions(entry.path(), std::fs::Permissions::from_mode(file)).unwrap();
            }
        }
        std::fs::set_permissions(place.state(), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    rights(0o500, 0o400);
    // Who may do anything anyway writes to it.
    let may = std::fs::write(place.state().join("x"), "").is_ok();
    let done = [answer(&place, "yes"), place.run(&["cancel", "r", "--json"])];
    rights(0o700, 0o600);
    if !may {
        for done in done {
            assert_eq!(done.exits(4).error()["code"], "state-read-only");
        }
    }
}

/// Who sits at the terminal where a run is driven is asked no longer once somebody has answered elsewhere.
#[test]
fn c13_an_approval_at_the_terminal_may_be_given_elsewhere() {
    const QUESTION: &str = "a reason may follow y or n: ";
    let place = Place::new();
    place.write(
        "selvedge.toml",
        "[tools.command.send]\ndescription = \"d\"\ncommand = [\"cat\"]\ninput_schema = {type = \"object\"}\n",
    );
    let send = |id: &str| {
        let mut node = calls(id, "send", json!({"to": id}));
        node["require_approval"] = json!(true);
        node
    };
    place.plan("plan.json", json!([send("a"), send("b")]));
    let (child, seen, terminal) = asked(&place, &["run", "plan.json", "--run-id", "r"]);
    times(&seen, QUESTION, 1);
    answer(&place, "yes").exits(0);
    times(&seen, QUESTION, 2);
    says_line(&terminal, "y seen\n");
    finish(child).exits(0);
    let journal = place.run(&["export", "r"]).exits(0).stdout;
    assert!(journal.contains(r#"{"answer":"yes","why":"seen"}"#), "{journal}");
    assert_eq!(answers(&place), 2);
}

/// While a run is wound down nothing new is heard: its command goes on with it.
#[test]
fn c13_a_cancel_of_a_run_that_is_being_interrupted_is_heard_by_somebody() {
    let place = Place::new();
    let run = driven(&place);
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    let cancelled = place.run(&["cancel", "r", "--json"]).exits(0).json();
    assert_eq!(status(&cancelled), "cancelled");
    assert!([1, 130].contains(&finish(run).code));
}
