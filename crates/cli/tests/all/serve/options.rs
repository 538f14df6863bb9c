//! The options of a request, which mean what the command line's options of the same name mean (S-11).

use super::http::{Server, greeting};
use crate::commands::endpoint::{reply, serve_each};
use crate::support::Place;
use serde_json::{Value, json};

/// A place with the models `one` and `two`, which say their names, and `broken`. `one` plays every role.
fn place() -> Place {
    let (url, _) = serve_each(|request| match request["model"].as_str() {
        Some("broken") => (400, "{}".to_owned()),
        name => (200, reply(name.unwrap_or_default())),
    });
    let place = Place::new();
    let mut config = "[roles]\nbasic = \"one\"\njudge = \"one\"\n".to_owned();
    for name in ["one", "two", "broken"] {
        config.push_str(&format!(
            "[models.{name}]\nprovider = \"openai\"\nbase_url = \"{url}\"\nmodel = \"{name}\"\n"
        ));
    }
    place.write("selvedge.toml", &config);
    place.write("documents/greet.json", &greeting().to_string());
    place
}

/// The output of the run that a request makes.
#[track_caller]
fn output(server: &Server, path: &str, body: &Value) -> Value {
    let made = server.ask("POST", path, Some(body)).is(201).json();
    server.wait(made["run_id"].as_str().unwrap(), "completed")["output"].clone()
}

#[test]
fn s11_a_model_of_a_request_is_that_of_the_command_line() {
    let place = place();
    let server = Server::start(&place, &["--documents", "documents"]);
    for (options, expected) in [
        (json!({}), "one"),
        (json!({"model": "two"}), "two"),
        (json!({"model": "basic=two"}), "two"),
        (json!({"model": "judge=two"}), "one"),
        (json!({"models": {"basic": "two"}}), "two"),
        (json!({"models": {"judge": "two"}}), "one"),
        (json!({"models": {"*": "two"}}), "two"),
        (json!({"model": "two", "models": {"basic": "one"}}), "one"),
    ] {
        let body = json!({"document": greeting(), "options": options});
        assert_eq!(output(&server, "/v1/runs", &body), expected, "{options}");
        let named = json!({"options": options});
        assert_eq!(output(&server, "/v1/documents/greet/runs", &named), expected, "{options}");
    }
    // The command line says the same.
    for (option, expected) in [("two", "two"), ("basic=two", "two"), ("judge=two", "one"), ("*=two", "two")] {
        let run = place.run(&["run", "documents/greet.json", "--model", option, "--json"]).exits(0).json();
        assert_eq!(run["output"], expected, "{option}");
    }
}

#[test]
fn s11_forks_and_resumes_take_the_model_of_a_request() {
    let place = place();
    let server = Server::start(&place, &[]);
    let run = server.begin(greeting());
    server.wait(&run, "completed");
    let other = json!({"options": {"model": "two"}});
    let fork = json!({"at": 1, "options": {"model": "two"}});
    let plan = server.ask("POST", &format!("/v1/runs/{run}/fork/plan"), Some(&fork)).is(200).json();
    assert_eq!(plan["nodes"][0]["would"], "run", "{plan}");
    assert_eq!(output(&server, &format!("/v1/runs/{run}/fork"), &fork), "two");

    let broken = json!({"document": greeting(), "options": {"model": "broken"}, "run_id": "failed"});
    server.ask("POST", "/v1/runs", Some(&broken)).is(201);
    server.wait("failed", "failed");
    server.ask("POST", "/v1/runs/failed/resume", Some(&other)).is(200);
    assert_eq!(server.wait("failed", "completed")["output"], "two");
}

#[test]
fn s11_options_of_a_request_are_read_as_those_of_the_command_line() {
    let place = place();
    let server = Server::start(&place, &[]);
    for (options, code) in [
        (json!({"model": ""}), "bad-model"),
        (json!({"model": "judge="}), "bad-model"),
        (json!({"models": {"judge": " "}}), "bad-model"),
        (json!({"models": {"": "two"}}), "bad-model"),
        (json!({"budget": {"calls": -1}}), "bad-option"),
        (json!({"budget": {"cost": -0.5}}), "bad-option"),
        (json!({"max_parallel": 0}), "bad-option"),
        (json!({"timeout_s": 0}), "bad-timeout"),
        (json!({"timeout_s": 1e300}), "bad-timeout"),
    ] {
        let body = json!({"document": greeting(), "options": options});
        let refused = server.ask("POST", "/v1/runs", Some(&body)).is(400).json();
        assert_eq!(refused["code"], code, "{options}");
        assert!(refused["detail"].as_str().is_some_and(|detail| detail.len() < 200), "{refused}");
    }
    let caps = json!({"calls": 3.0, "tokens": 1e6, "cost": 0.5});
    let body = json!({"document": greeting(), "options": {"budget": caps, "timeout_s": 0.5}});
    assert_eq!(output(&server, "/v1/runs", &body), "one");
}
