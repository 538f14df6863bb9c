//! Odd paths, damaged state folders, and what is said about them (C-03, C-04, C-12).

use crate::support::{Place, finish, says};
use serde_json::json;
use std::time::Duration;

fn place() -> Place {
    let place = Place::new();
    place.plan("p.json", json!([says("a", "Go"), says("b", "Go on")]));
    place.write("s.yaml", "- reply: {text: done, usage: {input_tokens: 1234567890, output_tokens: 1}}\n");
    place
}

#[cfg(target_os = "linux")]
/// A name that is no Unicode, in the folder of commands.
fn raw(place: &Place) -> std::path::PathBuf {
    use std::os::unix::ffi::OsStrExt;
    place.work().join(std::ffi::OsStr::from_bytes(b"d\xff"))
}

/// C-12: a run records its paths, so one that JSON can't have is refused, named, before anything is recorded.
#[cfg(target_os = "linux")]
#[test]
fn paths_that_are_no_unicode_are_refused() {
    let place = place();
    let raw = raw(&place);
    std::fs::create_dir(&raw).unwrap();
    for file in ["p.json", "s.yaml"] {
        std::fs::copy(place.work().join(file), raw.join(file)).unwrap();
    }
    let with = |args: &[&str], option: Option<&str>, path: std::path::PathBuf| {
        let mut command = place.command(args);
        finish(command.args(option).arg(path).arg("--json").spawn().unwrap())
    };
    #[track_caller]
    fn refused(done: crate::support::Done) {
        let error = done.exits(2).error();
        assert_eq!(error["code"], "path-not-unicode", "{error}");
        assert!(error["message"].as_str().unwrap().contains(r"d\xff"), "{error}");
        assert!(!error["help"].as_str().unwrap().is_empty());
    }
    let run = ["run", "p.json", "--script", "s.yaml"];
    refused(with(&["run", "--script", "s.yaml"], None, raw.join("p.json")));
    refused(with(&["run", "p.json"], Some("--script"), raw.join("s.yaml")));
    for option in ["--tools", "--allow-read", "--allow-write"] {
        refused(with(&run, Some(option), raw.clone()));
    }
    let mut inside = place.command(&[&run[..], &["--json"]].concat());
    refused(finish(inside.current_dir(&raw).spawn().unwrap()));
    assert!(!place.state().exists());
    refused(with(&["tools", "import"], None, raw.clone()));
    place.run(&[&run[..], &["-q", "--run-id", "r"]].concat()).exits(0);
    refused(with(&["fork", "r"], Some("--document"), raw.join("p.json")));
    // Nothing of these is recorded.
    with(&["check"], None, raw.join("p.json")).exits(0);
    with(&run, Some("--state-dir"), raw.join("state")).exits(0);
}

/// C-06: JSON stays JSON and what it was, whatever somebody took for a key.
#[test]
fn words_and_numbers_are_not_redacted() {
    let place = place();
    let keyed = |args: &[&str], key: &str| {
        let mut command = place.command(args);
        finish(command.env("SELVEDGE_API_KEY", key).spawn().unwrap())
    };
    for key in ["12345678", "completed", "assistant", "input_tokens"] {
        let run = keyed(&["run", "p.json", "--script", "s.yaml", "--run-id", key, "--json"], "");
        let usual = run.exits(0).json();
        let mut shown = keyed(&["show", key, "--json"], key).exits(0).json();
        // Texts that are data are without it.
        assert_eq!(shown["output"], "done");
        assert_eq!(shown["run_id"].take(), "[redacted]");
        shown["run_id"] = json!(key);
        assert_eq!(shown, usual);
        for line in keyed(&["export", key], key).exits(0).stdout.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
        keyed(&["show", key, "--events", "--json"], key).exits(0).json();
    }
    let table = keyed(&["runs"], "completed").exits(0).stdout;
    assert!(table.contains("completed") && !table.contains("redacted"), "{table}");
}

/// C-03: a database that is none is told of at once, whatever it is.
#[test]
fn a_database_that_is_no_file_is_refused() {
    let place = place();
    let db = place.state().join("selvedge.db");
    std::fs::create_dir_all(&db).unwrap();
    let run = ["run", "p.json", "--script", "s.yaml", "--json"];
    let refused = || {
        for args in [&run[..], &["runs", "--json"], &["show", "x", "--json"], &["resume", "x", "--json"]] {
            let error = place.run(args).exits(4).error();
            assert!(error["message"].as_str().unwrap().contains("selvedge.db"), "{error}");
        }
    };
    refused();
    std::fs::remove_dir(&db).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&db).status().unwrap();
    assert!(made.success());
    refused();
}

/// C-14: a journal with an event that is none is not printed as if it were good; options that can't be read are not taken
/// for none (C-10).
#[test]
fn damage_is_told_of() {
    let place = place();
    place.run(&["run", "p.json", "--script", "s.yaml", "-q", "--run-id", "r"]).exits(0);
    let sql = |sql: &str| {
        let db = rusqlite::Connection::open(place.state().join("selvedge.db")).unwrap();
        db.busy_timeout(Duration::from_secs(10)).unwrap();
        assert!(db.execute(sql, []).unwrap() > 0);
    };
    sql("update runs set options = 'zz'");
    for args in [&["resume", "r", "--json"], &["fork", "r", "--json"]] {
        let error = place.run(args).exits(4).error();
        assert_eq!(error["code"], "run-damaged", "{error}");
        assert!(error["message"].as_str().unwrap().contains("its row in the index"), "{error}");
    }
    sql("update journal set body = 'garbage' where key % 4294967296 = 4");
    let done = place.run(&["export", "r", "--json"]).exits(4);
    // What is before it is there.
    assert_eq!(done.stdout.lines().count(), 3, "{done:#?}");
    assert!(done.error()["message"].as_str().unwrap().contains("event 4"), "{done:#?}");
}

