//! Events as they come (S-04).

use super::http::{Server, Watch, asking, greeting};
use crate::support::Place;
use serde_json::json;

/// The numbers of the events up to the first word of where the run stands.
fn until_standing(watch: &mut Watch) -> Vec<u64> {
    let mut ids = Vec::new();
    loop {
        match watch.next() {
            (Some(id), _, data) => {
                assert_eq!(data["n"], id);
                ids.push(id);
            }
            (None, kind, _) if kind == "standing" => return ids,
            _ => {}
        }
    }
}

#[test]
fn s04_each_event_comes_once_and_in_order() {
    let place = Place::new();
    place.write("replies.yaml", "- reply: {text: Hello.}\n");
    let server = Server::start(&place, &["--script", "replies.yaml"]);
    let run = server.begin(asking());
    let standing = server.wait(&run, "waiting");
    let events = standing["events"].as_u64().unwrap();
    let mut watches: Vec<Watch> = (0..20).map(|_| server.watch(&run, "", "")).collect();
    for watch in &mut watches {
        assert_eq!(until_standing(watch), (1..=events).collect::<Vec<_>>());
    }
    // What comes later comes to all of them, and where each run stands then.
    let ask = standing["asks"][0]["ask"].as_str().unwrap().replace('/', "%2F");
    server.ask("POST", &format!("/v1/runs/{run}/asks/{ask}"), Some(&json!({"answer": "yes"}))).is(200);
    let last = server.wait(&run, "completed")["events"].as_u64().unwrap();
    for watch in &mut watches {
        let mut next = events + 1;
        while next <= last {
            if let (Some(id), _, _) = watch.next() {
                assert_eq!(id, next);
                next += 1;
            }
        }
    }
    // Who comes again goes on where it was.
    let again = until_standing(&mut server.watch(&run, "?after=1", &format!("Last-Event-ID: {events}\r\n")));
    assert_eq!(again, (events + 1..=last).collect::<Vec<_>>());
    let behind = until_standing(&mut server.watch(&run, &format!("?after={}", last + 7), ""));
    assert_eq!(behind, Vec::<u64>::new());
    drop(watches);
}

#[test]
fn s04_a_run_that_another_process_drives_is_watched_as_well() {
    let place = Place::new();
    place.write("slow.yaml", "- reply: {text: Hello., delay_ms: 1500}\n");
    place.write("plan.json", &greeting().to_string());
    let server = Server::start(&place, &[]);
    let other = place.start(&["run", "plan.json", "--script", "slow.yaml", "--run-id", "theirs"]);
    let deadline = std::time::Instant::now() + super::http::PATIENCE;
    while server.ask("GET", "/v1/runs/theirs", None).status != 200 {
        assert!(std::time::Instant::now() < deadline, "it begins");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut watch = server.watch("theirs", "", "");
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != "ended") {
        if let (Some(_), _, data) = watch.next() {
            kinds.push(data["kind"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(kinds.first().map(String::as_str), Some("started"));
    crate::support::finish(other).exits(0);
}

#[test]
fn s04_streamed_text_comes_without_a_number() {
    let place = Place::new();
    place.write("slow.yaml", "- reply: {text: Once upon a time., delay_ms: 300}\n");
    let server = Server::start(&place, &["--script", "slow.yaml"]);
    let run = server.begin(greeting());
    let mut watch = server.watch(&run, "", "");
    loop {
        let (id, kind, data) = watch.next();
        if kind == "delta" {
            assert_eq!((id, &data["node"]), (None, &json!("Greet")));
            return;
        }
        assert!(data["kind"] != "ended", "no text came");
    }
}
