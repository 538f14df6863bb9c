//! Questions of workflows to whoever sits at the terminal (C-13, E-21): answers, and edits in an editor.

use super::terminal::{Terminal, says_line, times, watch};
use crate::support::{Place, finish};
use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::process::Child;
use std::sync::{Arc, Mutex};

const EDIT: &str = "or Enter to leave it open: ";

/// A workflow of paths that ask, each with a node of a person and of this config.
fn asking(place: &Place, questions: &[(&str, Value)]) {
    let mut nodes = vec![json!({"id": "s", "type": "START"})];
    let mut edges = vec![json!({"from": "s", "to": "f"}), json!({"from": "j", "to": "e"})];
    let ids: Vec<&str> = questions.iter().map(|(id, _)| *id).collect();
    let fork = json!({"forkStrategy": "parallel", "forkPathIds": ids, "childNodeIds": ids});
    nodes.push(json!({"id": "f", "type": "FORK", "config": fork}));
    for (id, config) in questions {
        nodes.push(json!({"id": id, "type": "USER_INTERACTION", "config": config}));
        edges.push(json!({"from": id, "to": "j"}));
    }
    let join = json!({"forkPathIds": ids, "joinStrategy": "ALL_COMPLETED"});
    nodes.extend([json!({"id": "j", "type": "JOIN", "config": join}), json!({"id": "e", "type": "END"})]);
    place.write("flow.json", &json!({"nodes": nodes, "edges": edges}).to_string());
}

/// An editor: a script for a shell, whose `$1` is the file.
fn editor(place: &Place, script: &str) -> String {
    let path = place.write("editor.sh", &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    // An editor may have arguments.
    format!("{} --wait", path.display())
}

fn asked(place: &Place, args: &[&str], editor: &str) -> (Child, Arc<Mutex<String>>, File) {
    let mut command = place.command(args);
    command.env("NO_COLOR", "1").env("EDITOR", editor);
    let (child, master) = Terminal::new(200, 40).ask(&mut command);
    let (seen, _) = watch(master.try_clone().unwrap());
    (child, seen, master)
}

/// The file is the last argument of the editor, and it has the terminal; what it can't take is told, and what was written
/// so far is edited further.
#[test]
fn an_edit_opens_the_editor_until_it_fits() {
    let place = Place::new();
    let schema =
        json!({"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}});
    let value = json!({"title": "draft", "lines": ["one", "two"]});
    asking(&place, &[("text", json!({"kind": "edit", "prompt": "So?", "value": value, "schema": schema}))]);
    // Each time another thing goes wrong, and in the end nothing.
    let script = r#"
file=$2
echo x >> times
test -t 1 && echo terminal > on
case $(wc -l < times) in
    1) exit 3 ;;
    2) ;;
    3) echo '{"title": ' > "$file" ;;
    4) cat "$file" > continued; echo '{"title": 1}' > "$file" ;;
    5) echo '{"title": "final"}' > "$file" ;;
esac"#;
    let (child, seen, terminal) =
        asked(&place, &["run", "flow.json", "--run-id", "r"], &editor(&place, script));
    times(&seen, EDIT, 1);
    for (nth, told) in [
        "ended with exit status: 3: nothing was taken",
        "nothing was changed: y takes it as it is",
        "the changed value has to be JSON: at character 10 the document ends inside an object",
        "that can't be the answer: /title: 1 is not of type \"string\"",
    ]
    .into_iter()
    .enumerate()
    {
        says_line(&terminal, "e\n");
        times(&seen, EDIT, nth + 2);
        assert!(seen.lock().unwrap().contains(told), "{told}: {seen:?}");
    }
    says_line(&terminal, "e\n");
    let done = finish(child).exits(0);
    assert_eq!(serde_json::from_str::<Value>(&done.stdout).unwrap(), json!({"text": {"title": "final"}}));
    let read = |name: &str| std::fs::read_to_string(place.work().join(name)).unwrap();
    assert_eq!((&*read("continued"), &*read("on")), ("{\"title\": \n", "terminal\n"));
    place.run(&["replay", "r"]).exits(0);
}

