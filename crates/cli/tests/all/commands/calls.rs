//! Calls that are wrong, and machines that are (C-03, C-04, C-12).

use crate::support::{Place, says};
use serde_json::json;
use std::process::Stdio;

fn place() -> Place {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Go")]));
    place.write("s.yaml", "- reply: {text: done}\n");
    place
}

#[test]
fn wrong_calls_are_exit_2_with_an_error_object_as_the_last_line() {
    let place = place();
    place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "used"]).exits(0);
    let calls: [&[&str]; 12] = [
        &["run", "missing.json"],
        &["run", "plan.json", "--script", "missing.yaml"],
        &["run", "plan.json", "--no-such-option"],
        &["run", "plan.json", "--script", "s.yaml", "--run-id", "used"],
        &["run", "plan.json", "--script", "s.yaml", "--run-id", "two words"],
        &["run", "plan.json", "--script", "s.yaml", "--input", "novalue"],
        &["run", "plan.json", "--script", "s.yaml", "--budget", "calls=many"],
        &["run", "plan.json", "--script", "s.yaml", "--mcp", "servers.json"],
        &["run", "plan.json", "--dialect", "agent", "--script", "s.yaml"],
        &["resume", "nobody"],
        &["answer", "used", "no-ask", "yes"],
        &["cancel", "nobody"],
    ];
    for call in calls {
        let done = place.run(&[call, &["--json"]].concat()).exits(2);
        assert_eq!(done.stdout, "", "{call:?}");
        let error = done.error();
        for key in ["code", "rule", "message", "help"] {
            assert!(error[key].is_string(), "{call:?}: {key} in {error}");
        }
        place.run(call).exits(2);
    }
    place.run(&[]).exits(2);
}

#[test]
fn an_unknown_run_leaves_no_folder_behind() {
    let place = place();
    place.run(&["resume", "nobody"]).exits(2);
    assert!(!place.state().exists());
}

#[test]
fn help_and_version_are_results() {
    let place = place();
    for command in ["run", "check", "resume", "answer", "cancel"] {
        let done = place.run(&[command, "--help"]).exits(0);
        assert!(done.stdout.contains("Example"), "{command}: {}", done.stdout);
    }
    assert!(place.run(&["--version"]).exits(0).stdout.starts_with("selvedge "));
}

#[test]
fn a_damaged_or_unusable_state_folder_is_exit_4() {
    let place = place();
    let run =
        |dir: &str| place.run(&["run", "plan.json", "--script", "s.yaml", "--json", "--state-dir", dir]);
    place.write("file", "not a folder");
    let done = run("file/state").exits(4);
    assert_eq!(done.stdout, "");
    place.write("damaged/selvedge.db", &"this is no database. ".repeat(500));
    let done = run("damaged").exits(4);
    assert_eq!(done.error()["code"], "state-damaged");
    assert!(!done.error()["help"].as_str().unwrap().is_empty());
}

#[cfg(unix)]
#[test]
fn a_read_only_state_folder_is_exit_4_and_still_shows_ended_runs() {
    use std::os::unix::fs::PermissionsExt;
    let place = place();
    place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r"]).exits(0);
    let mode = |mode| {
        for path in [place.state(), place.state().join("selvedge.db"), place.state().join("locks")] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    mode(0o555);
    // Permissions do not bind the superuser.
    let bound = std::fs::write(place.state().join("probe"), "").is_err();
    if bound {
        place.run(&["run", "plan.json", "--script", "s.yaml"]).exits(4);
        let done = place.run(&["resume", "r", "--json"]).exits(0);
        assert_eq!(done.json()["status"], "completed");
    }
    mode(0o755);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = place();
    let mut child = place.start(&["run", "plan.json", "--script", "s.yaml", "--json"]);
    drop(child.stdout.take());
    let done = crate::support::finish(child).exits(0);
    assert!(!done.stderr.contains("panic") && !done.stderr.contains("internal"), "{}", done.stderr);
    // Nor is a closed stderr.
    let mut child =
        place.command(&["run", "plan.json", "--script", "s.yaml"]).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(crate::support::finish(child).exits(0).stdout, "done\n");
}

#[test]
fn runs_are_kept_in_the_folder_found_upwards() {
    let place = place();
    std::fs::create_dir(place.work().join(".selvedge")).unwrap();
    place.write("below/plan.json", r#"{"task": "t", "nodes": []}"#);
    let mut command = place.command(&["run", "plan.json"]);
    command.env_remove("SELVEDGE_STATE_DIR").current_dir(place.work().join("below"));
    assert!(command.status().unwrap().success());
    assert!(place.work().join(".selvedge/selvedge.db").is_file());
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_can_t_be_written_is_no_success() {
    let place = place();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = place.command(&["run", "plan.json", "--script", "s.yaml"]).stdout(full).spawn().unwrap();
    crate::support::finish(child).exits(4);
    // One rule for all commands: with --json the error is stderr's last line (C-04).
    place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r"]).exits(0);
    for command in [&["show", "r"][..], &["export", "r"], &["explain", "r"], &["runs"], &["schema", "plan"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let child = place.command(&[command, &["--json"]].concat()).stdout(full).spawn().unwrap();
        let done = crate::support::finish(child).exits(4);
        let message = done.error()["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("the result can't be written to stdout: "), "{command:?}: {message}");
        assert_eq!(done.stderr.matches("can't be written").count(), 2, "text and object: {done:?}");
    }
}

#[test]
fn a_wrong_call_is_told_in_full_and_briefly() {
    let place = place();
    let error = place.run(&["--json", "run"]).exits(2).error();
    assert!(error["message"].as_str().unwrap().contains("<FILE>"), "{error}");
    let error = place.run(&["run", "plan.json", "--json", "--timeout", "1e300"]).exits(2).error();
    assert!(error["message"].as_str().unwrap().ends_with("not \"1e300\""), "{error}");
    for id in ["a b", &"x".repeat(300), "-x=", ""] {
        let error = place.run(&["run", "plan.json", "--json", &format!("--run-id={id}")]).exits(2).error();
        let (message, help) = (error["message"].as_str().unwrap(), error["help"].as_str().unwrap());
        assert!(message.len() < 120 && help.contains("1 to 200"), "{error}");
    }
}

/// E-45: a call by hand is told what a run is told of the tool's schema.
#[test]
fn e45_a_pattern_that_nothing_is_held_against_is_told_by_tools_run_too() {
    let place = Place::new();
    let schema = r#"{ type = "object", properties = { a = { pattern = "^(?=x)y" } } }"#;
    place.write(
        "selvedge.toml",
        &format!("[tools.command.odd]\ndescription = \"d\"\ncommand = [\"true\"]\ninput_schema = {schema}\n"),
    );
    let done = place.run(&["tools", "run", "odd", "--args", r#"{"a": "z"}"#]).exits(0);
    assert!(
        done.stderr.contains("/properties/a/pattern") && done.stderr.contains("is not checked"),
        "{done:#?}"
    );
    let done = place.run(&["tools", "run", "odd", "--args", r#"{"a": "z"}"#, "--quiet"]).exits(0);
    assert_eq!(done.stderr, "");
}
