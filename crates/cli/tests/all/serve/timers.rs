//! Timers of runs that wait (S-12, E-37), and answers that come too late (S-07).

use super::http::Server;
use crate::support::Place;
use serde_json::{Value, json};
use std::time::Duration;

/// A question that expires after so many seconds, and what comes then.
fn question(seconds: f64) -> Value {
    json!({
        "nodes": [
            {"id": "s", "type": "START"},
            {"id": "who", "type": "USER_INTERACTION",
             "config": {"kind": "answer", "prompt": "Who?", "timeout": seconds}},
            {"id": "e", "type": "END"},
            {"id": "late", "type": "END", "config": {"output": "nobody"}},
        ],
        "edges": [{"from": "s", "to": "who"}, {"from": "who", "to": "e"},
                  {"from": "who", "to": "late", "when": "error"}],
    })
}

/// A question without a time in a join that has one.
fn within_a_join() -> Value {
    json!({
        "nodes": [
            {"id": "s", "type": "START"},
            {"id": "f", "type": "FORK",
             "config": {"forkStrategy": "parallel", "forkPathIds": ["a"], "childNodeIds": ["who"]}},
            {"id": "who", "type": "USER_INTERACTION", "config": {"kind": "answer", "prompt": "Who?"}},
            {"id": "j", "type": "JOIN",
             "config": {"forkPathIds": ["a"], "joinStrategy": "ALL_COMPLETED", "timeout": 1}},
            {"id": "e", "type": "END"},
        ],
        "edges": [{"from": "s", "to": "f"}, {"from": "who", "to": "j"}, {"from": "j", "to": "e"}],
    })
}

#[track_caller]
fn is_expired(server: &Server, path: &str) {
    let refused = server.ask("POST", path, Some(&json!({"answer": "Ann"}))).is(409).json();
    assert_eq!(refused["code"], "ask-expired", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains(" expired at 20"), "{refused}");
}

/// S-12: timers of runs that a command has left fire, and those of runs that the server holds.
#[test]
fn s12_a_server_fires_the_timers_of_all_waiting_runs() {
    let place = Place::new();
    place.write("who.json", &question(1.0).to_string());
    place.write("join.json", &within_a_join().to_string());
    place.run(&["run", "who.json", "--run-id", "left"]).exits(3);
    place.run(&["run", "join.json", "--run-id", "join"]).exits(3);
    let server = Server::start(&place, &[]);
    assert_eq!(server.wait("left", "completed")["output"], "nobody");
    let fault = server.wait("join", "failed")["fault"].clone();
    let message = fault["message"].as_str().unwrap();
    assert!(message.ends_with("; under way: who: waits for a person"), "{message}");
    let held = server.begin(question(1.0));
    assert_eq!(server.wait(&held, "completed")["output"], "nobody");
    for run in ["left", "join", &held] {
        is_expired(&server, &format!("/v1/runs/{run}/asks/who"));
    }
}

/// S-12: with `--no-resume` a run that the server does not hold is left alone; its question is marked, and takes no answer.
#[test]
fn s12_an_expired_question_is_marked() {
    let place = Place::new();
    place.write("who.json", &question(0.001).to_string());
    place.run(&["run", "who.json", "--run-id", "left"]).exits(3);
    let server = Server::start(&place, &["--no-resume"]);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(server.get("/v1/asks")["asks"][0]["expired"], true);
    assert_eq!(server.get("/v1/runs/left")["asks"][0]["expired"], true);
    is_expired(&server, "/v1/runs/left/asks/who");
    server.ask("POST", "/v1/runs/left/resume", None).is(200);
    assert_eq!(server.wait("left", "completed")["output"], "nobody");
}
