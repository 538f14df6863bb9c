//! A model that answers as its name says, over HTTP on the loopback: what the workloads over HTTP talk to.
//!
//! `mock?latency=50&tools=5` waits 50 ms and asks for a tool in the first five rounds after the last user message.
//! `GET /stats` says how many chat requests came and when the first one did; `POST /reset` starts counting anew.
#![allow(clippy::indexing_slicing, reason = "a field that a JSON value lacks is null")]

use crate::Result;
use serde_json::{Value, json};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

#[derive(Default)]
struct Stats {
    requests: AtomicU64,
    first_ns: AtomicU64,
}

/// Serves until the process is ended; says its address on the first line of stdout.
#[allow(clippy::print_stdout, reason = "the address is what the parent waits for")]
pub(crate) fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}/v1", listener.local_addr()?);
        std::io::stdout().flush()?;
        let stats = Arc::new(Stats::default());
        loop {
            let (stream, _) = listener.accept().await?;
            let stats = Arc::clone(&stats);
            // A client that goes away ends its connection and nothing else.
            tokio::spawn(async move { connection(stream, &stats).await.map_err(|error| error.to_string()) });
        }
    })
}

async fn connection(stream: TcpStream, stats: &Stats) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let mut fields = head.lines().filter_map(|line| line.split_once(':'));
        let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length = length.map_or(Ok(0), |(_, value)| value.trim().parse::<usize>())?;
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let answer = if head.starts_with("GET /stats") {
            let first = stats.first_ns.load(Ordering::Relaxed);
            whole(&json!({"requests": stats.requests.load(Ordering::Relaxed), "first_ns": first}))
        } else if head.starts_with("POST /reset") {
            stats.requests.store(0, Ordering::Relaxed);
            stats.first_ns.store(0, Ordering::Relaxed);
            whole(&json!({}))
        } else {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
            if stats.requests.fetch_add(1, Ordering::Relaxed) == 0 {
                stats.first_ns.store(u64::try_from(now)?, Ordering::Relaxed);
            }
            chat(&serde_json::from_slice(&body)?).await
        };
        stream.get_mut().write_all(answer.as_bytes()).await?;
    }
}

fn whole(body: &Value) -> String {
    let body = body.to_string();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn chat(request: &Value) -> String {
    let model = request["model"].as_str().unwrap_or_default();
    let setting = |name: &str| {
        let settings = model.split_once('?').map_or("", |(_, settings)| settings).split('&');
        let mut values =
            settings.filter_map(|setting| setting.split_once('=')).filter(|(key, _)| *key == name);
        values.next().and_then(|(_, value)| value.parse::<u64>().ok()).unwrap_or(0)
    };
    let latency = setting("latency");
    if latency > 0 {
        tokio::time::sleep(Duration::from_millis(latency)).await;
    }
    let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let last = messages.iter().rev().take_while(|message| message["role"] != "user");
    let round = last.filter(|message| message["role"] == "tool").count() as u64;
    let (message, stop) = if round < setting("tools") {
        let arguments = json!({ "x": round }).to_string();
        let function = json!({"name": request["tools"][0]["function"]["name"], "arguments": arguments});
        let call =
            json!({"index": 0, "id": format!("call_{round}"), "type": "function", "function": function});
        (json!({"role": "assistant", "tool_calls": [call]}), "tool_calls")
    } else {
        (json!({"role": "assistant", "content": format!("h:{:016x}", messages.len())}), "stop")
    };
    let usage = json!({"prompt_tokens": messages.len(), "completion_tokens": 1});
    if request["stream"] != true {
        let choice = json!({"index": 0, "message": message, "finish_reason": stop});
        return whole(&json!({"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}));
    }
    let delta = json!({"id": "c", "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": message, "finish_reason": null}]});
    let end = json!({"id": "c", "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {}, "finish_reason": stop}], "usage": usage});
    let body = format!("data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
