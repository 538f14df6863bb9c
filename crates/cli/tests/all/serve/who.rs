//! Who may (S-01, S-02, S-06).

use super::http::{Server, greeting};
use crate::support::Place;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;

fn place() -> Place {
    let place = Place::new();
    place.write("replies.yaml", "- reply: {text: Hello.}\n");
    place
}

#[test]
fn s01_a_port_that_is_taken_is_left_for_the_next() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let place = place();
    let mut child = place.start(&["serve", "--listen", &format!("127.0.0.1:{port}")]);
    let mut url = [0; 64];
    let read = child.stdout.as_mut().unwrap().read(&mut url).unwrap();
    let url = String::from_utf8_lossy(&url[..read]).into_owned();
    child.kill().unwrap();
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    child.wait().unwrap();
    assert!(url.starts_with("http://127.0.0.1:") && url.contains("/#token="), "{url}");
    assert!(!url.contains(&format!(":{port}/")), "{url}");
    assert!(told.contains(&format!("127.0.0.1:{port} is taken")), "{told}");
}

#[test]
fn c19_serve_says_how_it_is_used_and_what_is_wrong() {
    let place = place();
    let help = place.run(&["help", "serve"]).exits(0);
    for option in ["--listen", "--documents", "--max-runs", "--token-file", "--no-resume", "--model"] {
        assert!(help.stdout.contains(option), "{option}: {help:#?}");
    }
    let missing = place.run(&["serve", "--documents", "nowhere", "--json"]).exits(2);
    assert_eq!(missing.error()["code"], "file-not-found");
    let token = place.run(&["serve", "--token-file", "nowhere", "--json"]).exits(2);
    assert_eq!(token.error()["code"], "no-token-file");
}

#[test]
fn s02_an_address_beyond_loopback_needs_somebody_in_front() {
    let place = place();
    let refused = place.run(&["serve", "--listen", "0.0.0.0:0", "--json"]).exits(2);
    assert_eq!(refused.error()["code"], "not-loopback");
}