/// C-05: in an editor Ctrl-C is one of its keys. Neither the shell around it nor the run ends by it, and what is saved is taken.
#[test]
fn an_editor_takes_ctrl_c_for_itself() {
    let place = Place::new();
    asking(&place, &[("text", json!({"kind": "edit", "prompt": "So?", "value": "draft"}))]);
    // All processes of a terminal get it; an editor of lines goes on.
    let script = r#"
trap : INT
kill -INT "$PPID" "$(cut -d' ' -f4 "/proc/$PPID/stat")"
sleep 0.2
echo saved > "$2""#;
    let editor = editor(&place, script);
    let (child, seen, terminal) = asked(&place, &["run", "flow.json", "--run-id", "r"], &editor);
    times(&seen, EDIT, 1);
    says_line(&terminal, "e\n");
    let done = finish(child).exits(0);
    assert_eq!(serde_json::from_str::<Value>(&done.stdout).unwrap(), json!({"text": "saved"}));
    assert!(!seen.lock().unwrap().contains("stopping"), "{seen:?}");
}

/// A text is edited as it is, and a question that is interrupted stays open without a word of calls.
#[test]
fn a_text_is_edited_as_it_is_and_may_be_left_open() {
    let place = Place::new();
    asking(&place, &[("text", json!({"kind": "edit", "prompt": "So?", "value": "first\nsecond"}))]);
    let upper =
        editor(&place, r#"case "$2" in *.txt) ;; *) exit 9 ;; esac; tr a-z A-Z < "$2" > t && cat t > "$2""#);
    let (child, seen, terminal) = asked(&place, &["run", "flow.json", "--run-id", "r"], &upper);
    times(&seen, EDIT, 1);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    finish(child).exits(3);
    let told = seen.lock().unwrap().clone();
    assert!(!told.contains("calls in flight") && told.contains("selvedge answer r text TEXT"), "{told:?}");
    drop(terminal);
    let (child, seen, terminal) = asked(&place, &["resume", "r"], &upper);
    times(&seen, EDIT, 1);
    says_line(&terminal, "e\n");
    let done = finish(child).exits(0);
    assert_eq!(serde_json::from_str::<Value>(&done.stdout).unwrap(), json!({"text": "FIRST\nSECOND"}));
}

/// All that is open is asked one after the other, and the run goes on with what was said; what does not fit is asked again.
#[test]
fn several_questions_are_asked_in_turn() {
    let place = Place::new();
    asking(
        &place,
        &[
            ("a", json!({"kind": "approve", "prompt": "Shall it?"})),
            (
                "b",
                json!({"kind": "answer", "prompt": "How many?", "schema": {"type": "integer", "minimum": 1}}),
            ),
            ("c", json!({"kind": "edit", "prompt": "So?", "value": [1]})),
        ],
    );
    let (child, seen, terminal) = asked(&place, &["run", "flow.json", "--run-id", "r"], "false");
    for (count, line) in ["show", "y", "many", "0", "12", "@two.json"].into_iter().enumerate() {
        place.write("two.json", "[2]");
        times(&seen, "to leave it open", count + 1);
        says_line(&terminal, &format!("{line}\n"));
    }
    let done = finish(child).exits(0);
    let said = seen.lock().unwrap().clone();
    for told in
        ["the question is all there is", "\"many\" is not of type \"integer\"", "less than the minimum of 1"]
    {
        assert!(said.contains(told), "{told}: {said:?}");
    }
    let output: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(output, json!({"a": null, "b": 12, "c": [2]}));
    place.run(&["replay", "r"]).exits(0);
}

/// C-04: each answer has its own time, a question that is shown later is waited for from then on, and lines of a prompt stay lines.
#[test]
fn c32_an_answer_has_its_own_time() {
    let place = Place::new();
    let prompt = "Shall it?\nThe first line\n\u{1b}[31mthe second";
    asking(
        &place,
        &[
            ("a", json!({"kind": "approve", "prompt": prompt})),
            ("b", json!({"kind": "approve", "prompt": "And this?"})),
        ],
    );
    let (child, seen, terminal) = asked(&place, &["run", "flow.json", "--run-id", "r"], "false");
    times(&seen, "to leave it open", 1);
    std::thread::sleep(std::time::Duration::from_millis(300));
    says_line(&terminal, "y\n");
    times(&seen, "to leave it open", 2);
    std::thread::sleep(std::time::Duration::from_millis(900));
    says_line(&terminal, "y\n");
    finish(child).exits(0);
    let said = seen.lock().unwrap().clone();
    assert!(said.contains("Shall it?\r\n  | The first line\r\n  | \\u{1b}[31mthe second\r\n"), "{said:?}");

    let events = place.run(&["show", "r", "--events", "--json"]).exits(0).json();
    let answered = |node: &str| {
        let mut events = events["events"].as_array().unwrap().iter();
        let of = |event: &&Value| event["ask"] == format!("f~1[{node}]/{node}/ask");
        let event = events.find(|event| event["kind"] == "answered" && of(event)).unwrap();
        let at = event["at"].as_str().unwrap();
        let part = |range: std::ops::Range<usize>| at[range].parse::<i64>().unwrap();
        ((part(11..13) * 60 + part(14..16)) * 60 + part(17..19)) * 1000 + part(20..23)
    };
    let nodes = place.run(&["explain", "r", "--json"]).exits(0).json();
    let waited = |node: &str| {
        let mut nodes = nodes["nodes"].as_array().unwrap().iter();
        let node = nodes.find(|one| one["node"].as_str().unwrap().ends_with(node)).unwrap();
        node["waited"]["person_ms"].as_i64().unwrap()
    };
    let between = (answered("b") - answered("a")).rem_euclid(24 * 60 * 60 * 1000);
    assert!(between >= 900, "the first answer was recorded when it was given: {between} ms before");
    assert!((300..=300 + between).contains(&waited("a")), "{nodes:#}");
    assert!((900..=between).contains(&waited("b")), "{between}: {nodes:#}");
    place.run(&["replay", "r"]).exits(0);
}

/// A cancel at a terminal says what is lost, and takes a yes.
#[test]
fn c30_a_cancel_asks_first() {
    let place = Place::new();
    asking(&place, &[("a", json!({"kind": "approve", "prompt": "Shall it?"}))]);
    place.run(&["run", "flow.json", "--run-id", "r", "--json"]).exits(3);
    let status = || place.run(&["show", "r", "--json"]).exits(0).json()["status"].clone();
    for (line, exit, then) in [("\n", 130, "waiting"), ("n\n", 130, "waiting"), ("y\n", 0, "cancelled")] {
        let (child, seen, terminal) = asked(&place, &["cancel", "r"], "false");
        times(&seen, "Cancel it? [y/N]", 1);
        says_line(&terminal, line);
        finish(child).exits(exit);
        let said = seen.lock().unwrap().clone();
        assert!(
            said.contains("Run r loses 1 open question and can't be resumed once it is cancelled"),
            "{said:?}"
        );
        assert_eq!(status(), then);
    }
    // One that has ended is printed, and nothing is asked; `--yes` asks nothing either.
    let (child, seen, _terminal) = asked(&place, &["cancel", "r"], "false");
    finish(child).exits(1);
    assert!(!seen.lock().unwrap().contains("[y/N]"), "{seen:?}");
    place.run(&["run", "flow.json", "--run-id", "s", "--json"]).exits(3);
    let (child, seen, _terminal) = asked(&place, &["cancel", "s", "--yes"], "false");
    finish(child).exits(0);
    assert!(!seen.lock().unwrap().contains("[y/N]"), "{seen:?}");
}
