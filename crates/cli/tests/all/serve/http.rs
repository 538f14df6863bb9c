//! A server in a place of its own, and the least of a client for it.

use crate::support::Place;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long anything may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A server that is ended with this value.
pub(super) struct Server {
    child: Child,
    pub(super) address: String,
    pub(super) token: String,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    #[track_caller]
    pub(super) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:#?}");
        self
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

impl Server {
    /// Starts one on a free port; `more` are further arguments.
    #[track_caller]
    pub(super) fn start(place: &Place, more: &[&str]) -> Self {
        Self::of(place, more, |command| {
            command.stderr(std::process::Stdio::inherit());
        })
    }

    /// The same; `change` may change how its process is started.
    #[track_caller]
    pub(super) fn of(place: &Place, more: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let args = [&["serve", "--listen", "127.0.0.1:0"], more].concat();
        let mut command = place.command(&args);
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("https://").or_else(|| line.trim().strip_prefix("http://"));
        let url = url.unwrap_or_else(|| panic!("a URL, not {line:?}"));
        let (address, fragment) = url.split_once('/').unwrap();
        let token = fragment.strip_prefix("#token=").unwrap_or_default().to_owned();
        Self { child, address: address.to_owned(), token }
    }

    /// Sends a request, as the operator.
    #[track_caller]
    pub(super) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let token = format!("Authorization: Bearer {}", self.token);
        self.send(method, path, &[&token], body.map(Value::to_string).as_deref())
    }

    #[track_caller]
    pub(super) fn get(&self, path: &str) -> Value {
        self.ask("GET", path, None).is(200).json()
    }

    /// Whether something is there, where the server may have too much to do.
    pub(super) fn try_get(&self, path: &str) -> bool {
        let Ok(mut stream) = TcpStream::connect(&self.address) else { return false };
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            self.address, self.token
        );
        let mut text = String::new();
        let answered = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut text));
        answered.is_ok() && text.starts_with("HTTP/1.1 200 ")
    }

    /// Sends a request with these headers.
    #[track_caller]
    pub(super) fn send(&self, method: &str, path: &str, headers: &[&str], body: Option<&str>) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            request.push_str(&format!("Host: {}\r\n", self.address));
        }
        headers.iter().for_each(|header| request.push_str(&format!("{header}\r\n")));
        if let Some(body) = body {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        request.push_str(body.unwrap_or_default());
        self.raw(request.as_bytes())
    }

    /// Sends bytes, and reads what comes until the connection ends.
    #[track_caller]
    pub(super) fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Answer { status: status.unwrap_or(0), head: head.to_owned(), body: body.to_owned() }
    }

    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Watches a run's events.
    pub(super) fn watch(&self, run: &str, query: &str, header: &str) -> Watch {
        let mut stream = self.connect();
        let request = format!(
            "GET /v1/runs/{run}/events{query} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{header}\r\n",
            self.address, self.token
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the head ends");
        }
        Watch { lines }
    }

    /// Waits until a run has this status.
    #[track_caller]
    pub(super) fn wait(&self, run: &str, status: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let object = self.get(&format!("/v1/runs/{run}"));
            if object["status"] == status {
                return object;
            }
            assert!(Instant::now() < deadline, "{run} is not {status}: {object:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Begins a run of a document.
    #[track_caller]
    pub(super) fn begin(&self, document: Value) -> String {
        let made = self.ask("POST", "/v1/runs", Some(&json!({"document": document}))).is(201).json();
        made["run_id"].as_str().unwrap().to_owned()
    }

    /// Ends it as SIGKILL does.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as SIGTERM does, and waits for its end.
    pub(super) fn terminate(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it ends");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Somebody who watches.
pub(super) struct Watch {
    lines: BufReader<TcpStream>,
}

impl Watch {
    /// The next event with its fields, comments left out. The pieces in which a body comes say their lengths between.
    #[track_caller]
    pub(super) fn next(&mut self) -> (Option<u64>, String, Value) {
        let (mut id, mut kind, mut data) = (None, "message".to_owned(), None);
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the stream goes on");
            let line = line.trim_end();
            match line.split_once(": ") {
                Some(("id", value)) => id = value.parse().ok(),
                Some(("event", value)) => kind = value.to_owned(),
                Some(("data", value)) => data = serde_json::from_str(value).ok(),
                _ if line.is_empty() && data.is_some() => return (id, kind, data.unwrap_or_default()),
                _ => {}
            }
        }
    }
}

/// A plan that asks a model once.
pub(super) fn greeting() -> Value {
    json!({"name": "Greeting", "task": "Greet.", "nodes": [
        {"node_id": "Greet", "node_type": "llm-first", "node_name": "Greet", "thread_id": "main", "task_prompt": "Greet the world."}]})
}

/// A workflow that asks a person.
pub(super) fn asking() -> Value {
    json!({"name": "Asking", "nodes": [
        {"id": "start", "type": "START"},
        {"id": "sure", "type": "USER_INTERACTION", "config": {"kind": "answer", "prompt": "Sure?"}},
        {"id": "end", "type": "END", "config": {"output": "{{sure.output}}"}}],
        "edges": [{"from": "start", "to": "sure"}, {"from": "sure", "to": "end"}]})
}
