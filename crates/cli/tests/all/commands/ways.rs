//! What is said of a run that failed: the command that helps, in lines that a terminal does not break inside words (C-04).

use super::terminal::{Terminal, watch};
use crate::support::{Done, Place, says};
use serde_json::json;

/// The command behind these words of stderr, without the program's name.
#[track_caller]
fn command_behind(done: &Done, words: &str) -> Vec<String> {
    let line = done.stderr.lines().find_map(|line| line.split_once(words)).map(|(_, command)| command);
    let line = line.unwrap_or_else(|| panic!("{words:?} is not there: {}", done.stderr));
    line.trim().split(' ').skip(1).map(str::to_owned).collect()
}

#[track_caller]
fn goes_on(place: &Place, command: &[String]) -> Done {
    let words: Vec<&str> = command.iter().map(String::as_str).chain(["-q"]).collect();
    place.run(&words).exits(0)
}

/// A budget that is used up is not gone by itself: what is said raises it.
#[test]
fn a_used_up_budget_is_raised_by_what_is_said() {
    for (cap, raised) in [("calls=1", "calls=2"), ("tokens=9", "tokens=30"), ("cost=0.5", "cost=1.2")] {
        let place = Place::new();
        place.plan("plan.json", json!([says("a", "A"), says("b", "B")]));
        place
            .write("s.yaml", "- reply: {text: ok, usage: {input_tokens: 10, output_tokens: 5, cost: 0.6}}\n");
        let run = ["run", "plan.json", "--script", "s.yaml", "--run-id", "r", "--budget", cap];
        let failed = place.run(&run).exits(1);
        let command = command_behind(&failed, "finished work is kept; with a larger budget: ");
        assert_eq!(command, ["resume", "r", "--budget", raised]);
        let page = place.run(&["show", "r"]).exits(0).stdout;
        assert!(page.contains(&format!("selvedge resume r --budget {raised}")), "{page}");
        assert!(!page.contains("cause is gone"), "{page}");
        goes_on(&place, &command);
    }
}

/// A run keeps the document that it began with: where that is at fault, what is said brings another one.
#[test]
fn a_document_at_fault_is_replaced_by_what_is_said() {
    let place = Place::new();
    place.write(
        "selvedge.toml",
        "[tools.command.open]\ncommand = [\"echo\", '{\"k\": \"word\"}']\ndescription = \"d\"\neffects = \"pure\"\n\
         input_schema = { type = \"object\" }\n",
    );
    let task = |name: &str| {
        let other = json!({"step_id": "b", "tool_id": "open", "parameters": {"x": format!("{{{{a.output.{name}}}}}")}});
        json!({"task": "t", "steps": [{"step_id": "a", "tool_id": "open"}, other]}).to_string()
    };
    place.write("task.json", &task("kk"));
    let failed = place.run(&["run", "task.json", "--run-id", "r"]).exits(1);
    let command = command_behind(&failed, "finished work is kept; with a corrected document: ");
    assert_eq!(command, ["fork", "r", "--document", "task.json"]);
    assert!(!failed.stderr.contains("resume"), "{}", failed.stderr);
    place.write("task.json", &task("k"));
    goes_on(&place, &command);
}

/// What is longer than a line of the terminal is broken at spaces, and a command not at all.
#[test]
fn errors_are_broken_at_spaces() {
    let place = Place::new();
    place.write("bad.json", r#"{"task": "t", "nodes": [{"node_type": "llm-first", "node_name": "A", "thread_id": "main", "task_prompt": "{{nobody}}"}]}"#);
    for columns in [50, 80] {
        let (child, master) = Terminal::new(columns, 24).start(&place, &["check", "bad.json"], &[]);
        let (seen, reader) = watch(master);
        crate::support::finish(child).exits(2);
        reader.join().unwrap();
        let seen = seen.lock().unwrap().replace("\r\n", "\n");
        assert!(seen.lines().all(|line| width(line) <= usize::from(columns)), "{columns}: {seen}");
        let words: Vec<&str> = seen.split_whitespace().collect();
        for word in ["{{nobody}}:", "`inputs`", "`metadata`,", "itself"] {
            assert!(words.contains(&word), "{word} at {columns}: {seen}");
        }
    }
}

/// Columns without colours.
fn width(line: &str) -> usize {
    line.split('\u{1b}')
        .map(|part| part.split_once('m').filter(|_| part.starts_with('[')).map_or(part, |(_, rest)| rest))
        .map(|part| part.chars().count())
        .sum()
}
