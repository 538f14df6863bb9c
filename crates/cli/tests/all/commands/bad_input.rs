//! Calls, files and folders that are wrong: each ends soon, with the exit code of its kind and words that say what to
//! do (C-03, C-04, C-12).

use crate::support::{Done, Place, calls, finish, says};
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;

fn place() -> Place {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Go")]));
    place.write("script.yaml", "- reply: {text: hi}\n");
    place
}

/// The plan on its script, with more arguments.
fn run(place: &Place, more: &[&str]) -> Done {
    place.run(&[&["run", "plan.json", "--script", "script.yaml"], more].concat())
}

#[test]
fn a_state_folder_that_is_none_is_exit_4() {
    let place = place();
    let file = place.write("file", "");
    for dir in [file.clone(), file.join("below")] {
        let dir = dir.to_str().unwrap();
        for args in [&["run", "plan.json", "--script", "script.yaml"][..], &["runs"], &["show", "x"]] {
            let done = place.run(&[args, &["--state-dir", dir, "--json"]].concat()).exits(4);
            assert_eq!(done.error()["code"], "state-no-folder");
            let message = done.error()["message"].as_str().unwrap().to_owned();
            assert!(message.contains(file.to_str().unwrap()) && message.contains("no folder"), "{message}");
            assert_eq!(done.stdout, "");
        }
    }
    // A folder in which nothing can be made.
    let done = run(&place, &["--state-dir", "/proc/here", "--json"]).exits(4);
    assert_eq!(done.error()["rule"], "C-14");
}

/// C-01: seconds with a part of one count as a whole one; what is no time is exit 2.
#[test]
fn a_time_limit_is_a_number_above_0() {
    let place = place();
    for wrong in ["0", "-1", "-0.5", "NaN", "inf", "1e30", "1e10"] {
        let done = run(&place, &["--timeout", wrong, "--json"]).exits(2);
        assert_eq!(done.error()["code"], "bad-timeout", "{wrong}");
    }
    run(&place, &["--timeout", "soon"]).exits(2);
    run(&place, &["--timeout", "0.5"]).exits(0);
    place.write("slow.yaml", "- reply: {text: hi, delay_ms: 60000}\n");
    let late =
        place.run(&["run", "plan.json", "--script", "slow.yaml", "--timeout", "0.3", "--json"]).exits(1);
    assert_eq!(late.json()["fault"]["kind"], "timeout");
    let mut command = place.command(&["run", "plan.json", "--script", "script.yaml", "--json"]);
    let done = finish(command.env("SELVEDGE_TIMEOUT", "-3").spawn().unwrap()).exits(4);
    assert!(done.error()["message"].as_str().unwrap().contains("SELVEDGE_TIMEOUT"));
}

#[test]
fn what_may_be_read_must_be_there_and_what_may_be_written_need_not() {
    let place = place();
    let done = run(&place, &["--allow-read", "/nowhere/at/all", "--json"]).exits(2);
    assert_eq!((&done.error()["rule"], &done.error()["code"]), (&json!("C-12"), &json!("file-not-found")));
    run(&place, &["--allow-read", ".", "--allow-write", "later/out"]).exits(0);
}

/// Files that never end, or that nobody writes to, are refused and not waited for.
#[test]
fn special_files_are_no_documents_and_no_scripts() {
    let place = place();
    let pipe = place.work().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = pipe.to_str().unwrap();
    for file in ["/dev/zero", "/dev/null", "/proc/self/status", "/", pipe] {
        place.run(&["run", file, "--script", "script.yaml"]).exits(2);
        place.run(&["check", file]).exits(2);
        place.run(&["run", "plan.json", "--script", file]).exits(2);
    }
    // A pipe that is open already is read to its end.
    let mut command = place.command(&["run", "/dev/stdin", "--script", "script.yaml"]);
    let file = std::fs::File::open(place.work().join("plan.json")).unwrap();
    finish(command.stdin(file).spawn().unwrap()).exits(0);
}

const GOOD: &str = "__TOOL_META__ = {'name': 'good', 'description': 'd', 'dependencies': []}\n\
                    from pydantic import BaseModel\nclass InputModel(BaseModel):\n    pass\n\
                    def run(input_model):\n    return 1\n";

