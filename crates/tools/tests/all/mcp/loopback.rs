//! A server of the protocol over HTTP on this machine, which answers byte for byte as it is told.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    pub verb: String,
    pub headers: BTreeMap<String, String>,
    pub message: Value,
    /// How many requests with the same method there were before.
    pub before: usize,
}

impl Asked {
    /// The method of its message, else its verb.
    pub fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or(&self.verb)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// One thing that the server does in an answer. The connection is closed after the last.
#[derive(Clone, Debug)]
pub enum Step {
    Write(String),
    /// Writes this again and again, with so many milliseconds in between.
    Drip(&'static str, u64),
    Wait(u64),
}

type Answer = dyn Fn(&Asked) -> Option<Vec<Step>> + Send + Sync;

/// A server; `answer` goes before what is usual.
pub struct Loopback {
    pub port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Loopback {
    pub async fn start(answer: impl Fn(&Asked) -> Option<Vec<Step>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (all, answer): (_, Arc<Answer>) = (Arc::clone(&asked), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&all), Arc::clone(&answer)));
            }
        });
        Self { port, asked, task }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// The requests with this method, or verb.
    pub fn asked(&self, method: &str) -> Vec<Asked> {
        self.asked.lock().unwrap().iter().filter(|asked| asked.method() == method).cloned().collect()
    }
}

async fn serve(mut stream: TcpStream, all: Arc<Mutex<Vec<Asked>>>, answer: Arc<Answer>) -> Option<()> {
    let mut text = Vec::new();
    let body = loop {
        if let Some(end) = text.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end + 4;
        }
        stream.read_buf(&mut text).await.ok().filter(|read| *read > 0)?;
    };
    let head = String::from_utf8(text[..body].to_vec()).unwrap();
    let mut lines = head.lines();
    let verb = lines.next()?.split(' ').next()?.to_owned();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    while text.len() < body + length {
        stream.read_buf(&mut text).await.ok().filter(|read| *read > 0)?;
    }
    let message = serde_json::from_slice(&text[body..]).unwrap_or(Value::Null);
    let mut asked = Asked { verb, headers, message, before: 0 };
    {
        let mut all = all.lock().unwrap();
        asked.before = all.iter().filter(|other| other.method() == asked.method()).count();
        all.push(asked.clone());
    }
    for step in answer(&asked).unwrap_or_else(|| usual(&asked)) {
        match step {
            Step::Write(text) => stream.write_all(text.as_bytes()).await.ok()?,
            Step::Wait(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
            Step::Drip(text, millis) => loop {
                stream.write_all(text.as_bytes()).await.ok()?;
                tokio::time::sleep(Duration::from_millis(millis)).await;
            },
        }
    }
    stream.shutdown().await.ok()
}

/// What a server of the older generation says, with a session for each handshake.
fn usual(asked: &Asked) -> Vec<Step> {
    let session = format!("mcp-session-id: session-{}\r\n", asked.before);
    match asked.method() {
        "initialize" => {
            let version = &asked.message["params"]["protocolVersion"];
            let us = json!({"name": "loopback", "version": "1"});
            let result = json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": us});
            let body = json!({"jsonrpc": "2.0", "id": asked.message["id"], "result": result});
            status(200, &format!("{session}content-type: application/json\r\n"), &body.to_string())
        }
        "tools/list" => result(asked, &json!({"tools": [echo("Echoes.")]})),
        "tools/call" => {
            text(asked, asked.message["params"]["arguments"]["text"].as_str().unwrap_or_default())
        }
        "GET" => status(405, "", ""),
        "server/discover" => status(400, "content-type: text/plain\r\n", "what?"),
        _ => status(202, "", ""),
    }
}

pub fn echo(description: &str) -> Value {
    let hints = json!({"readOnlyHint": true});
    json!({"name": "echo", "description": description, "inputSchema": {"type": "object"}, "annotations": hints})
}

/// A whole answer.
pub fn status(status: u16, headers: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    vec![Step::Write(format!(
        "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ))]
}

/// The result of a request, as JSON.
pub fn result(asked: &Asked, result: &Value) -> Vec<Step> {
    raw(asked, &result.to_string())
}

/// The same with the text of the result.
pub fn raw(asked: &Asked, result: &str) -> Vec<Step> {
    status(200, "content-type: application/json; charset=utf-8\r\n", &message(asked, result))
}

pub fn message(asked: &Asked, result: &str) -> String {
    format!(r#"{{"jsonrpc": "2.0", "id": {}, "result": {result}}}"#, asked.message["id"])
}

/// The text as the result of a call.
pub fn text(asked: &Asked, text: &str) -> Vec<Step> {
    result(asked, &json!({"content": [{"type": "text", "text": text}]}))
}

/// The beginning of events, to be followed by some.
pub fn events(first: &str) -> Step {
    Step::Write(format!(
        "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{first}"
    ))
}
