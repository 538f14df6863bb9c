//! What changes runs (S-01, S-03, S-07), and what goes on when a server starts again.

use super::http::{Server, asking, greeting};
use crate::support::Place;
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

fn place() -> Place {
    let place = Place::new();
    place.write("replies.yaml", "- reply: {text: Hello.}\n");
    place.write("slow.yaml", "- reply: {text: Late., delay_ms: 600000}\n");
    place
}

#[test]
fn s07_the_same_request_means_the_same_run() {
    let place = place();
    let server = Server::start(&place, &["--script", "replies.yaml"]);
    let start = json!({"document": greeting(), "run_id": "mine"});
    server.ask("POST", "/v1/runs", Some(&start)).is(201);
    server.wait("mine", "completed");
    let again = server.ask("POST", "/v1/runs", Some(&start)).is(200).json();
    assert_eq!(again["run_id"], "mine");
    let other = json!({"document": asking(), "run_id": "mine"});
    assert_eq!(server.ask("POST", "/v1/runs", Some(&other)).is(409).json()["code"], "run-id-used");

    // A key of the request's own does the same without an id.
    let token = format!("Authorization: Bearer {}", server.token);
    let keyed = |document: serde_json::Value| {
        let body = json!({"document": document}).to_string();
        server.send("POST", "/v1/runs", &[&token, "Idempotency-Key: k1"], Some(&body))
    };
    let first = keyed(greeting()).is(201).json();
    let second = keyed(greeting()).is(200).json();
    assert_eq!(first["run_id"], second["run_id"]);
    keyed(asking()).is(409);

    // So it is with forks, also of what `@` meant then.
    let forked = |of: &str, key: &str| {
        let key = format!("Idempotency-Key: {key}");
        server.send("POST", &format!("/v1/runs/{of}/fork"), &[&token, &key], Some("{}"))
    };
    for (of, key) in [("mine", "f1"), ("@", "f2")] {
        let first = forked(of, key).is(201).json();
        let second = forked(of, key).is(200).json();
        assert_eq!((&first["run_id"], &first["fork_of"]), (&second["run_id"], &second["fork_of"]));
    }
    forked("@", "f1").is(409);

    // So do requests that are made at the same time.
    let runs: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let body = json!({"document": greeting()}).to_string();
                    let made = server.send("POST", "/v1/runs", &[&token, "Idempotency-Key: k2"], Some(&body));
                    (made.status, made.json()["run_id"].clone())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(runs.iter().filter(|(status, _)| *status == 201).count(), 1, "{runs:?}");
    assert!(runs.iter().all(|(_, run)| *run == runs[0].1), "{runs:?}");
}

/// Who asks for a run and is gone before the answer has either begun none, or one that is driven.
#[test]
fn s03_a_run_is_driven_whether_or_not_somebody_waits_for_its_answer() {
    let place = place();
    let server = Server::start(&place, &["--script", "replies.yaml"]);
    let body = json!({"document": greeting()}).to_string();
    let request = format!(
        "POST /v1/runs HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        server.token,
        body.len()
    );
    for gone in 0..64 {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_micros(gone * 150));
    }
    // The last one: all before it have come, or never will.
    let last = server.begin(greeting());
    server.wait(&last, "completed");
    let runs = server.get("/v1/runs?limit=500")["runs"].clone();
    for run in runs.as_array().unwrap() {
        server.wait(run["run_id"].as_str().unwrap(), "completed");
    }
}

#[test]
fn s07_an_answer_may_be_given_twice() {
    let place = place();
    let server = Server::start(&place, &[]);
    let run = server.begin(asking());
    server.wait(&run, "waiting");
    let ask = server.get(&format!("/v1/runs/{run}"))["asks"][0]["ask"].as_str().unwrap().replace('/', "%2F");
    let path = format!("/v1/runs/{run}/asks/{ask}");
    assert_eq!(server.ask("POST", &path, Some(&json!({}))).is(400).json()["code"], "bad-body");
    server.ask("POST", &path, Some(&json!({"answer": "I am", "by": "Ann"}))).is(200);
    let done = server.wait(&run, "completed");
    assert_eq!(done["output"], "I am");
    server.ask("POST", &path, Some(&json!({"answer": "I am", "by": "Ann"}))).is(200);
    let refused = server.ask("POST", &path, Some(&json!({"answer": "I am not"}))).is(409).json();
    let message = refused["message"].as_str().unwrap();
    assert_eq!(refused["code"], "ask-answered");
    assert!(message.ends_with(" UTC: I am, by Ann"), "{message}");
    // Also by the name of the node that asked.
    let named = format!("/v1/runs/{run}/asks/sure");
    server.ask("POST", &named, Some(&json!({"answer": "I am"}))).is(200);
    server.ask("POST", &named, Some(&json!({"answer": "I am not"}))).is(409);
    let unknown = format!("/v1/runs/{run}/asks/nobody");
    server.ask("POST", &unknown, Some(&json!({"answer": "I am"}))).is(404);
}

