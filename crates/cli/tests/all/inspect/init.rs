//! `init` (C-14): a project that runs at once.

use crate::support::{Place, finish};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs commands as a person would paste them.
fn paste(place: &Place, folder: &Path, commands: &[&str]) -> crate::support::Done {
    let binary = Path::new(env!("CARGO_BIN_EXE_selvedge")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-ec", &commands.join("\n")]).current_dir(folder).env_clear();
    shell
        .env("PATH", format!("{}:{path}", binary.display()))
        .env("HOME", place.work().parent().unwrap().join("home"))
        .env("SELVEDGE_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools-shared"));
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(shell.spawn().unwrap())
}

#[test]
fn a_new_project_runs_with_the_commands_it_prints() {
    let place = Place::new();
    for dir in ["demo", "a folder/it's new"] {
        let made = place.run(&["init", dir, "--json"]).exits(0).json();
        let files = json!([
            "plan.json",
            "script.yaml",
            "selvedge.toml",
            "count_words.py",
            "tools/frequent_words.py",
            "notes.md",
            ".gitignore"
        ]);
        assert_eq!(made["files"], files);
        let next: Vec<&str> =
            made["next"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        let done = paste(&place, &place.work(), &next).exits(0);
        assert!(done.stderr.contains("0 errors, 0 warnings"), "{done:#?}");
        assert!(done.stdout.starts_with("What the Bees Did in March\n"), "{done:#?}");
        assert!(done.stdout.contains("completed"), "the list of runs: {done:#?}");
        // Runs are kept in the project.
        assert!(place.work().join(dir).join(".selvedge/selvedge.db").exists());
        assert_eq!(
            std::fs::read_to_string(place.work().join(dir).join(".gitignore")).unwrap(),
            ".selvedge/\n"
        );
        let checked =
            paste(&place, &place.work().join(dir), &["selvedge run plan.json --script script.yaml --json"]);
        let run = checked.exits(0).json();
        assert_eq!(run["results"]["count"]["output"]["words"], 57);
        let called = run["threads"]["work"].as_array().unwrap();
        let told = called.iter().find(|message| message["name"] == "frequent_words").unwrap();
        assert!(told["content"].as_str().unwrap().contains(r#"{"word":"first","times":2}"#), "{told}");
        assert_eq!((&run["scripted"], &run["warnings"]), (&json!(true), &json!([])));
    }
}

/// C-11: a workflow forks, joins and asks; its questions are answered as the text says.
#[test]
fn a_new_workflow_asks_a_person() {
    let place = Place::new();
    let made = place.run(&["init", "demo", "--dialect", "workflow"]).exits(0).stdout;
    assert!(made.contains("wrote demo/flow.json\n") && !made.contains("plan.json"), "{made}");
    let commands: Vec<&str> = made.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    assert_eq!(commands[2], "selvedge run flow.json --script script.yaml", "{made}");
    let checked = paste(&place, &place.work(), &commands[..2]).exits(0);
    assert!(checked.stderr.contains("0 errors, 0 warnings"), "{checked:#?}");
    let demo = place.work().join("demo");
    let waiting = paste(&place, &demo, &commands[2..3]).exits(3);
    let question = "Which title: plain (\"What the Bees Did in March\") or bold (\"First Flight\")?";
    assert!(waiting.stderr.contains(question), "{waiting:#?}");
    let answer = made.split_once("(exit code 3): ").unwrap().1.lines().next().unwrap();
    let done = paste(&place, &demo, &[answer]).exits(0);
    assert_eq!(done.stdout, "What the Bees Did in March\n");
    let wrong = place.run(&["init", "other", "--dialect", "flow", "--json"]).exits(2);
    assert!(wrong.error()["message"].as_str().unwrap().contains("flow"), "{wrong:?}");
}

/// C-11: a task of steps runs without a model; one of its steps fails where the text is not there, and the script mends it.
#[test]
fn a_new_task_mends_itself() {
    let place = Place::new();
    let made = place.run(&["init", "demo", "--dialect", "steps"]).exits(0).stdout;
    let commands: Vec<&str> = made.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    let done = paste(&place, &place.work(), &commands).exits(0);
    assert!(done.stderr.contains("0 errors, 0 warnings"), "{done:#?}");
    assert!(done.stdout.contains(r#""word": "first""#), "{done:#?}");
    let gone = "selvedge run task.json --script script.yaml --input file=gone.md --json";
    let mended = paste(&place, &place.work().join("demo"), &[gone]).exits(0).json();
    assert_eq!(mended["results"]["count"]["output"]["words"], 57);
    assert_eq!(mended["usage"]["model_calls"], 1);
}

/// C-11, A-06: an agent builds its tool, which is in the project's library then.
#[test]
fn a_new_agent_builds_a_tool() {
    let place = Place::new();
    let made = place.run(&["init", "demo", "--dialect", "agent"]).exits(0).stdout;
    let commands: Vec<&str> = made.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    assert_eq!(commands[2], "selvedge run agent.json --script script.yaml", "{made}");
    let done = paste(&place, &place.work(), &commands).exits(0);
    assert!(done.stderr.contains("0 errors, 0 warnings"), "{done:#?}");
    assert!(done.stdout.starts_with("3 sentences; the longest has 30 words.\n"), "{done:#?}");
    let kept = "selvedge tools run measure_sentences --args '{\"path\": \"notes.md\"}' --json";
    let kept = paste(&place, &place.work().join("demo"), &[kept]).exits(0);
    assert!(kept.stdout.contains(r#""longest":30"#), "{kept:#?}");
}

#[test]
fn people_get_the_commands_too() {
    let place = Place::new();
    let text = place.run(&["init"]).exits(0).stdout;
    let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    assert_eq!(commands[0], "selvedge check plan.json", "{text}");
    paste(&place, &place.work(), &commands).exits(0);
}

#[test]
fn nothing_is_overwritten() {
    let place = Place::new();
    place.write("p/notes.md", "mine");
    let refused = place.run(&["init", "p", "--json"]).exits(2);
    assert!(refused.error()["message"].as_str().unwrap().contains("notes.md"), "{refused:?}");
    assert_eq!(std::fs::read_dir(place.work().join("p")).unwrap().count(), 1, "nothing was written");
    assert_eq!(std::fs::read_to_string(place.work().join("p/notes.md")).unwrap(), "mine");
    // A second time.
    place.run(&["init", "q"]).exits(0);
    let refused = place.run(&["init", "q"]).exits(2);
    assert!(refused.stderr.contains("plan.json, script.yaml, selvedge.toml"), "{refused:?}");
    // What git ignores is the repository's own business.
    place.write("r/.gitignore", "target/\n");
    let made = place.run(&["init", "r", "--json"]).exits(0);
    assert!(!made.json()["files"].as_array().unwrap().contains(&json!(".gitignore")));
    assert!(made.stderr.contains(".selvedge/"), "{made:?}");
    assert_eq!(std::fs::read_to_string(place.work().join("r/.gitignore")).unwrap(), "target/\n");
    place.write("file", "");
    place.run(&["init", "file"]).exits(2);
    place.run(&["init", "file/below"]).exits(2);
}
