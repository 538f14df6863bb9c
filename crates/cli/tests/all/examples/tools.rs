//! The library of tools.

use super::world::{Example, examples};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn recorded_calls_come_to_the_same() {
    let done = Example::new("tools").call(&["tools", "test", "--dir", ".", "--json"]);
    assert_eq!(done.code, Some(0), "{done:#?}");
}

#[test]
fn each_tool_has_recorded_calls_and_a_line_in_the_readme() {
    let folder = examples().join("tools");
    let names = |suffix: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(&folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter_map(|name| name.strip_suffix(suffix).map(str::to_owned)).collect()
    };
    let tools = names(".py");
    assert_eq!(tools.len(), 10);
    assert_eq!(tools, names(".calls.jsonl"));
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| ["));
    assert_eq!(tools, rows.filter_map(|row| row.split(']').next()).map(str::to_owned).collect());
}

/// `fetch_page` is recorded without a network; here it fetches from this machine.
#[test]
fn a_page_is_fetched_only_with_permission() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/tides", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let page = "<title>Tides</title><h1>Today</h1><p>High water at 06:12.";
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close";
            let _ = write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{page}", page.len());
        }
    });
    let example = Example::new("tools");
    let plan = json!({"task": "Read a page.", "nodes": [{
        "node_id": "page", "node_type": "tool-first", "node_name": "Read", "thread_id": "main",
        "initial_tool_name": "fetch_page", "initial_tool_args": {"url": url}
    }]});
    let document = example.state.path().join("plan.json");
    std::fs::write(&document, plan.to_string()).unwrap();
    let document = document.display().to_string();
    let tools = examples().join("tools").display().to_string();

    let refused = example.run(&document, &["--tools", &tools]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    let done = example.run(&document, &["--tools", &tools, "--allow-network"]);
    assert_eq!(done.code, Some(0), "{done:#?}");
    let output = &done.json()["results"]["page"]["output"];
    assert_eq!((&output["title"], &output["status"]), (&json!("Tides"), &json!(200)));
    assert_eq!(output["text"], "# Today\n\nHigh water at 06:12.");
}