/// The same answer by many at once: whoever is first, all are told that it holds.
#[test]
fn s07_an_answer_may_be_given_twice_at_the_same_time() {
    let place = place();
    let server = Server::start(&place, &[]);
    for _ in 0..4 {
        let run = server.begin(asking());
        server.wait(&run, "waiting");
        let asks = server.get(&format!("/v1/runs/{run}"))["asks"][0]["ask"].clone();
        let path = format!("/v1/runs/{run}/asks/{}", asks.as_str().unwrap().replace('/', "%2F"));
        let said: Vec<u16> = std::thread::scope(|scope| {
            let one = || server.ask("POST", &path, Some(&json!({"answer": "I am"}))).status;
            let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(said, [200; 8]);
        assert_eq!(server.wait(&run, "completed")["output"], "I am");
    }
}

#[test]
fn s03_runs_are_told_by_their_api() {
    let place = place();
    place.write("docs/greet.json", &greeting().to_string());
    let server = Server::start(&place, &["--script", "slow.yaml", "--documents", "docs"]);
    let known = server.get("/v1/documents");
    assert_eq!(
        (&known["documents"][0]["name"], &known["documents"][0]["dialect"]),
        (&json!("greet"), &json!("plan"))
    );
    let made = server.ask("POST", "/v1/documents/greet/runs", Some(&json!({}))).is(201);
    let run = made.json()["run_id"].as_str().unwrap().to_owned();
    assert_eq!(made.header("Location"), Some(&*format!("/v1/runs/{run}")));
    server.ask("POST", &format!("/v1/runs/{run}/resume"), None).is(409);
    server.ask("POST", &format!("/v1/runs/{run}/cancel"), None).is(200);
    server.wait(&run, "cancelled");
    // Another document from its beginning on.
    let fork = json!({"at": 1, "document": asking()});
    let forked = server.ask("POST", &format!("/v1/runs/{run}/fork"), Some(&fork)).is(201).json();
    assert_eq!(forked["fork_of"]["run"], json!(run));
    server.wait(forked["run_id"].as_str().unwrap(), "waiting");
    let found =
        server.ask("POST", "/v1/check", Some(&json!({"document": {"task": "t", "nodes": 3}}))).is(200);
    assert_eq!(found.json()["diagnostics"][0]["severity"], "error");
}

#[test]
fn s05_a_document_within_a_body_is_read_as_it_was_sent() {
    let place = place();
    let server = Server::start(&place, &[]);
    let token = format!("Authorization: Bearer {}", server.token);
    let send = |path: &str, body: &str| server.send("POST", path, &[&token], Some(body));
    let twice = "{\"document\": {\n  \"task\": \"one\",\n  \"task\": \"another\", \"nodes\": []\n}}";
    let found = send("/v1/check", twice).is(200).json();
    let first = &found["diagnostics"][0];
    assert_eq!(
        (&first["code"], &first["line"], &first["column"]),
        (&json!("duplicate-key"), &json!(3), &json!(3)),
        "{found}"
    );
    assert_eq!(send("/v1/runs", twice).is(422).json()["code"], "duplicate-key");
    for (body, code) in [
        ("{\"document\": 3}", "bad-body"),
        ("[\"{}\"]", "bad-body"),
        ("null", "bad-body"),
        ("{\"document\": {}, \"options\": [\"mock\"]}", "bad-body"),
        ("{\"document\": {}} {}", "no-json"),
        ("{\"document\": {\"task\": }}", "no-json"),
        ("{\"document\": {\"task\": \"t\"}, \"document\": {}}", "bad-body"),
        ("{\"document\": {}, \"options\": {\"budget\": [1, 2, 3]}}", "bad-body"),
        ("{\"document\": {}, \"inputs\": {\"a\": 1, \"a\": 2}}", "bad-body"),
        ("{\"document\": {}, \"inputs\": {\"a\": [{\"b\": 1, \"b\": 2}]}}", "bad-body"),
        ("{\"document\": {\"task\": 1e400}, \"inputs\": {\"a\": 123456789012345678901}}", "no-json"),
        (
            "{\"document\": {\"of\": 123456789012345678901}, \"inputs\": {\"a\": 123456789012345678901}}",
            "bad-body",
        ),
        ("{\"document\": {}, \"options\": {\"models\": {\"judge\": \"a\", \"judge\": \"b\"}}}", "bad-body"),
        (&format!("{{\"document\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000)), "no-json"),
    ] {
        assert_eq!(send("/v1/runs", body).is(400).json()["code"], code, "{}", body.get(..60).unwrap_or(body));
    }
    // How deep a document may be is said of the document, wherever it lies.
    let deep = format!("{{\"document\":\n {{\"task\": {}{}}}}}", "[".repeat(200), "]".repeat(200));
    let deep = send("/v1/runs", &deep).is(422).json();
    assert_eq!(
        (&deep["code"], &deep["line"], &deep["column"]),
        (&json!("nesting-limit"), &json!(1), &json!(137)),
        "{deep}"
    );
    let placed = send("/v1/runs", "{\"name\": \"a\",\n \"inputs\": {\"a\": 1, \"a\": 2}}").is(400).json();
    let detail = placed["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("\"a\" occurs twice") && detail.contains("line 2 column 21"), "{placed}");
    let typed =
        send("/v1/runs", "{\"document\": {}, \"options\": {\"budget\": {\"calls\": \"x\"}}}").is(400).json();
    assert!(typed["help"].as_str().is_some_and(|help| help.contains("openapi.json")), "{typed}");
}

#[test]
fn s06_a_body_says_each_thing_once_and_exactly() {
    let place = place();
    let server = Server::start(&place, &[]);
    let token = format!("Authorization: Bearer {}", server.token);
    let run = server.begin(asking());
    server.wait(&run, "waiting");
    let refused = |path: &str, body: &str| {
        let said = server.send("POST", &format!("/v1/runs/{run}/{path}"), &[&token], Some(body));
        assert_eq!(said.is(400).json()["code"], "bad-body", "{body}");
    };
    let ask = server.get(&format!("/v1/runs/{run}"))["asks"][0]["ask"].as_str().unwrap().replace('/', "%2F");
    refused(&format!("asks/{ask}"), "{\"answer\": {\"a\": 1, \"a\": 2}}");
    refused(&format!("asks/{ask}"), "{\"answer\": 123456789012345678901}");
    refused("fork", "{\"messages\": [[3, \"another text\"]]}");
    assert_eq!(server.get(&format!("/v1/runs/{run}"))["status"], "waiting");
}

#[test]
fn s01_what_it_drove_when_it_died_goes_on() {
    let place = place();
    let server = Server::start(&place, &["--script", "slow.yaml"]);
    let run = server.begin(greeting());
    let asks = server.begin(asking());
    server.wait(&asks, "waiting");
    server.kill();
    // It goes on with the script of now, and not before it may.
    let resting = Server::start(&place, &["--no-resume"]);
    assert_eq!(resting.get(&format!("/v1/runs/{run}"))["driven"], false);
    resting.kill();
    place.write("slow.yaml", "- reply: {text: In time.}\n");
    let server = Server::start(&place, &[]);
    assert_eq!(server.wait(&run, "completed")["output"], "In time.");
    server.wait(&asks, "waiting");
}

#[test]
fn s01_a_server_that_is_told_to_stop_leaves_runs_that_go_on() {
    let place = place();
    let server = Server::start(&place, &["--script", "slow.yaml"]);
    let run = server.begin(greeting());
    assert_eq!(server.terminate(), Some(130));
    let shown = place.run(&["show", &run, "--json"]).exits(0).json();
    assert_eq!(shown["status"], "running");
    place.write("slow.yaml", "- reply: {text: Now.}\n");
    assert_eq!(place.run(&["resume", &run, "--json"]).exits(0).json()["output"], "Now.");
}
