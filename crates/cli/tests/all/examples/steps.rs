//! Step tasks.

use super::world::{Done, Example, examples, findings, finish};
use serde_json::{Value, json};
use std::process::Command;

#[test]
fn the_tasks_lack_nothing_but_permission_to_write() {
    for (name, writers) in [("squares", 0), ("load-forecast", 6)] {
        let done = Example::new(name).with_tools("check", "task.json", &[]);
        assert_eq!(done.code, Some(0), "{done:#?}");
        let found = findings(&done);
        let lacks = |found: &Value| found["help"].as_str().is_some_and(|help| help.contains("--allow-write"));
        assert!(found.iter().all(lacks), "{found:#?}");
        assert_eq!(found.len(), writers, "{name}");
    }
    let refused = Example::copy("load-forecast").run("task.json", &[]);
    assert_eq!(refused.code, Some(2), "nothing runs without it: {refused:#?}");
}

#[test]
fn squares_are_added_in_pairs_whatever_ran_first() {
    let example = Example::new("squares");
    for more in [&[][..], &["--sequential"]] {
        let done = example.run("task.json", more);
        assert_eq!(done.code, Some(0), "{done:#?}");
        let result = done.json();
        let of = |step: &str, field: &str| result["results"][step]["output"][field].clone();
        assert_eq!([of("a", "square"), of("b", "square"), of("c", "square")], [25, 64, 144]);
        assert_eq!([of("left", "sum"), of("right", "sum"), of("total", "sum")], [89, 208, 297]);
        assert_eq!(result["output"], json!({"sum": 297}));
    }
}

#[test]
fn a_document_may_be_named_through_another_folder() {
    let example = Example::new("squares");
    let done = example.run("../review/../squares/task.json", &[]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    assert_eq!(done.json()["output"], json!({"sum": 297}));
}

/// D-15: what a check could not look at must not look as if it were right.
#[test]
fn a_check_tells_what_it_could_not_look_at() {
    let example = Example::copy("squares");
    let tool = example.folder.join("tools/square.py");
    // A version that nobody has seen, and no environment to ask for its schema.
    std::fs::write(&tool, std::fs::read_to_string(&tool).unwrap() + "\n# another version\n").unwrap();
    let check = |cache: &std::path::Path| {
        let mut command = example.command(&["check", "task.json", "--tools", "tools"]);
        finish(command.env("SELVEDGE_CACHE_DIR", cache).spawn().unwrap())
    };
    let done = check(example.state.path());
    assert_eq!(done.code, Some(0), "{done:#?}");
    assert!(done.stderr.contains("warning[D-15]") && done.stderr.contains("`square`"), "{done:#?}");
    assert_eq!(example.run("task.json", &[]).code, Some(0));
    let document = example.folder.join("task.json");
    let wrong =
        std::fs::read_to_string(&document).unwrap().replacen("\"{{metadata.third}}\"", "\"twelve\"", 1);
    std::fs::write(&document, wrong).unwrap();
    std::fs::write(&tool, std::fs::read_to_string(&tool).unwrap() + "\n# and another\n").unwrap();
    let shared = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools-shared");
    let done = check(&shared);
    assert_eq!(done.code, Some(2), "the environment is there, so that its schema is asked for: {done:#?}");
}

#[test]
fn the_squares_overlap() {
    let example = Example::new("squares");
    let done = example.run("task.json", &["--run-id", "squares"]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    let events = example.call(&["show", "squares", "--events", "--json"]).json();
    let calls = events["events"].as_array().unwrap().iter();
    let calls = calls.filter(|event| ["requested", "completed"].iter().any(|kind| event["kind"] == *kind));
    let first: Vec<_> = calls.take(3).map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(first, ["requested"; 3], "all three are asked before one has answered");
}

/// Runs the forecast in a folder of its own and returns it with what was printed.
fn forecast(more: &[&str]) -> (Example, Done) {
    let example = Example::copy("load-forecast");
    let done = example.run("task.json", &[&["--allow-write", "out", "--run-id", "forecast"], more].concat());
    assert_eq!(done.code, Some(0), "{done:#?}");
    (example, done)
}

/// What holds of the forecast whichever way step_6 was recovered.
fn sensible(example: &Example, result: &Value) {
    let output = |step: &str| &result["results"][step]["output"];
    assert_eq!(output("step_1")["row_count"], 3316);
    assert_eq!(output("step_3"), &json!({"upload_status": "success", "record_count": 3314}));
    assert_eq!(
        output("step_5")["outliers"].as_array().unwrap().len(),
        8,
        "the values that make_data.py made wrong"
    );
    assert_eq!(result["results"]["step_6"]["attempts"], 2);
    let quality = output("step_7");
    assert!(
        quality["mae_mw"].as_f64().unwrap() < 0.85 * quality["naive_mae_mw"].as_f64().unwrap(),
        "{quality}"
    );
    let values = output("step_8")["forecast"].as_array().unwrap();
    assert_eq!(values.len(), 168);
    assert!(values.iter().all(|value| (250.0..450.0).contains(&value.as_f64().unwrap())), "{values:?}");
    let peak = output("step_8")["peak"]["time"].as_str().unwrap();
    assert!(["2026-05-26T08:00", "2026-05-26T09:00"].contains(&peak), "a working day's morning: {peak}");
    let written = |name: &str| std::fs::read_to_string(example.folder.join("out").join(name)).unwrap();
    assert!(written("report.md").contains("% better than the simplest forecast"));
    assert!(written("report.html").contains("<img src=\"forecast.svg\""));
    for plot in ["forecast.svg", "backtest.svg"] {
        assert!(written(plot).starts_with("<svg ") && written(plot).contains(">MW</text>"), "{plot}");
    }
    let replayed = example.call(&["replay", "forecast"]);
    assert_eq!(replayed.code, Some(0), "{replayed:#?}");
}

#[test]
fn the_forecast_recovers_by_its_alternative_without_a_model() {
    let (example, done) = forecast(&[]);
    let result = done.json();
    assert_eq!(result["usage"]["model_calls"], 0);
    assert_eq!(result["results"]["step_6"]["tool_id"], "fit_calendar_model");
    sensible(&example, &result);
}

#[test]
fn the_forecast_recovers_by_what_the_model_says() {
    let (example, done) = forecast(&["--script", "script.yaml"]);
    let result = done.json();
    assert_eq!(result["usage"]["model_calls"], 1);
    assert_eq!(result["results"]["step_6"]["tool_id"], "fit_smoothing_model");
    let method = result["results"]["step_6"]["output"]["method"].as_str().unwrap();
    assert!(method.ends_with("gaps: last_week)"), "{method}");
    sensible(&example, &result);
}

#[test]
fn the_data_are_those_that_the_scripts_make() {
    for name in ["load-forecast", "two-sources", "invoices", "scan"] {
        let copy = Example::copy(name);
        std::fs::remove_dir_all(copy.folder.join("data")).unwrap();
        let made = Command::new("python3").arg("make_data.py").current_dir(&copy.folder).status().unwrap();
        assert!(made.success());
        let there = std::fs::read_dir(examples().join(name).join("data")).unwrap().map(Result::unwrap);
        let there: Vec<_> =
            there.map(|file| (file.file_name(), std::fs::read(file.path()).unwrap())).collect();
        assert_eq!(std::fs::read_dir(copy.folder.join("data")).unwrap().count(), there.len(), "{name}");
        for (file, text) in there {
            assert!(std::fs::read(copy.folder.join("data").join(&file)).unwrap() == text, "{name}/{file:?}");
        }
    }
}
