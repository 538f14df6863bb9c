//! `completions` (C-10): in a real shell, as far as there is one.

use super::world::{completed, place, waiting};
use crate::support::{Done, Place, finish};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a shell prints that is given this script, with the binary on its PATH.
fn shell(place: &Place, shell: &str, args: &[&str], script: &str) -> Done {
    let binary = Path::new(env!("CARGO_BIN_EXE_selvedge")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(shell);
    command.args(args).arg("-c").arg(script).current_dir(place.work()).env_clear();
    command.env("PATH", format!("{}:{path}", binary.display())).env("HOME", place.work());
    command.env("SELVEDGE_STATE_DIR", place.state());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command.spawn().unwrap())
}

/// What bash offers for a line whose last word the cursor is at the end of.
fn bash(place: &Place, words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "set -e; source <(selvedge completions bash); COMP_WORDS=({}); COMP_CWORD={}; \
         _selvedge selvedge '{}'; for word in \"${{COMPREPLY[@]}}\"; do echo \"$word\"; done",
        quoted.join(" "),
        words.len() - 1,
        words[words.len() - 1],
    );
    let done = shell(place, "bash", &["--norc", "--noprofile"], &script).exits(0);
    assert_eq!(done.stderr, "", "completions are silent");
    done.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_values_and_runs() {
    let place = place();
    completed(&place, "done-1");
    completed(&place, "done-2");
    waiting(&place, "waits");
    assert_eq!(bash(&place, &["selvedge", "comp"]), ["completions"]);
    assert_eq!(bash(&place, &["selvedge", "run", "--scr"]), ["--script"]);
    assert_eq!(bash(&place, &["selvedge", "graph", "x.json", "--format", "d"]), ["dot"]);
    assert_eq!(bash(&place, &["selvedge", "graph", "x.json", "--format", "=", "d"]), ["dot"]);
    assert_eq!(bash(&place, &["selvedge", "graph", "x.json", "--format", "=", ""]), ["mermaid", "dot"]);
    assert_eq!(bash(&place, &["selvedge", "show", ""]), ["waits", "done-2", "done-1"], "latest first");
    assert_eq!(bash(&place, &["selvedge", "explain", "done"]), ["done-2", "done-1"]);
    assert_eq!(bash(&place, &["selvedge", "answer", ""]), ["waits"], "only what can be answered");
    assert_eq!(bash(&place, &["selvedge", "answer", "waits", ""]), ["a/approve"]);
    assert_eq!(bash(&place, &["selvedge", "explain", "waits", "--node", ""]), ["a", "b"]);
    assert_eq!(bash(&place, &["selvedge", "run", ""]), [] as [&str; 0], "files are bash's own business");
    let elsewhere = place.work().join("none").display().to_string();
    assert_eq!(bash(&place, &["selvedge", "--state-dir", &elsewhere, "show", ""]), [] as [&str; 0]);
}

/// What fits nowhere is not offered: no files where none are meant, and only words that are taken.
#[test]
fn only_what_fits_is_offered() {
    let place = place();
    waiting(&place, "waits");
    let offered = |words: &[&str]| place.run(&[&["__complete", "--"], words].concat()).exits(0).stdout;
    for words in [
        &["fork", "waits", "--at", ""][..],
        &["run", "sums.json", "--budget", ""],
        &["run", "sums.json", "--run-id", ""],
        &["run", "sums.json", "--plan", ""],
        &["show", "waits", "--thread", ""],
        &["answer", "waits", "nothing", ""],
    ] {
        assert_eq!(offered(words), "\t\n", "{words:?}");
    }
    for words in
        [&["run", ""][..], &["run", "x.json", "--script", ""], &["run", "--script="], &["--state-dir", ""]]
    {
        assert_eq!(offered(words), "", "files fit: {words:?}");
    }
    assert_eq!(offered(&["answer", "waits", "a/approve", ""]), "yes\nno\n");
    assert_eq!(offered(&["schema", ""]), "plan\nsteps\nworkflow\nagent\nscript\nconfig\n");
    place.write("many.json", r#"{"one": {"nodes": []}, "two": {"nodes": []}}"#);
    assert_eq!(offered(&["run", "many.json", "--plan", "t"]), "two\n");
    // In bash: an empty word turns the completion of files off, and is not offered.
    assert_eq!(bash(&place, &["selvedge", "fork", "waits", "--at", ""]), [] as [&str; 0]);
    assert_eq!(bash(&place, &["selvedge", "answer", "waits", "a/approve", ""]), ["yes", "no"]);
}

/// In the shell as people use it: the tab key itself, so that registering is tested too.
#[test]
fn bash_registers_the_completion() {
    let place = place();
    let done = shell(
        &place,
        "bash",
        &["--norc", "--noprofile"],
        "source <(selvedge completions bash); complete -p selvedge",
    );
    let done = done.exits(0);
    assert!(done.stdout.contains("-F _selvedge selvedge"), "{done:?}");
}

/// Nothing is said and nothing created, whatever is wrong; and a person does not wait.
#[test]
fn errors_are_silent_and_answers_quick() {
    let place = place();
    completed(&place, "one");
    let words =
        [&["show", ""][..], &["nonsense", "x"], &["show", "--at", "x", ""], &["answer", "x", ""], &[]];
    for words in words {
        let done = place.run(&[&["__complete", "--"], words].concat()).exits(0);
        assert_eq!(done.stderr, "", "{words:?}");
    }
    let begun = Instant::now();
    for _ in 0..10 {
        place.run(&["__complete", "--", "show", ""]).exits(0);
    }
    // A tenth of that where nothing else runs, and much less with optimisation.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    place.write("state-file", "");
    let odd = place.run(&["__complete", "--", "--state-dir", "state-file", "show", ""]).exits(0);
    assert_eq!((odd.stdout.as_str(), odd.stderr.as_str()), ("\t\n", ""));
    let missing = place.work().join("missing");
    let done =
        place.run(&["__complete", "--", "--state-dir", missing.to_str().unwrap(), "show", ""]).exits(0);
    assert_eq!((done.stdout.as_str(), missing.exists()), ("\t\n", false));
}

#[test]
fn scripts_are_printed_for_each_shell() {
    let place = Place::new();
    for name in ["bash", "zsh", "fish"] {
        let script = place.run(&["completions", name]).exits(0).stdout;
        assert!(script.contains("__complete"), "{script}");
        let object = place.run(&["completions", name, "--json"]).exits(0).json();
        assert_eq!((object["shell"].as_str(), object["script"].as_str()), (Some(name), Some(&*script)));
    }
    place.run(&["completions", "tcsh"]).exits(2);
}