#[test]
fn s02_who_has_no_token_is_told_nothing() {
    let place = place();
    place.write("token", "operator-word\n");
    place.write("viewers", "viewer-word\n");
    let server = Server::start(&place, &["--token-file", "token", "--viewer-token-file", "viewers"]);
    assert_eq!(server.token, "operator-word");
    let with =
        |method: &str, header: &str, body: Option<&str>| server.send(method, "/v1/runs", &[header], body);
    let none = with("GET", "X: y", None).is(401);
    assert_eq!((none.header("WWW-Authenticate"), &none.json()["code"]), (Some("Bearer"), &json!("no-token")));
    with("GET", "Authorization: Bearer operator-wor", None).is(401);
    with("GET", "Authorization: Bearer operator-word", None).is(200);
    with("GET", "Authorization: Bearer viewer-word", None).is(200);
    let body = json!({"document": greeting()}).to_string();
    let refused = with("POST", "Authorization: Bearer viewer-word", Some(&body)).is(403);
    assert_eq!(refused.json()["code"], "may-not-act");

    // The page trades its token for a cookie, and is then known by it.
    server.send("POST", "/v1/session", &[], Some(r#"{"token": "wrong"}"#)).is(401);
    let traded = server.send("POST", "/v1/session", &[], Some(r#"{"token": "viewer-word"}"#)).is(204);
    let cookie = traded.header("Set-Cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let session = server.send("GET", "/v1/session", &[&cookie], None).is(200);
    assert_eq!(session.json()["role"], "viewer");

    // No other name of this machine, and no other site's page.
    let token = "Authorization: Bearer operator-word";
    let foreign = |header: &str| server.send("GET", "/v1/runs", &[token, header], None).is(403).json();
    assert_eq!(foreign("Host: evil.example")["code"], "foreign-request");
    assert_eq!(foreign("Origin: http://evil.example")["code"], "foreign-request");
    server.send("GET", "/v1/runs", &[token, &format!("Origin: http://{}", server.address)], None).is(200);
}

#[test]
fn s06_what_is_wrong_is_a_problem_with_the_fields_of_errors() {
    let place = place();
    let server = Server::start(&place, &["--script", "replies.yaml"]);
    let problem = |method: &str, path: &str, body: Option<&str>, status: u16| {
        let token = format!("Authorization: Bearer {}", server.token);
        let answer = server.send(method, path, &[&token], body).is(status);
        assert_eq!(answer.header("Content-Type"), Some("application/problem+json"), "{answer:#?}");
        let problem = answer.json();
        assert_eq!(problem["status"], status, "{problem}");
        assert!(problem["help"].is_string() || problem["help"].is_null(), "{problem}");
        for field in ["title", "detail", "code", "rule", "message"] {
            assert!(problem[field].is_string(), "{field}: {problem}");
        }
        problem["code"].as_str().unwrap().to_owned()
    };
    assert_eq!(problem("GET", "/v1/nothing", None, 404), "unknown-address");
    assert_eq!(problem("DELETE", "/v1/runs", None, 405), "bad-method");
    assert_eq!(problem("GET", "/v1/runs/none", None, 404), "unknown-run");
    assert_eq!(problem("GET", "/v1/runs?colour=red", None, 400), "unknown-field");
    assert_eq!(problem("GET", "/v1/runs?limit=0", None, 400), "bad-parameter");
    assert_eq!(problem("GET", "/v1/runs?status=odd", None, 400), "bad-parameter");
    assert_eq!(problem("POST", "/v1/runs", Some("{"), 400), "no-json");
    assert_eq!(problem("POST", "/v1/runs", Some("{}"), 400), "bad-body");
    assert_eq!(problem("POST", "/v1/runs", Some(r#"{"documnet": {}}"#), 400), "unknown-field");
    assert_eq!(problem("POST", "/v1/runs", Some(r#"{"name": "none"}"#), 404), "unknown-document");

    // All that is wrong with a document, each with its place.
    let document = json!({"document": "{\"task\": \"t\", \"nodes\": [{\"node_type\": \"odd\"}, {\"node_type\": \"odder\"}]}"});
    let wrong = server.ask("POST", "/v1/runs", Some(&document)).is(422).json();
    let found = wrong["diagnostics"].as_array().unwrap();
    assert!(found.len() > 1 && found.iter().all(|found| found["line"] == 1), "{wrong:#}");
    assert_eq!(server.get("/v1/runs")["runs"], json!([]), "nothing half-runs");
}

#[test]
fn s06_limits_hold() {
    let place = place();
    place.write("selvedge.toml", "[limits]\ndocument_bytes = 2000\n");
    let server = Server::start(&place, &["--script", "replies.yaml"]);
    let large = json!({"document": "x".repeat(4000)});
    assert_eq!(server.ask("POST", "/v1/runs", Some(&large)).is(413).json()["code"], "too-large");
    // A length that nobody keeps is believed no further than that.
    let head = format!(
        "POST /v1/runs HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\nContent-Length: 1000000000\r\n\r\n",
        server.address, server.token
    );
    server.raw(format!("{head}{}", "y".repeat(4000)).as_bytes()).is(413);
    // A head that is too long, and one that never ends.
    let long = format!("GET /{} HTTP/1.1\r\nHost: {}\r\n\r\n", "z".repeat(100_000), server.address);
    let mut stream = server.connect();
    let _ = stream.write_all(long.as_bytes());
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
    let mut slow = server.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    assert!(!String::from_utf8_lossy(&rest).contains("200 OK"), "a head has 10 s");
    server.get("/v1/runs");
}

#[test]
fn s06_no_more_runs_than_may() {
    let place = place();
    place.write("slow.yaml", "- reply: {text: Hello., delay_ms: 600000}\n");
    let server = Server::start(&place, &["--script", "slow.yaml", "--max-runs", "1"]);
    let first = server.begin(greeting());
    let full = server.ask("POST", "/v1/runs", Some(&json!({"document": greeting()}))).is(429);
    assert!(full.header("Retry-After").is_some(), "{full:#?}");
    server.ask("POST", &format!("/v1/runs/{first}/cancel"), None).is(200);
    server.wait(&first, "cancelled");
}
