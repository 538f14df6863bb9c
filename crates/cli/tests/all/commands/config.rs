//! Configuration files and variables (C-06, C-14).

use crate::support::{Place, calls, says};
use serde_json::json;

const ECHO: &str = r#"
[tools.command.echo]
description = "Gives back its arguments"
command = ["cat"]
input_schema = { type = "object", properties = { text = { type = "string" } } }
effects = "pure"
"#;

#[test]
fn command_tools_of_the_project_are_there() {
    let place = Place::new();
    place.write("selvedge.toml", ECHO);
    place.write(
        "below/plan.json",
        &json!({"task": "t", "nodes": [calls("a", "echo", json!({"text": "hi"}))]}).to_string(),
    );
    let mut command = place.command(&["run", "plan.json", "--json"]);
    let done = crate::support::finish(command.current_dir(place.work().join("below")).spawn().unwrap());
    assert_eq!(done.exits(0).json()["output"], json!({"text": "hi"}));
}

#[test]
fn a_wrong_file_is_exit_4_with_its_place() {
    let place = Place::new();
    place.plan("plan.json", json!([]));
    place.write("selvedge.toml", "[limits]\nnodes = 10\nmax_paralel = 4\n");
    let done = place.run(&["run", "plan.json", "--json"]).exits(4);
    assert!(done.stderr.contains("selvedge.toml:3:1: error[E-32]"), "{}", done.stderr);
    let error = done.error();
    assert_eq!((&error["line"], &error["column"]), (&json!(3), &json!(1)));
    assert!(error["help"].as_str().unwrap().contains("max_parallel"), "{error}");
}

#[test]
fn later_places_go_over_earlier_ones() {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Go"), says("b", "Go"), says("c", "Go")]));
    place.write("s.yaml", "- reply: {text: x}\n");
    place.write("user.toml", "[budget]\ncalls = 1\n");
    let run = |project: &str, variable: Option<&str>, options: &[&str]| {
        place.write("selvedge.toml", project);
        let mut command =
            place.command(&[&["run", "plan.json", "--script", "s.yaml", "--json"], options].concat());
        command.env("SELVEDGE_CONFIG", place.work().join("user.toml"));
        if let Some(budget) = variable {
            command.env("SELVEDGE_BUDGET", budget);
        }
        let run = crate::support::finish(command.spawn().unwrap()).json();
        run["usage"]["model_calls"].as_u64().unwrap()
    };
    assert_eq!(run("", None, &[]), 1);
    assert_eq!(run("[budget]\ncalls = 2\n", None, &[]), 2);
    assert_eq!(run("[budget]\ncalls = 2\n", Some("calls=1"), &[]), 1);
    assert_eq!(run("[budget]\ncalls = 2\n", Some("calls=1"), &["--budget", "calls=9"]), 3);
}

#[test]
fn a_model_whose_key_is_missing_is_exit_4() {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Go")]));
    place.write("selvedge.toml", "[models.big]\nmodel = \"m\"\napi_key_env = \"MY_KEY\"\n");
    let error = place.run(&["run", "plan.json", "--json"]).exits(4).error();
    assert!(error["message"].as_str().unwrap().contains("MY_KEY"), "{error}");
}
