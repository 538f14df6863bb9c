//! What a server bears (S-01, S-04, S-06).

use super::http::{PATIENCE, Server, greeting};
use crate::support::Place;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

fn place() -> Place {
    let place = Place::new();
    place.write("replies.yaml", "- reply: {text: Hello.}\n");
    place
}

/// There are as many connections as there may be: one more is told so, and one that ends makes room.
#[test]
fn s06_more_connections_than_may_be_are_refused() {
    const MOST: usize = 1024;
    let place = place();
    let server = Server::start(&place, &[]);
    // They say nothing; after 10 s they are ended, and others take their place.
    let mut held: Vec<TcpStream> = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    let refused = loop {
        assert!(Instant::now() < deadline, "{} connections", held.len());
        while held.len() < MOST {
            held.push(server.connect());
        }
        let mut one_more = server.connect();
        one_more.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut answer = String::new();
        let _ = one_more.read_to_string(&mut answer);
        if answer.starts_with("HTTP/1.1 503 ") {
            break answer;
        }
        held.clear();
    };
    assert!(refused.contains("too-many-connections") && refused.contains("Retry-After"), "{refused}");
    drop(held);
    let deadline = Instant::now() + PATIENCE;
    while !server.try_get("/v1/runs") {
        assert!(Instant::now() < deadline, "there is room again");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Bodies that never come, that break off, and that are nothing.
#[test]
fn s06_bodies_are_whole_or_refused() {
    let place = place();
    let server = Server::start(&place, &["--script", "replies.yaml"]);
    let head = |length: usize| {
        format!(
            "POST /v1/runs HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n",
            server.address, server.token
        )
    };
    // One that is half sent, and whose sender is gone: nothing begins.
    let mut broken = server.connect();
    broken.write_all(format!("{}{{\"document\": ", head(1000)).as_bytes()).unwrap();
    broken.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    broken.read_to_string(&mut answer).unwrap();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    // One that is not sent at all has ten seconds.
    let mut slow = server.connect();
    slow.write_all(head(1000).as_bytes()).unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("slow-body"), "{answer}");
    // None at all, where there has to be one; and one that is no text.
    server.raw(head(0).as_bytes()).is(400);
    server.raw(&[head(4).as_bytes(), &[0xff, 0xfe, 0, 0x22]].concat()).is(400);
    assert_eq!(server.get("/v1/runs")["runs"], json!([]), "nothing half-runs");
}

/// Who takes nothing holds up neither the run nor those who watch with him.
#[test]
fn s04_who_never_reads_holds_up_nobody() {
    let place = place();
    let nodes: Vec<_> = (0..300)
        .map(|n| {
            json!({"node_id": format!("n{n}"), "node_type": "llm-first", "node_name": "N", "thread_id": format!("t{n}"),
                   "task_prompt": "x".repeat(2000)})
        })
        .collect();
    let server = Server::start(&place, &["--script", "replies.yaml"]);
    let run = server.begin(json!({"task": "Much.", "nodes": nodes}));
    let mute: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = server.connect();
            let request = format!(
                "GET /v1/runs/{run}/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
                server.address, server.token
            );
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    let events = server.wait(&run, "completed")["events"].as_u64().unwrap();
    let mut watch = server.watch(&run, "", "");
    for n in 1..=events {
        assert_eq!(watch.next().0, Some(n));
    }
    drop(mute);
}

/// A state folder of a version to come is left alone, and said.
#[test]
fn s01_a_state_folder_of_a_newer_version_is_left_alone() {
    let place = place();
    place.write("plan.json", &greeting().to_string());
    place.run(&["run", "plan.json", "--script", "replies.yaml"]).exits(0);
    let file = place.state().join("selvedge.db");
    let database = rusqlite::Connection::open(&file).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    drop(database);
    let done = place.run(&["serve", "--listen", "127.0.0.1:0", "--json"]).exits(4);
    assert_eq!(done.error()["code"], "state-newer", "{done:#?}");
}