/// a tool file that is wrong is a warning, and an error for a document that may mean it.
#[test]
fn a_broken_tool_file_stops_only_who_names_it() {
    let place = place();
    place.write("tools/broken.py", "def (\n");
    place.write("tools/good.py", GOOD);
    let done = run(&place, &["--tools", "tools", "--json"]).exits(0);
    let warnings = done.json()["warnings"].clone();
    let left_out = |warning: &Value| {
        warning["code"] == "tool-left-out" && warning["message"].as_str().unwrap().contains("broken.py")
    };
    assert!(warnings.as_array().unwrap().iter().any(left_out), "{warnings}");
    let checked = place.run(&["check", "plan.json", "--tools", "tools", "--json"]).exits(0).json();
    assert_eq!(checked["diagnostics"][0]["severity"], "warning");

    place.plan("names.json", json!([calls("a", "broken", json!({}))]));
    for command in [&["run", "names.json", "--script", "script.yaml"][..], &["check", "names.json"]] {
        let done = place.run(&[command, &["--tools", "tools"]].concat()).exits(2);
        assert!(done.stderr.contains("broken.py:1:5: error[A-08]"), "{done:#?}");
        // C-04: the line itself, marked at the place.
        assert!(done.stderr.contains("    1 | def (\n      |     ^"), "{done:#?}");
    }
    // A name that is nowhere: it may be what a broken file would have brought.
    place.plan("other.json", json!([calls("a", "elsewhere", json!({}))]));
    let done = place.run(&["run", "other.json", "--tools", "tools"]).exits(2);
    assert!(done.stderr.contains("elsewhere") && done.stderr.contains("broken.py"), "{done:#?}");
    assert_eq!(place.run(&["doctor", "--json"]).code, 0);
    place.write("selvedge.toml", "[tools]\ndirs = [\"tools\"]\n");
    let doctor = place.run(&["doctor", "--json"]).exits(4).stdout;
    assert!(doctor.contains("broken.py"), "{doctor}");
}

/// What could steer a terminal, in a text that must not (C-04).
fn wild(text: &str) -> Option<usize> {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().position(|c| c.is_control() && c != '\n' || turns(c))
}

/// Names in any script and of any length: no control character reaches a terminal, and JSON has them as they are.
#[test]
fn names_are_shown_harmless_and_kept_as_they_are() {
    let place = place();
    let names = [
        "节点-完了".to_owned(),
        "שלום עולם".to_owned(),
        "👩\u{200d}👩\u{200d}👧 🇩🇪".to_owned(),
        "e\u{301}\u{301}x".to_owned(),
        "a\u{1b}[31mred\u{7}\r\n\tb\u{0}\u{9b}2J".to_owned(),
        "\u{202e}live\u{2066}".to_owned(),
        "x".repeat(10_000),
    ];
    // An id has to be a name (D-09); everything else may be any text.
    let node = |id: &str, name: &String| {
        json!({"node_id": id, "node_type": "llm-first", "node_name": format!("{name}!"),
               "thread_id": format!("t {name}"), "task_prompt": "Go"})
    };
    let ids: Vec<String> = (0..names.len()).map(|at| format!("n{at}")).collect();
    let mut nodes: Vec<Value> = ids.iter().zip(&names).map(|(id, name)| node(id, name)).collect();
    place.plan("names.json", json!(nodes));
    let mut last = node("last", &"\u{1b}[1mlast".to_owned());
    last["model"] = json!("\u{1b}[1mlast");
    nodes.push(last);
    place.plan("fails.json", json!(nodes));
    place.write("fails.yaml", "- when: {node: last}\n  reply: {error: {status: 400, message: \"\\e[2J\"}}\n- reply: {text: \"\\e[2Jhi\"}\n");
    let run = place.run(&["run", "names.json", "--script", "script.yaml", "-v", "--run-id", "n"]).exits(0);
    let failed = place.run(&["run", "fails.json", "--script", "fails.yaml", "-v", "--run-id", "f"]);
    assert_eq!(failed.code, 1, "{}", failed.stderr.lines().last().unwrap_or_default());
    let mut all = vec![run, failed];
    for id in ["n", "f"] {
        all.push(place.run(&["show", id]).exits(0));
        all.push(place.run(&["show", id, "--events"]).exits(0));
        all.push(place.run(&["show", id, "--thread", "\u{1b}[31m"]).exits(2));
    }
    all.push(place.run(&["runs"]).exits(0));
    all.push(place.run(&["check", "names.json"]).exits(0));
    all.push(place.run(&["\u{1b}[31m"]).exits(2));
    all.push(place.run(&["run", "\u{1b}[31m"]).exits(2));
    for done in &all {
        for text in [&done.stdout, &done.stderr] {
            let found =
                wild(text).map(|at| text.chars().skip(at.saturating_sub(60)).take(90).collect::<String>());
            assert_eq!(found, None);
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            let begin = text.chars().take(200).collect::<String>();
            assert!(longest < 1000, "a line of {longest} characters: {begin}");
        }
    }
    let shown = place.run(&["show", "n", "--json"]).exits(0).json();
    for (id, name) in ids.iter().zip(&names) {
        assert_eq!(shown["results"][id]["step_name"], format!("{name}!"));
        assert!(shown["threads"][format!("t {name}")].is_array());
    }
}

/// A path that is no Unicode is told like any other that is not there.
#[test]
fn a_path_need_not_be_text() {
    let place = place();
    let mut command = place.command(&["run"]);
    command.arg(std::ffi::OsStr::from_bytes(b"\xff\xfe.json"));
    finish(command.spawn().unwrap()).exits(2);
}