/// C-02: who lost the result of a run is told how to see it.
#[cfg(target_os = "linux")]
#[test]
fn a_lost_result_names_the_run() {
    let place = place();
    let mut command =
        place.command(&["run", "p.json", "--script", "s.yaml", "-q", "--run-id", "r1", "--json"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let done = finish(command.stdout(full).spawn().unwrap()).exits(4);
    assert!(done.error()["help"].as_str().unwrap().contains("selvedge show r1"), "{done:#?}");
    place.run(&["show", "r1"]).exits(0);
}

/// C-07, C-04: what is wrong with a script is said in its own words, with its line.
#[test]
fn errors_of_scripts_show_their_line() {
    let place = place();
    for (script, line, said) in [
        ("- when: {nth: -1}\n  reply: {text: x}\n", "when: {nth: -1}", "a whole number from 0 on"),
        ("- reply: {text: x, delay_ms: -5}\n", "delay_ms: -5", "a whole number from 0 on"),
        ("rules: []\n", "rules: []", "a list is expected"),
        ("- when: {}\n  when: {}\n  reply: {text: x}\n", "  when: {}", "`when` is given twice"),
        ("- reply: {text: x, json: {}}\n", "json: {}", "(or both)"),
    ] {
        place.write("bad.yaml", script);
        let shown = place.run(&["run", "p.json", "--script", "bad.yaml"]).exits(2).stderr;
        assert!(shown.contains(line) && shown.contains(said) && shown.contains('^'), "{shown}");
        for word in ["u64", "sequence", "DuplicateKey"] {
            assert!(!shown.contains(word), "{shown}");
        }
    }
}

/// C-04: advice that leads nowhere is not given; help is found under the words of a command.
#[test]
fn hints_lead_somewhere() {
    let place = place();
    for args in [
        &["run", "p.json", "--run-id", "-x"][..],
        &["run", "p.json", "--max-parallel", "-3"],
        &["check", "p.json", "--script", "s.yaml"],
    ] {
        let done = place.run(args).exits(2);
        assert!(!done.stderr.contains("as a value"), "{}", done.stderr);
    }
    let none = place.run(&["--json"]).exits(2);
    assert!(!none.stderr.contains("__complete") && none.stderr.contains("resume"), "{}", none.stderr);
    assert!(!place.run(&["mcp"]).exits(2).stderr.contains("`resume`"));
    assert!(place.run(&["reusme"]).exits(2).stderr.contains("`resume`"));
    let help = place.run(&["help", "tools", "list"]).exits(0);
    assert_eq!(help.stdout, place.run(&["tools", "list", "--help"]).exits(0).stdout);
    let error = place.run(&["help", "tools", "lst", "--json"]).exits(2).error();
    assert!(error["help"].as_str().unwrap().contains("list"), "{error}");
    for id in ["a\u{200b}b", "a\u{202e}b"] {
        let args = ["run", "p.json", "--script", "s.yaml", "--run-id", id, "--json"];
        assert_eq!(place.run(&args).exits(2).error()["code"], "bad-run-id");
    }
}

/// C-04: errors of `tools` say what to do.
#[test]
fn errors_of_tools_say_what_to_do() {
    let place = place();
    place.write("bad/a.py", "__TOOL_META__ = {\"name\": \"a\",\ndef x(:\n");
    place.write("lit/b.py", "__TOOL_META__ = dict(name=\"b\")\ndef execute(x: int):\n    return {}\n");
    for folder in ["bad", "lit"] {
        for args in
            [["tools", "import", folder, "--json"].as_slice(), &["tools", "test", "--dir", folder, "--json"]]
        {
            let error = place.run(args).exits(2).error();
            assert!(!error["help"].as_str().unwrap().is_empty(), "{error}");
        }
    }
    // Told once, before any tool is looked at; who may write everything is not told.
    place.write("good/c.py", "__TOOL_META__ = {}\n");
    let state = place.work().join("ro");
    std::fs::create_dir(&state).unwrap();
    let mut rights = std::fs::metadata(&state).unwrap().permissions();
    rights.set_readonly(true);
    std::fs::set_permissions(&state, rights).unwrap();
    if std::fs::write(state.join("x"), "").is_err() {
        let args = ["tools", "import", "good", "--state-dir", "ro", "--json"];
        assert_eq!(place.run(&args).exits(4).error()["code"], "state-read-only");
    }
}

/// C-04, C-13: what a person has refused is not to be allowed by an option.
#[test]
fn a_no_is_not_told_to_allow() {
    let place = place();
    let mut node = says("a", "Go");
    node["require_approval"] = json!(true);
    place.plan("ask.json", json!([node]));
    let waits =
        place.run(&["run", "ask.json", "--script", "s.yaml", "--run-id", "r", "--json"]).exits(3).json();
    let ask = waits["asks"][0]["ask"].as_str().unwrap().to_owned();
    place.run(&["answer", "r", &ask, "no"]).exits(1);
    let shown = place.run(&["show", "r"]).exits(0).stdout;
    assert!(shown.contains("answer yes") && !shown.contains("--allow"), "{shown}");
}
