//! Whom a stranger's folder may start (C-20): what a case can't say, which is a terminal, files of the user, and tools that lie.

use super::terminal::{Terminal, wait_until, watch};
use crate::support::{Done, Place, calls, finish};
use serde_json::json;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

const CONFIG: &str = "[tools.command.mark]\ncommand = [\"sh\", \"-c\", \"touch started; echo 1\"]\neffects = \"read\"\n\
                      input_schema = { type = \"object\" }\n";

/// A folder as it was cloned: nobody has trusted it.
fn clone() -> Place {
    let place = Place::new();
    place.write("selvedge.toml", CONFIG);
    place.plan("plan.json", json!([calls("a", "mark", json!({}))]));
    place
}

fn stranger(place: &Place, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command.env_remove("SELVEDGE_TRUST");
    command
}

fn run(place: &Place, args: &[&str]) -> Done {
    finish(stranger(place, args).spawn().unwrap())
}

/// Gives an answer on a terminal; what was shown there.
fn answered(place: &Place, args: &[&str], answer: &str) -> (Done, String) {
    let (child, master) = Terminal::new(120, 40).ask(&mut stranger(place, args));
    let mut keys = master.try_clone().unwrap();
    let (seen, reader) = watch(master);
    wait_until(&seen, "[y/N]");
    keys.write_all(answer.as_bytes()).unwrap();
    let done = finish(child);
    drop(keys);
    reader.join().unwrap();
    let seen = seen.lock().unwrap().clone();
    (done, seen)
}

fn records(place: &Place) -> PathBuf {
    place.work().join("../home/.local/share/selvedge/trust")
}

/// C-20: a person is asked on a terminal, sees what it is about, and is asked once; no is no, also for the next command.
#[test]
fn c20_a_terminal_is_asked() {
    let place = clone();
    let (done, seen) = answered(&place, &["run", "plan.json"], "n\n");
    assert_eq!(done.code, 4, "{seen}");
    assert!(seen.contains("touch started; echo 1") && seen.contains("tools.command.mark, line 1"), "{seen}");
    assert!(!place.work().join("started").exists() && !records(&place).exists());
    for answer in ["\n", "\u{4}"] {
        assert_eq!(answered(&place, &["check", "plan.json"], answer).0.code, 4);
    }
    let (done, seen) = answered(&place, &["run", "plan.json"], "y\n");
    assert_eq!((done.code, done.stdout.as_str()), (0, "1\n"), "{seen}");
    assert_eq!(run(&place, &["run", "plan.json"]).exits(0).stdout, "1\n");
    // What is kept is the user's alone.
    for entry in std::fs::read_dir(records(&place)).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(std::fs::metadata(records(&place)).unwrap().permissions().mode() & 0o777, 0o700);
}

/// C-20: machine output, quiet commands and completions ask nobody, whatever they stand on.
#[test]
fn c20_scripts_are_not_asked() {
    let place = clone();
    for (args, code) in [
        (&["run", "plan.json", "--json"][..], 4),
        (&["run", "plan.json", "--quiet"], 4),
        (&["doctor", "--json"], 0),
        (&["__complete", "--", "run", ""], 0),
        (&["completions", "bash"], 0),
    ] {
        let (child, master) = Terminal::new(120, 40).ask(&mut stranger(&place, args));
        let (seen, reader) = watch(master);
        assert_eq!(finish(child).code, code, "{args:?}");
        reader.join().unwrap();
        assert!(!seen.lock().unwrap().contains("[y/N]"), "{args:?}");
    }
    assert!(!place.work().join("started").exists());
    let wrong = finish(
        stranger(&place, &["check", "plan.json", "--json"]).env("SELVEDGE_TRUST", "yes").spawn().unwrap(),
    );
    assert_eq!(wrong.exits(4).error()["code"], "bad-variable");
}

/// C-20: a folder is what its links lead to, and what is trusted in one is not in a copy of it.
#[test]
fn c20_a_folder_is_known_by_its_real_path() {
    let place = clone();
    run(&place, &["trust", "--yes"]).exits(0);
    let link = place.work().join("../link");
    symlink(place.work(), &link).unwrap();
    finish(stranger(&place, &["run", "plan.json", "-q"]).current_dir(&link).spawn().unwrap()).exits(0);
    std::fs::create_dir(place.work().join("copy")).unwrap();
    place.write("copy/selvedge.toml", CONFIG);
    finish(stranger(&place, &["trust"]).current_dir(place.work().join("copy")).spawn().unwrap()).exits(4);
}

/// C-20: a tool that may write the user's folder does not trust anything in his name.
#[test]
fn c20_no_tool_trusts() {
    let place = clone();
    let there = place.work().parent().unwrap().join("home/.local/share/selvedge/trust/x.json");
    place.plan("write.json", json!([calls("a", "write_file", json!({"path": there, "content": "{}"}))]));
    for grant in ["../home", "../home/.local/share/selvedge"] {
        let done = run(&place, &["run", "write.json", "--allow-write", grant, "--json"]).exits(1);
        assert_eq!(done.json()["fault"]["kind"], "denied", "{done:?}");
        assert!(!there.exists());
        std::fs::remove_dir_all(place.work().join("../home/.local")).unwrap();
    }
}

/// C-20: names are as they stand in the file, whatever they are made of, and are shown without what steers a terminal.
#[test]
fn c20_names_hide_nothing() {
    let place = clone();
    let odd = CONFIG.replace("command.mark", "command.\"ma\\u001B[2Jrk\\u202E\"");
    place.write("selvedge.toml", &odd);
    place.plan("plan.json", json!([calls("a", "ma\u{1b}[2Jrk\u{202e}", json!({}))]));
    let done = run(&place, &["run", "plan.json"]).exits(4);
    assert!(!place.work().join("started").exists(), "{done:?}");
    for shown in [done.stderr, run(&place, &["trust"]).stdout] {
        assert!(
            !shown.contains(['\u{1b}', '\u{202e}']) && shown.contains("ma\\u{1b}[2Jrk\\u{202e}"),
            "{shown:?}"
        );
    }
}

/// C-20: what the user made is his own; a copy of it is a stranger's until he says otherwise.
#[test]
fn c20_runs_of_ones_own_go_on() {
    let place = clone();
    place.plan("fails.json", json!([calls("a", "read_file", json!({"path": "nowhere"}))]));
    let own = |folder: &str, args: &[&str]| {
        let mut command = stranger(&place, args);
        command.env_remove("SELVEDGE_STATE_DIR").current_dir(place.work().join(folder));
        finish(command.spawn().unwrap())
    };
    std::fs::create_dir_all(place.work().join("mine/.selvedge")).unwrap();
    // The document lies outside of the folder: a stranger's run could read there.
    own("mine", &["run", "../fails.json", "--run-id", "r", "-q"]).exits(1);
    own("mine", &["resume", "r", "-q"]).exits(1);
    let copied =
        Command::new("cp").args(["-r", "mine", "theirs"]).current_dir(place.work()).status().unwrap();
    assert!(copied.success());
    for args in [&["resume", "r", "--json"][..], &["fork", "r", "--json"]] {
        assert_eq!(own("theirs", args).exits(4).error()["code"], "not-trusted");
    }
    own("theirs", &["show", "r"]).exits(0);
    own("theirs", &["trust", "--yes"]).exits(0);
    own("theirs", &["resume", "r", "-q"]).exits(1);
}
